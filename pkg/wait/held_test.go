// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wait

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

// in is a tier that a container applies.
func in(container string, t flux.Tier) flux.Tier { t.Owner = ks(container); return t }

func waits(t flux.Tier) flux.Tier { t.Wait = true; return t }

func TestHeldBack(t *testing.T) {
	tests := map[string]struct {
		left   []string
		chosen []string
		tiers  []flux.Tier
		want   string
	}{
		"nothing stays": {tiers: []flux.Tier{tier("a"), tier("b", "a")}},
		"what depends on it, and on that": {
			left: []string{"a"}, tiers: []flux.Tier{suspended(tier("a")), tier("b", "a"), tier("c", "b"), tier("x")}, want: "b<a c<a",
		},
		"it is Ready as it is": {left: []string{"a"}, tiers: []flux.Tier{suspended(ready(tier("a"))), tier("b", "a")}},
		"a container comes up to its children": {
			left: []string{"a"}, tiers: []flux.Tier{waits(tier("root")), in("root", suspended(tier("a"))), in("root", tier("b"))}, want: "root~a",
		},
		"what depends on such a container is not applied": {
			left: []string{"a"}, tiers: []flux.Tier{waits(tier("root")), in("root", suspended(tier("a"))), tier("z", "root")}, want: "root~a z<a",
		},
		"a container that does not wait": {left: []string{"a"}, tiers: []flux.Tier{tier("root"), in("root", suspended(tier("a")))}},
		"a child to resume needs its container": {
			left: []string{"root"}, chosen: []string{"a"}, tiers: []flux.Tier{suspended(tier("root")), in("root", tier("a"))}, want: "a<root",
		},
		"a child that runs does not": {left: []string{"root"}, tiers: []flux.Tier{suspended(tier("root")), in("root", tier("a"))}},
		"children of a container that only cannot be Ready": {
			left: []string{"a"}, chosen: []string{"root", "b"},
			tiers: []flux.Tier{waits(tier("root")), in("root", suspended(tier("a"))), in("root", tier("b"))}, want: "root~a",
		},
		"against the order of names": {
			left: []string{"z"}, tiers: []flux.Tier{tier("a", "b"), tier("b", "c"), tier("c", "z"), suspended(tier("z"))}, want: "a<z b<z c<z",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			left, chosen := map[flux.Ref]string{}, map[flux.Ref]bool{}
			for _, name := range tc.left {
				left[ks(name)] = "why"
			}
			for _, name := range tc.chosen {
				chosen[ks(name)] = true
			}
			var got []string
			for ref, hold := range HeldBack(graph(nil, tc.tiers...), left, chosen) {
				sign := "<"
				if hold.Applied {
					sign = "~"
				}
				got = append(got, fmt.Sprint(ref.Name, sign, hold.On.Name))
			}
			slices.Sort(got)
			if strings.Join(got, " ") != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestWhatIsBuiltFromASourceThatGivesNothing(t *testing.T) {
	g := graph(nil, tier("a"), tier("b", "a"))
	source := g.Node(ks("a")).Origin.Ref
	held := HeldBack(g, map[flux.Ref]string{source: "suspended, and without an artifact"}, nil)
	if len(held) != 2 || held[ks("a")].On != source || held[ks("b")].On != source {
		t.Errorf("held back: %v", held)
	}
}
