// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package coldstart

import "testing"

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
			Installed{Name: "op", Namespace: "flux-system"}, "a at-once\n",
		},
		"the same chart, by another name": {
			scene{tiers: []string{"a\n---\n" + hr("op") + cr("Widget")}, charts: map[string]string{"op": crd("Widget")}},
			Installed{Name: "crds", Namespace: "x", Chart: "op"}, "a at-once\n",
		},
		"another release": {
			scene{tiers: []string{"a\n---\n" + hr("op") + cr("Widget")}, charts: map[string]string{"op": crd("Widget")}},
			Installed{Name: "op", Namespace: "elsewhere"}, "a never; Widget missing chart a same\n",
		},
		"a chart that only the knowledge knows": {
			scene{tiers: []string{"a\n---\n" + cr("Certificate", "cert-manager.io/v1")}},
			Installed{Name: "cm", Chart: "cert-manager"}, "a at-once\n",
		},
		"its namespace": {
			scene{tiers: []string{"a\n---\n" + inside}},
			Installed{Name: "cm", Namespace: "x-apps"}, "a at-once\n",
		},
		"an opaque release": {
			scene{tiers: []string{"a\n---\n" + hr("dark") + cr("Widget")}},
			Installed{Name: "dark"}, "a at-once; Widget perhaps\n",
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
