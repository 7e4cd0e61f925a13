// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package tiers_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/tiers"
)

// missionGraph is the graph of the incident: a root that applies all tiers,
// and three chains below platform-config.
func missionGraph() *cluster {
	all := []flux.Tier{
		tier("platform"), tier("platform-config", "platform"),
		tier("apps-wave-0", "platform-config"), tier("apps-wave-1", "apps-wave-0"), tier("apps-wave-2", "apps-wave-1"),
		tier("apps-vms", "platform-config"), tier("velero", "platform-config"),
	}
	for i := range all {
		all[i] = ownedBy(all[i], "flux-system")
	}
	return newCluster(append(all, ownedBy(tier("flux-system"), "flux-system"))...)
}

func TestLevelsFollowContainmentAndEdges(t *testing.T) {
	g := missionGraph().graph()
	var got []string
	for _, n := range g.Tiers() {
		got = append(got, fmt.Sprintf("%d %s %d", n.Level, n.Ref.Name, n.Below))
	}
	want := []string{
		"0 flux-system 7", "1 platform 6", "2 platform-config 5",
		"3 apps-vms 0", "3 apps-wave-0 2", "3 velero 0", "4 apps-wave-1 1", "5 apps-wave-2 0",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestARootThatAppliesItselfIsNoCycle(t *testing.T) {
	g := newCluster(waits(ownedBy(tier("flux-system"), "flux-system"))).graph()
	if len(g.Cycles) != 0 || g.Tiers()[0].Level != 0 {
		t.Errorf("cycles %v, level %d", g.Cycles, g.Tiers()[0].Level)
	}
}

func TestCycles(t *testing.T) {
	tests := map[string]struct {
		tiers []flux.Tier
		want  []string
	}{
		"DEP-01 two": {[]flux.Tier{tier("b", "a"), tier("a", "b"), tier("c")}, []string{"flux-system/a → flux-system/b → flux-system/a"}},
		"self":       {[]flux.Tier{tier("a", "a")}, []string{"flux-system/a → flux-system/a"}},
		"the shortest of a knot": {
			[]flux.Tier{tier("a", "b", "c"), tier("b", "d"), tier("c", "a"), tier("d", "a")},
			[]string{"flux-system/a → flux-system/c → flux-system/a"},
		},
		"two knots": {
			[]flux.Tier{tier("x", "y"), tier("y", "x"), tier("a", "b"), tier("b", "a")},
			[]string{"flux-system/a → flux-system/b → flux-system/a", "flux-system/x → flux-system/y → flux-system/x"},
		},
		"through a parent that waits for its child": {
			[]flux.Tier{waits(tier("root")), ownedBy(tier("child", "root"), "root")},
			[]string{"flux-system/child → flux-system/root → flux-system/child"},
		},
		"a parent that does not wait is no cycle": {
			[]flux.Tier{tier("root"), ownedBy(tier("child", "root"), "root")}, nil,
		},
		"a diamond is no cycle": {
			[]flux.Tier{tier("a"), tier("b", "a"), tier("c", "a"), tier("d", "b", "c")}, nil,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			g := newCluster(tc.tiers...).graph()
			var got []string
			for _, loop := range g.Cycles {
				got = append(got, tiers.FormatCycle(loop))
				for _, ref := range loop {
					if n := g.Node(ref); n.State != tiers.Wedged {
						t.Errorf("%s is %s, not wedged", ref, n.State)
					}
				}
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// TestOrderOnRandomGraphs holds the properties of levels on graphs that nobody
// thought of: an edge goes up a level unless both ends share a loop, and every
// tier is below exactly the tiers that can be reached from it.
func TestOrderOnRandomGraphs(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		n := 2 + rng.IntN(12)
		all := make([]flux.Tier, n)
		for i := range all {
			var deps []string
			for j := range n {
				if rng.Float64() < 1.2/float64(n) {
					deps = append(deps, fmt.Sprint("t", j))
				}
			}
			all[i] = tier(fmt.Sprint("t", i), deps...)
		}
		g := newCluster(all...).graph()
		reach := func(from *tiers.Node) map[flux.Ref]bool {
			seen := map[flux.Ref]bool{}
			var walk func(*tiers.Node)
			walk = func(m *tiers.Node) {
				for _, d := range m.DependsOn {
					if !seen[d.Ref] {
						seen[d.Ref] = true
						walk(g.Node(d.Ref))
					}
				}
			}
			walk(from)
			return seen
		}
		below := map[flux.Ref]int{}
		for _, m := range g.Tiers() {
			for ref := range reach(m) {
				if ref != m.Ref {
					below[ref]++
				}
				if reach(g.Node(ref))[m.Ref] {
					if g.Node(ref).Level != m.Level {
						t.Fatalf("seed %d: %s and %s share a loop and not a level", seed, m.Ref, ref)
					}
				} else if g.Node(ref).Level >= m.Level {
					t.Fatalf("seed %d: %s needs %s and is not above it", seed, m.Ref, ref)
				}
			}
		}
		for _, m := range g.Tiers() {
			if m.Below != below[m.Ref] {
				t.Fatalf("seed %d: %s has %d tiers below it, counted %d", seed, m.Ref, m.Below, below[m.Ref])
			}
			inLoop := reach(m)[m.Ref]
			if named := m.State == tiers.Wedged; named && !inLoop {
				t.Fatalf("seed %d: %s is called a member of a cycle and is none", seed, m.Ref)
			}
		}
		loops := 0
		counted := map[flux.Ref]bool{}
		for _, m := range g.Tiers() {
			if reach(m)[m.Ref] && !counted[m.Ref] {
				loops++
				for ref := range reach(m) {
					if reach(g.Node(ref))[m.Ref] {
						counted[ref] = true
					}
				}
			}
		}
		if len(g.Cycles) != loops {
			t.Fatalf("seed %d: %d cycles named, there are %d knots", seed, len(g.Cycles), loops)
		}
	}
}

func TestALongChainDoesNotNeedADeepStack(t *testing.T) {
	const length = 5000
	all := []flux.Tier{tier("t0")}
	for i := 1; i < length; i++ {
		all = append(all, tier(fmt.Sprint("t", i), fmt.Sprint("t", i-1)))
	}
	g := newCluster(all...).graph()
	last := g.Node(ks(fmt.Sprint("t", length-1)))
	if last.Level != length-1 || g.Node(ks("t0")).Below != length-1 {
		t.Errorf("level %d, below %d", last.Level, g.Node(ks("t0")).Below)
	}
}

func TestAncestorsAreWhatIsDependedOnNotTheParent(t *testing.T) {
	g := missionGraph().graph()
	got := names(g.Ancestors(g.Node(ks("apps-wave-1"))))
	want := []string{"platform", "platform-config", "apps-wave-0", "apps-wave-1"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
