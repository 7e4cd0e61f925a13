// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package unwedge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kubestandup/kubestandup/pkg/cmd/util"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/printers"
	"github.com/kubestandup/kubestandup/pkg/progress"
	"github.com/kubestandup/kubestandup/pkg/tiers"
	"github.com/kubestandup/kubestandup/pkg/wedge"
)

// run is the whole command: observe, judge, print the plan and, where that was
// asked for, carry it out.
func (o *Options) run(ctx context.Context) error {
	target, err := o.shell.Target(ctx, o.Target, o.Apply || o.proof)
	if err != nil {
		return err
	}
	deadlocks, err := util.CRDs(target)
	if err != nil {
		return err
	}
	defer deadlocks.Close()
	cluster, err := util.Wedges(target, deadlocks)
	if err != nil {
		return err
	}
	if o.Namespace != "" && !cluster.HasNamespace(ctx, o.Namespace) {
		return fmt.Errorf("namespace %s does not exist", o.Namespace)
	}
	world, err := cluster.Observe(ctx, o.Choices)
	if err != nil {
		return err
	}
	o.lookAtCache(world, target)
	plan, err := o.plan(world, target)
	if err != nil {
		return err
	}
	if !o.Apply {
		if err := cluster.Rehearse(ctx, plan.Verdicts); err != nil {
			return err
		}
		if err := o.print(plan); err != nil {
			return err
		}
		return o.dryEnd(plan, target)
	}
	if o.Output == "" {
		if err := o.print(plan); err != nil {
			return err
		}
	}
	backups, err := o.backups(target)
	if err != nil {
		return err
	}
	shown := progress.For(o.shell.ErrOut)
	tally, err := cluster.Execute(ctx, world, plan.Verdicts, wedge.Execution{
		Destructive: o.ConfirmDestructive, Backups: backups, Timeout: o.Timeout, Say: o.say(shown),
		Waits: func(a *wedge.Action, why string) { shown.Set(subject(a), why) },
	})
	shown.Close()
	if o.Output != "" {
		err = errors.Join(err, o.print(plan))
	}
	o.restoring(plan, backups, target)
	if err != nil {
		return err
	}
	return o.end(plan, tally, target)
}

// lookAtCache adds kubectl's own discovery cache of this server, which is on
// this machine and wedges what is typed here.
func (o *Options) lookAtCache(world *wedge.World, target *util.Target) {
	dir := ""
	if flag := o.shell.ConfigFlags.CacheDir; flag != nil {
		dir = *flag
	}
	cache, err := wedge.ObserveCache(wedge.CacheRoot(dir), target.Config().Host)
	if err != nil {
		world.Gaps = append(world.Gaps, wedge.Gap{What: "kubectl's discovery cache", Why: err.Error()})
		return
	}
	world.Cache = cache
}

// plan judges, and leaves out what was not asked about.
func (o *Options) plan(world *wedge.World, target *util.Target) (*wedge.Plan, error) {
	plan := &wedge.Plan{
		TypeMeta: printers.TypeMeta("UnwedgePlan"),
		Server:   tiers.Server{URL: target.Identity.URL, UID: target.Identity.UID},
		Verdicts: wedge.Judge(world),
		Gaps:     world.Gaps,
	}
	if err := o.known(world, plan, target); err != nil {
		return nil, err
	}
	o.noteElsewhere(world, plan)
	plan.Verdicts = slices.DeleteFunc(plan.Verdicts, func(v wedge.Verdict) bool { return !o.wants(&v) })
	plan.Gaps = slices.DeleteFunc(plan.Gaps, func(g wedge.Gap) bool {
		missed := func(name string) bool { return world.Missed(g, name) }
		return g.Object != nil && (!o.inScope(*g.Object) || len(o.Names) > 0 && !slices.ContainsFunc(o.Names, missed))
	})
	for i := range plan.Verdicts {
		o.commands(&plan.Verdicts[i], target)
	}
	wedge.Address(plan.Verdicts, func(command string) string {
		if strings.HasPrefix(command, "helm ") {
			return strings.TrimSpace(command + " " + target.HelmArgs())
		}
		return strings.TrimSpace(command + " " + target.KubectlArgs())
	})
	return plan, nil
}

// known refuses a name that nothing on the cluster has: a mistyped one must
// not read as "nothing is wedged". Of one that is there and has no verdict it
// says so.
func (o *Options) known(world *wedge.World, plan *wedge.Plan, target *util.Target) error {
	for _, name := range o.Names {
		if slices.ContainsFunc(plan.Verdicts, func(v wedge.Verdict) bool { return v.About(name) }) ||
			slices.ContainsFunc(world.Gaps, func(g wedge.Gap) bool { return world.Missed(g, name) }) {
			continue
		}
		found := world.Called(name)
		found = slices.DeleteFunc(found, func(r flux.Ref) bool { return !o.inScope(r) })
		kind, rest, _ := strings.Cut(name, "/")
		switch {
		case len(found) > 0:
			for _, ref := range found {
				o.note(o.notWedged(world, ref, target))
			}
		case world.Named[name].Kind == "" && kind != "release":
			return fmt.Errorf("%s: the server has no type %q", name, kind)
		case len(world.Gaps) == 0:
			return fmt.Errorf("%s %s does not exist", orText(world.Named[name].Kind, "release"), rest)
		}
	}
	return nil
}

func orText(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

// notWedged says how an object is that nothing is wedged about.
func (o *Options) notWedged(world *wedge.World, ref flux.Ref, target *util.Target) string {
	if world.Graph != nil {
		if n := world.Graph.Node(ref); n != nil && n.State != tiers.Ready {
			return fmt.Sprintf("%s is not Ready, but not wedged: %s. See %s", ref, n.Why, target.Command("tiers", "why "+wedge.Arg(ref)))
		}
	}
	return ref.String() + " is there, and nothing about it is wedged."
}

// wants is true for a verdict that was asked for. To be acted upon, it has to
// be about what was named; to be shown, it is enough that this takes part.
func (o *Options) wants(v *wedge.Verdict) bool {
	if len(o.Only) > 0 && !slices.Contains(o.Only, string(v.Cause)) {
		return false
	}
	if !o.inScope(v.Object) {
		return false
	}
	return len(o.Names) == 0 || slices.ContainsFunc(o.Names, func(name string) bool {
		return wedge.Matches(name, v.Object) || !o.Apply && v.About(name)
	})
}

// inScope is true for what -n leaves in: the namespace, and what is in it.
func (o *Options) inScope(ref flux.Ref) bool {
	return o.Namespace == "" || ref.Namespace == o.Namespace ||
		ref.Namespace == "" && ref.Kind == "Namespace" && ref.Name == o.Namespace
}

// names is true for an object that was asked about.
func (o *Options) names(ref flux.Ref) bool {
	return o.inScope(ref) && (len(o.Names) == 0 || slices.ContainsFunc(o.Names, func(name string) bool { return wedge.Matches(name, ref) }))
}

// dryEnd says how the plan is carried out, and ends a dry run.
func (o *Options) dryEnd(plan *wedge.Plan, target *util.Target) error {
	n := count(plan)
	o.allClear(plan)
	switch {
	case n.gentle > 0:
		o.note("Nothing was changed. To do what deletes nothing: " + target.Command("unwedge", o.again("--apply")))
	case n.open > 0:
		o.note("Nothing was changed.")
	}
	switch {
	case n.destructive == 1:
		o.note("To do what deletes, too: " + target.Command("unwedge", o.again("--confirm-destructive")))
	case n.destructive > 1:
		o.note(fmt.Sprintf("%d of the plans delete something: name one object, or one cause with --only, and add --confirm-destructive, as in %s",
			n.destructive, target.Command("unwedge", o.example(plan)+" --confirm-destructive")))
	}
	if err := gapError(plan); err != nil {
		return err
	}
	switch {
	case o.Choices.Uninstalling != "" && n.chosen > 0:
		return util.Exit(util.ExitRefused, fmt.Errorf("--uninstalling=%s is done only together with --confirm-destructive: nothing was changed", o.Choices.Uninstalling))
	case o.ExitCode && n.open > 0:
		return util.Silent(util.ExitNotReady)
	}
	return nil
}

// example names the first object whose plan deletes something.
func (o *Options) example(plan *wedge.Plan) string {
	for i := range plan.Verdicts {
		if v := &plan.Verdicts[i]; v.Destructive() && v.Refused == "" {
			alone := *o
			alone.Names, alone.Only = []string{wedge.Arg(v.Object)}, []string{string(v.Cause)}
			return strings.TrimSpace(alone.again(""))
		}
	}
	return ""
}

// end turns how the actions ended into an error and its exit code.
func (o *Options) end(plan *wedge.Plan, tally wedge.Tally, target *util.Target) error {
	o.allClear(plan)
	var errs []error
	for i := range plan.Verdicts {
		v := &plan.Verdicts[i]
		errs = append(errs, o.failures(v, target)...)
	}
	code := util.ExitDone
	switch {
	case tally.Failed > 0 || tally.Skipped > 0:
		code = util.ExitError
	case tally.Late > 0:
		code = util.ExitDeadline
	case tally.Refused > 0:
		code = util.ExitRefused
	}
	if err := gapError(plan); err != nil {
		errs = append(errs, err)
		if code == util.ExitDone {
			code = util.ExitError
		}
	}
	if code == util.ExitDone {
		if o.ExitCode && unrepaired(plan) {
			return util.Silent(util.ExitNotReady)
		}
		return nil
	}
	return util.Exit(code, errors.Join(errs...))
}

// unrepaired is true where a wedge is left that no action of ours repairs.
func unrepaired(plan *wedge.Plan) bool {
	return slices.ContainsFunc(plan.Verdicts, func(v wedge.Verdict) bool { return v.Open() && len(v.Actions) == 0 })
}

// failures are the sentences about what of a verdict was not done.
func (o *Options) failures(v *wedge.Verdict, target *util.Target) []error {
	switch {
	case v.Refused != "":
		return []error{fmt.Errorf("%s: %s", v.Object, v.Refused)}
	case v.Choice != nil:
		return []error{fmt.Errorf("%s: a person has to choose: %s", v.Object, strings.Join(choices(v), "\n  or "))}
	case v.Destructive() && !o.ConfirmDestructive:
		return []error{fmt.Errorf("%s: left as it is, since its repair deletes something, or overwrites what nothing makes again: %s", v.Object, target.Command("unwedge", o.again("--confirm-destructive")))}
	}
	var errs []error
	for _, a := range v.Actions {
		if a.Result != wedge.Done && a.Result != "" && a.Message != wedge.NotReached {
			said := a.Message
			if !strings.Contains(said, a.Object.String()) {
				said = a.Object.String() + ": " + said
			}
			errs = append(errs, errors.New(said))
		}
	}
	return errs
}

// commands gives each way to decide the command that does it.
func (o *Options) commands(v *wedge.Verdict, target *util.Target) {
	if v.Choice == nil {
		return
	}
	alone := *o
	alone.Names, alone.Only, alone.Namespace = []string{wedge.Arg(v.Object)}, nil, ""
	for i := range v.Choice.Options {
		option := &v.Choice.Options[i]
		if option.Refused == "" {
			option.Command = target.Command("unwedge", alone.again(v.Choice.Flag+"="+option.Value+" --confirm-destructive"))
		}
	}
}

// choices are the commands of the ways that are open.
func choices(v *wedge.Verdict) []string {
	var out []string
	for _, option := range v.Choice.Options {
		if option.Command != "" {
			out = append(out, option.Command)
		}
	}
	return out
}

func gapError(plan *wedge.Plan) error {
	var errs []error
	for _, g := range plan.Gaps {
		if g.What == "" {
			errs = append(errs, errors.New(g.Why))
			continue
		}
		errs = append(errs, fmt.Errorf("%s: not looked at: %s", g.What, g.Why))
	}
	return errors.Join(errs...)
}

// counts are how many verdicts ask for something.
type counts struct{ open, gentle, destructive, chosen int }

func count(plan *wedge.Plan) counts {
	var n counts
	for i := range plan.Verdicts {
		v := &plan.Verdicts[i]
		if v.Open() {
			n.open++
		}
		if len(v.Actions) == 0 || v.Refused != "" {
			continue
		}
		if v.Destructive() {
			n.destructive++
		} else {
			n.gentle++
		}
		if v.Cause == wedge.ReleaseUninstalling {
			n.chosen++
		}
	}
	return n
}

// allClear says so when nothing has to be done.
func (o *Options) allClear(plan *wedge.Plan) {
	in := ""
	if o.Namespace != "" {
		in = " in namespace " + o.Namespace
	}
	switch {
	case len(plan.Gaps) > 0 || count(plan).open > 0:
	case len(plan.Verdicts) > 0:
		o.note("Nothing has to be done: what stands above ends by itself, or waits for something else.")
	case len(o.Names) == 0:
		o.note("Nothing is wedged" + in + ".")
	}
}

func (o *Options) note(text string) {
	fmt.Fprintln(o.shell.ErrOut, printers.OneLine(text))
}
