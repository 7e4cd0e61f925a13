// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

// Package unwedge is the shell of `kubectl unwedge`.
package unwedge

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/kubestandup/kubestandup/pkg/cmd/util"
)

// NewCmd makes `kubectl unwedge`.
func NewCmd(streams genericiooptions.IOStreams) *cobra.Command {
	f := &Flags{}
	cmd := &cobra.Command{
		Use:   "unwedge",
		Short: "Find every state that no controller will leave by itself",
		Long: templates.LongDesc(`
			Find every state that no controller will leave by itself, say why, and show the
			smallest repair. It is a dry run unless --apply is given.

			The states that it knows: a tier that waits for kinds which only a resource of the
			tier itself would create.

			Exit status: 0 done; 1 error; 2 usage; 4 past a deadline; 5 wrong or unproved server;
			6 refused, with the reason; 130 interrupted.`),
		Example: templates.Examples(`
			# Say what is wedged, and what would free it
			kubectl unwedge

			# Free it
			kubectl unwedge --apply --expect-server https://api.example.org:6443`),
	}
	f.shell = util.NewShell(cmd, streams)
	f.Target.AddFlags(cmd.PersistentFlags())
	f.AddFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context()) }
	return cmd
}
