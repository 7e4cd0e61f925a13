// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wait

import (
	"slices"

	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/tiers"
)

// Hold is what keeps a tier from coming up.
type Hold struct {
	// On is the tier or source that stays as it is.
	On flux.Ref
	// Applied is true for a tier that applies all it has, and only cannot become
	// Ready: it waits for what it has applied.
	Applied bool
}

// HeldBack are the tiers that cannot come up while those of left stay as they
// are. left may name sources, too. chosen are suspended tiers that are to be
// resumed: these need the apply of their container first.
func HeldBack(g *tiers.Graph, left map[flux.Ref]string, chosen map[flux.Ref]bool) map[flux.Ref]Hold {
	h := holding{g, left, chosen, map[flux.Ref]Hold{}}
	// Each round may hold back what needs a tier of the one before; the chains
	// that are not in the graph's order are short.
	for again := true; again; {
		again = false
		for _, n := range g.Tiers() {
			if _, known := h.held[n.Ref]; known && !h.held[n.Ref].Applied {
				continue
			}
			if _, stays := left[n.Ref]; stays {
				continue
			}
			hold, held := h.of(n)
			if was, known := h.held[n.Ref]; held && (!known || was.Applied && !hold.Applied) {
				h.held[n.Ref] = hold
				again = true
			}
		}
	}
	return h.held
}

type holding struct {
	*tiers.Graph
	left   map[flux.Ref]string
	chosen map[flux.Ref]bool
	held   map[flux.Ref]Hold
}

func (h holding) of(n *tiers.Node) (Hold, bool) {
	if n.Origin != nil {
		if _, stays := h.left[n.Origin.Ref]; stays {
			return Hold{On: n.Origin.Ref}, true
		}
	}
	for _, d := range n.DependsOn {
		dep := h.Node(d.Ref)
		if dep == nil || d.ReadyExpr != "" && !blockedBy(n, dep.Ref) {
			continue
		}
		if on, never := h.neverReady(dep); never {
			return Hold{On: on}, true
		}
	}
	if c := n.ContainedBy; c != nil && h.chosen[n.Ref] {
		if on, never := h.neverReady(c); never && !h.held[c.Ref].Applied {
			return Hold{On: on}, true
		}
	}
	if n.Ref.Kind != flux.KustomizationKind || n.IsReady() {
		return Hold{}, false
	}
	for _, child := range n.Contains {
		if on, never := h.neverReady(child); never && checks(n, child) {
			return Hold{On: on, Applied: true}, true
		}
	}
	return Hold{}, false
}

// neverReady is true for a tier that stays, or is held back, and is not Ready as
// it is; and names where that ends.
func (h holding) neverReady(n *tiers.Node) (on flux.Ref, never bool) {
	if n.IsReady() {
		return on, false
	}
	if _, stays := h.left[n.Ref]; stays {
		return n.Ref, true
	}
	hold, held := h.held[n.Ref]
	return hold.On, held
}

// checks is true when a tier cannot be Ready before a child of it is.
func checks(n, child *tiers.Node) bool {
	return n.Wait || slices.ContainsFunc(n.HealthChecks, func(r flux.Ref) bool {
		return r.Kind == child.Ref.Kind && r.Namespace == child.Ref.Namespace && r.Name == child.Ref.Name
	})
}

func blockedBy(n *tiers.Node, on flux.Ref) bool {
	return slices.ContainsFunc(n.Blockers, func(b tiers.Blocker) bool { return b.On == on })
}
