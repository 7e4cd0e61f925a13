// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

// theSource is the source of the tiers in these tests.
var theSource = flux.Ref{Kind: "GitRepository", Namespace: "flux-system", Name: "flux-system"}

// writeTree writes files, by their names, into a directory.
func writeTree(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func openTree(t testing.TB, dir string) *Tree {
	t.Helper()
	tree, err := OpenDir(t.Context(), dir, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tree.Close(); err != nil {
			t.Error(err)
		}
	})
	return tree
}

func object(t testing.TB, manifest string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

// tierAt is a Kustomization of theSource. spec is further lines of its spec.
func tierAt(t testing.TB, name, path string, spec ...string) *unstructured.Unstructured {
	t.Helper()
	return object(t, manifestAt(name, path, spec...))
}

func manifestAt(name, path string, spec ...string) string {
	text := `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata:
  name: ` + name + `
  namespace: flux-system
spec:
  interval: 10m
  prune: true
  path: ` + path + `
  sourceRef:
    kind: GitRepository
    name: flux-system
`
	for _, line := range strings.Split(strings.Join(spec, "\n"), "\n") {
		text += "  " + line + "\n"
	}
	return text
}

func configMap(name string, data ...string) string {
	text := "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + name + "\n  namespace: flux-system\ndata:\n"
	for _, line := range data {
		text += "  " + line + "\n"
	}
	return text
}

// someVariables are ConfigMaps and Secrets by name.
type someVariables struct {
	configMaps map[string]map[string]string
	secrets    map[string]map[string][]byte
	reads      atomic.Int32
}

func (v *someVariables) ConfigMap(_ context.Context, _, name string) (map[string]string, error) {
	v.reads.Add(1)
	if data, ok := v.configMaps[name]; ok {
		return data, nil
	}
	return nil, notFound("configmaps", name)
}

func (v *someVariables) Secret(_ context.Context, _, name string) (map[string][]byte, error) {
	v.reads.Add(1)
	if data, ok := v.secrets[name]; ok {
		return data, nil
	}
	return nil, notFound("secrets", name)
}

func names(objects []Object) []string {
	var all []string
	for _, o := range objects {
		all = append(all, o.String())
	}
	return all
}
