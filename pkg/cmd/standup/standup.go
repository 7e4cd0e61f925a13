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
			Every step requires the server that is meant to be named, and compares it with
			the live one before anything runs.`),
	}
	util.NewShell(cmd, streams)
	return cmd
}
