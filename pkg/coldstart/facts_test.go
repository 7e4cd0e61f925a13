// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package coldstart

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// random makes a system of facts, cycles and impossible facts among them.
func random(r *rand.Rand) facts {
	var f facts
	n := 4 + r.IntN(12)
	for range n {
		f.add()
	}
	pick := func() []fact {
		var some []fact
		for range r.IntN(3) {
			some = append(some, fact(r.IntN(n)))
		}
		return some
	}
	for i := range n {
		if r.IntN(3) > 0 {
			f.need(fact(i), pick()...)
			f.way(fact(i), pick()...)
		}
		if r.IntN(10) == 0 {
			f.forbid(fact(i))
		}
	}
	return f
}

// without is the same system in which one fact never comes true.
func without(f facts, p fact) facts {
	g := facts{nodes: slices.Clone(f.nodes)}
	g.nodes[p].never = true
	g.solve()
	return g
}

// TestNecessity holds the sets that are computed at once against their
// definition: p comes before x by necessity when x does not come true without p.
func TestNecessity(t *testing.T) {
	necessary := 0
	for seed := range uint64(3000) {
		f := random(rand.New(rand.NewPCG(seed, 1)))
		f.solve()
		for p := range f.nodes {
			g := without(f, fact(p))
			for x := range f.nodes {
				want := f.held[x] && !g.held[x]
				if want {
					necessary++
				}
				if got := f.before(fact(x), fact(p)); got != want {
					t.Fatalf("seed %d: %d before %d: got %t, want %t\n%+v", seed, p, x, got, want, f.nodes)
				}
			}
		}
	}
	if necessary < 10_000 {
		t.Fatalf("only %d necessities: the systems are too simple", necessary)
	}
}

// TestOrder: what is true follows from what stands before it.
func TestOrder(t *testing.T) {
	for seed := range uint64(1000) {
		f := random(rand.New(rand.NewPCG(seed, 2)))
		f.solve()
		g := facts{nodes: f.nodes, held: make([]bool, len(f.nodes))}
		for i, x := range f.order {
			if !g.follows(x) || f.place[x] != i {
				t.Fatalf("seed %d: %d does not follow from what stands before it", seed, x)
			}
			g.held[x] = true
		}
		for x := range f.nodes {
			if !g.held[x] && g.follows(fact(x)) {
				t.Fatalf("seed %d: %d follows, and is not held to be true", seed, x)
			}
		}
	}
}
