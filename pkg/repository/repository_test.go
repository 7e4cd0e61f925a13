// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kubestandup/kubestandup/pkg/build"
)

func TestOpenErrors(t *testing.T) {
	chart := "{{- if .Values.flux }}\napiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\n{{- end }}\n"
	tests := []struct {
		name    string
		files   map[string]string
		below   string
		options Options
		want    string
		noEntry bool
	}{
		{"absent", nil, "absent", Options{}, "absent cannot be opened: ", false},
		{"a file", map[string]string{"a.yaml": "a: b"}, "a.yaml", Options{}, "a.yaml is not a directory", false},
		{
			"nothing of Flux's",
			map[string]string{"a.yaml": cm("a"), "b.yml": "{"},
			"",
			Options{},
			"its 2 YAML files hold no gotk-sync.yaml, no FluxInstance with a sync and no Kustomization of kustomize.toolkit.fluxcd.io: no entry point; name the folder that Flux begins with by --entry, or the right repository", true,
		},
		{
			"only templates",
			map[string]string{"chart/templates/ks.yaml": chart, "base/ks.yaml": ks("'{{ .Name }}'", "apps", "")},
			"",
			Options{},
			"; these name a kind of Flux's and are not valid YAML: chart/templates/ks.yaml; the names of the objects of these are templates: base/ks.yaml: no entry point", true,
		},
		{
			"an entry that holds nothing", bootstrapped("c", map[string]string{"apps/a.yaml": cm("a")}), "",
			Options{Entries: []string{"apps"}},
			"entry apps holds no Kustomization and no FluxInstance with a sync: no entry point; clusters begin at c", true,
		},
		{
			"an entry that is not there",
			map[string]string{"flux/ks.yaml": ks("apps", "apps", "")},
			"",
			Options{Entries: []string{"clusters"}},
			"entry clusters does not exist in ", false,
		},
		{"an entry outside", bootstrapped("c", map[string]string{}), "", Options{Entries: []string{"../c"}}, "entry ../c does not exist in ", false},
		{
			"a folder that is in no cluster", bootstrapped("c", map[string]string{"docs/a.yaml": "a: b"}), "docs",
			Options{},
			"no cluster begins in docs, and none has a tier there: no entry point; clusters begin at c", true,
		},
		{
			"patches that do not fit",
			map[string]string{"flux.yaml": instance + "  kustomize:\n    patches:\n    - target: {kind: Kustomization}\n      patch: |\n        - {op: remove, path: /spec/absent}\n", "clusters/prod/a.yaml": cm("a")},
			"",
			Options{},
			"cluster clusters/prod: flux.yaml: spec.kustomize.patches of FluxInstance/flux-system/flux: error in remove for path: ", false,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.files == nil {
				tt.files = map[string]string{}
			}
			tt.files[".git/HEAD"] = "ref: refs/heads/main\n"
			dir := write(t, tt.files)
			t.Setenv("TMPDIR", t.TempDir())
			_, err := Open(t.Context(), filepath.Join(dir, tt.below), tt.options)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v, want …%s…", err, tt.want)
			}
			if errors.Is(err, ErrNoEntry) != tt.noEntry {
				t.Errorf("%v is ErrNoEntry: %t", err, !tt.noEntry)
			}
			if left, _ := os.ReadDir(os.TempDir()); len(left) != 0 {
				t.Errorf("it left %v behind", left)
			}
		})
	}
}

// TestLoose: what no cluster holds is named.
func TestLoose(t *testing.T) {
	r := open(t, write(t, bootstrapped("c", map[string]string{
		"c/apps.yaml":     ks("apps", "apps", ""),
		"apps/a.yaml":     cm("a"),
		"old/ks.yaml":     cm("x") + ks("forgotten", "apps", ""),
		"old/same.yaml":   ks("apps", "apps", ""),
		"docs/notes.yaml": "a: b",
	})), Options{})
	want := []Loose{{Tier: tier("forgotten"), Position: build.Position{File: "old/ks.yaml", Line: 10}}}
	if !slices.Equal(r.Loose, want) {
		t.Errorf("got %v, want %v", r.Loose, want)
	}
}

func TestMistake(t *testing.T) {
	r := open(t, write(t, bootstrapped("c", map[string]string{
		"c/a.yaml":               ks("broken", "broken", ""),
		"c/b.yaml":               ks("absent", "absent", ""),
		"broken/deployment.yaml": "apiVersion: v1\nkind: A\n metadata: {\n",
	})), Options{})
	c := r.Clusters[0]
	for name, want := range map[string]build.Position{
		"broken": {File: "broken/deployment.yaml", Line: 3}, "absent": {File: "c/b.yaml", Line: 2}, "none": {},
	} {
		if got := c.Mistake(tier(name)); got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}

func TestNormalURL(t *testing.T) {
	const want = "github.com/example/fleet"
	for _, raw := range []string{
		"https://github.com/example/fleet", "https://user@GitHub.com:443/example/fleet.git/", "ssh://git@github.com/example/fleet",
		"ssh://git@github.com:22/example/fleet.git", "git@github.com:example/fleet.git", "github.com:example/fleet", " https://github.com/example/fleet ",
	} {
		if got := normalURL(raw); got != want {
			t.Errorf("%s: got %s, want %s", raw, got, want)
		}
	}
	for _, raw := range []string{"", "https://github.com/example/fleets", "https://gitlab.com/example/fleet", "https://github.com:8443/example/fleet", "file:///srv/fleet", "/srv/fleet", "http://[::1"} {
		if got := normalURL(raw); got == want || raw == "" && got != "" {
			t.Errorf("%s: got %s", raw, got)
		}
	}
}

// TestRemotes: a checkout's repository goes by the URLs of its remotes, also in
// a worktree of it.
func TestRemotes(t *testing.T) {
	config := "[core]\n\tbare = false\n\turl = wrong\n[remote \"origin\"]\n\turl = git@github.com:example/fleet.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"main\"]\n\tremote = origin\n"
	dir := write(t, map[string]string{
		"main/.git/config": config, "main/.git/worktrees/w/commondir": "../..\n", "w/.git": "gitdir: ../main/.git/worktrees/w\n", "none/a": "", "odd/.git": "nonsense",
	})
	for name, want := range map[string]bool{"main": true, "w": true, "none": false, "odd": false} {
		if got := remotes(filepath.Join(dir, name)); got["github.com/example/fleet"] != want || len(got) > 1 {
			t.Errorf("%s: got %v", name, got)
		}
	}
	files := map[string]string{
		".git/config": config,
		"flux.yaml":   "apiVersion: fluxcd.controlplane.io/v1\nkind: FluxInstance\nmetadata: {name: flux, namespace: flux-system}\nspec: {sync: {kind: OCIRepository, url: 'oci://example.com/fleet', ref: latest, path: c}}\n",
		"c/a.yaml":    repo("self", "https://github.com/example/fleet") + ks("a", "apps", "GitRepository/self"), "apps/a.yaml": cm("a"),
	}
	if got, want := said(open(t, write(t, files), Options{})), []string{"c: flux-system=2 a<flux-system=1"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
