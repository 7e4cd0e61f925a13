// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"slices"
	"strings"
	"testing"
)

// TestInjects: a variable that something else may set is no mistake.
func TestInjects(t *testing.T) {
	const webhook = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: w, namespace: flux-system}\nspec: "
	tests := map[string]struct {
		file, content string
		want          string
	}{
		"nothing":                        {"c/a.yaml", cm("a"), "apps<flux-system=error"},
		"the chart":                      {"c/a.yaml", webhook + "{chart: {spec: {chart: kustomize-mutating-webhook}}}\n", "apps<flux-system=1"},
		"the chart, of a source":         {"c/a.yaml", webhook + "{chartRef: {kind: OCIRepository, name: o}}\n---\napiVersion: source.toolkit.fluxcd.io/v1\nkind: OCIRepository\nmetadata: {name: o, namespace: flux-system}\nspec: {url: 'oci://example.com/kustomize-mutating-webhook'}\n", "apps<flux-system=1"},
		"a helmfile":                     {"bootstrap/helmfile.yaml", "releases:\n- name: kustomize-mutating-webhook\n", "apps<flux-system=1"},
		"a webhook":                      {"c/a.yaml", "apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingWebhookConfiguration\nmetadata: {name: w}\nwebhooks: [{rules: [{apiGroups: [kustomize.toolkit.fluxcd.io]}]}]\n", "apps<flux-system=1"},
		"a webhook of other kinds":       {"c/a.yaml", "# fluxcd\napiVersion: admissionregistration.k8s.io/v1\nkind: MutatingWebhookConfiguration\nmetadata: {name: w}\nwebhooks: [{rules: [{apiGroups: [apps]}]}]\n", "apps<flux-system=error"},
		"a policy about a label of Flux": {"c/a.yaml", "apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingAdmissionPolicy\nmetadata: {name: p}\nspec: {matchConstraints: {resourceRules: [{apiGroups: [batch], resources: [jobs]}]}, matchConditions: [{expression: \"has(object.metadata.labels['kustomize.toolkit.fluxcd.io/name'])\"}]}\n", "apps<flux-system=error"},
		"a policy about Kustomizations":  {"c/a.yaml", "apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingAdmissionPolicy\nmetadata: {name: p}\nspec: {matchConstraints: {resourceRules: [{apiGroups: [kustomize.toolkit.fluxcd.io], resources: [kustomizations]}]}}\n", "apps<flux-system=1"},
		"a policy":                       {"c/a.yaml", "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: p}\nspec: {rules: [{match: {kinds: [kustomize.toolkit.fluxcd.io/v1/Kustomization]}, mutate: {patch: {spec: {postBuild: {}}}}}]}\n", "apps<flux-system=1"},
		"a policy about accounts":        {"c/a.yaml", "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: p}\nspec: {rules: [{match: {kinds: [kustomize.toolkit.fluxcd.io/v1/Kustomization]}, validate: {pattern: {}}}]}\n", "apps<flux-system=error"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := open(t, write(t, bootstrapped("c", map[string]string{
				".git/HEAD": "x", tt.file: tt.content,
				"c/apps.yaml": ks("apps", "apps", "", "postBuild: {substitute: {A: a}}"),
				"apps/a.yaml": cm("a", "b: ${B}"),
			})), Options{})
			if got := said(r); !slices.ContainsFunc(got, func(line string) bool { return line[len(line)-len(tt.want):] == tt.want }) {
				t.Errorf("got %q, want … %s", got, tt.want)
			}
		})
	}
}

// TestInjectsNothingCertain: a tier without variables of its own may get none,
// so that what would break a substitution breaks nothing.
func TestInjectsNothingCertain(t *testing.T) {
	for own, want := range map[string]string{"": "apps<flux-system=1", "postBuild: {substitute: {A: a}}": "apps<flux-system=error"} {
		r := open(t, write(t, bootstrapped("c", map[string]string{
			".git/HEAD": "x", "bootstrap/helmfile.yaml": "releases:\n- name: kustomize-mutating-webhook\n",
			"c/apps.yaml": ks("apps", "apps", "", own),
			"apps/a.yaml": cm("a", "script: '${B[$i]}'"),
		})), Options{})
		if got := said(r); !slices.ContainsFunc(got, func(line string) bool { return strings.HasSuffix(line, want) }) {
			t.Errorf("%q: got %q, want … %s", own, got, want)
		}
	}
}
