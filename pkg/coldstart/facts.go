// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package coldstart

// fact is the index of something that comes true, or does not, while a cluster
// comes up. What is true stays true.
type fact int

// node is what a fact follows from: all of one list, and one of the other where
// that is not empty. A fact without either is true from the beginning.
type node struct {
	all, any []fact
	// never is for a fact that nothing makes true.
	never bool
}

// facts is the system of facts.
type facts struct {
	nodes []node
	// order are the true facts, in an order in which each follows from earlier
	// ones.
	order []fact
	// place is where a true fact stands in the order.
	place []int
	held  []bool
	must  []bitset
}

func (f *facts) add(all ...fact) fact {
	f.nodes = append(f.nodes, node{all: all})
	return fact(len(f.nodes) - 1)
}

// impossible makes a fact that never comes true.
func (f *facts) impossible() fact {
	f.nodes = append(f.nodes, node{never: true})
	return fact(len(f.nodes) - 1)
}

func (f *facts) need(of fact, premises ...fact) {
	f.nodes[of].all = append(f.nodes[of].all, premises...)
}

func (f *facts) way(of fact, alternatives ...fact) {
	f.nodes[of].any = append(f.nodes[of].any, alternatives...)
}

func (f *facts) forbid(of fact) { f.nodes[of].never = true }

// solve finds what comes true at all, and then what has come true by necessity
// before each fact.
func (f *facts) solve() {
	f.held = make([]bool, len(f.nodes))
	f.place = make([]int, len(f.nodes))
	users := make([][]fact, len(f.nodes))
	for i, n := range f.nodes {
		for _, list := range [][]fact{n.all, n.any} {
			for _, p := range list {
				users[p] = append(users[p], fact(i))
			}
		}
	}
	for i := range f.nodes {
		f.order = append(f.order, fact(i)) // the worklist, for now
	}
	todo := f.order
	f.order = nil
	for len(todo) > 0 {
		x := todo[0]
		todo = todo[1:]
		if f.held[x] || !f.follows(x) {
			continue
		}
		f.held[x] = true
		f.place[x] = len(f.order)
		f.order = append(f.order, x)
		todo = append(todo, users[x]...)
	}
	f.dominate()
}

func (f *facts) follows(x fact) bool {
	n := f.nodes[x]
	if n.never {
		return false
	}
	for _, p := range n.all {
		if !f.held[p] {
			return false
		}
	}
	for _, p := range n.any {
		if f.held[p] {
			return true
		}
	}
	return len(n.any) == 0
}

// dominate computes must: the facts without which a fact does not come true, as
// dominators are computed. It begins with the first way in which each came true
// and takes away what another way does without.
func (f *facts) dominate() {
	f.must = make([]bitset, len(f.nodes))
	for changed := true; changed; {
		changed = false
		for _, x := range f.order {
			next := f.necessary(x)
			if f.must[x] == nil || !next.equal(f.must[x]) {
				f.must[x] = next
				changed = true
			}
		}
	}
}

func (f *facts) necessary(x fact) bitset {
	n := f.nodes[x]
	set := newBitset(len(f.nodes))
	for _, p := range n.all {
		set.union(f.must[p])
	}
	var common bitset
	for _, p := range n.any {
		switch {
		case !f.held[p] || f.must[p] == nil:
			// Not a way, or one that is met later in the first round.
		case common == nil:
			common = f.must[p].clone()
		default:
			common.intersect(f.must[p])
		}
	}
	set.union(common)
	set.add(x)
	return set
}

// before is true when p has come true by necessity before x does.
func (f *facts) before(x, p fact) bool { return f.held[x] && f.must[x].has(p) }

// bitset is a set of facts.
type bitset []uint64

func newBitset(n int) bitset { return make(bitset, (n+63)/64) }

func (s bitset) add(x fact)      { s[x/64] |= 1 << (x % 64) }
func (s bitset) has(x fact) bool { return s[x/64]&(1<<(x%64)) != 0 }

func (s bitset) clone() bitset { return append(bitset(nil), s...) }

func (s bitset) union(o bitset) {
	for i := range o {
		s[i] |= o[i]
	}
}

func (s bitset) intersect(o bitset) {
	for i := range o {
		s[i] &= o[i]
	}
}

func (s bitset) equal(o bitset) bool {
	for i := range o {
		if s[i] != o[i] {
			return false
		}
	}
	return true
}
