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
