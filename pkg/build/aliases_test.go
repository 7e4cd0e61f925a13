// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"fmt"
	"strings"
	"testing"
)

// bomb is a ConfigMap of 9 to the power of depth values.
func bomb(depth int) string {
	text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bomb}\ndata:\n  a0: &a0 [" + strings.Repeat("lol,", 9) + "]\n"
	for i := 1; i < depth; i++ {
		text += fmt.Sprintf("  a%d: &a%d [%s]\n", i, i, strings.Repeat(fmt.Sprintf("*a%d,", i-1), 9))
	}
	return text
}

func TestAliasBombs(t *testing.T) {
	cyclic := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: &d\n  again: *d\n"
	tests := []struct {
		name  string
		files map[string]string
	}{
		{"scanned", map[string]string{"bomb.yaml": bomb(9)}},
		{"scanned below", map[string]string{"a.yaml": configMap("a", "k: v"), "below/bomb.yml": bomb(9)}},
		{"listed", map[string]string{"kustomization.yaml": "resources: [bomb.yaml]", "bomb.yaml": bomb(9)}},
		{"in the second document", map[string]string{"bomb.yaml": configMap("a", "k: v") + "---\n" + bomb(9)}},
		{"as a patch", map[string]string{"kustomization.yaml": "resources: [a.yaml]\npatches: [{path: bomb}]", "a.yaml": configMap("bomb", "k: v"), "bomb": bomb(9)}},
		{"as values of a generator", map[string]string{"kustomization.yaml": "configMapGenerator: [{name: g, files: [bomb.yaml]}]", "bomb.yaml": bomb(9)}},
		{"containing itself", map[string]string{"bomb.yaml": cyclic}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Builder{}.Build(t.Context(), tierAt(t, "tier", "."), openTree(t, writeTree(t, tt.files)))
			if err == nil || !strings.Contains(err.Error(), "its YAML aliases stand for more than 5000000 values, which no manifest holds") ||
				!strings.Contains(err.Error(), "bomb") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestAliases: anchors that people use are no bombs.
func TestAliases(t *testing.T) {
	manifest := "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  labels: &l {app: a}\n  annotations: *l\ndata:\n  k: 'a & b * c'\n"
	result, err := Builder{}.Build(t.Context(), tierAt(t, "tier", "."), openTree(t, writeTree(t, map[string]string{"a.yaml": manifest})))
	if err != nil {
		t.Fatal(err)
	}
	if got := result.Objects[0].GetAnnotations()["app"]; got != "a" {
		t.Errorf("got %q, want what the alias stands for", got)
	}
}

func FuzzCheckAliases(f *testing.F) {
	for _, seed := range []string{bomb(3), "a: &a [*a]", "&a *a", "*b", "- &x 1\n- *x\n---\n*x", "<<: &m {a: 1}\nb: *m"} {
		f.Add(seed)
	}
	f.Fuzz(func(_ *testing.T, content string) { _ = checkAliases("f", []byte(content)) })
}
