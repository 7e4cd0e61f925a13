// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package tiers

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/kubestandup/kubestandup/pkg/cmd/util"
	"github.com/kubestandup/kubestandup/pkg/crds"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/printers"
	"github.com/kubestandup/kubestandup/pkg/tiers"
)

func newCmdWhy(f *Flags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "why NAME",
		Short: "Say why a tier is not Ready, down to the root cause",
		Long: templates.LongDesc(`
			Follow what blocks a tier down to the tier that is red for its own reason, with the
			evidence at each step. Where that tier lacks a kind, build it as Flux would and say
			whether a retry will heal it or whether it is a deadlock.`),
		Example: templates.Examples(`
			# Why the VMs do not come up
			kubectl tiers why apps-vms`),
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: util.CompleteNames(f.names),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.why(cmd.Context(), args[0])
		},
	}
	return cmd
}

func (f *Flags) why(ctx context.Context, name string) error {
	target, err := f.shell.Target(ctx, f.Target, false)
	if err != nil {
		return err
	}
	snapshot, err := flux.Read(ctx, target.Config())
	if err != nil {
		return err
	}
	g := tiers.Build(snapshot, tiers.Options{})
	n, err := find(g, f.narrowed(), name)
	if err != nil {
		return err
	}
	out := &whyWriter{w: f.shell.Out, now: time.Now()}
	out.chain(g, n)
	root := g.Node(rootOf(n))
	if n.State == tiers.Ready || root == nil || !root.MayMissKind() {
		return out.err
	}
	if err := f.whyMissing(ctx, target, snapshot, root, out); err != nil {
		return err
	}
	return out.err
}

func rootOf(n *tiers.Node) flux.Ref {
	if n.Root == nil {
		return n.Ref
	}
	return n.Root.Object
}

// whyMissing builds the tier that lacks kinds and says whether that is a
// deadlock.
func (f *Flags) whyMissing(ctx context.Context, target *util.Target, s *flux.Snapshot, root *tiers.Node, out *whyWriter) error {
	cluster, err := util.CRDs(target)
	if err != nil {
		return err
	}
	defer cluster.Close()
	d, err := cluster.Diagnose(ctx, s, root.Ref)
	if err != nil {
		return fmt.Errorf("whether a retry will heal %s could not be found out: %w", root.Ref, err)
	}
	var operators []crds.Operator
	for _, t := range d.Triggers {
		o, err := cluster.Operator(ctx, t.Relation)
		if err != nil {
			return err
		}
		operators = append(operators, o)
	}
	out.diagnosis(d, operators, target)
	return nil
}

// whyWriter prints the answer, and keeps the first error of printing it.
type whyWriter struct {
	w   io.Writer
	now time.Time
	err error
}

func (o *whyWriter) say(format string, args ...any) {
	line := strings.ReplaceAll(printers.EscapeTerminal(fmt.Sprintf(format, args...)), "\n", " ")
	if _, err := fmt.Fprintln(o.w, line); err != nil && o.err == nil {
		o.err = err
	}
}

// chain prints how a tier is blocked, down to its root cause.
func (o *whyWriter) chain(g *tiers.Graph, n *tiers.Node) {
	o.say("%s: %s", n.Ref, n.State)
	if n.State == tiers.Ready {
		o.say("  Ready at %s, the revision that %s has now", n.AppliedRevision(), n.Source)
		return
	}
	for i, b := range n.Root.Chain() {
		o.say("%*s└ %s", 2*i+2, "", b.Message)
	}
	o.say("")
	o.say("Root cause: %s, %s", n.Root.Object, n.Root.State)
	o.say("  %s", util.FirstLine(n.Root.Message))
	if root := g.Node(n.Root.Object); root != nil && root.State == tiers.Retrying && !root.RetryAt.IsZero() {
		o.say("  Flux tries again %s", util.When(root.RetryAt, o.now))
	}
}

// diagnosis prints why a kind is missing and what to do about it.
func (o *whyWriter) diagnosis(d *crds.Diagnosis, operators []crds.Operator, target *util.Target) {
	o.say("")
	o.say("%s%s", strings.ToUpper(d.Why[:1]), d.Why[1:])
	for _, m := range d.Missing {
		line := fmt.Sprintf("  missing  %s %s", m.Kind.Kind, m.Kind.GroupVersion())
		if len(m.OtherVersions) > 0 {
			line += " (served as " + strings.Join(m.OtherVersions, ", ") + ")"
		}
		o.say("%s, needed by %s", line, printRefs(m.Objects))
	}
	for _, t := range d.Kept() {
		o.say("  trigger  %s, in this tier and not on the cluster", t.Object.Ref())
	}
	for _, op := range operators {
		o.say("  seen     %s", op.Sentence())
	}
	switch d.Verdict {
	case crds.Deadlock:
		o.say("  fix      %s", target.Command("standup", "crds"))
	case crds.NowServed:
		o.say("  fix      %s", target.Command("standup", "crds")+"   (a nudge is enough)")
	}
}

func printRefs(refs []flux.Ref) string {
	const most = 3
	var names []string
	for _, r := range refs[:min(len(refs), most)] {
		names = append(names, r.String())
	}
	if more := len(refs) - most; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}
