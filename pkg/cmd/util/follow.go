// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package util

import (
	"time"

	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/printers"
	"github.com/kubestandup/kubestandup/pkg/progress"
	"github.com/kubestandup/kubestandup/pkg/tiers"
)

// Follower turns the graphs of a wait into lines of progress.
type Follower struct {
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
	// Last is the newest graph, nil before the first; Left what of it was still
	// waited for.
	Last *tiers.Graph
	Left []*tiers.Node
}

// NewFollower shows progress on bar; live where its lines are redrawn. shows is
// true for the tiers that are all meant, without having been named.
func NewFollower(bar *progress.Progress, live bool, shows func(*tiers.Node) bool) *Follower {
	return &Follower{
		bar: bar, live: live, shows: shows,
		state: map[flux.Ref]tiers.State{}, nudged: map[flux.Ref]bool{}, waited: map[flux.Ref]bool{},
	}
}

// Observe is what a wait tells of each new graph.
func (f *Follower) Observe(g *tiers.Graph, left, nudged []*tiers.Node) {
	f.Last, f.Left = g, left
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
			f.bar.Done(subject, "✔", "Ready at "+ShortRevision(n.AppliedRevision()))
		case n.State == tiers.Suspended && !known && !needed[n.Ref] && f.shows(n):
			f.bar.Done(subject, "-", TierStatus(n, now)+"; nothing that is waited for needs it")
		}
		f.state[n.Ref] = n.State
	}
}

func (f *Follower) text(n *tiers.Node, now time.Time) string {
	if n.State != tiers.Retrying {
		delete(f.nudged, n.Ref)
	}
	switch {
	case f.nudged[n.Ref]:
		return "nudged: its dependencies are met"
	case f.live || n.State == tiers.Blocked:
		return TierStatus(n, now)
	case n.State == tiers.Retrying:
		return "retrying: " + FirstLine(n.Why)
	}
	return string(n.State)
}
