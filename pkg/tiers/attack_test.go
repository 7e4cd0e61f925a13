// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package tiers_test

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/tiers"
)

// TestAnExpressionIsNoNeedForReady: DEP-09, a readyExpr replaces the check of
// Ready, so a loop through it is none.
func TestAnExpressionIsNoNeedForReady(t *testing.T) {
	a := tier("a", "b")
	a.DependsOn[0].ReadyExpr = "true"
	if g := newCluster(a, tier("b", "a")).graph(); len(g.Cycles) != 0 {
		t.Errorf("cycles: %v", g.Cycles)
	}
}

// TestALoopThatIsUpIsReady: a parent that waits and a child that depends on it
// cannot come up, but run on once they are up.
func TestALoopThatIsUpIsReady(t *testing.T) {
	g := newCluster(ready(waits(tier("root"))), ready(ownedBy(tier("child", "root"), "root"))).graph()
	for _, n := range g.Tiers() {
		if n.State != tiers.Ready {
			t.Errorf("%s is %s: %s", n.Ref, n.State, n.Why)
		}
	}
}

// TestRootCausesOfAWideGraphTakeNoTime: a parent is blocked by every one of its
// children, which block each other in layers. Walked along each way, this
// takes for ever.
func TestRootCausesOfAWideGraphTakeNoTime(t *testing.T) {
	const layers = 60
	root := waits(tier("root"))
	root = condition(root, "Ready", metav1.ConditionUnknown, "Progressing", "Reconciliation in progress")
	root = condition(root, "Reconciling", metav1.ConditionTrue, "Progressing", "Running health checks for revision "+rev)
	all := []flux.Tier{root, ownedBy(failed(tier("l0a"), "BuildFailed", "boom"), "root"), ownedBy(failed(tier("l0b"), "BuildFailed", "boom"), "root")}
	for i := 1; i < layers; i++ {
		for _, side := range []string{"a", "b"} {
			name := fmt.Sprint("l", i, side)
			up := fmt.Sprint("l", i-1)
			all = append(all, ownedBy(failed(tier(name, up+"a", up+"b"), "DependencyNotReady", ""), "root"))
		}
	}
	g := newCluster(all...).graph()
	if got := g.Node(ks("root")).Root; got.Object != ks("l0a") || got.Depth != layers {
		t.Errorf("root cause %v, %d steps away", got.Object, got.Depth)
	}
}

func TestReadyAtTheArtifactOfAnOldSourceSpec(t *testing.T) {
	c := newCluster(ready(tier("a")))
	c.Sources[0].Generation, c.Sources[0].ObservedGeneration = 2, 1
	if n := c.graph().Node(ks("a")); n.State != tiers.Progressing {
		t.Errorf("got %s: %s", n.State, n.Why)
	}
	c.Sources[0].Suspended = true // then it never will
	if n := c.graph().Node(ks("a")); n.State != tiers.Ready {
		t.Errorf("of a suspended source: %s: %s", n.State, n.Why)
	}
}

func TestAReleaseStalledAtAnOldChart(t *testing.T) {
	for attempted, want := range map[string]tiers.State{"1.0.0": tiers.Retrying, "2.0.0": tiers.Wedged} {
		r := with(tier("x"), func(t *flux.Tier) {
			t.Ref, t.LastAttemptedRevision = hr("x"), attempted
			t.Source = flux.Ref{Kind: "HelmChart", Namespace: "flux-system", Name: "x"}
		})
		c := newCluster(condition(failed(r, "UpgradeFailed", "boom"), "Stalled", "True", "RetriesExceeded", "4 attempts"))
		c.Sources = append(c.Sources, flux.Source{Ref: r.Source, Artifact: &flux.Artifact{Revision: "2.0.0"}})
		if n := c.graph().Node(hr("x")); n.State != want {
			t.Errorf("stalled at %s while 2.0.0 is there: %s, want %s", attempted, n.State, want)
		}
	}
}

func TestWhoMayMissAKind(t *testing.T) {
	lacking := failed(tier("a"), "ReconciliationFailed", noMatch)
	atWork := condition(with(tier("a"), func(t *flux.Tier) { t.LastOutcome = "ReconciliationFailed" }), "Ready", "Unknown", "Progressing", "…")
	tests := map[string]struct {
		tier flux.Tier
		want bool
	}{
		"lacks one":                  {lacking, true},
		"the controller knew it":     {failed(tier("a"), "ReconciliationFailed", "StorageProfile/x namespace not specified: the server could not find the requested resource"), true},
		"fails for another reason":   {failed(tier("a"), "ReconciliationFailed", "boom"), false},
		"at work after a failure":    {atWork, true},
		"at work for the first time": {with(atWork, func(t *flux.Tier) { t.LastOutcome = "" }), false},
		"suspended":                  {with(lacking, func(t *flux.Tier) { t.Suspended = true }), false},
		"being deleted":              {with(lacking, func(t *flux.Tier) { t.Deleted = transition() }), false},
		"of another cluster":         {with(lacking, func(t *flux.Tier) { t.Remote = true }), false},
		"a release":                  {with(lacking, func(t *flux.Tier) { t.Ref = hr("a") }), false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := newCluster(tc.tier).graph().Tiers()[0].MayMissKind(); got != tc.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestDeletedIsNotReady(t *testing.T) {
	deleted := with(ready(tier("a")), func(t *flux.Tier) { t.Deleted = transition() })
	if newCluster(deleted).graph().Tiers()[0].IsReady() {
		t.Error("a tier that is being deleted counts as Ready")
	}
}

func TestAncestorsOfAParentThatWaitsAreItsChildren(t *testing.T) {
	g := newCluster(waits(tier("root")), ownedBy(tier("child", "dep"), "root"), tier("dep"), tier("other")).graph()
	if got := names(g.Ancestors(g.Node(ks("root")))); len(got) != 3 {
		t.Errorf("got %v", got)
	}
}
