// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/tiers"
)

func TestDEP01CycleAndCollateralDamage(t *testing.T) {
	w := fluxWorld(fluxWaits("a", "b"), fluxWaits("b", "a"), fluxKS("c"), fluxKS("d"))
	v := fluxOne(t, cycles(w))
	if v.Cause != Cycle || v.Object.Name != "a" || v.ResolvesItself != Never || len(v.Actions) > 0 {
		t.Errorf("%+v", v)
	}
	fluxHolds(t, v,
		"flux-system/a → flux-system/b → flux-system/a",
		"flux-system/b from spec.dependsOn of Kustomization/flux-system/a; or flux-system/a from spec.dependsOn of Kustomization/flux-system/b",
		`"flux-system/c, flux-system/d"`, "no new revision of GitRepository/flux-system/flux-system wakes")
}

func TestDEP01SelfDependency(t *testing.T) {
	v := fluxOne(t, cycles(fluxWorld(fluxWaits("a", "a"))))
	fluxHolds(t, v, "depends on itself", "remove in git: flux-system/a from spec.dependsOn")
	fluxLacks(t, v, "no longer wakes")
}

func TestDEP01LoopOverTwoSourcesStopsNoEvents(t *testing.T) {
	b := fluxWaits("b", "a")
	b.Source.Name = "other"
	v := fluxOne(t, cycles(fluxWorld(fluxWaits("a", "b"), b, fluxKS("c"))))
	fluxLacks(t, v, "no longer wakes")
}

func TestDEP01ParentThatWaitsForItsDependant(t *testing.T) {
	parent := fluxKS("apps")
	parent.Wait = true
	child := fluxWaits("child", "apps")
	child.Owner = flux.Ref{Kind: flux.KustomizationKind, Namespace: "flux-system", Name: "apps"}
	v := fluxOne(t, cycles(fluxWorld(parent, child, fluxKS("c"))))
	fluxHolds(t, v, "true, and it applies Kustomization/flux-system/child", "remove in git: flux-system/apps from spec.dependsOn of Kustomization/flux-system/child")
	fluxLacks(t, v, "no longer wakes")
}

func TestDEP01HelmReleases(t *testing.T) {
	a, b := fluxHR("a", "b"), fluxHR("b", "a")
	v := fluxOne(t, cycles(fluxWorld(a, b, fluxKS("c"))))
	fluxLacks(t, v, "no longer wakes")
}

// A readyExpr keeps a loop from being a deadlock; the source's events are lost.
func TestDEP01LoopThroughReadyExpr(t *testing.T) {
	a, b := fluxKS("a", "b"), fluxKS("b", "a")
	a.DependsOn[0].ReadyExpr = "true"
	w := fluxWorld(a, b, fluxKS("c"), fluxKS("below", "a"))
	if len(w.Graph.Cycles) > 0 {
		t.Fatal("this is no deadlock, so the test tests nothing")
	}
	v := fluxOne(t, cycles(w))
	if v.State != "events-lost" || v.Object.Name != "a" {
		t.Errorf("%+v", v)
	}
	fluxHolds(t, v, `"flux-system/below, flux-system/c"`)
}

func TestNoCycle(t *testing.T) {
	fluxNone(t, cycles(fluxWorld(fluxKS("a"), fluxKS("b", "a"), fluxKS("c", "a", "b"), fluxKS("d", "gone"))))
	fluxNone(t, cycles(&World{}))
}

func TestDEP04DependencyIsAHelmRelease(t *testing.T) {
	ceph := fluxHR("ceph-cluster")
	ceph.Owner = flux.Ref{Kind: flux.KustomizationKind, Namespace: "flux-system", Name: "storage"}
	w := fluxWorld(fluxWaits("books", "ceph-cluster"), ceph, fluxKS("storage"), fluxFails("unrelated", "x"))
	v := fluxOne(t, dependencyMissing(w))
	if v.Cause != DependencyMissing || v.Object.Name != "books" || v.ResolvesItself != Never || len(v.Actions) > 0 {
		t.Errorf("nothing that comes later makes a Kustomization of it: %+v", v)
	}
	fluxHolds(t, v, "is a HelmRelease, which a Kustomization cannot depend on", "depend on Kustomization/flux-system/storage, which applies it")
}

func TestDEP05NamespaceDefaulting(t *testing.T) {
	app := fluxWaits("app", "infra")
	app.Ref.Namespace, app.DependsOn[0].Ref.Namespace = "tenant-a", "tenant-a"
	v := fluxOne(t, dependencyMissing(fluxWorld(app, fluxKS("infra"))))
	fluxHolds(t, v, "add `namespace: flux-system`")

	across := fluxKS("app", "infra")
	across.Ref.Namespace = "tenant-a"
	fluxNone(t, dependencyMissing(fluxWorld(across, fluxKS("infra"))))
}

func TestDEP08EveryFailingDependencyIsListed(t *testing.T) {
	v := fluxOne(t, dependencyMissing(fluxWorld(
		fluxWaits("app", "a", "b", "c"), fluxKS("a"), fluxFails("c", "boom"),
	)))
	fluxHolds(t, v, "Kustomization flux-system/b does not exist", "c is not Ready")
	fluxLacks(t, v, "flux-system/a ")
	if v.ResolvesItself != Never {
		t.Errorf("c fails, which tells nothing of b: %+v", v)
	}
	v = fluxOne(t, dependencyMissing(fluxWorld(fluxWaits("app", "a", "b"), fluxKS("a"))))
	if v.ResolvesItself != Never {
		t.Errorf("all that may bring b is applied: %+v", v)
	}
}

func TestDependenciesThatExist(t *testing.T) {
	lags := fluxHR("dep")
	lags.ObservedGeneration = 2
	checks := fluxSays(fluxKS("dep"), metav1.ConditionUnknown, "Progressing", "Reconciliation in progress", fluxNow())
	byExpression := fluxKS("app", "db")
	byExpression.DependsOn[0].ReadyExpr = "dep.metadata.labels['v'] == self.metadata.labels['v']"
	withExpression := fluxWorld(byExpression, fluxFails("db", "boom"))
	object := map[string]any{"metadata": map[string]any{"labels": map[string]any{"v": "1"}}}
	withExpression.Flux.Objects = map[flux.Ref]map[string]any{byExpression.Ref: object, fluxRef(flux.KustomizationKind, "db"): object}
	withExpression.Graph = tiers.Build(withExpression.Flux, tiers.Options{})
	for name, w := range map[string]*World{
		"DEP-09 a readyExpr replaces the check":        withExpression,
		"DEP-13 Ready, and its generation lags behind": fluxWorld(fluxHR("app", "dep"), lags),
		"DEP-14 it checks its health":                  fluxWorld(fluxWaits("app", "dep"), checks),
		"it fails":                                     fluxWorld(fluxWaits("app", "dep"), fluxFails("dep", "boom")),
		"nobody needs what is suspended":               fluxWorld(fluxKS("app"), fluxSuspended(fluxFails("dep", "boom"), "flux")),
		"a suspended one is Ready at the revision":     fluxWorld(fluxKS("app", "dep"), fluxSuspended(fluxKS("dep"), "flux")),
		"what waits is suspended too":                  fluxWorld(fluxSuspended(fluxWaits("app", "dep", "gone"), "flux"), fluxSuspended(fluxFails("dep", "x"), "flux")),
		"no Flux":                                      {},
	} {
		t.Run(name, func(t *testing.T) {
			fluxNone(t, dependencyMissing(w))
			fluxNone(t, dependencySuspended(w))
			fluxNone(t, cycles(w))
		})
	}
}

func fluxHeldBack(change func(*flux.Tier)) *World {
	dep := fluxSuspended(fluxKS("dep"), "flux")
	dep.LastAppliedRevision = "main@sha1:aaaa"
	change(&dep)
	app := fluxSays(fluxKS("app", "dep"), metav1.ConditionFalse, "DependencyNotReady", "dependency 'flux-system/dep' revision is not up to date", fluxNow())
	app.LastAppliedRevision = "main@sha1:aaaa"
	return fluxWorld(dep, app)
}

func TestSuspendedDependencyIsResumed(t *testing.T) {
	for name, change := range map[string]func(*flux.Tier){
		"at an old revision": func(*flux.Tier) {},
		"not Ready":          func(t *flux.Tier) { *t = fluxSuspended(fluxFails("dep", "boom"), "flux") },
	} {
		t.Run(name, func(t *testing.T) {
			v := fluxOne(t, dependencySuspended(fluxHeldBack(change)))
			if v.Cause != DependencySuspended || v.Object.Name != "dep" || v.ResolvesItself != Never || len(v.Actions) != 1 ||
				!v.Since.Equal(fluxNow().Add(-3*time.Hour)) || v.Destructive() {
				t.Fatalf("%+v", v)
			}
			a := v.Actions[0]
			s, ok := a.step.(mergeStep)
			spec, _ := s.patch["spec"].(map[string]any)
			suspend, set := spec["suspend"]
			if !ok || a.Verb != Resume || a.pin != (pin{uid: "uid-dep", generation: 3}) || s.manager != "standup" ||
				!set || suspend != nil || len(s.ask) != 1 || s.ask[0] != flux.RequestedAtAnnotation {
				t.Errorf("%+v", a)
			}
			fluxHolds(t, v, "true, by flux since 2026-11-30T07:15:00Z", "1 tier waits")
		})
	}
}

func TestSuspendedOnPurpose(t *testing.T) {
	for want, change := range map[string]func(*flux.Tier){
		"its manifest in git says suspend: true": func(t *flux.Tier) { t.SuspendedBy = "kustomize-controller" },
		"kubestandup.dev/hold says migration":    func(t *flux.Tier) { t.Hold = "migration" },
		"is being deleted":                       func(t *flux.Tier) { t.Deleted = fluxNow() },
	} {
		t.Run(want, func(t *testing.T) {
			v := fluxOne(t, dependencySuspended(fluxHeldBack(change)))
			if len(v.Actions) > 0 {
				t.Errorf("%+v", v.Actions)
			}
			fluxHolds(t, v, want)
		})
	}
	fluxNone(t, dependencySuspended(fluxHeldBack(func(t *flux.Tier) { t.Unwedge = "release-uninstalling" })))
}

func TestSuspendedHelmReleaseIsForAPerson(t *testing.T) {
	dep := fluxSuspended(fluxHR("dep"), "kubectl-edit")
	dep.Conditions[0].Status = metav1.ConditionFalse
	app := fluxHR("app", "dep")
	app.Conditions[0].Status, app.Conditions[0].Reason = metav1.ConditionFalse, "DependencyNotReady"
	v := fluxOne(t, dependencySuspended(fluxWorld(dep, app)))
	if len(v.Actions) > 0 {
		t.Errorf("what it would roll out was not looked at: %+v", v.Actions)
	}
}

// The parent's health check fails at its suspended child, time and again.
func TestSuspendedChildOfATierThatWaits(t *testing.T) {
	parent := fluxSays(fluxKS("apps"), metav1.ConditionFalse, "HealthCheckFailed",
		"timeout waiting for: [Kustomization/flux-system/child status: 'InProgress']", fluxNow())
	parent.Wait = true
	child := fluxSuspended(fluxFails("child", "boom"), "flux")
	child.Owner = flux.Ref{Kind: flux.KustomizationKind, Namespace: "flux-system", Name: "apps"}
	if v := fluxOne(t, dependencySuspended(fluxWorld(parent, child))); v.Object.Name != "child" || v.Actions[0].Verb != Resume {
		t.Errorf("%+v", v)
	}
}
