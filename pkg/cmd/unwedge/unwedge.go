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
	cmd := &cobra.Command{
		Use:   "unwedge [TYPE/NAME...]",
		Short: "Find every state that no controller will leave by itself",
		Long: templates.LongDesc(`
			Find every state that no controller will leave by itself, say why, and show the
			smallest repair. Nothing is changed unless it is asked for.`),
	}
	util.NewShell(cmd, streams)
	return cmd
}
