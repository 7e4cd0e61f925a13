// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/tiers"
)

// cycles finds the loops of tiers that wait for each other (DEP-01), and those
// that only keep a source from waking up its Kustomizations.
func cycles(w *World) []Verdict {
	if w.Graph == nil {
		return nil
	}
	var all []Verdict
	known := map[flux.Ref]bool{}
	for _, loop := range w.Graph.Cycles {
		for _, ref := range loop {
			known[ref] = true
		}
		all = append(all, w.cycle(loop))
	}
	for _, loop := range w.eventLoops() {
		if !slices.ContainsFunc(loop, func(r flux.Ref) bool { return known[r] }) {
			all = append(all, w.eventCycle(loop))
		}
	}
	return all
}

func (w *World) cycle(loop []flux.Ref) Verdict {
	v := Verdict{
		Cause: Cycle, Object: loop[0], State: "cycle", ResolvesItself: Never,
		Summary: "each of these waits for the next one: " + tiers.FormatCycle(loop),
		Why:     "a tier is not reconciled before what it depends on is Ready, so none of them ever is",
	}
	if len(loop) == 1 {
		v.Summary = fmt.Sprintf("%s depends on itself", loop[0])
		v.Why = "it is not reconciled before it is Ready"
	}
	w.edges(&v, loop)
	w.collateral(&v, loop)
	return v
}

// edges names each edge of a loop, and which of them can be removed.
func (w *World) edges(v *Verdict, loop []flux.Ref) {
	var removable []string
	for i, from := range loop {
		to := loop[(i+1)%len(loop)]
		n := w.Graph.Node(from)
		if !dependsOn(n, to) {
			v.evidence(from, "spec.wait", "true, and it applies "+to.String())
			continue
		}
		v.evidence(from, "spec.dependsOn", to.Key())
		removable = append(removable, fmt.Sprintf("%s from spec.dependsOn of %s", to.Key(), from))
	}
	if len(removable) == 1 {
		v.Repair = "remove in git: " + removable[0]
		return
	}
	v.Repair = "remove one of these in git, the one that is not needed: " + strings.Join(removable, "; or ")
}

func dependsOn(n *tiers.Node, to flux.Ref) bool {
	return n != nil && slices.ContainsFunc(n.DependsOn, func(d flux.Dependency) bool { return same(d.Ref, to) })
}

// same compares objects, whatever version of their API a reference names.
func same(a, b flux.Ref) bool {
	return a.Kind == b.Kind && a.Namespace == b.Namespace && a.Name == b.Name && (a.Group() == b.Group() || a.APIVersion == "" || b.APIVersion == "")
}

// collateral says what else stands still. At a new revision kustomize-controller
// sorts all Kustomizations of the source by their edges, and wakes none of them
// where that fails (internal/controller sortAndEnqueue, v1.9.6;
// kustomize-controller#1712).
func (w *World) collateral(v *Verdict, loop []flux.Ref) {
	first := w.Graph.Node(loop[0])
	for i, from := range loop {
		n := w.Graph.Node(from)
		if n == nil || from.Kind != flux.KustomizationKind || !same(n.Source, first.Source) || !dependsOn(n, loop[(i+1)%len(loop)]) {
			return
		}
	}
	var others []string
	for _, n := range w.Graph.Tiers() {
		if n.Ref.Kind == flux.KustomizationKind && same(n.Source, first.Source) && !slices.Contains(loop, n.Ref) {
			others = append(others, n.Ref.Key())
		}
	}
	if len(others) == 0 {
		return
	}
	slices.Sort(others)
	v.Why += fmt.Sprintf("; and no new revision of %s wakes any other Kustomization that is built from it: "+
		"each gets it at its own interval only (kustomize-controller logs `failed to sort dependencies for revision change`)", first.Source)
	v.evidence(first.Source, "Kustomizations that it no longer wakes", strings.Join(others, ", "))
}

// eventCycle is a loop that nobody waits in: a readyExpr stands in for the
// check of Ready. The source's events are lost all the same.
func (w *World) eventCycle(loop []flux.Ref) Verdict {
	v := Verdict{
		Cause: Cycle, Object: loop[0], State: "events-lost", ResolvesItself: Never,
		Summary: "these depend on each other in a loop, which their readyExpr make harmless, but not to their source: " + tiers.FormatCycle(loop),
		Why:     "kustomize-controller looks at the edges, not at their readyExpr, when it decides whom a new revision wakes",
	}
	w.edges(&v, loop)
	w.collateral(&v, loop)
	return v
}

// eventLoops are the loops in which all edges are dependsOn, between
// Kustomizations of one source: one for each knot and source.
func (w *World) eventLoops() [][]flux.Ref {
	bySource := map[flux.Ref][]*tiers.Node{}
	for _, n := range w.Graph.Tiers() {
		if n.Ref.Kind == flux.KustomizationKind {
			bySource[n.Source] = append(bySource[n.Source], n)
		}
	}
	var loops [][]flux.Ref
	for source := range bySource {
		left := map[*tiers.Node]bool{}
		for _, n := range bySource[source] {
			left[n] = true
		}
		for {
			w.peel(left)
			loop := w.walk(left)
			if loop == nil {
				break
			}
			for _, ref := range loop {
				delete(left, w.Graph.Node(ref))
			}
			loops = append(loops, loop)
		}
	}
	slices.SortFunc(loops, func(a, b []flux.Ref) int { return a[0].Compare(b[0]) })
	return loops
}

// peel takes away every tier that depends on none of those that are left.
func (w *World) peel(left map[*tiers.Node]bool) {
	for changed := true; changed; {
		changed = false
		for n := range left {
			if w.next(n, left) == nil {
				delete(left, n)
				changed = true
			}
		}
	}
}

// next is the first of the tiers that are left that a tier depends on.
func (w *World) next(n *tiers.Node, left map[*tiers.Node]bool) *tiers.Node {
	for _, d := range n.DependsOn {
		if to := w.Graph.Node(d.Ref); to != nil && left[to] {
			return to
		}
	}
	return nil
}

// walk follows edges from one of the tiers that are left until it comes back
// to one it has seen. Each of them has an edge to another, or to itself.
func (w *World) walk(left map[*tiers.Node]bool) []flux.Ref {
	var start *tiers.Node
	for n := range left {
		if start == nil || n.Ref.Compare(start.Ref) < 0 {
			start = n
		}
	}
	var path []flux.Ref
	for n := start; n != nil; n = w.next(n, left) {
		if at := slices.Index(path, n.Ref); at >= 0 {
			loop := path[at:]
			least := slices.Index(loop, slices.MinFunc(loop, flux.Ref.Compare))
			return slices.Concat(loop[least:], loop[:least])
		}
		path = append(path, n.Ref)
	}
	return nil
}
