// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestOperator: a FluxInstance says which Flux there is, and that flux-operator
// made it.
func TestOperator(t *testing.T) {
	withoutSync := "apiVersion: fluxcd.controlplane.io/v1\nkind: FluxInstance\nmetadata: {name: flux, namespace: flux-system}\nspec: {distribution: {version: VERSION}}\n"
	apps := map[string]string{
		".git/HEAD": "x", "c/apps.yaml": ks("apps", "apps", "", "postBuild: {substitute: {A: a}}"),
		"apps/a.yaml": cm("a", "b: ${B}"),
	}
	with := func(files map[string]string) map[string]string {
		for name, content := range apps {
			files[name] = content
		}
		return files
	}
	tests := map[string]struct {
		files map[string]string
		want  string
	}{
		"none":               {bootstrapped("c", with(map[string]string{})), "c: flux-system=3 apps<flux-system=error"},
		"a new one, applied": {with(map[string]string{"apps/i.yaml": strings.ReplaceAll(withoutSync, "VERSION", "2.9.x")}), "c: apps=error flux-operator by apps/i.yaml"},
		"an old one, applied by a tier that does not build": {with(map[string]string{"apps/i.yaml": strings.ReplaceAll(withoutSync, "VERSION", "2.8.x")}), "c: apps=2 flux-operator by apps/i.yaml"},
		"given to it later":       {bootstrapped("c", with(map[string]string{"apps/i.yaml": strings.ReplaceAll(withoutSync, "VERSION", "2.x")})), "c: flux-system=3 apps<flux-system=error"},
		"one that is not applied": {with(map[string]string{"other/i.yaml": strings.ReplaceAll(withoutSync, "VERSION", "2.8.x")}), "c: apps=error"},
		"a ResourceSet with the chart, values in a file of their own, pushed from a folder": {map[string]string{
			".git/HEAD":                       "x",
			"k/clusters/one/flux/values.yaml": "# fluxcd\ninstance:\n  distribution: {version: 2.8.0}\n  sync: {kind: OCIRepository, url: 'oci://example.com/k', path: ./clusters/one}\n",
			"k/clusters/one/flux/set.yaml": "apiVersion: fluxcd.controlplane.io/v1\nkind: ResourceSet\nmetadata: {name: s, namespace: flux-system}\nspec:\n  resources:\n" +
				"  - apiVersion: source.toolkit.fluxcd.io/v1\n    kind: OCIRepository\n    metadata: {name: flux-instance, namespace: flux-system}\n    spec: {url: 'oci://ghcr.io/controlplaneio-fluxcd/charts/flux-instance'}\n" +
				"  - apiVersion: helm.toolkit.fluxcd.io/v2\n    kind: HelmRelease\n    metadata: {name: flux-instance, namespace: flux-system}\n    spec: {chartRef: {kind: OCIRepository, name: flux-instance}, valuesFrom: [{kind: ConfigMap, name: v}]}\n",
			"k/clusters/one/flux/kustomization.yaml": "resources: [set.yaml]\n",
			"k/clusters/one/apps.yaml":               ks("apps", "apps", "OCIRepository/flux-system"),
			"k/apps/a.yaml":                          cm("a"),
		}, "k/clusters/one base=k: flux-system=2 apps<flux-system=1 flux-operator by k/clusters/one/flux/set.yaml"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := open(t, write(t, tt.files), Options{})
			got := said(r)
			for i, c := range r.Clusters {
				for _, b := range c.Bootstrap {
					got[i] += fmt.Sprintf(" %s by %s", b.Name, b.File)
				}
			}
			if !slices.Equal(got, []string{tt.want}) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}
