// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package tiers

import (
	"cmp"
	"slices"
	"time"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

// State is the class of a tier. "Not yet" and "never" are different states.
type State string

// The states of a tier.
const (
	Ready       State = "ready"
	Progressing State = "progressing"
	Retrying    State = "retrying"
	Blocked     State = "blocked"
	Wedged      State = "wedged"
	Suspended   State = "suspended"
)

// Node is one tier in the graph, with all that was concluded about it.
type Node struct {
	*flux.Tier
	// Origin is the source that the tier is built from, nil when it is not there.
	Origin *flux.Source
	Level  int
	State  State
	// Why is one sentence that says why the tier is in its state. It may hold
	// text of the cluster: escape it before it reaches a terminal.
	Why string
	// RetryAt is when the controller looks at the tier again by itself; the
	// zero time when that cannot be known.
	RetryAt  time.Time
	Blockers []Blocker
	// Root is the root cause of a tier that is not ready, nil for one that is.
	Root *RootCause
	Gate Gate
	// Below is the number of tiers that cannot come up before this one.
	Below int
	// ContainedBy is the Kustomization that applies this tier's object.
	ContainedBy *Node
	Contains    []*Node

	deps       []*Node // the dependencies that exist
	readyDeps  []*Node // those of them that must be Ready: no readyExpr says otherwise
	dependants int     // how many tiers depend on this one
}

// RootCause is where the chain of a red tier ends.
type RootCause struct {
	// Object is the tier that is red for its own reason, or the object that a
	// tier refers to and that does not exist.
	Object  flux.Ref
	State   State
	Message string
	// Depth is the number of steps from the tier to its root cause, 0 for a
	// tier that is its own.
	Depth int

	via  Blocker
	next *RootCause
}

// Chain leads from the tier that was asked about to its root cause.
func (r *RootCause) Chain() []Blocker {
	chain := make([]Blocker, 0, r.Depth)
	for ; r.Depth > 0; r = r.next {
		chain = append(chain, r.via)
		if r.next == nil {
			break
		}
	}
	return chain
}

// Last is the step that ends at the root cause; the zero Blocker for a tier
// that is its own.
func (r *RootCause) Last() Blocker {
	for r.next != nil && r.next.Depth > 0 {
		r = r.next
	}
	return r.via
}

// Gate is what a tier's Ready proves.
type Gate struct {
	Kind   string `json:"kind"`
	Hollow bool   `json:"hollow,omitempty"`
	Why    string `json:"why,omitempty"`
}

// Graph is the tiers of one snapshot.
type Graph struct {
	// Cycles are the loops in which each tier waits for the next one to become
	// Ready, so that none ever does. Each starts at its smallest member.
	Cycles [][]flux.Ref

	snapshot *flux.Snapshot
	nodes    map[flux.Ref]*Node
	sources  map[flux.Ref]*flux.Source
	order    []*Node
}

// Options are the facts that a snapshot does not hold.
type Options struct {
	// Wedged names tiers that no controller will bring up, and why: the
	// verdicts of whoever looked closer than a status.
	Wedged map[flux.Ref]string
}

// Build makes the graph of a snapshot, which it keeps and does not change.
func Build(s *flux.Snapshot, o Options) *Graph {
	g := &Graph{
		snapshot: s,
		nodes:    make(map[flux.Ref]*Node, len(s.Tiers)),
		sources:  make(map[flux.Ref]*flux.Source, len(s.Sources)),
		order:    make([]*Node, 0, len(s.Tiers)),
	}
	for i := range s.Sources {
		g.sources[key(s.Sources[i].Ref)] = &s.Sources[i]
	}
	for i := range s.Tiers {
		n := &Node{Tier: &s.Tiers[i]}
		n.Origin = g.sources[key(n.Source)]
		g.nodes[key(n.Ref)] = n
		g.order = append(g.order, n)
	}
	g.link()
	g.findLevels()
	g.findCycles()
	for _, n := range g.order {
		g.findBlockers(n)
	}
	for _, n := range g.order {
		g.classify(n, o)
	}
	slices.SortStableFunc(g.order, func(a, b *Node) int {
		return cmp.Or(cmp.Compare(a.Level, b.Level), a.Ref.Compare(b.Ref))
	})
	// By level, so that what a tier depends on has its root cause already.
	for _, n := range g.order {
		g.findRoot(n)
	}
	return g
}

// key drops the API version, in which references to the same object differ.
func key(r flux.Ref) flux.Ref {
	r.APIVersion = ""
	return r
}

// Tiers are all nodes by level, namespace and name.
func (g *Graph) Tiers() []*Node { return g.order }

// Node finds a tier, nil when there is none.
func (g *Graph) Node(r flux.Ref) *Node { return g.nodes[key(r)] }

// Source finds a source, nil when there is none.
func (g *Graph) Source(r flux.Ref) *flux.Source { return g.sources[key(r)] }

// Ancestors are the given tiers and all that they need: what they depend on
// and, where they wait for what they apply, their children; in the order of
// the graph. A child does not need its parent: that was applied, or the child
// would not be there.
func (g *Graph) Ancestors(of ...*Node) []*Node {
	seen := map[*Node]bool{}
	var visit func(*Node)
	visit = func(n *Node) {
		if seen[n] {
			return
		}
		seen[n] = true
		for _, d := range append(slices.Clip(n.deps), n.needsReady()...) {
			visit(d)
		}
	}
	for _, n := range of {
		visit(n)
	}
	return slices.DeleteFunc(slices.Clone(g.order), func(n *Node) bool { return !seen[n] })
}

// link resolves edges and containment between the nodes.
func (g *Graph) link() {
	for _, n := range g.order {
		for _, d := range n.DependsOn {
			if dep := g.nodes[key(d.Ref)]; dep != nil {
				n.deps = append(n.deps, dep)
				dep.dependants++
				if d.ReadyExpr == "" {
					n.readyDeps = append(n.readyDeps, dep)
				}
			}
		}
		// A root Kustomization commonly applies its own manifest; that is no edge.
		if parent := g.nodes[key(n.Owner)]; parent != nil && parent != n {
			n.ContainedBy = parent
			parent.Contains = append(parent.Contains, n)
		}
	}
}

// needsReady are the tiers whose Ready this one cannot be Ready without: what
// it depends on and, where it waits for what it applied, its children.
func (n *Node) needsReady() []*Node {
	if !n.Wait {
		return n.readyDeps
	}
	return append(slices.Clip(n.readyDeps), n.Contains...)
}

// comesAfter are the tiers that must have been applied before this one can be.
func (n *Node) comesAfter() []*Node {
	if n.ContainedBy == nil {
		return n.deps
	}
	return append(slices.Clip(n.deps), n.ContainedBy)
}
