// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package tiers

import (
	"context"
	"errors"
	"fmt"
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
	defer cluster.Close() //nolint:errcheck // temporary files
	bar := progress.For(o.shell.ErrOut)
	defer bar.Close()
	follow := &follower{
		bar: bar, live: printers.AllowsRedraw(o.shell.ErrOut),
		state: map[flux.Ref]tiers.State{}, nudged: map[flux.Ref]bool{},
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
		fmt.Fprintf(o.shell.ErrOut, "Interrupted after %s; to go on: %s --wait %s\n",
			time.Since(start).Round(time.Second), o.shell.CommandPrefix(), target.Args())
		return waitErr
	}
	rows, err := o.pick(follow.last)
	if err == nil {
		err = o.print(target, follow.last, rows)
	}
	if stuck, ok := errors.AsType[*wait.StuckError](waitErr); ok && stuck.Diagnosed {
		fmt.Fprintf(o.shell.ErrOut, "To break the deadlock: %s\n", target.Command("standup", "crds"))
	}
	if waitErr == nil && err == nil {
		fmt.Fprintf(o.shell.ErrOut, "%d tiers Ready after %s\n", count(rows, tiers.Ready), time.Since(start).Round(100*time.Millisecond))
	}
	return errors.Join(waitErr, err)
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
	last   *tiers.Graph
}

func (f *follower) observe(g *tiers.Graph, left, nudged []*tiers.Node) {
	f.last = g
	waiting := map[flux.Ref]bool{}
	for _, n := range left {
		waiting[n.Ref] = true
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
		case known && was != tiers.Ready && n.State == tiers.Ready:
			f.bar.Done(subject, "✔", "Ready at "+shortRevision(n.AppliedRevision()))
		case n.State == tiers.Suspended && !known:
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
