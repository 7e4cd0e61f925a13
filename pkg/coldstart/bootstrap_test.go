// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package coldstart

import (
	"testing"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

// What a helmfile installs before Flux is there is not waited for.
func TestBootstrap(t *testing.T) {
	inside := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: x-apps}\n---\n"
	tests := map[string]struct {
		scene
		installed Installed
		want      string
	}{
		"the release itself": {
			scene{tiers: []string{"a\n---\n" + hr("op") + cr("Widget")}, charts: map[string]string{"op": crd("Widget")}},
			Installed{Name: "op", Namespace: "flux-system"},
			"a at-once\n",
		},
		"the same chart, by another name": {
			scene{tiers: []string{"a\n---\n" + hr("op") + cr("Widget")}, charts: map[string]string{"op": crd("Widget")}},
			Installed{Name: "crds", Namespace: "x", Chart: "op"},
			"a at-once\n",
		},
		"another release": {
			scene{tiers: []string{"a\n---\n" + hr("op") + cr("Widget")}, charts: map[string]string{"op": crd("Widget")}},
			Installed{Name: "op", Namespace: "elsewhere"},
			"a never; Widget missing chart a same\n",
		},
		"a chart that only the knowledge knows": {
			scene{tiers: []string{"a\n---\n" + cr("Certificate", "cert-manager.io/v1")}},
			Installed{Name: "cm", Chart: "cert-manager"},
			"a at-once\n",
		},
		"its namespace": {
			scene{tiers: []string{"a\n---\n" + inside}},
			Installed{Name: "cm", Namespace: "x-apps"},
			"a at-once\n",
		},
		"manifests of a project": {
			scene{tiers: []string{"a\n---\n" + hr("op") + cr("Gateway", "gateway.networking.k8s.io/v1")}, charts: map[string]string{"op": ""}},
			Installed{Name: "gateway-api", Project: "kubernetes-sigs/gateway-api"},
			"a at-once\n",
		},
		"manifests of a project, by its name": {
			scene{tiers: []string{"a\n---\n" + cr("PodMonitor", "monitoring.coreos.com/v1")}},
			Installed{Name: "prometheus-operator", Project: "prometheus-operator/prometheus-operator"},
			"a at-once\n",
		},
		"manifests of another project": {
			scene{tiers: []string{"a\n---\n" + cr("PodMonitor", "monitoring.coreos.com/v1")}},
			Installed{Name: "gateway-api", Project: "kubernetes-sigs/gateway-api"},
			"a never; PodMonitor missing\n",
		},
		"manifests are not the release of that name": {
			scene{tiers: []string{"a\n---\n" + hr("op") + cr("Widget")}, charts: map[string]string{"op": crd("Widget")}},
			Installed{Name: "op", Project: "example/op"},
			"a never; Widget missing chart a same\n",
		},
		"an opaque release": {
			scene{tiers: []string{"a\n---\n" + hr("dark") + cr("Widget")}},
			Installed{Name: "dark"},
			"a at-once; Widget perhaps\n",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := tc.cluster(t)
			tc.installed.By = "helmfile.yaml"
			c.Bootstrap = []Installed{tc.installed}
			if got := dump(Predict(c)); got != tc.want {
				t.Errorf("got\n%swant\n%s", got, tc.want)
			}
		})
	}
}

// TestStanding: what a script creates is not waited for, though a tier applies
// it too.
func TestStanding(t *testing.T) {
	self := "a\npostBuild: {substituteFrom: [{kind: ConfigMap, name: c}]}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: flux-system}\n"
	space := "a\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: x-apps}\n"
	tests := map[string]struct {
		tier     string
		standing flux.Ref
		want     string
	}{
		"nothing":       {self, flux.Ref{}, "a never; ConfigMap:c missing git a same\n"},
		"the ConfigMap": {self, flux.Ref{Kind: "ConfigMap", Namespace: "flux-system", Name: "c"}, "a at-once\n"},
		"another":       {self, flux.Ref{Kind: "Secret", Namespace: "flux-system", Name: "c"}, "a never; ConfigMap:c missing git a same\n"},
		"no namespace":  {space, flux.Ref{}, "a never; Namespace:x-apps missing\n"},
		"the namespace": {space, flux.Ref{Kind: "Namespace", Name: "x-apps"}, "a at-once\n"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := scene{tiers: []string{tc.tier}}
			c := s.cluster(t)
			c.Standing = []flux.Ref{tc.standing}
			if got := dump(Predict(c)); got != tc.want {
				t.Errorf("got\n%swant\n%s", got, tc.want)
			}
		})
	}
}

// TestResourceSet: what it makes is not known, and may register any kind once
// it is there.
func TestResourceSet(t *testing.T) {
	set := "a\n---\napiVersion: fluxcd.controlplane.io/v1\nkind: FluxInstance\nmetadata: {name: f, namespace: flux-system}\n---\napiVersion: fluxcd.controlplane.io/v1\nkind: ResourceSet\nmetadata: {name: r, namespace: flux-system}\n---\n"
	for want, tiers := range map[string][]string{
		"a at-once\nb at-once; Widget perhaps\n": {set, "b\n---\n" + cr("Widget")},
		"a never; Widget missing\n":              {set + cr("Widget")},
	} {
		s := scene{tiers: tiers}
		if got := dump(Predict(s.cluster(t))); got != want {
			t.Errorf("got\n%swant\n%s", got, want)
		}
	}
}
