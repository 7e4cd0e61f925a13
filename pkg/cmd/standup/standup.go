// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

// Package standup is the shell of `kubectl standup`.
package standup

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/kubestandup/kubestandup/pkg/cmd/util"
)

// NewCmd makes `kubectl standup`.
func NewCmd(streams genericiooptions.IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "standup STEP",
		Short: "Bring a cluster up whose state Flux reconciles from git",
		Long: templates.LongDesc(`
			Bring a cluster up, or repair it, in steps that can be run again at any time.

			Every step needs to be told which cluster is meant, by the standup.yaml beside the
			cluster's entry point or by --expect-server and --expect-uid, and compares that with
			the live server before anything runs. Nothing overrides that. 'identify' prints what
			to write.

			Exit status: 0 done; 1 error; 2 usage; 3 findings; 4 past a deadline; 5 wrong or
			unproved server; 6 refused; 130 interrupted.`),
		Example: templates.Examples(`
			# Say which cluster this is, ready to be kept as its standup.yaml
			kubectl standup identify > clusters/prod/standup.yaml

			# Look at everything that a bring-up needs, and change nothing
			kubectl standup preflight

			# Bring it up: every step in turn, nothing destructive
			kubectl standup all`),
	}
	f := &Flags{shell: util.NewShell(cmd, streams)}
	f.Target.AddFlags(cmd.PersistentFlags())
	f.shell.AddCommands([]util.CommandGroup{
		{Message: "Steps, in order:", Commands: stepCommands(f)},
		{Message: "Before the first step:", Commands: []*cobra.Command{newCmdIdentify(f), newCmdInit(f)}},
	}, "expect-server", "expect-uid", "config")
	return cmd
}

// Flags are what can be typed for every step.
type Flags struct {
	Target util.TargetFlags

	shell *util.Shell
}
