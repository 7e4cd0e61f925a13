// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package unwedge

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubestandup/kubestandup/pkg/cmd/util"
	"github.com/kubestandup/kubestandup/pkg/crds"
	"github.com/kubestandup/kubestandup/pkg/printers"
	"github.com/kubestandup/kubestandup/pkg/standup"
)

// breakTimeout is how long an operator may take to create its kinds.
const breakTimeout = 5 * time.Minute

// Flags are what can be typed.
type Flags struct {
	Target  util.TargetFlags
	Apply   bool
	Timeout time.Duration

	shell *util.Shell
}

// AddFlags registers the flags.
func (f *Flags) AddFlags(cmd *cobra.Command) {
	f.Timeout = breakTimeout
	cmd.Flags().BoolVar(&f.Apply, "apply", f.Apply, "Carry out the plan, which deletes nothing; needs --expect-server or a standup.yaml")
	cmd.Flags().DurationVar(&f.Timeout, "timeout", f.Timeout, "How long an operator may take to create the kinds of one trigger")
}

func (f *Flags) run(ctx context.Context) error {
	if f.Timeout <= 0 {
		return util.UsageError(fmt.Errorf("--timeout %s leaves no time", f.Timeout))
	}
	target, err := f.shell.Target(ctx, f.Target, f.Apply)
	if err != nil {
		return err
	}
	env, err := util.StandupEnv(target)
	if err != nil {
		return err
	}
	defer env.CRDs.Close()
	report, err := standup.CRDs(ctx, env, crds.Break{
		DryRun:  !f.Apply,
		Timeout: f.Timeout,
		Say:     func(line string) { fmt.Fprintln(f.shell.Out, printers.OneLine(line)) },
	})
	switch {
	case err != nil:
	case report.Next == "":
		fmt.Fprintln(f.shell.ErrOut, "Nothing is wedged.")
	case !f.Apply:
		fmt.Fprintf(f.shell.ErrOut, "Nothing was changed; to do it: %s\n", target.Command("unwedge", "--apply"))
	}
	return err
}
