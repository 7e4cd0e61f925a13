// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

// Package tiers is the shell of `kubectl tiers`.
package tiers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/kubestandup/kubestandup/pkg/cmd/util"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/lint"
	"github.com/kubestandup/kubestandup/pkg/tiers"
	"github.com/kubestandup/kubestandup/pkg/wait"
)

// NewCmd makes `kubectl tiers`.
func NewCmd(streams genericiooptions.IOStreams) *cobra.Command {
	f := &Flags{Output: util.NewOutput("wide", "json", "yaml", "name", "dot", "mermaid")}
	cmd := &cobra.Command{
		Use:   "tiers [NAME...]",
		Short: "Show the dependency graph of Flux as tiers, and wait for it",
		Long: templates.LongDesc(`
			Show the Flux Kustomizations of a cluster as tiers: in the order in which they
			come up, with what blocks each one and the root cause of everything red.

			NAME is a Kustomization, ks/NAME, or a HelmRelease, hr/NAME, with or without its
			namespace: ks/flux-system/platform. All namespaces are read; -n narrows what is
			shown and waited for, never the graph.

			With --wait, wait until every tier, or those named and all that they depend on,
			are Ready at the revision that their source has now.

			Exit status: 0 done; 1 error; 2 usage; 3 a tier that is waited for will not become
			Ready by itself; 4 past a deadline; 5 wrong or unproved server; 130 interrupted.`),
		Example: templates.Examples(`
			# What is up, what is not, and why
			kubectl tiers

			# Why one tier is red, down to the root cause
			kubectl tiers why apps-vms

			# Wait for everything, ten minutes at most
			kubectl tiers --wait --timeout 10m

			# Bring a chain up as fast as its tiers allow, not at Flux's 30s per edge
			kubectl tiers --wait --nudge --expect-server https://api.example.org:6443

			# Read another cluster, as data
			kubectl tiers --context prod -o json`),
	}
	f.shell = util.NewShell(cmd, streams)
	cmd.Args = func(*cobra.Command, []string) error { return nil }
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o, err := f.ToOptions(args)
		if err == nil {
			err = o.Run(cmd.Context())
		}
		return util.OrCommand(cmd, args, err)
	}
	util.OrCommandOfFlag(cmd)
	f.AddFlags(cmd)
	cmd.ValidArgsFunction = util.CompleteNames(f.names)
	f.shell.AddCommands([]util.CommandGroup{
		{Message: "Look closer:", Commands: []*cobra.Command{newCmdWhy(f)}},
		{Message: "Before merging:", Commands: []*cobra.Command{newCmdLint(f.shell, quietly(streams.ErrOut, lint.Run))}},
	})
	return cmd
}

// Flags are what can be typed.
type Flags struct {
	Target        util.TargetFlags
	Output        *util.Enum
	NoHeaders     bool
	AllNamespaces bool
	Releases      bool
	Wait          bool
	Nudge         bool
	Timeout       time.Duration

	shell *util.Shell
}

// AddFlags registers the flags.
func (f *Flags) AddFlags(cmd *cobra.Command) {
	f.Target.AddFlags(cmd.PersistentFlags())
	fs := cmd.Flags()
	f.Output.AddOutput(cmd)
	fs.BoolVar(&f.NoHeaders, "no-headers", f.NoHeaders, "Print no line of headers")
	fs.BoolVarP(&f.AllNamespaces, "all-namespaces", "A", f.AllNamespaces, "Show all namespaces, also where -n or the context names one; the default")
	fs.BoolVar(&f.Releases, "releases", f.Releases, "Show every HelmRelease, and wait for them too; without it only those that are not Ready are shown")
	fs.BoolVarP(&f.Wait, "wait", "w", f.Wait, "Wait until the tiers are Ready at the current revision of their sources")
	fs.BoolVar(&f.Nudge, "nudge", f.Nudge, "With --wait: ask each tier to reconcile the moment its dependencies are met; needs --expect-server or a standup.yaml")
	fs.DurationVar(&f.Timeout, "timeout", f.Timeout, "With --wait: how long to wait in all; 0 means that only each tier's own deadline counts")
}

// Options are what is needed to run.
type Options struct {
	Names     []string
	Namespace string
	Output    string
	NoHeaders bool
	Releases  bool
	Wait      bool
	Nudge     bool
	Timeout   time.Duration
	Target    util.TargetFlags

	shell *util.Shell
}

// ToOptions checks what was typed.
func (f *Flags) ToOptions(args []string) (*Options, error) {
	switch {
	case f.Nudge && !f.Wait:
		return nil, util.UsageError(errors.New("--nudge goes with --wait"))
	case f.Timeout != 0 && !f.Wait:
		return nil, util.UsageError(errors.New("--timeout goes with --wait"))
	case f.Timeout < 0:
		return nil, util.UsageError(fmt.Errorf("--timeout %s is negative", f.Timeout))
	}
	return &Options{
		Names: args, Output: f.Output.String(), NoHeaders: f.NoHeaders, Releases: f.Releases,
		Wait: f.Wait, Nudge: f.Nudge, Timeout: f.Timeout, Target: f.Target,
		Namespace: f.narrowed(), shell: f.shell,
	}, nil
}

// narrowed is the namespace that -n names. The context's own does not count:
// the graph is of the whole cluster, and so is what a person asks for.
func (f *Flags) narrowed() string {
	if f.AllNamespaces || f.shell.ConfigFlags.Namespace == nil {
		return ""
	}
	return *f.shell.ConfigFlags.Namespace
}

// Run shows the tiers, after having waited for them where that was asked.
func (o *Options) Run(ctx context.Context) error {
	target, err := o.shell.Target(ctx, o.Target, o.Nudge)
	if err != nil {
		return err
	}
	snapshot, err := flux.Read(ctx, target.Config())
	if err != nil {
		return err
	}
	if o.Wait {
		return o.wait(ctx, target, snapshot)
	}
	g := tiers.Build(snapshot, tiers.Options{})
	rows, err := o.pick(g)
	if err != nil {
		return err
	}
	return o.print(target, g, rows)
}

// pick narrows the graph to what is shown.
func (o *Options) pick(g *tiers.Graph) ([]*tiers.Node, error) {
	if len(o.Names) > 0 {
		var rows []*tiers.Node
		for _, name := range o.Names {
			n, err := find(g, o.Namespace, name)
			if err != nil {
				return nil, err
			}
			rows = append(rows, n)
		}
		return rows, nil
	}
	var rows []*tiers.Node
	for _, n := range g.Tiers() {
		if n.Ref.Kind == flux.HelmReleaseKind && n.ContainedBy != nil {
			continue // it stands below the Kustomization that applies it
		}
		for _, row := range append([]*tiers.Node{n}, releases(n)...) {
			if o.shows(row) {
				rows = append(rows, row)
			}
		}
	}
	return rows, nil
}

// releases are the HelmReleases that a Kustomization applies.
func releases(n *tiers.Node) []*tiers.Node {
	return slices.DeleteFunc(slices.Clone(n.Contains), func(c *tiers.Node) bool { return c.Ref.Kind != flux.HelmReleaseKind })
}

// shows is true for every Kustomization, and for the releases that matter.
func (o *Options) shows(n *tiers.Node) bool {
	return (n.Ref.Kind == flux.KustomizationKind || o.Releases || n.State != tiers.Ready) &&
		(o.Namespace == "" || o.Namespace == n.Ref.Namespace)
}

// targets are what --wait waits for.
func (o *Options) targets(g *tiers.Graph) (wait.Targets, error) {
	t := wait.Targets{Namespace: o.Namespace, Releases: o.Releases}
	for _, name := range o.Names {
		n, err := find(g, o.Namespace, name)
		if err == nil {
			t.Names = append(t.Names, n.Ref)
			continue
		}
		kind, namespace, bare, perr := parseName(name)
		if perr != nil {
			return t, perr
		}
		if namespace == "" {
			namespace = o.Namespace
		}
		if namespace == "" { // it may not exist yet, but then its namespace must be told
			return t, err
		}
		if kind == "" {
			kind = flux.KustomizationKind
		}
		t.Names = append(t.Names, flux.Ref{Kind: kind, Namespace: namespace, Name: bare})
	}
	return t, nil
}

// names completes NAME.
func (f *Flags) names(ctx context.Context) ([]string, error) {
	server, err := f.shell.Connect()
	if err != nil {
		return nil, err
	}
	snapshot, err := flux.Read(ctx, server.Config())
	if err != nil {
		return nil, err
	}
	var names []string
	for i := range snapshot.Tiers {
		ref := snapshot.Tiers[i].Ref
		if ref.Kind == flux.KustomizationKind {
			names = append(names, ref.Name)
		} else {
			names = append(names, "hr/"+ref.Name)
		}
	}
	return names, nil
}
