// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

// Package unwedge is the shell of `kubectl unwedge`.
package unwedge

import (
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/kubestandup/kubestandup/pkg/cmd/util"
)

// NewCmd makes `kubectl unwedge`.
func NewCmd(streams genericiooptions.IOStreams) *cobra.Command {
	cmd, _ := newCmd(streams)
	return cmd
}

func newCmd(streams genericiooptions.IOStreams) (*cobra.Command, *Flags) {
	f := &Flags{Target: &util.TargetFlags{}}
	cmd := &cobra.Command{
		Use:   "unwedge [TYPE/NAME ...]",
		Short: "Find every state that no controller will leave by itself",
		Long: templates.LongDesc(`
			Find every state that no controller will leave by itself, say why, and show the
			smallest repair. Nothing is changed unless --apply is given; what deletes something
			needs --confirm-destructive, is listed first, and is backed up.

			Each verdict says what is wrong and since when, the values that were read, whether a
			controller ends it, and the plan. Where a person has to choose, it says what each way
			deletes and what it keeps. Between plan and act each object is looked at again: one
			that has changed is left alone.

			What is looked for is listed by "kubectl unwedge causes".

			Exit status: 0 done; 1 error, or something had changed since the plan; 2 usage; 3 with
			--exit-code when the plan is not empty; 4 past a deadline; 5 wrong or unproved server;
			6 refused: a choice was not made, a deletion not confirmed, or it is not safe; 130
			interrupted.`),
		Example: templates.Examples(`
			# Say what is wedged, and what would free it
			kubectl unwedge

			# Do what deletes nothing
			kubectl unwedge --apply --expect-server https://api.example.org:6443

			# Keep a release whose uninstallation was never finished
			kubectl unwedge hr/apps/db --uninstalling=keep --confirm-destructive --expect-server https://api.example.org:6443`),
	}
	f.shell = util.NewShell(cmd, streams)
	cmd.AddCommand(newCmdCauses(f.shell))
	f.Target.AddFlags(cmd.PersistentFlags())
	f.runs(cmd)
	return cmd, f
}

// NewStep makes `kubectl standup unwedge`: the same command below another
// plugin's root, whose shell and target it shares. It talks to no server that
// is not proved, in a dry run neither.
func NewStep(shell *util.Shell, target *util.TargetFlags) *cobra.Command {
	own := NewCmd(shell.IOStreams)
	cmd := &cobra.Command{Use: own.Use, Long: own.Long, Example: strings.ReplaceAll(own.Example, "kubectl unwedge", "kubectl standup unwedge")}
	f := &Flags{Target: target, shell: shell, step: true}
	f.runs(cmd)
	return cmd
}

// runs gives the command its flags and what it does.
func (f *Flags) runs(cmd *cobra.Command) {
	f.AddFlags(cmd)
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o, err := f.ToOptions(args)
		if err == nil {
			err = o.run(cmd.Context())
		}
		return util.OrCommand(cmd, args, err)
	}
}
