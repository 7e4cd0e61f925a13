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
	follow := &follower{
		bar: bar, live: printers.AllowsRedraw(o.shell.ErrOut),
		state: map[flux.Ref]tiers.State{}, nudged: map[flux.Ref]bool{}, waited: map[flux.Ref]bool{},
		shows: func(n *tiers.Node) bool { return len(o.Names) == 0 && o.shows(n) },
	}
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
		Observe: follow.observe,
		Trouble: func(err error) { bar.Println("Warning: " + util.Message(err) + "; trying again") },
	})
	bar.Close()
	if waitErr != nil && follow.last == nil {
		return waitErr
	}
	if errors.Is(waitErr, context.Canceled) {
		fmt.Fprintf(o.shell.ErrOut, "Interrupted after %s; not Ready: %s\nTo go on: %s\n",
			time.Since(start).Round(time.Second), printers.OneLine(names(follow.left)), o.again(target))
		return util.Silent(util.ExitInterrupted)
	}
	rows, err := o.pick(follow.last)
	if err == nil {
		err = o.print(target, follow.last, rows)
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

// follower turns graphs into lines of progress.
type follower struct {
	bar *progress.Progress
	// live is true on a terminal, whose lines may change at every event. A log
	// gets a line when a tier's class changes.
	live  bool
	state map[flux.Ref]tiers.State
	// nudged are the tiers that were asked and have not stirred since.
	nudged map[flux.Ref]bool
	// waited are the tiers that were waited for at some time.
	waited map[flux.Ref]bool
	// shows is true for the tiers that were not named, but are all meant.
	shows func(*tiers.Node) bool
	last  *tiers.Graph
	left  []*tiers.Node
}

func (f *follower) observe(g *tiers.Graph, left, nudged []*tiers.Node) {
	f.last, f.left = g, left
	waiting, needed := map[flux.Ref]bool{}, map[flux.Ref]bool{}
	for _, n := range left {
		waiting[n.Ref], f.waited[n.Ref] = true, true
		needed[n.Root.Object] = true
	}
	for _, n := range nudged {
		f.nudged[n.Ref] = true
	}
	now := time.Now()
	for _, n := range g.Tiers() {
		subject := printers.OneLine(n.Ref.Key())
		was, known := f.state[n.Ref]
		switch {
		case waiting[n.Ref]:
			if known && was == tiers.Ready {
				f.bar.Println(subject + " is no longer Ready; still waiting for it")
			}
			f.bar.Set(subject, printers.OneLine(f.text(n, now)))
		case known && was != tiers.Ready && n.State == tiers.Ready && f.waited[n.Ref]:
			f.bar.Done(subject, "✔", "Ready at "+shortRevision(n.AppliedRevision()))
		case n.State == tiers.Suspended && !known && !needed[n.Ref] && f.shows(n):
			f.bar.Done(subject, "-", status(n, now)+"; nothing that is waited for needs it")
		}
		f.state[n.Ref] = n.State
	}
}

func (f *follower) text(n *tiers.Node, now time.Time) string {
	if n.State != tiers.Retrying {
		delete(f.nudged, n.Ref)
	}
	switch {
	case f.nudged[n.Ref]:
		return "nudged: its dependencies are met"
	case f.live || n.State == tiers.Blocked:
		return status(n, now)
	case n.State == tiers.Retrying:
		return "retrying: " + oneLine(n.Why)
	}
	return string(n.State)
}
