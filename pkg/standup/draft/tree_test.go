// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package draft

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func write(t *testing.T, root, name, text string) {
	t.Helper()
	file := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Only the manifests of this repository are read, and no link is followed.
func TestScan(t *testing.T) {
	t.Parallel()
	root, elsewhere := t.TempDir(), t.TempDir()
	write(t, elsewhere, "vars.yaml", configMapText("linked", "A", "1"))
	for name, text := range map[string]string{
		"a/vars.yaml":         configMapText("good", "A", "1"),
		"a/vars.yml":          "# first\n---\n" + configMapText("also", "A", "1") + "---\nkind: [\n",
		"a/typed.yaml":        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: typed}\ndata: {A: {b: c}, B: 1, C: &x y, D: *x, E: \"ENC[AES256]\", F: ~}\nspec: []\n",
		"a/vars.json":         configMapText("other", "A", "1"),
		"a/template.yaml":     "kind: ConfigMap\n{{- if .Values.x }}\n",
		"a/large.yaml":        configMapText("large", "A", strings.Repeat("x", maxFile)),
		".git/x.yaml":         configMapText("git", "A", "1"),
		"sub/.git":            "gitdir: ../.git/modules/sub\n",
		"sub/x.yaml":          configMapText("submodule", "A", "1"),
		"a/empty.yaml":        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: empty}\n",
		"a/nameless.yaml":     "apiVersion: v1\nkind: ConfigMap\ndata: {A: b}\n",
		"a/other.yaml":        "apiVersion: example.org/v1\nkind: ConfigMap\nmetadata: {name: foreign}\ndata: {A: b}\n",
		"s/secret.yaml":       secretText("TOKEN"),
		"s/kustomization.yml": "secretGenerator:\n- name: made\n  literals: [TOKEN=" + secret + "]\n",
		"s/out.yaml":          "configMapGenerator:\n- name: outside\n  envs: [../../" + filepath.Base(elsewhere) + "/vars.yaml, none]\n",
	} {
		write(t, root, name, text)
	}
	if err := os.Symlink(filepath.Join(elsewhere, "vars.yaml"), filepath.Join(root, "a", "link.yaml")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, filepath.Join(root, "linked")); err != nil {
		t.Fatal(err)
	}
	tree, err := Scan(t.Context(), os.DirFS(root), root)
	if err != nil || tree.Stopped {
		t.Fatal(tree, err)
	}
	var got []string
	for _, s := range tree.sets {
		got = append(got, s.Kind+"/"+s.Name+" "+strings.Join(s.names, ","))
		for _, value := range s.values {
			if strings.Contains(value, secret) {
				t.Errorf("%s holds the value of a Secret", s)
			}
		}
	}
	slices.Sort(got)
	want := []string{"ConfigMap/also A", "ConfigMap/good A", "ConfigMap/typed B,C,D,F", "Secret/cluster-secrets TOKEN", "Secret/made TOKEN"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestScanStops(t *testing.T) {
	t.Parallel()
	if _, err := Scan(t.Context(), os.DirFS(filepath.Join(t.TempDir(), "none")), "none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Scan(ctx, os.DirFS(t.TempDir()), "x"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestCheckout(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, root, "repo/.git/HEAD", "x")
	write(t, root, "repo/a/b/c", "x")
	for dir, want := range map[string]string{"repo": "repo", "repo/a/b": "repo", ".": "", "repo/none/x": "repo"} {
		if want != "" {
			want = filepath.Join(root, want)
		}
		if got := Checkout(filepath.Join(root, dir)); got != want {
			t.Errorf("%s: got %q, want %q", dir, got, want)
		}
	}
}
