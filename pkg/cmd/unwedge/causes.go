// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package unwedge

import (
	"github.com/spf13/cobra"

	"github.com/kubestandup/kubestandup/pkg/cmd/util"
	"github.com/kubestandup/kubestandup/pkg/printers"
	"github.com/kubestandup/kubestandup/pkg/wedge"
)

// newCmdCauses lists what unwedge looks for. It asks no server.
func newCmdCauses(shell *util.Shell) *cobra.Command {
	return &cobra.Command{
		Use:   "causes",
		Short: "List what unwedge looks for, in the order of repair",
		RunE: func(*cobra.Command, []string) error {
			columns := []printers.Column[wedge.Cause]{
				{Name: "CAUSE", Value: func(c wedge.Cause) string { return string(c) }},
				{Name: "FINDS", Value: wedge.Cause.About},
			}
			return printers.PrintTable(shell.Out, columns, wedge.Causes(), shell.Table(false, false))
		},
	}
}
