// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/crds"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/knowledge"
)

const noDataVolume = `DataVolume/vms/golden dry-run failed: no matches for kind "DataVolume" in version "cdi.kubevirt.io/v1beta1"`

func fluxDataVolume() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "cdi.kubevirt.io", Version: "v1beta1", Kind: "DataVolume"}
}

func fluxCDITrigger() crds.Trigger {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "CDI", "metadata": map[string]any{"name": "cdi"},
	}}
	return crds.Trigger{
		Relation: knowledge.Relation{ID: "cdi", System: "KubeVirt CDI", Class: knowledge.CR},
		Kind:     schema.GroupKind{Group: "cdi.kubevirt.io", Kind: "CDI"}, Served: true, Kept: true,
		Object:  &build.Object{Unstructured: u, Stage: build.StageRest},
		Creates: []schema.GroupVersionKind{fluxDataVolume(), fluxDataVolume().GroupVersion().WithKind("StorageProfile")},
	}
}

// fluxDiagnosed is a cluster whose tier virt fails at DataVolume, with what was
// concluded of it.
func fluxDiagnosed(verdict crds.Verdict, triggers ...crds.Trigger) (*World, *crds.Diagnosis) {
	w := fluxWorld(fluxFails("virt", noDataVolume))
	d := &crds.Diagnosis{Tier: fluxRef(flux.KustomizationKind, "virt"), Verdict: verdict, Why: "deadlock: CDI/cdi would create DataVolume", Triggers: triggers}
	if verdict != crds.NowServed {
		d.Missing = []crds.Missing{
			{Kind: fluxDataVolume(), Objects: []flux.Ref{{Kind: "DataVolume", Namespace: "vms", Name: "golden"}, {Kind: "DataVolume", Namespace: "vms", Name: "b"}}},
			{Kind: fluxDataVolume().GroupVersion().WithKind("StorageProfile"), Objects: []flux.Ref{{Kind: "StorageProfile", Name: "local"}}},
		}
	}
	w.Diagnoses = []*crds.Diagnosis{d}
	w.Operators = map[string]crds.Operator{}
	return w, d
}

func TestCRD06DeadlockIsBroken(t *testing.T) {
	w, d := fluxDiagnosed(crds.Deadlock, fluxCDITrigger())
	w.Operators["cdi"] = crds.Operator{
		System: "KubeVirt CDI", Deployment: flux.Ref{Kind: "Deployment", Namespace: "cdi", Name: "cdi-operator"}, Wanted: 1, Available: 1,
	}
	v := fluxOne(t, coldStart(w))
	if v.Cause != ColdStart || v.Object != d.Tier || v.ResolvesItself != Never || v.Refused != "" || len(v.Actions) != 1 || v.Destructive() {
		t.Fatalf("%+v", v)
	}
	a := v.Actions[0]
	s, ok := a.step.(breakStep)
	if !ok || s.diagnosis != d || a.Verb != Apply || a.Object.Kind != "CDI" || len(a.while) != 1 || a.while[0].want != int64(3) {
		t.Errorf("%+v", a)
	}
	fluxHolds(t, v, // the whole of what is missing, not the one kind of the message
		"cdi.kubevirt.io/v1beta1 DataVolume is not served; 2 objects use it", "cdi.kubevirt.io/v1beta1 StorageProfile is not served",
		"kept back in stage 4, and not on the cluster", "1 of 1 replicas available", "no matches for kind", "never applied: CDI/cdi would")
	fluxNone(t, asleep(w))
}

// The log line of CDI's apiserver is a symptom: no CDI is there to make its
// ConfigMap, and nobody has to make that by hand.
func TestCRD08TheTriggerIsMissingNotItsConfigMap(t *testing.T) {
	w, _ := fluxDiagnosed(crds.Deadlock, fluxCDITrigger())
	w.Operators["cdi"] = crds.Operator{
		System: "KubeVirt CDI", Deployment: flux.Ref{Kind: "Deployment", Namespace: "cdi", Name: "cdi-operator"}, Wanted: 1,
		Pods: []string{"Pod cdi-operator-x is not Ready: Unschedulable: 0/3 nodes are available"},
	}
	v := fluxOne(t, coldStart(w))
	fluxHolds(t, v, "CDI/cdi", "Unschedulable")
	fluxLacks(t, v, "ConfigMap", "signer-bundle")
}

func TestCRD06BreakingIsRefused(t *testing.T) {
	for want, change := range map[string]func(*crds.Diagnosis){
		"holds encrypted values":         func(d *crds.Diagnosis) { d.Triggers[0].Object.Encrypted = true },
		"its own CRD is not Established": func(d *crds.Diagnosis) { d.Triggers[0].Served = false },
		"rejects another object":         func(d *crds.Diagnosis) { d.Rejected = errors.New("marker-of-a-secret") },
	} {
		t.Run(want, func(t *testing.T) {
			w, d := fluxDiagnosed(crds.Deadlock, fluxCDITrigger())
			change(d)
			v := fluxOne(t, coldStart(w))
			if len(v.Actions) > 0 || !strings.Contains(v.Refused, want) {
				t.Errorf("%+v", v)
			}
			fluxLacks(t, v, "marker-of-a-secret")
		})
	}
}

// A HelmRelease that ships the kind is kept back beside it. What its chart
// brings is not known from here, so nothing is done.
func TestCRD01ReleaseBesideItsKind(t *testing.T) {
	widget := schema.GroupVersionKind{Group: "obs.example.com", Version: "v1", Kind: "Widget"}
	w := fluxWorld(
		fluxFails("controllers", `Widget/obs/main dry-run failed: no matches for kind "Widget" in version "obs.example.com/v1"`),
		fluxWaits("infra", "controllers"), fluxWaits("apps", "infra"),
	)
	w.Diagnoses = []*crds.Diagnosis{{
		Tier: fluxRef(flux.KustomizationKind, "controllers"), Verdict: crds.Heals, Why: "Widget is not served",
		Missing:  []crds.Missing{{Kind: widget, Objects: []flux.Ref{{Kind: "Widget", Namespace: "obs", Name: "main"}}}},
		Bringers: []flux.Ref{{Kind: flux.HelmReleaseKind, Namespace: "obs", Name: "obs-operator"}},
	}}
	v := fluxOne(t, coldStart(w)) // one root cause, not three failures
	if v.Object.Name != "controllers" || v.ResolvesItself != When || len(v.Actions) > 0 {
		t.Errorf("%+v", v)
	}
	fluxHolds(t, v, "HelmRelease/obs/obs-operator", "with wait: true")
	fluxLacks(t, v, "delete")
	fluxNone(t, asleep(w))
}

func TestCRD04HealsByItself(t *testing.T) {
	w, d := fluxDiagnosed(crds.Heals)
	fluxNone(t, coldStart(w))
	fluxNone(t, asleep(w))
	elsewhere := fluxCDITrigger()
	elsewhere.Object, elsewhere.Kept = nil, false
	d.Triggers = []crds.Trigger{elsewhere}
	fluxNone(t, coldStart(w)) // another tier may bring it
	fluxNone(t, asleep(w))
}

// Not every failure is a wedge: Flux goes on as soon as a person has mended it.
func TestCRD15CRD18FailuresAreNoWedges(t *testing.T) {
	for _, message := range []string{
		`HelmRelease/media/player not found: namespaces "media" not found`,
		`Pod/ns/x dry-run failed (Forbidden): pods "x" is forbidden: error looking up service account ns/a: serviceaccount "a" not found`,
		`Pod/ns/x dry-run failed (BadRequest): admission webhook "w" does not support dry run`,
	} {
		w := fluxWorld(fluxFails("a", message))
		for _, j := range []func(*World) []Verdict{controllerMissing, controllerDies, coldStart, staleMappers, asleep, cycles, dependencyMissing, dependencySuspended, applyFailures, managedFields, staleCache} {
			fluxNone(t, j(w))
		}
	}
}

func TestCRD05Asleep(t *testing.T) {
	w, d := fluxDiagnosed(crds.NowServed)
	w.Served = fluxServed(t, "cdi.kubevirt.io/v1beta1 DataVolume datavolumes")
	v := fluxOne(t, asleep(w))
	if v.Cause != Asleep || v.ResolvesItself != Itself || v.ResolvesWhen != "at 2026-11-30T11:00:00Z" || len(v.Actions) != 1 {
		t.Fatalf("%+v", v)
	}
	a := v.Actions[0]
	if _, ok := a.step.(askStep); !ok || a.Verb != Nudge || a.pin != (pin{uid: "uid-virt", generation: 3}) || a.Destructive {
		t.Errorf("%+v", a)
	}
	fluxLacks(t, v, "restart", "deadlock", "Deadlock")
	fluxNone(t, coldStart(w))
	fluxNone(t, staleMappers(w))

	for name, change := range map[string]func(){
		"a retry is near":            func() { w.Now = fluxNow().Add(44*time.Minute + 30*time.Second) },
		"the controller is not up":   func() { w.Now = fluxNow(); w.Controllers[kustomizeController].Ready = 0 },
		"Flux rejects it in any way": func() { w.Controllers = fluxControllers(); d.Rejected = errors.New("x") },
	} {
		t.Run(name, func(t *testing.T) {
			change()
			fluxNone(t, asleep(w))
		})
	}
}

func TestCRD05AtWork(t *testing.T) {
	virt := fluxSays(fluxKS("virt"), metav1.ConditionUnknown, "Progressing", "Reconciliation in progress", fluxNow())
	virt.LastOutcome = "ReconciliationFailed"
	w := fluxWorld(virt)
	w.Diagnoses = []*crds.Diagnosis{{Tier: virt.Ref, Verdict: crds.NowServed}}
	fluxNone(t, asleep(w))
}

// Between two attempts the condition Reconciling stays True.
func TestCRD05ProgressingWithRetryIsNotAtWork(t *testing.T) {
	w, _ := fluxDiagnosed(crds.NowServed)
	w.Served = fluxServed(t)
	w.Flux.Tiers[0].Conditions = append(w.Flux.Tiers[0].Conditions, metav1.Condition{
		Type: "Reconciling", Status: metav1.ConditionTrue, Reason: "ProgressingWithRetry", ObservedGeneration: 3,
	})
	fluxOne(t, asleep(w))
}

func TestTriggerIsOnTheClusterAlready(t *testing.T) {
	trigger := fluxCDITrigger()
	trigger.Live = []flux.Ref{{Kind: "CDI", Name: "cdi"}}
	w, d := fluxDiagnosed(crds.Heals, trigger)
	v := fluxOne(t, asleep(w))
	if s, ok := v.Actions[0].step.(breakStep); !ok || s.diagnosis != d || v.ResolvesItself != When || v.Actions[0].Verb != Nudge {
		t.Errorf("%+v", v)
	}
	w.Operators["cdi"] = crds.Operator{System: "KubeVirt CDI", Deployment: flux.Ref{Kind: "Deployment", Namespace: "cdi", Name: "cdi-operator"}}
	v = fluxOne(t, asleep(w))
	if len(v.Actions) > 0 {
		t.Errorf("an operator that does not run creates nothing: %+v", v.Actions)
	}
	fluxHolds(t, v, "scaled to zero")
}

// fluxOld is a cluster with Flux 2.4, whose controller says again and again
// that it knows no DataVolume.
func fluxOld(t *testing.T) *World {
	w, _ := fluxDiagnosed(crds.NowServed)
	w.Served = fluxServed(t, "cdi.kubevirt.io/v1beta1 DataVolume datavolumes")
	w.Controllers[kustomizeController].Version = "v1.4.0"
	w.Deployments = map[string]Observed{kustomizeController: {UID: "uid-controller", Generation: 5}}
	w.Flux.Tiers[0].RetryInterval = 5 * time.Minute
	w.Definitions = []*Definition{{
		Observed: Observed{Ref: flux.Ref{Kind: "CustomResourceDefinition", Name: "datavolumes.cdi.kubevirt.io"}},
		Defines:  fluxDataVolume().GroupKind(),
		Conditions: []metav1.Condition{{
			Type: "Established", Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(fluxNow().Add(-time.Hour)),
		}},
	}}
	return w
}

func TestStaleMapper(t *testing.T) {
	w := fluxOld(t)
	v := fluxOne(t, staleMappers(w))
	if v.Cause != StaleMapper || v.ResolvesItself != Never || len(v.Actions) != 1 || v.Destructive() {
		t.Fatalf("%+v", v)
	}
	a := v.Actions[0]
	s, ok := a.step.(mergeStep)
	restarted, _, _ := unstructured.NestedString(s.patch, "spec", "template", "metadata", "annotations", "kubectl.kubernetes.io/restartedAt")
	if !ok || a.Verb != Restart || a.Object.Name != kustomizeController || restarted != "2026-11-30T10:15:00Z" || s.manager != "standup" ||
		a.pin != (pin{uid: "uid-controller", generation: 5}) {
		t.Errorf("%+v", a)
	}
	fluxHolds(t, v, "True since 2026-11-30T09:15:00Z", "v1.4.0", noMatchWords)
	fluxNone(t, asleep(w))
}

const noMatchWords = `no matches for kind "DataVolume"`

func TestNotAStaleMapper(t *testing.T) {
	for name, change := range map[string]func(*World){
		"a newer controller":            func(w *World) { w.Controllers[kustomizeController].Version = "v1.5.0" },
		"of unknown version":            func(w *World) { w.Controllers[kustomizeController].Version = "latest" },
		"not seen":                      func(w *World) { w.Controllers = nil },
		"restarted since":               func(w *World) { w.Controllers[kustomizeController].Youngest = fluxNow().Add(-30 * time.Minute) },
		"no two attempts since":         func(w *World) { w.Flux.Tiers[0].RetryInterval = 40 * time.Minute },
		"no CRD":                        func(w *World) { w.Definitions = nil },
		"its CRD is not Established":    func(w *World) { w.Definitions[0].Conditions = nil },
		"the kind is missing after all": func(w *World) { w.Diagnoses[0].Verdict = crds.Heals },
		"another message": func(w *World) {
			w.Flux.Tiers[0].Conditions[0].Message = "CDI/cdi namespace not specified: the server could not find the requested resource"
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := fluxOld(t)
			change(w)
			fluxNone(t, staleMappers(w))
		})
	}
}

// What is printed can be read on any cluster: it names objects, and holds no
// command that would run against whichever context happens to be current.
func TestCTX03NoCommandsWithoutContext(t *testing.T) {
	deadlock, _ := fluxDiagnosed(crds.Deadlock, fluxCDITrigger())
	absent := fluxWorld(fluxKS("flux-system"), fluxSilent(fluxHR("podinfo"), time.Hour))
	delete(absent.Controllers, helmController)
	for _, w := range []*World{
		deadlock, absent, fluxOld(t), fluxHeldBack(func(*flux.Tier) {}), fluxWorld(fluxWaits("a", "b"), fluxWaits("b", "a")),
		fluxWorld(fluxWaits("app", "gone")), fluxWorld(fluxFails("monitoring", annotationsTooLong)),
	} {
		found := 0
		for _, j := range []func(*World) []Verdict{controllerMissing, coldStart, staleMappers, asleep, cycles, dependencyMissing, dependencySuspended, applyFailures} {
			for _, v := range j(w) {
				found++
				for _, command := range []string{"kubectl -", "kubectl get", "kubectl delete", "kubectl patch", "flux resume", "flux reconcile", "flux suspend", "helm "} {
					fluxLacks(t, &v, command)
				}
			}
		}
		if found == 0 {
			t.Error("a world of this test has no verdict")
		}
	}
}
