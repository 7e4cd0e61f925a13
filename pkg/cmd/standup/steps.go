// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/kubestandup/kubestandup/pkg/cmd/unwedge"
	"github.com/kubestandup/kubestandup/pkg/cmd/util"
	"github.com/kubestandup/kubestandup/pkg/guard"
	"github.com/kubestandup/kubestandup/pkg/standup"
)

// waitTimeout is how long an operator may take to create its kinds: the real
// ones take a second, one whose image is still being pulled a few minutes.
const waitTimeout = 5 * time.Minute

// stepCommands are the steps of the recipe, each as a command.
func stepCommands(f *Flags) []*cobra.Command {
	var all []*cobra.Command
	for _, step := range standup.Recipe() {
		if step.Name == "unwedge" { // it has a plan to show, and choices to make
			cmd := unwedge.NewStep(f.shell, &f.Target)
			cmd.Short = step.Short
			all = append(all, cmd)
			continue
		}
		all = append(all, newCmdStep(f, step))
	}
	return append(all, newCmdAll(f))
}

// help is what the commands say beyond the sentence of the recipe.
func help(name string) (long, example string) {
	switch name {
	case "preflight":
		return `
			Look at the identity of the server, its nodes, Flux's controllers and sources, the
			decryption Secrets, the variables, the kinds that each tier needs, names, inventories,
			wedges and every tier, and report what stands in the way of a bring-up: each root cause
			once, a deadlock before it happens, and what the operator behind a missing kind is
			doing. Nothing is changed.

			Exit status: 3 when something was found, 0 when nothing was.`, ""
	case "crds":
		return `
			Apply what no controller will: the CRDs of the charts that standup.yaml names, from the
			chart and with the values that Flux reconciles, server-side, and updated only where
			nobody else manages them.

			Then break the deadlocks. Some kinds are registered by an operator only once it has
			reconciled a resource, the trigger. A tier that holds the trigger together with such
			kinds never comes up on a cold cluster. This step finds those tiers, applies the trigger
			alone, exactly as Flux would, waits until the kinds are served, and asks Flux to
			reconcile the tier. Flux takes the trigger over. Nothing else is applied.

			Exit status: 3 when something is left; 4 when kinds did not appear in time; 6 when
			applying a trigger makes no sense yet, with the reason.`, `
			# Say what would be applied, and let the server check it
			kubectl standup crds --dry-run

			# Do it
			kubectl standup crds`
	case "resume":
		return `
			List each suspended tier with who suspended it and when, and resume those that are
			meant to run, in the order of the live graph: a tier as soon as what it depends on is
			Ready, all others of its level beside it, each asked to reconcile at once.

			Left alone are the tiers in resume.skip of standup.yaml, those annotated
			kubestandup.dev/hold with a reason, those whose manifest in git says suspend: true, and
			those that a placeholder blocks. A HelmRelease whose resume would uninstall its release
			is refused. The first tier that is wedged or past its deadline stops the run, with its
			root cause; run again, the step does what is left.

			Exit status: 3 when a tier is wedged or held back; 4 past a deadline; 6 refused.`, `
			# Say what would be resumed, and in which order
			kubectl standup resume --dry-run

			# Do it
			kubectl standup resume`
	case "verify":
		return `
			Prove that the cluster is up: every tier Ready at the revision that its source has now,
			every release, and every object that the tiers applied. What a status does not tell is
			counted as unproved, never as well; a check in standup.yaml can prove it. A tier that is
			Ready and cannot do what it is for, because of a placeholder, is named. Nothing is
			changed.

			Exit status: 3 when something failed, 0 when nothing did.`, ""
	}
	return "", ""
}

func newCmdStep(f *Flags, step standup.Step) *cobra.Command {
	o := &options{output: util.NewOutput("json", "yaml"), timeout: waitTimeout}
	long, example := help(step.Name)
	cmd := &cobra.Command{
		Use: step.Name, Short: step.Short, Long: templates.LongDesc(long), Example: templates.Examples(example),
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.steps = []standup.Step{step}
			return f.run(cmd.Context(), o)
		},
	}
	o.addFlags(cmd, step.Changes)
	return cmd
}

func newCmdAll(f *Flags) *cobra.Command {
	o := &options{output: util.NewOutput("json", "yaml"), timeout: waitTimeout}
	var from string
	var destructive bool
	cmd := &cobra.Command{
		Use:   "all",
		Short: "Run the steps in turn, and stop short of anything destructive",
		Long: templates.LongDesc(fmt.Sprintf(`
			Run %s, in this order. unwedge stays a dry run: nothing is deleted, whatever is
			found. A finding that blocks stops the sequence, and so does a step that fails, with
			the command that goes on; any other finding names the step that repairs it. Run again
			from the top, it does only what is left.

			Exit status: 0 when every step after preflight ended well; else that of the step that
			stopped it, or 3.`, strings.Join(stepNames(), ", "))),
		Example: templates.Examples(`
			# Bring the cluster up
			kubectl standup all

			# Go on where it stopped, and keep a report
			kubectl standup all --from-step resume --report bringup.xml`),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if destructive {
				return util.Exit(util.ExitRefused, fmt.Errorf("--confirm-destructive is refused here: 'all' deletes nothing, by design. See the plan, then confirm it where it stands: %s unwedge", f.shell.CommandPrefix()))
			}
			var err error
			if o.steps, err = standup.Choose(from, o.skip); err != nil {
				return util.UsageError(err)
			}
			o.sequence = true
			return f.run(cmd.Context(), o)
		},
	}
	o.addFlags(cmd, true)
	fs := cmd.Flags()
	fs.StringVar(&from, "from-step", "", "Begin with this step, one of "+strings.Join(stepNames(), ", "))
	fs.StringSliceVar(&o.skip, "skip-steps", nil, "Leave these steps out, of "+strings.Join(stepNames(), ", "))
	fs.BoolVar(&destructive, "confirm-destructive", false, "Refused: 'all' deletes nothing")
	for _, name := range []string{"from-step", "skip-steps"} {
		// It fails only for a flag that is not there.
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(stepNames(), cobra.ShellCompDirectiveNoFileComp))
	}
	_ = fs.MarkHidden("confirm-destructive")
	return cmd
}

func stepNames() []string {
	var names []string
	for _, s := range standup.Recipe() {
		names = append(names, s.Name)
	}
	return names
}

// options are what was typed for the steps.
type options struct {
	steps []standup.Step
	// sequence is true for `all`, which prints a heading for each step.
	sequence bool
	dryRun   bool
	timeout  time.Duration
	report   string
	output   *util.Enum
	skip     []string
}

// repeated are the options that a printed command which goes on has to repeat.
func (o *options) repeated() string {
	var args []string
	if o.dryRun {
		args = append(args, "--dry-run")
	}
	if o.timeout != waitTimeout {
		args = append(args, "--timeout "+o.timeout.String())
	}
	if len(o.skip) > 0 {
		args = append(args, "--skip-steps "+strings.Join(o.skip, ","))
	}
	if o.report != "" {
		args = append(args, "--report "+guard.ShellQuote(o.report))
	}
	return strings.Join(args, " ")
}

func (o *options) addFlags(cmd *cobra.Command, changes bool) {
	fs := cmd.Flags()
	if changes {
		fs.BoolVar(&o.dryRun, "dry-run", o.dryRun, "Change nothing: let the server check what would be applied")
	}
	if cmd.Name() == "crds" || cmd.Name() == "all" {
		fs.DurationVar(&o.timeout, "timeout", o.timeout, "How long one wait for CRDs and their operator may take. How long a tier may take is resume.timeout of standup.yaml")
	}
	fs.StringVar(&o.report, "report", o.report, "Also write the report to this file: *.json, or *.xml for JUnit")
	o.output.AddOutput(cmd)
}
