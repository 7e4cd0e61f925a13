// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/kubestandup/kubestandup/pkg/crds"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/tiers"
)

const fluxRevision = "main@sha1:bbbb"

// fluxNow is when these tests look: a quarter past ten.
func fluxNow() time.Time { return time.Date(2026, 11, 30, 10, 15, 0, 0, time.UTC) }

func fluxRef(kind, name string) flux.Ref {
	r := flux.Ref{APIVersion: "kustomize.toolkit.fluxcd.io/v1", Kind: kind, Namespace: "flux-system", Name: name}
	switch kind {
	case flux.HelmReleaseKind:
		r.APIVersion = "helm.toolkit.fluxcd.io/v2"
	case "GitRepository":
		r.APIVersion = ""
	}
	return r
}

// fluxKS is a Kustomization of the source flux-system that is Ready at its
// revision.
func fluxKS(name string, dependsOn ...string) flux.Tier {
	t := flux.Tier{
		Ref: fluxRef(flux.KustomizationKind, name), UID: types.UID("uid-" + name), Generation: 3, ObservedGeneration: 3,
		Created: fluxNow().Add(-24 * time.Hour), Source: fluxRef("GitRepository", "flux-system"),
		Interval: time.Hour, RetryInterval: time.Hour, Timeout: 5 * time.Minute,
		LastAppliedRevision: fluxRevision, LastAttemptedRevision: fluxRevision,
	}
	for _, d := range dependsOn {
		t.DependsOn = append(t.DependsOn, flux.Dependency{Ref: fluxRef(flux.KustomizationKind, d)})
	}
	return fluxSays(t, metav1.ConditionTrue, "ReconciliationSucceeded", "Applied revision: "+fluxRevision, fluxNow().Add(-time.Hour))
}

func fluxHR(name string, dependsOn ...string) flux.Tier {
	t := fluxKS(name)
	t.Ref, t.Source = fluxRef(flux.HelmReleaseKind, name), flux.Ref{}
	t.Helm = &flux.Helm{}
	for _, d := range dependsOn {
		t.DependsOn = append(t.DependsOn, flux.Dependency{Ref: fluxRef(flux.HelmReleaseKind, d)})
	}
	return t
}

// fluxSays sets what the controller says of a tier.
func fluxSays(t flux.Tier, status metav1.ConditionStatus, reason, message string, at time.Time) flux.Tier {
	t.Conditions = []metav1.Condition{{
		Type: "Ready", Status: status, Reason: reason, Message: message,
		ObservedGeneration: t.Generation, LastTransitionTime: metav1.NewTime(at),
	}}
	return t
}

// fluxFails is a tier whose last attempt failed at ten.
func fluxFails(name, message string, dependsOn ...string) flux.Tier {
	return fluxSays(fluxKS(name, dependsOn...), metav1.ConditionFalse, "ReconciliationFailed", message, fluxNow().Add(-15*time.Minute))
}

// fluxWaits is a tier that its controller keeps waiting for a dependency.
func fluxWaits(name string, dependsOn ...string) flux.Tier {
	return fluxSays(fluxKS(name, dependsOn...), metav1.ConditionFalse, "DependencyNotReady",
		"dependency 'flux-system/"+dependsOn[0]+"' is not ready", fluxNow().Add(-time.Minute))
}

// fluxSilent is a tier that no controller has ever looked at.
func fluxSilent(t flux.Tier, age time.Duration) flux.Tier {
	t.Conditions, t.ObservedGeneration, t.LastAppliedRevision, t.Created = nil, -1, "", fluxNow().Add(-age)
	return t
}

func fluxSuspended(t flux.Tier, by string) flux.Tier {
	t.Suspended, t.SuspendedBy, t.SuspendedSince = true, by, fluxNow().Add(-3*time.Hour)
	return t
}

// fluxWorld is a cluster with these tiers and the source flux-system.
func fluxWorld(all ...flux.Tier) *World {
	s := &flux.Snapshot{Tiers: all, Sources: []flux.Source{{
		Ref: fluxRef("GitRepository", "flux-system"), Artifact: &flux.Artifact{Revision: fluxRevision},
		Conditions: []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue}},
	}}}
	for _, kind := range []string{flux.KustomizationKind, flux.HelmReleaseKind, "GitRepository"} {
		s.Served = append(s.Served, flux.Resource{Kind: kind})
	}
	return &World{Now: fluxNow(), Flux: s, Graph: tiers.Build(s, tiers.Options{}), Controllers: fluxControllers()}
}

// fluxControllers are Flux's controllers, and all is well with them.
func fluxControllers() map[string]*Controller {
	all := map[string]*Controller{}
	for _, name := range []string{sourceController, kustomizeController, helmController} {
		all[name] = &Controller{
			Deployment: flux.Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "flux-system", Name: name},
			Wanted:     1, Ready: 1, Version: "v1.6.4", Started: fluxNow().Add(-48 * time.Hour), Youngest: fluxNow().Add(-48 * time.Hour),
		}
	}
	return all
}

// fluxServed is what a server serves: group/version Kind plural, the plural
// with a trailing * where the kind has no namespace.
func fluxServed(t *testing.T, kinds ...string) *crds.Served {
	t.Helper()
	lists := map[string]*metav1.APIResourceList{}
	groups := &metav1.APIGroupList{}
	for _, k := range kinds {
		f := strings.Fields(k)
		if lists["/apis/"+f[0]] == nil {
			lists["/apis/"+f[0]] = &metav1.APIResourceList{GroupVersion: f[0]}
			group, version, _ := strings.Cut(f[0], "/")
			groups.Groups = append(groups.Groups, metav1.APIGroup{Name: group, Versions: []metav1.GroupVersionForDiscovery{{GroupVersion: f[0], Version: version}}})
		}
		l := lists["/apis/"+f[0]]
		plural, isCluster := strings.CutSuffix(f[2], "*")
		l.APIResources = append(l.APIResources, metav1.APIResource{Name: plural, Kind: f[1], Namespaced: !isCluster})
	}
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		var answer any
		switch l := lists[in.URL.Path]; {
		case in.URL.Path == "/api":
			answer = &metav1.APIVersions{}
		case in.URL.Path == "/apis":
			answer = groups
		case l != nil:
			answer = l
		}
		out.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(out).Encode(answer) // a test's answer
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

// fluxOne is the only verdict that there should be.
func fluxOne(t *testing.T, all []Verdict) *Verdict {
	t.Helper()
	if len(all) != 1 {
		t.Fatalf("%d verdicts, not one: %+v", len(all), all)
	}
	if all[0].Summary == "" || all[0].Why == "" || all[0].State == "" || len(all[0].Evidence) == 0 || all[0].ResolvesItself == "" {
		t.Errorf("the verdict is not whole: %+v", all[0])
	}
	if all[0].ResolvesItself == When && all[0].ResolvesWhen == "" {
		t.Errorf("it does not say when it resolves: %+v", all[0])
	}
	return &all[0]
}

func fluxNone(t *testing.T, all []Verdict) {
	t.Helper()
	if len(all) > 0 {
		t.Errorf("there should be no verdict: %+v", all)
	}
}

// fluxText is all that a verdict says, for a look at its words.
func fluxText(v *Verdict) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\"`, `"`, `\u0026`, "&").Replace(string(raw))
}

func fluxHolds(t *testing.T, v *Verdict, words ...string) {
	t.Helper()
	for _, want := range words {
		if !strings.Contains(fluxText(v), want) {
			t.Errorf("the verdict does not say %q:\n%s", want, fluxText(v))
		}
	}
}

func fluxLacks(t *testing.T, v *Verdict, words ...string) {
	t.Helper()
	for _, never := range words {
		if strings.Contains(fluxText(v), never) {
			t.Errorf("the verdict must not say %q:\n%s", never, fluxText(v))
		}
	}
}
