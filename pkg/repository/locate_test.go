// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"sync"
	"testing"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

func tier(name string) flux.Ref {
	return flux.Ref{APIVersion: "kustomize.toolkit.fluxcd.io/v1", Kind: "Kustomization", Namespace: "flux-system", Name: name}
}

func configMap(name string) flux.Ref {
	return flux.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "flux-system", Name: name}
}

func TestLocate(t *testing.T) {
	r := open(t, write(t, map[string]string{
		"flux.yaml":                           "# made by hand\n---\napiVersion: fluxcd.controlplane.io/v1\nkind: FluxInstance\nmetadata: {name: flux, namespace: flux-system}\nspec: {sync: {kind: OCIRepository, url: 'oci://example.com/fleet', ref: latest, path: clusters/prod}}\n",
		"deploy/clusters/prod/apps.yaml":      cm("first") + ks("apps", "apps", "OCIRepository/flux-system", "dependsOn:", "- name: infra"),
		"deploy/apps/kustomization.yaml":      "resources: [a.yaml]\nnamePrefix: p-\nconfigMapGenerator: [{name: made, literals: [a=b]}]\n",
		"deploy/apps/a.yaml":                  "\n# two of them\n" + cm("a") + cm("b"),
		"deploy/clusters/prod/in-a-list.yaml": "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: listed, namespace: flux-system}\n",
	}), Options{})
	c := r.Clusters[0]
	tests := []struct {
		name         string
		tier, object flux.Ref
		field        []string
		want         build.Position
	}{
		{"root", flux.Ref{}, tier("flux-system"), nil, build.Position{File: "flux.yaml", Line: 3}},
		{"object of the root", tier("flux-system"), configMap("first"), nil, build.Position{File: "deploy/clusters/prod/apps.yaml", Line: 2}},
		{"item of a list", tier("flux-system"), configMap("listed"), nil, build.Position{File: "deploy/clusters/prod/in-a-list.yaml", Line: 4}},
		{"tier", tier("flux-system"), tier("apps"), nil, build.Position{File: "deploy/clusters/prod/apps.yaml", Line: 10}},
		{"tier by another version", tier("flux-system"), flux.Ref{Kind: "Kustomization", Namespace: "flux-system", Name: "apps"}, nil, build.Position{File: "deploy/clusters/prod/apps.yaml", Line: 10}},
		{"field", tier("flux-system"), tier("apps"), []string{"spec", "dependsOn"}, build.Position{File: "deploy/clusters/prod/apps.yaml", Line: 22}},
		{"field that is not there", tier("flux-system"), tier("apps"), []string{"spec", "wait"}, build.Position{File: "deploy/clusters/prod/apps.yaml", Line: 15}},
		{"prefixed", tier("apps"), configMap("p-b"), nil, build.Position{File: "deploy/apps/a.yaml", Line: 12}},
		{"generated", tier("apps"), configMap("p-made-k4g6b6f2m5"), nil, build.Position{}},
		{"no such tier", tier("other"), configMap("p-b"), nil, build.Position{}},
	}
	var all sync.WaitGroup
	for _, tt := range tests {
		all.Go(func() {
			got := c.LocateField(tt.tier, tt.object, tt.field...)
			if len(tt.field) == 0 {
				got = c.Locate(tt.tier, tt.object)
			}
			if got != tt.want {
				t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
			}
		})
	}
	all.Wait()
	if got, want := c.Where(tier("apps")), (build.Position{File: "deploy/clusters/prod/apps.yaml", Line: 10}); got != want {
		t.Errorf("where: got %v, want %v", got, want)
	}
}

// TestLocateInArtifacts: a file of an artifact is one of the repository's.
func TestLocateInArtifacts(t *testing.T) {
	r := open(t, write(t, bootstrapped("c", map[string]string{
		"c/artifacts.yaml":         generator("flux-system"),
		"c/infra.yaml":             ks("infra", "./controllers", "ExternalArtifact/infra"),
		"infra/controllers/a.yaml": cm("a"),
		".git/HEAD":                "ref: refs/heads/main\n",
	}))+"/infra/controllers", Options{})
	if len(r.Clusters) != 1 {
		t.Fatalf("%d clusters have a tier there", len(r.Clusters))
	}
	got := r.Clusters[0].Locate(tier("infra"), configMap("a"))
	if want := (build.Position{File: "infra/controllers/a.yaml", Line: 2}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}
