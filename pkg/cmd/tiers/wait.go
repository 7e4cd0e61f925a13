// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package tiers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/client-go/dynamic"

	"github.com/kubestandup/kubestandup/pkg/cmd/util"
	"github.com/kubestandup/kubestandup/pkg/crds"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/printers"
	"github.com/kubestandup/kubestandup/pkg/progress"
	"github.com/kubestandup/kubestandup/pkg/tiers"
	"github.com/kubestandup/kubestandup/pkg/wait"
)

// wait waits for the tiers, says on stderr what it waits for, and prints the
// table in the end, whatever the end is.
func (o *Options) wait(ctx context.Context, target *util.Target, snapshot *flux.Snapshot) error {
	targets, err := o.targets(tiers.Build(snapshot, tiers.Options{}))
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(target.Config())
	if err != nil {
		return fmt.Errorf("client for %s: %w", target.URL(), err)
	}
	cluster, err := util.CRDs(target)
	if err != nil {
		return err
	}
	defer cluster.Close()
	bar := progress.For(o.shell.ErrOut)
	defer bar.Close()
	follow := util.NewFollower(bar, printers.AllowsRedraw(o.shell.ErrOut), func(n *tiers.Node) bool { return len(o.Names) == 0 && o.shows(n) })
	start := time.Now()
	waitErr := wait.Run(ctx, client, snapshot.Served, wait.Options{
		Targets: targets, Timeout: o.Timeout, Nudge: o.Nudge,
		Diagnose: func(ctx context.Context, s *flux.Snapshot, tier flux.Ref) (string, error) {
			d, err := cluster.Diagnose(ctx, s, tier)
			if err != nil || d.Verdict != crds.Deadlock {
				return "", err
			}
			return d.Why, nil
		},
		Observe: follow.Observe,
		Trouble: func(err error) { bar.Println("Warning: " + util.Message(err) + "; trying again") },
	})
	bar.Close()
	if waitErr != nil && follow.Last == nil {
		return waitErr
	}
	if errors.Is(waitErr, context.Canceled) {
		fmt.Fprintf(o.shell.ErrOut, "Interrupted after %s; not Ready: %s\nTo go on: %s\n",
			time.Since(start).Round(time.Second), printers.OneLine(names(follow.Left)), o.again(target))
		return util.Silent(util.ExitInterrupted)
	}
	rows, err := o.pick(follow.Last)
	if err == nil {
		err = o.print(target, follow.Last, rows)
	}
	if stuck, ok := errors.AsType[*wait.StuckError](waitErr); ok && stuck.Diagnosed {
		fmt.Fprintf(o.shell.ErrOut, "To break the deadlock: %s\n", target.Command("standup", "crds"))
	}
	if waitErr == nil && err == nil {
		ready, tiersWord := count(rows, tiers.Ready), "tiers"
		if ready == 1 {
			tiersWord = "tier"
		}
		fmt.Fprintf(o.shell.ErrOut, "%d %s Ready after %s\n", ready, tiersWord, time.Since(start).Round(100*time.Millisecond))
	}
	return errors.Join(waitErr, err)
}

// again is the command that goes on where this one was interrupted.
func (o *Options) again(target *util.Target) string {
	args := append([]string{o.shell.CommandPrefix()}, o.Names...)
	if o.Namespace != "" {
		args = append(args, "-n", o.Namespace)
	}
	args = append(args, "--wait")
	if o.Nudge {
		args = append(args, "--nudge")
	}
	if o.Releases {
		args = append(args, "--releases")
	}
	if o.Timeout > 0 {
		args = append(args, "--timeout", o.Timeout.String())
	}
	return printers.OneLine(strings.TrimSpace(strings.Join(append(args, target.Args()), " ")))
}

// names are the first few of the tiers, and how many more there are.
func names(nodes []*tiers.Node) string {
	const most = 5
	var out []string
	for _, n := range nodes[:min(len(nodes), most)] {
		out = append(out, n.Ref.Key())
	}
	if more := len(nodes) - most; more > 0 {
		out = append(out, fmt.Sprintf("%d more", more))
	}
	return strings.Join(out, ", ")
}

func count(rows []*tiers.Node, s tiers.State) (n int) {
	for _, r := range rows {
		if r.State == s {
			n++
		}
	}
	return n
}
