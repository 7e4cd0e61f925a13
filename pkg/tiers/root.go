// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package tiers

// rank orders what a chain can end at, worst first: of two root causes that
// lie equally deep, the one that needs a person is named.
func rank(s State) int {
	switch s {
	case Wedged:
		return 0
	case Suspended:
		return 1
	case Blocked: // by something that does not exist
		return 2
	case Retrying:
		return 3
	default:
		return 4
	}
}

// findRoot follows what blocks a tier down to the deepest one that is red for
// its own reason. A tier that is ready has no root cause.
func (g *Graph) findRoot(n *Node) {
	if n.State == Ready || n.Root != nil {
		return
	}
	n.Root = g.rootOf(n, map[*Node]bool{})
}

func (g *Graph) rootOf(n *Node, onPath map[*Node]bool) *RootCause {
	if n.Root != nil {
		return n.Root
	}
	own := &RootCause{Object: n.Ref, State: n.State, Message: n.Why}
	if n.State != Blocked {
		return own
	}
	onPath[n] = true
	defer delete(onPath, n)

	var best *RootCause
	for _, b := range n.Blockers {
		found := &RootCause{Object: b.On, State: Blocked, Message: b.Message, Depth: 1, via: b}
		next := g.nodes[key(b.On)]
		switch {
		case next == nil: // a source, or something that does not exist
		case onPath[next]:
			continue
		case next.State == Ready: // at fault all the same: a stale revision, a false readyExpr
			found.State = next.State
		default:
			deeper := g.rootOf(next, onPath)
			found = &RootCause{
				Object: deeper.Object, State: deeper.State, Message: deeper.Message,
				Depth: deeper.Depth + 1, via: b, next: deeper,
			}
		}
		if best == nil || better(found, best) {
			best = found
		}
	}
	if best == nil {
		return own
	}
	return best
}

func better(a, b *RootCause) bool {
	if ra, rb := rank(a.State), rank(b.State); ra != rb {
		return ra < rb
	}
	if a.Depth != b.Depth {
		return a.Depth > b.Depth
	}
	return a.Object.Compare(b.Object) < 0
}
