// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package tiers_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/tiers"
)

func TestBlockers(t *testing.T) {
	otherSource := func(t *flux.Tier) { t.Source = git("apps") }
	expr := func(e string) func(*flux.Tier) {
		return func(t *flux.Tier) { t.DependsOn[0].ReadyExpr = e }
	}
	tests := map[string]struct {
		tier   flux.Tier
		others []flux.Tier
		want   []tiers.Reason
		says   string
	}{
		"ready dependency":         {tier("a", "b"), []flux.Tier{ready(tier("b"))}, nil, ""},
		"not reconciled":           {tier("a", "b"), []flux.Tier{tier("b")}, []tiers.Reason{tiers.NotReady}, "not been reconciled"},
		"failed":                   {tier("a", "b"), []flux.Tier{failed(tier("b"), "X", "boom")}, []tiers.Reason{tiers.NotReady}, "b is not Ready"},
		"DEP-13 older generation":  {tier("a", "b"), []flux.Tier{with(ready(tier("b")), func(t *flux.Tier) { t.Generation = 5 })}, []tiers.Reason{tiers.NotReady}, "generation 1 of its spec and not 5"},
		"same source, old commit":  {tier("a", "b"), []flux.Tier{readyAt(tier("b"), "main@sha1:old")}, []tiers.Reason{tiers.StaleRevision}, "main@sha1:old"},
		"other source, old commit": {with(tier("a", "b"), otherSource), []flux.Tier{readyAt(tier("b"), "main@sha1:old")}, nil, ""},
		"suspended and current":    {tier("a", "b"), []flux.Tier{with(ready(tier("b")), func(t *flux.Tier) { t.Suspended = true })}, nil, ""},
		"suspended and stale":      {tier("a", "b"), []flux.Tier{with(readyAt(tier("b"), "main@sha1:old"), func(t *flux.Tier) { t.Suspended = true })}, []tiers.Reason{tiers.StaleRevision}, ""},
		"missing":                  {tier("a", "b"), nil, []tiers.Reason{tiers.Missing}, "Kustomization flux-system/b does not exist"},
		"DEP-08 all of them":       {tier("a", "b", "c", "d"), []flux.Tier{ready(tier("b")), tier("d")}, []tiers.Reason{tiers.Missing, tiers.NotReady}, ""},
		"DEP-04 wrong kind": {
			tier("a", "b"),
			[]flux.Tier{with(ready(tier("b")), func(t *flux.Tier) { t.Ref = hr("b") })},
			[]tiers.Reason{tiers.WrongKind},
			"a HelmRelease of that name does",
		},
		"DEP-05 other namespace": {
			tier("a", "b"),
			[]flux.Tier{with(ready(tier("b")), func(t *flux.Tier) { t.Ref.Namespace = "infra" })},
			[]tiers.Reason{tiers.Missing},
			"namespace: infra",
		},
		"DEP-09 expression true though not Ready": {
			with(tier("a", "b"), expr("dep.metadata.labels['v'] == self.metadata.labels['v']")),
			[]flux.Tier{failed(tier("b"), "X", "boom")},
			nil, "",
		},
		"DEP-09 expression false though Ready": {
			with(tier("a", "b"), expr("dep.metadata.labels['v'] == 'other'")),
			[]flux.Tier{ready(tier("b"))},
			[]tiers.Reason{tiers.Expression},
			"readyExpr on b is false",
		},
		"DEP-09 expression broken":        {with(tier("a", "b"), expr("dep.metadata.(")), []flux.Tier{ready(tier("b"))}, []tiers.Reason{tiers.Expression}, "failed to parse"},
		"expression on what is not there": {with(tier("a", "b"), expr("true")), nil, []tiers.Reason{tiers.Missing}, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCluster(append(tc.others, tc.tier)...).source("apps", "main@sha1:apps")
			labels := map[string]any{"metadata": map[string]any{"labels": map[string]any{"v": "1"}}}
			c.Objects = map[flux.Ref]map[string]any{ks("a"): labels, ks("b"): labels}
			n := c.graph().Node(ks("a"))
			var got []tiers.Reason
			var said []string
			for _, b := range n.Blockers {
				got, said = append(got, b.Reason), append(said, b.Message)
			}
			if len(got) != len(tc.want) {
				t.Fatalf("got %v %q, want %v", got, said, tc.want)
			}
			for i := range got {
				if got[i] != tc.want[i] {
					t.Errorf("got %v, want %v", got, tc.want)
				}
			}
			if !strings.Contains(strings.Join(said, "\n"), tc.says) {
				t.Errorf("said %q, which does not hold %q", said, tc.says)
			}
		})
	}
}

func TestAnExpressionOverObjectsThatWereNotReadBlocks(t *testing.T) {
	a := tier("a", "b")
	a.DependsOn[0].ReadyExpr = "true"
	n := newCluster(a, ready(tier("b"))).graph().Node(ks("a"))
	if len(n.Blockers) != 1 || n.Blockers[0].Reason != tiers.Expression {
		t.Errorf("what could not be evaluated counts as met: %v", n.Blockers)
	}
}

func TestReleasesCheckNoRevision(t *testing.T) {
	asRelease := func(t *flux.Tier) { t.Ref.APIVersion, t.Ref.Kind = "helm.toolkit.fluxcd.io/v2", "HelmRelease" }
	dep := with(readyAt(tier("b"), "1.0.0"), asRelease)
	a := with(tier("a"), asRelease)
	a.DependsOn = []flux.Dependency{{Ref: dep.Ref}}
	if n := newCluster(a, dep).graph().Node(a.Ref); len(n.Blockers) != 0 {
		t.Errorf("helm-controller compares no revisions, and yet: %v", n.Blockers)
	}
}

// TestAParentIsHeldUpByItsChild: a tier that waits for what it applied is
// blocked by its child once its own work is done, and only then.
func TestAParentIsHeldUpByItsChild(t *testing.T) {
	checking := func(t flux.Tier) flux.Tier {
		t = condition(t, "Ready", metav1.ConditionUnknown, "Progressing", "Reconciliation in progress")
		return condition(t, "Reconciling", metav1.ConditionTrue, "Progressing", "Running health checks for revision "+rev)
	}
	timedOut := failed(waits(tier("p")), "HealthCheckFailed", "timeout waiting for: [Kustomization/flux-system/c status: 'InProgress']")
	tests := map[string]struct {
		parent flux.Tier
		want   bool
	}{
		"checking":                    {checking(waits(tier("p"))), true},
		"timed out on it":             {timedOut, true},
		"timed out on something else": {failed(waits(tier("p")), "HealthCheckFailed", "timeout waiting for: [Deployment/x/y status: 'InProgress']"), false},
		"does not wait":               {checking(tier("p")), false},
		"not applied yet":             {waits(tier("p")), false},
		"health check names it": {checking(with(tier("p"), func(t *flux.Tier) {
			t.HealthChecks = []flux.Ref{{Kind: "Kustomization", Namespace: "flux-system", Name: "c"}}
		})), true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			child := ownedBy(failed(tier("c"), "ReconciliationFailed", noMatch), "p")
			n := newCluster(tc.parent, child).graph().Node(ks("p"))
			if got := len(n.Blockers) == 1 && n.Blockers[0].Reason == tiers.Unhealthy; got != tc.want {
				t.Errorf("blocked by its child: %t, want %t (%v)", got, tc.want, n.Blockers)
			}
			if tc.want && n.Root.Object != ks("c") {
				t.Errorf("root cause is %s, want its child", n.Root.Object)
			}
		})
	}
}

func TestRootCause(t *testing.T) {
	base := func() []flux.Tier {
		return []flux.Tier{
			ready(tier("platform")),
			failed(tier("config", "platform"), "ReconciliationFailed", noMatch),
			failed(tier("vms", "config"), "DependencyNotReady", ""), failed(tier("wave-0", "config"), "DependencyNotReady", ""),
			failed(tier("wave-1", "wave-0"), "DependencyNotReady", ""),
		}
	}
	t.Run("CRD-01 one root cause, not five failures", func(t *testing.T) {
		g := newCluster(base()...).graph()
		for _, name := range []string{"config", "vms", "wave-0", "wave-1"} {
			if n := g.Node(ks(name)); n.Root == nil || n.Root.Object != ks("config") {
				t.Errorf("root cause of %s is %+v", name, n.Root)
			}
		}
		if chain := g.Node(ks("wave-1")).Root.Chain(); len(chain) != 2 || chain[0].On != ks("wave-0") || chain[1].On != ks("config") {
			t.Errorf("chain of wave-1 is %v", chain)
		}
	})
	t.Run("what needs a person comes before what takes time", func(t *testing.T) {
		all := append(base(), with(tier("held"), func(t *flux.Tier) { t.Suspended = true }), failed(tier("z", "wave-1", "held"), "DependencyNotReady", ""))
		if n := newCluster(all...).graph().Node(ks("z")); n.Root.Object != ks("held") || n.Root.State != tiers.Suspended {
			t.Errorf("root cause is %+v", n.Root)
		}
	})
	t.Run("what does not exist", func(t *testing.T) {
		n := newCluster(failed(tier("a", "b"), "DependencyNotReady", ""), failed(tier("b", "gone"), "DependencyNotReady", "")).graph().Node(ks("a"))
		if n.Root.Object != ks("gone") || !strings.Contains(n.Root.Message, "does not exist") {
			t.Errorf("root cause is %+v", n.Root)
		}
	})
	t.Run("a cycle below", func(t *testing.T) {
		n := newCluster(tier("x", "y"), tier("y", "x"), failed(tier("a", "x"), "DependencyNotReady", "")).graph().Node(ks("a"))
		if n.Root.State != tiers.Wedged {
			t.Errorf("root cause is %+v", n.Root)
		}
	})
}

func TestReport(t *testing.T) {
	g := newCluster(
		ownedBy(ready(tier("platform")), "flux-system"), ready(tier("flux-system")),
		failed(tier("config", "platform"), "ReconciliationFailed", noMatch), failed(tier("vms", "config"), "DependencyNotReady", ""),
	).graph()
	items := map[string]tiers.Item{}
	for _, it := range tiers.Report(g.Tiers()) {
		items[it.Object.Name] = it
	}
	if it := items["platform"]; it.ContainedBy == nil || it.ContainedBy.Name != "flux-system" || it.RootCause != nil || it.RetryAt != nil || it.Gates != 2 {
		t.Errorf("platform: %+v", it)
	}
	if it := items["config"]; it.RootCause != nil || it.RetryAt == nil || it.State != tiers.Retrying || len(it.BlockedBy) != 0 || it.DependsOn[0].Name != "platform" {
		t.Errorf("config: %+v", it)
	}
	if it := items["vms"]; it.RootCause == nil || it.RootCause.Object != ks("config") || it.BlockedBy[0] != ks("config") || it.Ready != "False" {
		t.Errorf("vms: %+v", it)
	}
}
