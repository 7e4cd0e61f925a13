// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"maps"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// made is the artifact flux-system/apps of a generator of two sources.
func made(t *testing.T, namespace, copies string) *generated {
	t.Helper()
	var generator unstructured.Unstructured
	text := "metadata: {name: all, namespace: '" + namespace + "'}\nspec:\n" +
		"  sources:\n  - {alias: repo, kind: GitRepository, name: flux-system}\n  - {alias: other, kind: GitRepository, name: other, namespace: x-other}\n" +
		"  - {alias: made, kind: ExternalArtifact, name: made}\n  artifacts:\n  - {name: infra}\n  - name: apps\n    copy: " + copies + "\n"
	if err := yaml.Unmarshal([]byte(text), &generator.Object); err != nil {
		t.Fatal(err)
	}
	return generatedBy(&generator, flux.Ref{Kind: externalArtifact, Namespace: "flux-system", Name: "apps"})
}

// TestGeneratedOfOneSource: what is more than a copy of one source is not known,
// and must not pass for that source.
func TestGeneratedOfOneSource(t *testing.T) {
	repo := flux.Ref{Kind: "GitRepository", Namespace: "flux-system", Name: "flux-system"}
	for copies, want := range map[string]flux.Ref{
		"[{from: '@repo/a/**', to: '@artifact/'}]":                                                        repo,
		"[{from: '@repo/a', to: '@artifact/', strategy: Overwrite}, {from: '@repo/b', to: '@artifact/'}]": repo,
		"[{from: '@other/a', to: '@artifact/'}]":                                                          {Kind: "GitRepository", Namespace: "x-other", Name: "other"},
		"[{from: '@repo/a', to: '@artifact/'}, {from: '@other/b', to: '@artifact/'}]":                     {},
		"[{from: '@repo/a', to: '@artifact/'}, {from: '@unheard-of/b', to: '@artifact/'}]":                {},
		"[{from: '@repo/a', to: '@artifact/', strategy: Merge}]":                                          {},
		"[{from: '@repo/a', to: '@artifact/', strategy: Extract}]":                                        {},
		"[{from: '@repo/a', to: '@artifact/', exclude: ['*.md']}]":                                        {},
		"[{from: '@made/a', to: '@artifact/'}]":                                                           {},
		"[]":                                                                                              {},
	} {
		if got, known := made(t, "flux-system", copies).source(); got != want || known != (want != flux.Ref{}) {
			t.Errorf("%s: %s %t, want %s", copies, got, known, want)
		}
	}
	if g := made(t, "", "[]"); g == nil {
		t.Error("a generator without a namespace is not looked at")
	}
	if g := made(t, "x-other", "[]"); g != nil {
		t.Error("a generator of another namespace makes the artifact")
	}
}

// TestGeneratedFiles are those of source-watcher; nothing is read from outside
// of the source, or written outside of the artifact.
func TestGeneratedFiles(t *testing.T) {
	tree, err := build.OpenDir(t.Context(), write(t, map[string]string{"a/one.yaml": "", "a/deep/two.yaml": "", "b.yaml": ""}), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tree.Close(); err != nil {
			t.Error(err)
		}
	})
	for copies, want := range map[string]map[string]string{
		"[{from: '@repo/a/**', to: '@artifact/x'}]":       {"x/one.yaml": "a/one.yaml", "x/deep/two.yaml": "a/deep/two.yaml"},
		"[{from: '@repo/a/', to: '@artifact/x'}]":         {"x/a/one.yaml": "a/one.yaml", "x/a/deep/two.yaml": "a/deep/two.yaml"},
		"[{from: '@repo/a/*.yaml', to: '@artifact/x'}]":   {"x/a/one.yaml": "a/one.yaml"},
		"[{from: '@repo/b.yaml', to: '@artifact/'}]":      {"b.yaml": "b.yaml"},
		"[{from: '@repo/b.yaml', to: '@artifact/x'}]":     {"x": "b.yaml"},
		"[{from: '@repo/b.yaml', to: '@artifact/x/'}]":    {"x/b.yaml": "b.yaml"},
		"[{from: '@repo/b.yaml', to: 'x'}]":               nil,
		"[{from: '@repo/b.yaml', to: '@artifact/../x'}]":  nil,
		"[{from: '@repo/../b.yaml', to: '@artifact/x'}]":  nil,
		"[{from: '@repo/nobody.yaml', to: '@artifact/'}]": nil,
		"[{from: '@repo/[', to: '@artifact/'}]":           nil,
	} {
		got, err := made(t, "flux-system", copies).files(tree)
		if (err != nil) != (want == nil) || want != nil && !maps.Equal(got, want) {
			t.Errorf("%s: %v, %v, want %v", copies, got, err, want)
		}
	}
}
