// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package build

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

func files(t *testing.T, tree *Tree) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(tree.root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			all = append(all, filepath.ToSlash(tree.relative(path)))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestOpenDir: what source-controller would archive, and only that.
func TestOpenDir(t *testing.T) {
	repository := map[string]string{
		".git/HEAD":              "ref: refs/heads/main",
		".git/config.yaml":       "a: b",
		".gitignore":             "*.dec.yaml\n/build/\n",
		".github/workflow.yaml":  "a: b",
		".sops.yaml":             "a: b",
		"apps/a.yaml":            "a: b",
		"apps/secret.dec.yaml":   "a: b",
		"apps/picture.png":       "",
		"apps/.gitignore":        "scratch.yaml\n",
		"apps/scratch.yaml":      "a: b",
		"build/out.yaml":         "a: b",
		"docs/deep/er/file.yaml": "a: b",
	}
	with := func(more map[string]string) map[string]string {
		all := map[string]string{}
		for _, m := range []map[string]string{repository, more} {
			for name, content := range m {
				all[name] = content
			}
		}
		return all
	}
	without := with(nil)
	for name := range without {
		if strings.HasPrefix(name, ".git/") {
			delete(without, name)
		}
	}
	tests := []struct {
		name   string
		files  map[string]string
		ignore string
		want   []string
	}{
		{"defaults", repository, "", []string{"apps/a.yaml", "docs/deep/er/file.yaml"}},
		// Patterns of one's own replace the defaults, so that the picture and
		// the workflow are in the artifact (storage/archive.go).
		{"sourceignore", with(map[string]string{".sourceignore": "docs/\n"}), "", []string{".github/workflow.yaml", ".sops.yaml", ".sourceignore", "apps/a.yaml", "apps/picture.png"}},
		{"spec.ignore", repository, "/*\n!/apps\n", []string{"apps/.gitignore", "apps/a.yaml", "apps/picture.png"}},
		{"no checkout", without, "", []string{"apps/a.yaml", "apps/scratch.yaml", "apps/secret.dec.yaml", "build/out.yaml", "docs/deep/er/file.yaml"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tree, err := OpenDir(t.Context(), writeTree(t, tt.files), tt.ignore)
			if err != nil {
				t.Fatal(err)
			}
			if got := files(t, tree); !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if err := tree.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(tree.root); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the copy is still there: %v", err)
			}
		})
	}
}

func TestOpenDirErrors(t *testing.T) {
	small := defaultLimits()
	small.files, small.unpacked = 3, 10
	done, cancel := context.WithCancel(t.Context())
	cancel()
	tests := []struct {
		name  string
		ctx   context.Context
		files map[string]string
		below string
		limit limits
		want  string
	}{
		{"absent", t.Context(), nil, "absent", small, "cannot be opened: "},
		{"a file", t.Context(), map[string]string{"a": ""}, "a", small, "is not a directory"},
		{"too many", t.Context(), map[string]string{"a": "", "b": "", "c/d": ""}, "", small, "it holds more than 3 files, which no source of manifests does; exclude what is no manifest in .sourceignore"},
		{"too large", t.Context(), map[string]string{"a": "01234", "b": "56789a"}, "", small, "it holds more than 10 bytes of files"},
		{"interrupted", done, map[string]string{"a": ""}, "", small, "context canceled"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := writeTree(t, tt.files)
			t.Setenv("TMPDIR", t.TempDir())
			_, err := openDir(tt.ctx, filepath.Join(dir, tt.below), "", tt.limit)
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "working tree "+dir) {
				t.Errorf("got %v, want …%s…", err, tt.want)
			}
			if left, _ := os.ReadDir(os.TempDir()); len(left) != 0 {
				t.Errorf("it left %v behind", left)
			}
		})
	}
}

// TestLinksAreNotFollowed: a link is in no artifact, wherever it leads.
func TestLinksAreNotFollowed(t *testing.T) {
	secret := filepath.Join(writeTree(t, map[string]string{"secret.yaml": configMap("stolen", "k: v")}), "secret.yaml")
	dir := writeTree(t, map[string]string{
		"linked/kustomization.yaml": "resources: [a.yaml, link.yaml]\n",
		"linked/a.yaml":             configMap("a", "k: v"),
		"scanned/a.yaml":            configMap("a", "k: v"),
	})
	for _, name := range []string{"linked/link.yaml", "scanned/link.yaml"} {
		if err := os.Symlink(secret, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Dir(secret), filepath.Join(dir, "directory")); err != nil {
		t.Fatal(err)
	}
	tree := openTree(t, dir)

	result, err := Builder{}.Build(t.Context(), tierAt(t, "tier", "scanned"), tree)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := names(result.Objects), []string{"ConfigMap/flux-system/a"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, path := range []string{"linked", "directory"} {
		if _, err := (Builder{}).Build(t.Context(), tierAt(t, "tier", path), tree); err == nil || !strings.Contains(err.Error(), "no such file or directory") {
			t.Errorf("%s: got %v, want that the file is not there", path, err)
		}
	}
}

// TestBuildOnlyReads calls what kustomize could write through.
func TestBuildOnlyReads(t *testing.T) {
	tree := openTree(t, writeTree(t, map[string]string{"a.yaml": "a: b"}))
	o, err := (Builder{}).newOverlay(tree, "", nil, false)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(tree.root, "a.yaml")
	_, createErr := o.Create(path)
	for verb, err := range map[string]error{
		"create": createErr, "mkdir": o.Mkdir(path), "mkdirall": o.MkdirAll(path),
		"write": o.WriteFile(path, nil), "remove": o.RemoveAll(path),
	} {
		if err == nil || !strings.Contains(err.Error(), "a.yaml: a build only reads") {
			t.Errorf("%s: got %v, want a refusal", verb, err)
		}
	}
	if content, err := os.ReadFile(path); err != nil || string(content) != "a: b" {
		t.Errorf("the tree changed: %q, %v", content, err)
	}
}
