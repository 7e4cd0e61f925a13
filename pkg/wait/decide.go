// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wait

import (
	"slices"
	"time"

	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/tiers"
)

// Targets are the tiers to wait for.
type Targets struct {
	// Names are waited for with all that they depend on; none means all tiers.
	Names []flux.Ref
	// Namespace narrows "all tiers", empty for every namespace.
	Namespace string
	// Releases includes HelmReleases where no names are given.
	Releases bool
}

// in picks the tiers to wait for out of a graph, and the names that are not
// there.
func (t Targets) in(g *tiers.Graph) (found []*tiers.Node, absent []flux.Ref) {
	if len(t.Names) == 0 {
		for _, n := range g.Tiers() {
			if (t.Namespace == "" || t.Namespace == n.Ref.Namespace) && (t.Releases || n.Ref.Kind == flux.KustomizationKind) {
				found = append(found, n)
			}
		}
		return g.Ancestors(found...), nil
	}
	for _, name := range t.Names {
		if n := g.Node(name); n != nil {
			found = append(found, n)
		} else {
			absent = append(absent, name)
		}
	}
	return g.Ancestors(found...), absent
}

// clocks remember since when each tier has had what it depends on. A
// dependency that flaps does not set its clock back; a tier that became Ready,
// or is built from something new, starts a new one.
type clocks map[flux.Ref]clock

type clock struct {
	since time.Time
	cause string
}

func (c clocks) update(v *view, now time.Time) {
	for _, n := range v.Tiers() {
		if v.pending[n.Ref] && !v.turn(n) {
			delete(c, n.Ref)
			continue
		}
		if running, ok := c[n.Ref]; ok && (n.State == tiers.Ready || running.cause != causeOf(n)) {
			delete(c, n.Ref)
		}
		if _, running := c[n.Ref]; !running && n.State != tiers.Ready && v.met(n) {
			c[n.Ref] = clock{now, causeOf(n)}
		}
	}
}

// met is true when a tier has all that it depends on: from here on the time
// is its own. A container that has not applied its children yet has them as they
// were, and waits for nobody.
func (v *view) met(n *tiers.Node) bool {
	alone := !n.Wait || v.resuming && n.Ref.Kind == flux.KustomizationKind && !v.applied[n.Ref]
	for _, b := range n.Blockers {
		// A source has no deadline of its own.
		if !noArtifact(b) && (!alone || b.Reason != tiers.Unhealthy) {
			return false
		}
	}
	return alone || !slices.ContainsFunc(n.Contains, func(child *tiers.Node) bool { return child.State != tiers.Ready })
}

// allowed is how long a tier may take: one attempt, and one whole retry. A
// first attempt that lost a race fails at once; one that timed out is repeated
// in full.
func (v *view) allowed(n *tiers.Node) time.Duration {
	if v.limit > 0 {
		return v.limit
	}
	return n.Timeout + n.RetryInterval + n.Timeout
}

// decision is what the graph says about the wait.
type decision struct {
	done bool
	err  error
	// next is when the nearest deadline passes, zero when none is running.
	next time.Time
	left []*tiers.Node
}

func (d decision) ends() bool { return d.done || d.err != nil }

// decide answers whether the wait is over. It is pure: the same graph, clocks
// and time give the same answer.
func decide(v *view, t Targets, c clocks, now time.Time) decision {
	var d decision
	waited, absent := t.in(v.Graph)
	for _, n := range waited {
		if v.isLeft(n) {
			d.left = append(d.left, n)
		}
	}
	if d.err = v.stuck(d.left); d.err != nil {
		return d
	}
	if named := v.suspendedTarget(t); named != nil {
		d.err = &StuckError{Tier: named.Ref, Root: *named.Root}
		return d
	}
	if len(d.left) == 0 && len(absent) == 0 && len(waited) > 0 {
		if held := allSuspended(waited); held != nil && !v.resuming {
			d.err = &StuckError{Tier: held.Ref, Root: *held.Root}
			return d
		}
		d.done = true
		return d
	}
	if v.atRest() {
		switch {
		case len(d.left) > 0:
			n := d.left[0]
			d.err = &StuckError{Tier: n.Ref, Root: *n.Root}
		case len(absent) > 0:
			d.err = &AbsentError{Tier: absent[0]}
		default:
			d.err = &AbsentError{}
		}
		return d
	}
	for _, n := range d.left {
		started, running := c[n.Ref]
		if !running || !v.met(n) {
			continue
		}
		end := started.since.Add(v.allowed(n))
		if !now.Before(end) {
			d.err = &DeadlineError{Tier: n.Ref, Allowed: v.allowed(n), Left: summary(d.left)}
			return d
		}
		if d.next.IsZero() || end.Before(d.next) {
			d.next = end
		}
	}
	return d
}

// allSuspended is the first of the tiers when every one is suspended and not
// Ready: nothing was brought up, so nothing is done.
func allSuspended(waited []*tiers.Node) *tiers.Node {
	if slices.ContainsFunc(waited, func(n *tiers.Node) bool { return n.State != tiers.Suspended || n.IsReady() }) {
		return nil
	}
	return waited[0]
}

// stuck finds a tier whose root cause nobody will remove.
func (v *view) stuck(left []*tiers.Node) error {
	for _, n := range left {
		if n.Root.State == tiers.Wedged && !v.renewed(n.Root.Object) || n.Root.State == tiers.Suspended && !v.pending[n.Root.Object] {
			return &StuckError{Tier: n.Ref, Root: *n.Root}
		}
	}
	return nil
}

// renewed is true while something that contains the tier has yet to apply the
// revision that its source has by now: what mends the tier may be in it.
// Flux wakes nobody for it while tiers wait for each other in a loop; we do.
func (v *view) renewed(ref flux.Ref) bool {
	n := v.Node(ref)
	if !v.resuming || n == nil {
		return false
	}
	for c := n.ContainedBy; c != nil; c = c.ContainedBy {
		behind := v.applies(c) && (c.State != tiers.Retrying || c.LastAttemptedRevision != c.SourceRevision())
		if !v.out[c.Ref] && (behind || v.turn(c)) {
			return true
		}
	}
	return false
}

// suspendedTarget is a tier that was asked for by name and is suspended: the
// only case in which a suspended tier that nothing needs is waited for.
func (v *view) suspendedTarget(t Targets) *tiers.Node {
	for _, name := range t.Names {
		if n := v.Node(name); n != nil && !v.pending[n.Ref] && n.State == tiers.Suspended && !n.IsReady() {
			return n
		}
	}
	return nil
}

// atRest is true when no controller will do anything more: each tier is Ready,
// suspended, wedged, or blocked by something that is none of the others. What
// does not exist then, nothing will create.
func (v *view) atRest() bool {
	return !v.acting && !slices.ContainsFunc(v.Tiers(), func(n *tiers.Node) bool {
		switch n.State {
		case tiers.Progressing, tiers.Retrying:
			return true
		case tiers.Blocked:
			return n.Root.State == tiers.Progressing || n.Root.State == tiers.Retrying ||
				n.Root.Last().Reason == tiers.NoArtifact
		}
		return false
	})
}

func summary(left []*tiers.Node) []Left {
	out := make([]Left, 0, len(left))
	for _, n := range left {
		out = append(out, Left{Tier: n.Ref, State: n.State, Root: *n.Root})
	}
	return out
}
