// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/kubestandup/kubestandup/pkg/crds"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/knowledge"
)

func apiWorld(edit ...func(*World)) *World {
	w := &World{Now: noon, API: API{Backends: map[types.NamespacedName]*Backend{}, Unread: map[Part]string{}}}
	for _, e := range edit {
		e(w)
	}
	return w
}

func svcName(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// service puts a Service into the world.
func service(b Backend) func(*World) {
	return func(w *World) {
		b.Exists = b.Exists || b.Ready > 0 || b.NotReady > 0
		w.Backends[b.Service] = &b
	}
}

func deployment(namespace, name string, wanted, available int32, labels map[string]string) *Workload {
	return &Workload{
		Observed: Observed{
			Ref: flux.Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: namespace, Name: name},
			UID: types.UID("uid-" + name), ResourceVersion: "7", Generation: 3, Created: ago(24 * time.Hour),
		},
		Labels: labels, PodLabels: labels, Wanted: wanted, Available: available, Names: []string{name}, Image: "registry.example/" + name + ":v1.57.0",
	}
}

func has(w ...*Workload) func(*World) {
	return func(world *World) { world.Workloads = append(world.Workloads, w...) }
}

func crd(group, kind, plural string, versions ...Version) *Definition {
	name := plural + "." + group
	d := &Definition{
		Observed: Observed{
			Ref: flux.Ref{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: name},
			UID: types.UID("uid-" + name), ResourceVersion: "5", Generation: 2, Created: ago(48 * time.Hour),
		},
		Defines: schema.GroupKind{Group: group, Kind: kind}, Plural: plural, Namespaced: true, Versions: versions,
	}
	if len(versions) == 0 {
		d.Versions = []Version{{"v1", true, true}}
	}
	d.StoredVersions = []string{d.storage()}
	return d
}

func defines(d ...*Definition) func(*World) {
	return func(w *World) { w.Definitions = append(w.Definitions, d...) }
}

func goingNamespace(name string, conditions ...metav1.Condition) *TerminatingNamespace {
	return &TerminatingNamespace{
		Observed: Observed{
			Ref: flux.Ref{APIVersion: "v1", Kind: "Namespace", Name: name}, UID: types.UID("uid-" + name),
			Created: ago(48 * time.Hour), Deleted: ago(time.Hour),
		},
		Spec: []string{"kubernetes"}, Conditions: conditions,
	}
}

func terminates(n ...*TerminatingNamespace) func(*World) {
	return func(w *World) { w.Terminating = append(w.Terminating, n...) }
}

func isSo(kind, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(ago(time.Hour))}
}

func isNot(kind, reason, message string) metav1.Condition {
	c := isSo(kind, reason, message)
	c.Status = metav1.ConditionFalse
	return c
}

// relation is one of the relations that the project knows.
func relation(t *testing.T, id string) *knowledge.Relation {
	t.Helper()
	book, err := knowledge.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range book.Relations() {
		if r.ID == id {
			return &r
		}
	}
	t.Fatalf("no relation %s: the knowledge file has lost it", id)
	return nil
}

// cdi is a CDI resource in a phase.
func cdi(t *testing.T, phase string, edit ...func(*TriggerState)) *TriggerState {
	s := &TriggerState{Held: Held{
		Observed: Observed{
			Ref: flux.Ref{APIVersion: "cdi.kubevirt.io/v1beta1", Kind: "CDI", Name: "cdi"}, UID: "uid-cdi", ResourceVersion: "9", Generation: 2,
			Created: ago(48 * time.Hour), Finalizers: []string{"operator.cdi.kubevirt.io"},
		},
		Plural: "cdis", Relation: relation(t, "cdi"),
	}, Phase: phase, OperatorVersion: "v1.57.0"}
	for _, e := range edit {
		e(s)
	}
	return s
}

// kubevirt is a KubeVirt resource that is deployed.
func kubevirt(t *testing.T, edit ...func(*TriggerState)) *TriggerState {
	s := &TriggerState{Held: Held{
		Observed: Observed{
			Ref: flux.Ref{APIVersion: "kubevirt.io/v1", Kind: "KubeVirt", Namespace: "kubevirt", Name: "kubevirt"}, UID: "uid-kubevirt",
			ResourceVersion: "11", Generation: 4, Created: ago(48 * time.Hour), Finalizers: []string{"foregroundDeleteKubeVirt"},
		},
		Plural: "kubevirts", Relation: relation(t, "kubevirt"),
	}, Phase: phaseDeployed}
	for _, e := range edit {
		e(s)
	}
	return s
}

func goingAway(t *TriggerState) { t.Deleted = ago(time.Hour) }

func hasTrigger(s ...*TriggerState) func(*World) {
	return func(w *World) { w.Triggers = append(w.Triggers, s...) }
}

func cdiOperator(wanted, available int32) *Workload {
	return deployment("cdi", "cdi-operator", wanted, available, map[string]string{"operator.cdi.kubevirt.io": "", "name": "cdi-operator"})
}

func dataVolume(name, phase string) Datum {
	return Datum{
		Ref:    flux.Ref{APIVersion: "cdi.kubevirt.io/v1beta1", Kind: "DataVolume", Namespace: "vms", Name: name},
		Plural: "datavolumes", Phase: phase, InFlight: phase != "Succeeded",
	}
}

func holds(d ...Datum) func(*World) {
	return func(w *World) { w.Data.Objects = append(w.Data.Objects, d...) }
}

func allowing(names ...string) func(*World) {
	return func(w *World) { w.Choices.Allow = names }
}

// heldObject is an object that is being deleted and has finalizers.
func heldObject(apiVersion, kind, namespace, name string, finalizers ...string) *Held {
	return &Held{
		Observed: Observed{
			Ref: flux.Ref{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: name}, UID: types.UID("uid-" + name),
			ResourceVersion: "21", Generation: 2, Created: ago(24 * time.Hour), Deleted: ago(time.Hour), Finalizers: finalizers,
		},
		Plural: strings.ToLower(kind) + "s",
	}
}

func holding(h ...*Held) func(*World) {
	return func(w *World) { w.Held = append(w.Held, h...) }
}

func fluxHas(tiers ...flux.Tier) func(*World) {
	return func(w *World) { w.Flux = &flux.Snapshot{Tiers: tiers} }
}

func kustomization(name string, conditions ...metav1.Condition) flux.Tier {
	return flux.Tier{
		Ref: flux.Ref{APIVersion: "kustomize.toolkit.fluxcd.io/v1", Kind: flux.KustomizationKind, Namespace: "flux-system", Name: name},
		UID: types.UID("uid-" + name), Generation: 1, Conditions: conditions,
	}
}

func helmRelease(name string, conditions ...metav1.Condition) flux.Tier {
	return flux.Tier{
		Ref: flux.Ref{APIVersion: "helm.toolkit.fluxcd.io/v2", Kind: flux.HelmReleaseKind, Namespace: "apps", Name: name},
		UID: types.UID("uid-" + name), Generation: 1, Conditions: conditions,
	}
}

// one is the only verdict of a judge.
func one(t *testing.T, found []Verdict) *Verdict {
	t.Helper()
	if len(found) != 1 {
		t.Fatalf("%d verdicts instead of one: %+v", len(found), found)
	}
	return &found[0]
}

func none(t *testing.T, found []Verdict) {
	t.Helper()
	if len(found) != 0 {
		t.Fatalf("a verdict where none is due: %+v", found[0])
	}
}

// mentions fails for every text that the verdict does not have somewhere.
func mentions(t *testing.T, v *Verdict, texts ...string) {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var all any
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	words := strings.Join(strs(all), "\n")
	for _, text := range texts {
		if !strings.Contains(words, text) {
			t.Errorf("the verdict does not say %q; it says:\n%s", text, words)
		}
	}
}

func strs(v any) []string {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		var out []string
		for _, i := range v {
			out = append(out, strs(i)...)
		}
		return out
	case map[string]any:
		var out []string
		for _, i := range v {
			out = append(out, strs(i)...)
		}
		slices.Sort(out)
		return out
	}
	return nil
}

// does compares the verbs and objects of the actions, and that the verdict
// resolves as it should.
func does(t *testing.T, v *Verdict, resolves Resolves, want ...string) {
	t.Helper()
	if v.ResolvesItself != resolves {
		t.Errorf("it resolves itself: %q, want %q", v.ResolvesItself, resolves)
	}
	if resolves == Never != (v.ResolvesWhen == "") {
		t.Errorf("resolvesItself is %q and resolvesWhen %q", v.ResolvesItself, v.ResolvesWhen)
	}
	var got []string
	for _, a := range v.Actions {
		word := string(a.Verb) + " " + a.Object.String()
		if a.Destructive {
			word += "!"
		}
		if a.Description == "" || a.step == nil {
			t.Errorf("%s has no description, or does nothing", word)
		}
		got = append(got, word)
	}
	if !slices.Equal(got, want) {
		t.Errorf("actions\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if v.Refused != "" && len(v.Actions) > 0 {
		t.Errorf("it is refused, and has actions: %s", v.Refused)
	}
	if v.Summary == "" || v.Why == "" || v.Repair == "" || v.State == "" || len(v.Evidence) == 0 {
		t.Errorf("a part of the verdict is missing: %+v", v)
	}
}

// discovered is what crds.Discover makes of a discovery document; the failed
// group versions are stale in it.
func discovered(t *testing.T, kinds []schema.GroupVersionKind, failed ...schema.GroupVersion) *crds.Served {
	t.Helper()
	type m = map[string]any
	versions := map[string]map[string]m{}
	at := func(gv schema.GroupVersion) m {
		if versions[gv.Group] == nil {
			versions[gv.Group] = map[string]m{}
		}
		if versions[gv.Group][gv.Version] == nil {
			versions[gv.Group][gv.Version] = m{"version": gv.Version, "resources": []m{}, "freshness": "Current"}
		}
		return versions[gv.Group][gv.Version]
	}
	for _, k := range kinds {
		v := at(k.GroupVersion())
		v["resources"] = append(v["resources"].([]m), m{
			"resource": strings.ToLower(k.Kind) + "s", "scope": "Namespaced", "verbs": []string{"list"},
			"responseKind": m{"group": k.Group, "version": k.Version, "kind": k.Kind},
		})
	}
	for _, gv := range failed {
		at(gv)["freshness"] = "Stale"
	}
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		items := []m{}
		if r.URL.Path == "/apis" {
			for group, vs := range versions {
				var list []m
				for _, v := range vs {
					list = append(list, v)
				}
				items = append(items, m{"metadata": m{"name": group}, "versions": list})
			}
		}
		_ = json.NewEncoder(rw).Encode(m{"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": items})
	}))
	t.Cleanup(server.Close)
	client, err := discovery.NewDiscoveryClientForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	served, err := crds.Discover(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	return served
}
