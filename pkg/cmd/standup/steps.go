// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/kubestandup/kubestandup/pkg/cmd/util"
	"github.com/kubestandup/kubestandup/pkg/crds"
	"github.com/kubestandup/kubestandup/pkg/printers"
	"github.com/kubestandup/kubestandup/pkg/standup"
)

// breakTimeout is how long an operator may take to create its kinds: the real
// ones take a second, one whose image is still being pulled a few minutes.
const breakTimeout = 5 * time.Minute

func newCmdPreflight(f *Flags) *cobra.Command {
	output := util.NewOutput("json", "yaml")
	cmd := &cobra.Command{
		Use:   "preflight",
		Short: "Look at everything that a bring-up needs, and change nothing",
		Long: templates.LongDesc(`
			Look at the identity of the server, the controllers and kinds of Flux, the sources and
			every tier, and report what stands in the way of a bring-up: each root cause once, a
			deadlock as such with the command that breaks it, and what the operator behind it is
			doing. Nothing is changed.

			Exit status: 3 when something was found, 0 when nothing was.`),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd.Context(), output.String(), standup.Preflight)
		},
	}
	output.AddOutput(cmd)
	return cmd
}

func newCmdCRDs(f *Flags) *cobra.Command {
	output := util.NewOutput("json", "yaml")
	b := crds.Break{Timeout: breakTimeout}
	cmd := &cobra.Command{
		Use:   "crds",
		Short: "Break the deadlocks of kinds that are created at run time",
		Long: templates.LongDesc(`
			Some kinds are registered by an operator only once it has reconciled a resource, the
			trigger. A tier that holds the trigger together with such kinds never comes up on a
			cold cluster. This step finds those tiers, applies the trigger alone, exactly as Flux
			would, waits until the kinds are served, and asks Flux to reconcile the tier. Flux
			takes the trigger over. Nothing else is applied.

			Exit status: 4 when the kinds did not appear in time; 6 when applying the trigger
			makes no sense yet, with the reason.`),
		Example: templates.Examples(`
			# Say what would be applied, and let the server check it
			kubectl standup crds --dry-run

			# Do it
			kubectl standup crds`),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if b.Timeout <= 0 {
				return util.UsageError(fmt.Errorf("--timeout %s leaves no time", b.Timeout))
			}
			return f.run(cmd.Context(), output.String(), func(ctx context.Context, env *standup.Env) (*standup.StepReport, error) {
				env.DryRun, env.Timeout = b.DryRun, b.Timeout
				env.Say = func(line string) { fmt.Fprintln(f.shell.ErrOut, printers.OneLine(line)) }
				return standup.CRDs(ctx, env)
			})
		},
	}
	cmd.Flags().BoolVar(&b.DryRun, "dry-run", b.DryRun, "Change nothing: let the server check what would be applied")
	cmd.Flags().DurationVar(&b.Timeout, "timeout", b.Timeout, "How long the operator may take to create the kinds of one trigger")
	output.AddOutput(cmd)
	return cmd
}

// run proves the server, runs one step and prints its report. The report is
// printed also where the step failed, and the exit code is then the failure's.
func (f *Flags) run(ctx context.Context, format string, step func(context.Context, *standup.Env) (*standup.StepReport, error)) error {
	target, err := f.shell.Target(ctx, f.Target, true)
	if err != nil {
		return err
	}
	env, err := util.StandupEnv(target)
	if err != nil {
		return err
	}
	defer env.CRDs.Close()
	report, stepErr := step(ctx, env)
	if report == nil {
		return stepErr
	}
	if err := f.print(format, target, report); err != nil {
		return errors.Join(stepErr, err)
	}
	if stepErr == nil && report.Result == standup.Findings {
		return util.Silent(util.ExitNotReady)
	}
	return stepErr
}
