// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"strings"
	"testing"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

func TestStanding(t *testing.T) {
	files := map[string]string{
		"clusters/one/vars/settings.yaml": cm("settings"),
		"clusters/one/vars/plain.yaml":    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: plain}\n",
		"more.yaml":                       cm("more"),
		"k/kustomization.yaml":            "resources: [a.yaml]\n",
		"k/a.yaml":                        cm("of-k") + "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: made}\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d, namespace: x}\n",
	}
	tests := map[string]struct{ file, script, want string }{
		"a task, with a variable":      {"Taskfile.yaml", "- kubectl --context {{.c}} apply --server-side --filename {{.DIR}}/{{.c}}/vars/settings.yaml", "ConfigMap/flux-system/settings"},
		"a task of a folder":           {".taskfiles/x/y.yaml", "- sops -d ${DIR}/vars/settings.yaml | kubectl apply -f -", "ConfigMap/flux-system/settings"},
		"a namespace given":            {"mod.just", "kubectl -n x apply -f ./clusters/one/vars/plain.yaml", "ConfigMap/x/plain"},
		"no namespace":                 {"mod.just", "kubectl apply -f ./clusters/one/vars/plain.yaml", ""},
		"lines that go on":             {"a.sh", "kubectl apply \\\n  -f more.yaml", "ConfigMap/flux-system/more"},
		"a folder":                     {"Makefile", "\tkubectl apply -k k", "Namespace/made ConfigMap/flux-system/of-k"},
		"a folder, by an equals":       {"justfile", "kubectl apply --kustomize=./k", "Namespace/made ConfigMap/flux-system/of-k"},
		"a namespace created":          {"a.sh", "kubectl create namespace new --dry-run=client -o yaml | kubectl apply -f -", "Namespace/new"},
		"a namespace of a variable":    {"a.sh", `kubectl create namespace "$ns"`, ""},
		"a comment":                    {"a.sh", "# kubectl apply -f more.yaml", ""},
		"another command":              {"a.sh", "kubectl delete -f more.yaml", ""},
		"a URL":                        {"a.sh", "kubectl apply -f https://example.com/x/more.yaml", ""},
		"too short to tell":            {"a.sh", "kubectl apply -f $DIR/settings.yaml", ""},
		"from the root, by a variable": {"a.sh", "kubectl apply -f \"$ROOT/more.yaml\"", "ConfigMap/flux-system/more"},
		"a workflow":                   {".github/a.sh", "kubectl apply -f more.yaml", ""},
		"no script":                    {"a.txt", "kubectl apply -f more.yaml", ""},
		"out of the tree":              {"a.sh", "kubectl apply -f ../more.yaml -k /k", "ConfigMap/flux-system/more"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			all := bootstrapped("c", map[string]string{".git/HEAD": "x", tt.file: tt.script + "\n"})
			for file, content := range files {
				all[file] = content
			}
			var got []string
			for _, ref := range open(t, write(t, all), Options{}).Clusters[0].Standing {
				got = append(got, flux.Ref.String(ref))
			}
			if strings.Join(got, " ") != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
