// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"slices"

	"github.com/kubestandup/kubestandup/pkg/coldstart"
	"github.com/kubestandup/kubestandup/pkg/tiers"
)

// step is one tier's wait for another one.
type step struct {
	from, to *tiers.Node
	how      how
}

type how int

const (
	byEdge  how = iota // dependsOn
	byWait             // the first applies the second and waits for it
	byCheck            // the first has a health check on the second
	byApply            // the second applies the first
)

// loop is a way from a tier back to itself.
type loop []step

// container is the step at which a tier waits for its own child, when that is
// all that makes the loop one: everything else are edges. -1 for another loop.
func (c loop) container() int {
	at := -1
	for i, s := range c {
		switch {
		case s.how == byEdge:
		case (s.how == byWait || s.how == byCheck) && at < 0 && s.to.ContainedBy == s.from:
			at = i
		default:
			return -1
		}
	}
	return at
}

// moment is one thing that becomes true of a tier: that it is attempted, or
// that it is Ready.
type moment struct {
	tier  *tiers.Node
	ready bool
}

// loops finds one loop for each knot of tiers that wait for each other: an
// attempt needs the Ready of each dependency and the attempt of what applies the
// tier, a Ready the tier's own attempt and the Ready of what it waits for.
func (l *look) loops() []loop {
	var all []loop
	seen := map[*tiers.Node]bool{}
	for _, n := range l.Graph.Tiers() {
		if seen[n] {
			continue
		}
		if found := l.loopFrom(n); found != nil {
			for _, s := range found {
				seen[s.from] = true
			}
			all = append(all, l.turned(found))
		}
	}
	return all
}

// loopFrom is the shortest loop through a tier's attempt.
func (l *look) loopFrom(start *tiers.Node) loop {
	type arrival struct {
		from moment
		step *step
	}
	first := moment{start, false}
	came := map[moment]arrival{}
	queue := []moment{first}
	for len(queue) > 0 {
		m := queue[0]
		queue = queue[1:]
		for _, next := range l.after(m) {
			if next.to == first {
				var found loop
				for at, last := m, next.step; ; {
					if last != nil {
						found = append(found, *last)
					}
					if at == first {
						slices.Reverse(found)
						return found
					}
					at, last = came[at].from, came[at].step
				}
			}
			if _, known := came[next.to]; !known && next.to != first {
				came[next.to] = arrival{m, next.step}
				queue = append(queue, next.to)
			}
		}
	}
	return nil
}

type transition struct {
	to   moment
	step *step
}

func (l *look) after(m moment) []transition {
	n := m.tier
	var all []transition
	if m.ready {
		all = append(all, transition{moment{n, false}, nil})
		for _, s := range l.awaited(n) {
			all = append(all, transition{moment{s.to, true}, &s})
		}
		return all
	}
	for _, d := range n.DependsOn {
		if dep := l.Graph.Node(d.Ref); dep != nil && d.ReadyExpr == "" {
			all = append(all, transition{moment{dep, true}, &step{n, dep, byEdge}})
		}
	}
	if p := n.ContainedBy; p != nil && l.onlyParent(n, p) {
		all = append(all, transition{moment{p, false}, &step{n, p, byApply}})
	}
	return all
}

// onlyParent is false for a tier that another one applies too.
func (l *look) onlyParent(n, parent *tiers.Node) bool {
	f := l.followed(n.Ref)
	if f == nil || !isKustomization(n.Ref) {
		return true
	}
	for _, p := range f.Parents {
		if coldstart.Key(p) != coldstart.Key(parent.Ref) {
			return false
		}
	}
	return true
}

// awaited are the tiers whose Ready this one's Ready needs, beside its edges.
func (l *look) awaited(n *tiers.Node) []step {
	var all []step
	if n.Suspended || !isKustomization(n.Ref) {
		return nil
	}
	if n.Wait {
		for _, c := range n.Contains {
			all = append(all, step{n, c, byWait})
		}
		return all
	}
	for _, h := range n.HealthChecks {
		if !isKustomization(h) && !isRelease(h) {
			continue
		}
		if c := l.Graph.Node(h); c != nil && c != n {
			all = append(all, step{n, c, byCheck})
		}
	}
	return all
}

// turned begins a loop at its smallest tier.
func (l *look) turned(c loop) loop {
	at := 0
	for i, s := range c {
		if s.from.Ref.Compare(c[at].from.Ref) < 0 {
			at = i
		}
	}
	return append(slices.Clone(c[at:]), c[:at]...)
}
