// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package tiers

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/kubestandup/kubestandup/pkg/cmd/util"
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
	writeWhy(f.shell.Out, g, n, time.Now())
	return nil
}

// writeWhy prints the chain from a tier to its root cause.
func writeWhy(w io.Writer, g *tiers.Graph, n *tiers.Node, now time.Time) {
	say := func(format string, args ...any) {
		fmt.Fprintf(w, format+"\n", args...)
	}
	say("%s: %s", printers.OneLine(n.Ref.String()), printers.OneLine(string(n.State)))
	if n.State == tiers.Ready {
		say("  Ready at %s, the revision that %s has now.", printers.OneLine(n.AppliedRevision()), printers.OneLine(n.Source.String()))
		return
	}
	for i, b := range n.Root.Chain() {
		say("%*s└ %s", 2*i+2, "", printers.OneLine(b.Message))
	}
	root := g.Node(n.Root.Object)
	say("")
	say("Root cause: %s, %s", printers.OneLine(n.Root.Object.String()), n.Root.State)
	say("  %s", printers.OneLine(oneLine(n.Root.Message)))
	if root != nil && root.State == tiers.Retrying {
		say("  Flux tries again %s.", when(root.RetryAt, now))
	}
}
