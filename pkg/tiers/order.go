// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package tiers

import (
	"iter"
	"math/bits"
	"slices"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

// findLevels gives each tier its depth: one more than the deepest tier that
// must be applied before it. The members of a loop share a level. It counts
// the tiers below each one on the way.
func (g *Graph) findLevels() {
	loops := components(g.order, (*Node).comesAfter)
	home := make(map[*Node]int, len(g.order))
	for i, loop := range loops {
		for _, n := range loop {
			home[n] = i
		}
	}
	// components come in an order in which what comes first needs nothing later.
	level := make([]int, len(loops))
	above := make([]set, len(loops))
	for i, loop := range loops {
		above[i] = newSet(len(loops))
		for _, n := range loop {
			for _, before := range n.comesAfter() {
				if j := home[before]; j != i {
					level[i] = max(level[i], level[j]+1)
					above[i].union(above[j])
					above[i].add(j)
				}
			}
		}
		for _, n := range loop {
			n.Level = level[i]
		}
	}
	for i, loop := range loops {
		for j := range above[i].all() {
			for _, n := range loops[j] {
				n.Below += len(loop)
			}
		}
		for _, n := range loop {
			n.Below += len(loop) - 1
		}
	}
}

// findCycles records one loop for each knot of tiers that wait for each other.
func (g *Graph) findCycles() {
	for _, knot := range components(g.order, (*Node).needsReady) {
		start := slices.MinFunc(knot, func(a, b *Node) int { return a.Ref.Compare(b.Ref) })
		if loop := shortestLoop(start, knot); loop != nil {
			g.Cycles = append(g.Cycles, loop)
		}
	}
	slices.SortFunc(g.Cycles, func(a, b []flux.Ref) int { return a[0].Compare(b[0]) })
}

// shortestLoop is the shortest way from a tier back to itself inside its knot,
// nil when there is none.
func shortestLoop(start *Node, knot []*Node) []flux.Ref {
	from := map[*Node]*Node{}
	queue := []*Node{start}
	for len(queue) > 0 {
		n := queue[0]
		queue = queue[1:]
		next := slices.Clone(n.needsReady())
		slices.SortFunc(next, func(a, b *Node) int { return a.Ref.Compare(b.Ref) })
		for _, m := range next {
			if m == start {
				loop := []flux.Ref{}
				for ; n != nil; n = from[n] {
					loop = append(loop, n.Ref)
				}
				slices.Reverse(loop)
				return loop
			}
			if _, seen := from[m]; !seen && slices.Contains(knot, m) {
				from[m] = n
				queue = append(queue, m)
			}
		}
	}
	return nil
}

// components groups nodes that reach each other (Tarjan), what a group reaches
// before the group itself. The walk keeps its own stack, since a chain may be
// longer than the call stack should be deep.
func components(nodes []*Node, next func(*Node) []*Node) [][]*Node {
	type mark struct{ index, low int }
	marks := make(map[*Node]*mark, len(nodes))
	open := map[*Node]bool{}
	var stack []*Node
	var out [][]*Node
	type frame struct {
		n    *Node
		todo []*Node
	}
	enter := func(n *Node) frame {
		marks[n] = &mark{len(marks), len(marks)}
		stack = append(stack, n)
		open[n] = true
		return frame{n, next(n)}
	}
	for _, root := range nodes {
		if marks[root] != nil {
			continue
		}
		walk := []frame{enter(root)}
		for len(walk) > 0 {
			f := &walk[len(walk)-1]
			if len(f.todo) > 0 {
				m := f.todo[0]
				f.todo = f.todo[1:]
				switch {
				case marks[m] == nil:
					walk = append(walk, enter(m))
				case open[m]:
					marks[f.n].low = min(marks[f.n].low, marks[m].index)
				}
				continue
			}
			n := f.n
			walk = walk[:len(walk)-1]
			if len(walk) > 0 {
				parent := marks[walk[len(walk)-1].n]
				parent.low = min(parent.low, marks[n].low)
			}
			if marks[n].low == marks[n].index {
				at := slices.Index(stack, n)
				group := slices.Clone(stack[at:])
				stack = stack[:at]
				for _, m := range group {
					open[m] = false
				}
				out = append(out, group)
			}
		}
	}
	return out
}

// set is a bit set over the indices of components.
type set []uint

func newSet(n int) set { return make(set, (n+bits.UintSize-1)/bits.UintSize) }

func (s set) add(i int) { s[i/bits.UintSize] |= 1 << (i % bits.UintSize) }

func (s set) all() iter.Seq[int] {
	return func(yield func(int) bool) {
		for at, word := range s {
			for ; word != 0; word &= word - 1 {
				if !yield(at*bits.UintSize + bits.TrailingZeros(word)) {
					return
				}
			}
		}
	}
}

func (s set) union(o set) {
	for i := range s {
		s[i] |= o[i]
	}
}
