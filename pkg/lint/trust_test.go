// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/coldstart"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/tiers"
)

// withValues is a HelmRelease with values of these objects.
func withValues(name string, from ...any) build.Object {
	return build.Object{Stage: 4, Unstructured: &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": flux.HelmReleaseKind,
		"metadata": map[string]any{"name": name, "namespace": "x"},
		"spec":     map[string]any{"interval": "1m", "valuesFrom": from},
	}}}
}

func secret(name string) flux.Ref {
	return flux.Ref{APIVersion: "v1", Kind: "Secret", Namespace: "x", Name: name}
}

// TestWhatIsTakenOnTrustIsSaid, and only that.
func TestWhatIsTakenOnTrustIsSaid(t *testing.T) {
	c := cluster("clusters/test")
	made := thing("made", "")
	made.SetAPIVersion("v1")
	made.SetKind("Secret")
	made.SetNamespace("x")
	of := func(kind, name string, optional bool) any {
		return map[string]any{"kind": kind, "name": name, "optional": optional}
	}
	tier := c.tier("a", "", made, withValues("app", of("Secret", "made", false), of("Secret", "handed", false), of("ConfigMap", "optional", true)))
	tier.Result.Absent = []flux.Ref{{APIVersion: "v1", Kind: "ConfigMap", Namespace: "flux-system", Name: "vars"}}
	known, rendered := hr("x", "cert-manager"), hr("x", "rendered")
	c.subject.World.Charts[coldstart.Key(known)] = coldstart.Chart{Name: "cert-manager", Version: "1.x", Basis: coldstart.Known, Why: "no such host"}
	c.subject.World.Charts[coldstart.Key(rendered)] = coldstart.Chart{Name: "other", Basis: coldstart.Rendered}
	use := func(kind, before string, by flux.Ref, operator *flux.Ref) coldstart.KindUse {
		return coldstart.KindUse{Tier: ks("a"), Before: before, Need: coldstart.Need{
			Kind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: kind}, When: coldstart.InTime,
			Providers: []coldstart.Provider{{How: coldstart.ByChart, Tier: ks("a"), Object: by, Operator: operator}},
		}}
	}
	c.subject.Prediction.Kinds = []coldstart.KindUse{
		use("Issuer", "", known, nil), use("Issuer", "", known, nil), use("Certificate", "", known, nil),
		use("Other", "", rendered, nil), use("Made", "", thingRef("trigger"), &known), use("Before", "Cilium", known, nil),
	}
	c.subject.World.Bootstrap = []coldstart.Installed{
		{Name: "flux-operator", Chart: "flux-operator", By: "bootstrap/helmfile.yaml"},
		{Name: "net", Chart: "cilium", By: "bootstrap/helmfile.yaml"},
		{Name: "coredns", By: "bootstrap/helmfile.yaml"},
	}
	want := Trust{
		ByName:  &ByName{Kinds: 3, Charts: []string{"cert-manager@1.x"}},
		Assumed: []flux.Ref{{APIVersion: "v1", Kind: "ConfigMap", Namespace: "flux-system", Name: "vars"}, secret("handed")},
		Before:  []InstalledBefore{{File: "bootstrap/helmfile.yaml", Charts: []string{"cilium", "coredns"}}},
	}
	got := reported(c).Entries[0].Trust
	if !reflect.DeepEqual(got, want) || !got.Any() {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	c.fetches = true
	if got, want := reported(c).Entries[0].Unfetched, []Unfetched{{Object: coldstart.Key(known), Chart: "cert-manager", Version: "1.x", Why: "no such host"}}; !reflect.DeepEqual(got, want) {
		t.Errorf("unfetched: %+v", got)
	}
	if e := reported(cluster("clusters/test")).Entries[0]; e.Any() {
		t.Errorf("of nothing: %+v", e.Trust)
	}
}

func TestAnErrorIsOneShortClause(t *testing.T) {
	for text, want := range map[string]string{
		"no such host": "no such host", "first\nsecond": "first", strings.Repeat("ä", 200): strings.Repeat("ä", 160) + "…",
	} {
		if got := clause(errors.New(text)); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}

// TestASourceThatNobodyDefines is said of the source that is outside, too.
func TestASourceThatNobodyDefines(t *testing.T) {
	for name, tt := range map[string]struct {
		object *build.Object
		want   bool
	}{"nobody": {nil, true}, "a tier": {ptr(source("apps")), false}, "another name": {ptr(source("other")), true}} {
		c := cluster("clusters/test")
		from := flux.Ref{APIVersion: "source.toolkit.fluxcd.io/v1", Kind: "GitRepository", Namespace: "flux-system", Name: "apps"}
		root := c.tier("root", "")
		if tt.object != nil {
			root.Result.Objects = []build.Object{*tt.object}
		}
		child := c.tier("apps", "")
		child.Parents, child.Outside, child.Result = []flux.Ref{ks("root")}, &from, nil
		child.Kustomization.Object["spec"] = map[string]any{"sourceRef": map[string]any{"kind": "GitRepository", "name": "apps"}}
		if got := reported(c).Entries[0].Outside; len(got) != 1 || got[0].Undefined != tt.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func source(name string) build.Object {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion("source.toolkit.fluxcd.io/v1")
	o.SetKind("GitRepository")
	o.SetNamespace("flux-system")
	o.SetName(name)
	return build.Object{Unstructured: o, Stage: 4}
}

// TestAListThatIsThereIsAddedTo: one that is written anew loses its entries.
func TestAListThatIsThereIsAddedTo(t *testing.T) {
	c := cluster("clusters/test")
	edge := []any{map[string]any{"name": "x"}}
	release := withValues("app")
	release.Object["spec"].(map[string]any)["dependsOn"] = edge
	c.tier("a", "", release).Kustomization.Object["spec"] = map[string]any{"dependsOn": edge}
	c.tier("b", "", withValues("other")).Kustomization.Object["spec"] = map[string]any{"healthChecks": []any{}}
	c.subject.Graph = tiers.Build(&flux.Snapshot{}, tiers.Options{})
	l := newLook(c.subject)
	add := specYAML{DependsOn: []dependencyYAML{{Name: "y"}}, HealthChecks: []checkYAML{{Name: "z"}}}
	for _, tt := range []struct {
		object flux.Ref
		want   string
	}{
		{ks("a"), "Kustomization/flux-system/a (clusters/test/a.yaml:1), add to spec.dependsOn:\n"},
		{ks("b"), "Kustomization/flux-system/b (clusters/test/b.yaml:1):\n"},
		{hr("x", "app"), "HelmRelease/x/app, add to spec.dependsOn:\n"},
		{hr("x", "other"), "HelmRelease/x/other:\n"},
	} {
		got, _, _ := strings.Cut(addTo(l, tt.object, add), "spec:\n")
		got = strings.Replace(strings.Replace(got, " (shared/app.yaml:3)", "", 1), " (shared/other.yaml:5)", "", 1)
		if got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}
