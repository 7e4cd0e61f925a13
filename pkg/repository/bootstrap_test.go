// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"fmt"
	"strings"
	"testing"
)

func TestReleasesOfHelmfiles(t *testing.T) {
	tests := map[string]struct{ content, want string }{
		"whole": {
			"repositories:\n  - name: cilium\n    url: https://helm.example.com\nreleases:\n  - name: cilium\n    namespace: kube-system\n    chart: cilium/cilium\n    values:\n      - name: not-a-release\n" +
				"  - name: \"crds\" # first\n    namespace: 'monitoring'\n    chart: oci://ghcr.io/example/charts/prometheus-operator-crds\n",
			"cilium kube-system cilium 5; crds monitoring prometheus-operator-crds 10",
		},
		"what follows is no release": {"releases:\n- name: a\n  namespace: x\nhooks:\n- name: b\n", "a x  2"},
		"a template":                 {"releases:\n{{ range .Values.x }}\n  - name: a\n    chart: {{ .chart }}\n    namespace: y\n{{ end }}\n", "a y  3"},
		"a manifest":                 {"apiVersion: v1\nkind: ConfigMap\nreleases:\n  - name: a\n", ""},
		"no list":                    {"releases: none\n", ""},
		"windows":                    {"releases:\r\n  - name: a\r\n    chart: x/b\r\n", "a  b 2"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, i := range releasesOf("f", []byte(tc.content)) {
				got = append(got, fmt.Sprintf("%s %s %s %d", i.Name, i.Namespace, i.Chart, i.Line))
			}
			if strings.Join(got, "; ") != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestScopeOfHelmfiles(t *testing.T) {
	for file, want := range map[string]string{
		"bootstrap/helmfile.d/00-crds.yaml":       ".",
		"kubernetes/prod/bootstrap/helmfile.yaml": "kubernetes/prod",
		"helmfile.yaml": ".",
		"setup/bootstrap/helmfile.d/bootstrap/a.yaml": "setup",
		"kubernetes/apps/helmfiles/x/helmfile.yml":    ".",
	} {
		if got := scopeOf(file); got != want {
			t.Errorf("%s: got %s, want %s", file, got, want)
		}
	}
}

func TestExtraManifests(t *testing.T) {
	patch := "- op: add\n  path: /cluster\n  value:\n    extraManifests:\n"
	for content, want := range map[string]string{
		"cluster:\n  extraManifests:\n    # the first\n    - https://github.com/kubernetes-sigs/gateway-api/releases/download/v1.5.1/experimental-install.yaml\n" +
			"    - \"https://raw.githubusercontent.com/prometheus-operator/prometheus-operator/v0.9/x.yaml\"\n    - https://example.com/a/b/c.yaml\n  inlineManifests: []\n  - https://github.com/no/more/x.yaml\n": "gateway-api kubernetes-sigs/gateway-api 4; prometheus-operator prometheus-operator/prometheus-operator 5",
		patch + "    - https://github.com/a/b/raw/c.yaml\n{{ end }}\n    - https://github.com/c/d/raw/c.yaml\n": "b a/b 5",
		"cluster:\n  extraManifests: []\n  x:\n  - https://github.com/a/b/raw/c.yaml\n":                         "",
		"resources:\n- https://github.com/a/b/raw/c.yaml\n":                                                     "",
	} {
		var got []string
		for _, i := range extraManifests("f", []byte(content)) {
			got = append(got, fmt.Sprintf("%s %s %d", i.Name, i.Project, i.Line))
		}
		if strings.Join(got, "; ") != want {
			t.Errorf("%s\ngot %q, want %q", content, got, want)
		}
	}
}
