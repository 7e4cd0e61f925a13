// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package tiers_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/tiers"
)

const noMatch = `StorageProfile/longhorn-vm dry-run failed: no matches for kind "StorageProfile" in version "cdi.kubevirt.io/v1beta1"`

func TestStates(t *testing.T) {
	suspended := func(t *flux.Tier) {
		t.Suspended, t.SuspendedBy, t.SuspendedSince = true, "kubectl-edit", transition()
	}
	tests := map[string]struct {
		tier flux.Tier
		also []flux.Tier
		want tiers.State
		why  string // must be part of Why
	}{
		"ready":               {tier: ready(tier("a")), want: tiers.Ready},
		"never reconciled":    {tier: tier("a"), want: tiers.Progressing, why: "not reconciled yet"},
		"at work":             {tier: condition(condition(tier("a"), "Ready", "Unknown", "Progressing", "Reconciliation in progress"), "Reconciling", "True", "Progressing", "Building manifests"), want: tiers.Progressing, why: "Building manifests"},
		"DEP-07 old revision": {tier: readyAt(tier("a"), "main@sha1:old"), want: tiers.Progressing, why: "its source is at " + rev},
		"DEP-13 Ready of an older generation": {
			tier: with(ready(tier("a")), func(t *flux.Tier) { t.Generation = 2 }), want: tiers.Progressing, why: "generation 2 is not reconciled yet",
		},
		"a failure of an older spec": {
			tier: with(failed(tier("a"), "BuildFailed", "boom"), func(t *flux.Tier) { t.Generation = 2 }), want: tiers.Progressing,
		},
		"failed": {tier: failed(tier("a"), "ReconciliationFailed", noMatch), want: tiers.Retrying, why: "no matches for kind"},
		"suspended wins over failed": {
			tier: with(failed(tier("a"), "ReconciliationFailed", noMatch), suspended), want: tiers.Suspended, why: "by kubectl-edit since 2026-11-30T02:00:00Z",
		},
		"suspended wins over ready": {tier: with(ready(tier("a")), suspended), want: tiers.Suspended},
		"DEP-09 stalled": {
			tier: condition(failed(tier("a"), "InvalidCELExpression", "bad"), "Stalled", "True", "InvalidCELExpression", "bad"), want: tiers.Wedged, why: "InvalidCELExpression",
		},
		"stalled on an older spec": {
			tier: with(condition(failed(tier("a"), "X", "bad"), "Stalled", "True", "X", "bad"), func(t *flux.Tier) { t.Generation = 2 }), want: tiers.Progressing,
		},
		"KST-09 being deleted": {
			tier: with(ready(tier("a")), func(t *flux.Tier) { t.Deleted, t.Finalizers = transition(), []string{"finalizers.fluxcd.io"} }),
			want: tiers.Progressing, why: "held by finalizer finalizers.fluxcd.io",
		},
		"blocked":                             {tier: failed(tier("a", "b"), "DependencyNotReady", "x"), also: []flux.Tier{tier("b")}, want: tiers.Blocked, why: "b has not been reconciled yet"},
		"dependencies met, controller sleeps": {tier: failed(tier("a", "b"), "DependencyNotReady", "x"), also: []flux.Tier{ready(tier("b"))}, want: tiers.Retrying, why: "within 30s"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			n := newCluster(append(tc.also, tc.tier)...).graph().Node(ks("a"))
			if n.State != tc.want || !strings.Contains(n.Why, tc.why) {
				t.Errorf("got %s %q, want %s %q", n.State, n.Why, tc.want, tc.why)
			}
			if (n.Root == nil) != (tc.want == tiers.Ready) {
				t.Errorf("root cause is %v for a tier that is %s", n.Root, n.State)
			}
		})
	}
}

func TestRetryAt(t *testing.T) {
	at := func(f flux.Tier) time.Time { return newCluster(f).graph().Node(ks("a")).RetryAt }
	if got, want := at(failed(tier("a"), "ReconciliationFailed", noMatch)), transition().Add(time.Minute); !got.Equal(want) {
		t.Errorf("CRD-05: retries at %s, want the failure plus retryInterval, %s", got, want)
	}
	if got := at(failed(tier("a"), "ArtifactFailed", "Source artifact not found, retrying in 30s")); !got.IsZero() {
		t.Errorf("retries at %s; that wait is the controller's flag, which is not known", got)
	}
}

func TestSourceDecidesWhatReadyMeans(t *testing.T) {
	tests := map[string]struct {
		revision string // of the source; "-" for no source at all
		applied  string
		want     tiers.State
		reason   tiers.Reason
	}{
		"current":     {rev, rev, tiers.Ready, ""},
		"stale":       {"main@sha1:bbbb", rev, tiers.Progressing, ""},
		"no artifact": {"", "", tiers.Blocked, tiers.NoArtifact},
		"no source":   {"-", "", tiers.Blocked, tiers.Missing},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			one := tier("a")
			if tc.applied != "" {
				one = readyAt(one, tc.applied)
			}
			c := newCluster(one)
			c.Sources = nil
			if tc.revision != "-" {
				c.source("flux-system", tc.revision)
			}
			n := c.graph().Node(ks("a"))
			if n.State != tc.want {
				t.Errorf("got %s (%s), want %s", n.State, n.Why, tc.want)
			}
			if tc.reason != "" && (len(n.Blockers) != 1 || n.Blockers[0].Reason != tc.reason) {
				t.Errorf("blockers %v, want %s", n.Blockers, tc.reason)
			}
		})
	}
}

func TestASourceKindThatTheClusterDoesNotServeIsNotMissing(t *testing.T) {
	c := newCluster(ready(with(tier("a"), func(t *flux.Tier) { t.Source.Kind = "Elsewhere" })))
	if n := c.graph().Node(ks("a")); len(n.Blockers) != 0 {
		t.Errorf("blocked by what was never read: %v", n.Blockers)
	}
}

func TestReleasesAreReadyAtTheirChart(t *testing.T) {
	release := func(version string) flux.Tier {
		r := with(readyAt(tier("x"), ""), func(t *flux.Tier) {
			t.Ref, t.LastAttemptedRevision = hr("x"), version
			t.Source = flux.Ref{Kind: "HelmChart", Namespace: "flux-system", Name: "x"}
		})
		return r
	}
	for version, want := range map[string]tiers.State{"1.2.0": tiers.Ready, "1.1.0": tiers.Progressing} {
		c := newCluster(release(version))
		c.Sources = append(c.Sources, flux.Source{
			Ref: flux.Ref{Kind: "HelmChart", Namespace: "flux-system", Name: "x"}, Artifact: &flux.Artifact{Revision: "1.2.0"},
		})
		if n := c.graph().Node(hr("x")); n.State != want {
			t.Errorf("release of chart %s while 1.2.0 is there: %s (%s), want %s", version, n.State, n.Why, want)
		}
	}
}

func TestWedgedIsTheCallersWord(t *testing.T) {
	c := newCluster(failed(tier("a"), "ReconciliationFailed", noMatch), failed(tier("b", "a"), "DependencyNotReady", ""))
	g := tiers.Build(&c.Snapshot, tiers.Options{Wedged: map[flux.Ref]string{ks("a"): "deadlock"}})
	if n := g.Node(ks("b")); n.Root.State != tiers.Wedged || n.Root.Object != ks("a") {
		t.Errorf("root cause of b is %+v", n.Root)
	}
	if !c.graph().Node(ks("a")).MissesKind() {
		t.Error("a lacks a kind, and that was not seen")
	}
}

func TestGates(t *testing.T) {
	healthy := func(t *flux.Tier) { t.HealthChecks = []flux.Ref{hr("x")} }
	tests := map[string]struct {
		tier   flux.Tier
		kind   string
		hollow bool
	}{
		"CRD-04 applied is no proof": {tier("a"), "applied", true},
		"wait":                       {waits(tier("a")), "wait", false},
		"healthChecks":               {with(tier("a"), healthy), "healthChecks", false},
		"with expressions":           {with(waits(tier("a")), func(t *flux.Tier) { t.HealthCheckExprs = true }), "wait+healthCheckExprs", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			g := newCluster(tc.tier, tier("z", "a")).graph()
			if got := g.Node(ks("a")).Gate; got.Kind != tc.kind || got.Hollow != tc.hollow || got.Hollow == (got.Why == "") {
				t.Errorf("got %+v", got)
			}
			if g.Node(ks("z")).Gate.Hollow {
				t.Error("a gate that nobody relies on was called hollow")
			}
		})
	}
}

func TestReadyStatusOfATierWithoutConditions(t *testing.T) {
	if got := newCluster(tier("a")).graph().Node(ks("a")).ReadyStatus(); got != metav1.ConditionUnknown {
		t.Errorf("got %s", got)
	}
}
