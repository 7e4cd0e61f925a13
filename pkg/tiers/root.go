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
	if n.State != Ready && n.Root == nil {
		n.Root, _ = g.rootOf(n, map[*Node]bool{})
	}
}

// rootOf also says whether its answer holds for every way to the tier: it does
// unless a loop was cut, and is then kept, so that no tier is walked twice.
func (g *Graph) rootOf(n *Node, onPath map[*Node]bool) (root *RootCause, whole bool) {
	if n.Root != nil {
		return n.Root, true
	}
	own := &RootCause{Object: n.Ref, State: n.State, Message: n.Why}
	if n.State != Blocked {
		return own, true
	}
	onPath[n] = true
	defer delete(onPath, n)

	root, whole = nil, true
	for _, b := range n.Blockers {
		found := &RootCause{Object: b.On, State: Blocked, Message: b.Message, Depth: 1, via: b}
		next := g.nodes[key(b.On)]
		switch {
		case next == nil: // a source, or something that does not exist
		case onPath[next]:
			whole = false
			continue
		case next.State == Ready: // at fault all the same: a stale revision, a false readyExpr
			found.State = next.State
		default:
			deeper, all := g.rootOf(next, onPath)
			whole = whole && all
			found = &RootCause{
				Object: deeper.Object, State: deeper.State, Message: deeper.Message,
				Depth: deeper.Depth + 1, via: b, next: deeper,
			}
		}
		if root == nil || better(found, root) {
			root = found
		}
	}
	if root == nil {
		root = own
	}
	if whole {
		n.Root = root
	}
	return root, whole
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
