// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// tree makes files and directories (a trailing slash) below a new directory.
func tree(t *testing.T, names ...string) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if dir, ok := strings.CutSuffix(name, "/"); ok {
			if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
				t.Fatal(err)
			}
			continue
		}
		write(t, filepath.Join(root, name), "")
	}
	return root
}

func TestFind(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		tree    []string
		dir     string
		want    string
		several []string
	}{
		"beside":                    {tree: []string{".git/", "clusters/prod/standup.yaml"}, dir: "clusters/prod", want: "clusters/prod/standup.yaml"},
		"further up":                {tree: []string{".git/", "clusters/prod/standup.yaml", "clusters/prod/a/b/"}, dir: "clusters/prod/a/b", want: "clusters/prod/standup.yaml"},
		"the nearest":               {tree: []string{".git/", "standup.yaml", "clusters/prod/standup.yaml", "clusters/prod/a/"}, dir: "clusters/prod/a", want: "clusters/prod/standup.yaml"},
		"at the root":               {tree: []string{".git/", "standup.yaml", "apps/", "clusters/prod/standup.yaml"}, dir: "apps", want: "standup.yaml"},
		"above the repository":      {tree: []string{"standup.yaml", "repo/.git/", "repo/apps/"}, dir: "repo/apps"},
		"the only one below":        {tree: []string{".git/", "clusters/prod/standup.yaml"}, dir: ".", want: "clusters/prod/standup.yaml"},
		"the only one below here":   {tree: []string{".git/", "clusters/prod/standup.yaml", "other/standup.yaml"}, dir: "clusters", want: "clusters/prod/standup.yaml"},
		"several below":             {tree: []string{".git/", "clusters/prod/standup.yaml", "clusters/dev/standup.yaml"}, dir: ".", several: []string{"clusters/dev/standup.yaml", "clusters/prod/standup.yaml"}},
		"several below clusters":    {tree: []string{".git/", "clusters/prod/standup.yaml", "clusters/dev/standup.yaml"}, dir: "clusters", several: []string{"dev/standup.yaml", "prod/standup.yaml"}},
		"beside another cluster's":  {tree: []string{".git/", "clusters/prod/standup.yaml", "clusters/dev/"}, dir: "clusters/dev"},
		"in another part":           {tree: []string{".git/", "clusters/prod/standup.yaml", "apps/"}, dir: "apps"},
		"none":                      {tree: []string{".git/", "clusters/prod/kustomization.yaml"}, dir: "."},
		"no repository, going up":   {tree: []string{"a/standup.yaml", "a/b/"}, dir: "a/b", want: "a/standup.yaml"},
		"no repository, below":      {tree: []string{"a/standup.yaml"}, dir: "."},
		"linked work tree":          {tree: []string{"standup.yaml", "wt/.git", "wt/clusters/prod/standup.yaml"}, dir: "wt", want: "wt/clusters/prod/standup.yaml"},
		"submodule is another one":  {tree: []string{".git/", "clusters/prod/standup.yaml", "vendor/lib/.git", "vendor/lib/standup.yaml"}, dir: ".", want: "clusters/prod/standup.yaml"},
		"inside .git":               {tree: []string{".git/x/standup.yaml", "clusters/prod/standup.yaml"}, dir: ".", want: "clusters/prod/standup.yaml"},
		"a directory of that name":  {tree: []string{".git/", "standup.yaml/standup.yaml"}, dir: ".", want: "standup.yaml/standup.yaml"},
		"other names do not count":  {tree: []string{".git/", "standup.yml", "a/my-standup.yaml", "a/standup.yaml.bak"}, dir: "."},
		"hidden directories do too": {tree: []string{".git/", ".clusters/standup.yaml"}, dir: ".", want: ".clusters/standup.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := tree(t, tt.tree...)
			got, err := Find(filepath.Join(root, tt.dir))
			want := tt.want
			if want != "" {
				want = filepath.Join(root, want)
			}
			if got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			var several *SeveralError
			switch {
			case tt.several == nil && err != nil:
				t.Error(err)
			case tt.several != nil && (!errors.As(err, &several) || several.ExitCode() != 2 || !reflect.DeepEqual(several.Files, tt.several)):
				t.Errorf("got %v, want several: %q", err, tt.several)
			}
		})
	}
}

func TestSeveralErrorCanBePasted(t *testing.T) {
	t.Parallel()
	root := tree(t, ".git/", "clusters/prod/standup.yaml", "clusters/dev/standup.yaml")
	_, err := Flags{}.Load(root)
	want := `standup.yaml of which cluster? 2 are below this directory: choose one with --config, or work beside it
  --config clusters/dev/standup.yaml
  --config clusters/prod/standup.yaml`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestFlags(t *testing.T) {
	t.Parallel()
	root := tree(t, ".git/", "a/")
	write(t, filepath.Join(root, "standup.yaml"), "cluster: {server: https://here}\n")
	write(t, filepath.Join(root, "other.yaml"), "cluster: {server: https://there}\n")
	var f Flags
	fs := pflag.NewFlagSet("t", pflag.ContinueOnError)
	f.AddFlags(fs)
	dir := filepath.Join(root, "a")
	if c, err := f.Load(dir); err != nil || c.Cluster.Server != "https://here" || c.Path != "../standup.yaml" {
		t.Errorf("got %+v, %v", c, err)
	}
	if err := fs.Parse([]string{"--config", filepath.Join(root, "other.yaml")}); err != nil {
		t.Fatal(err)
	}
	if c, err := f.Load(dir); err != nil || c.Cluster.Server != "https://there" {
		t.Errorf("got %+v, %v", c, err)
	}
	f.File = filepath.Join(root, "none.yaml")
	if c, err := f.Load(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %+v, %v: a file that was named is never passed over", c, err)
	}
	none, err := Flags{}.Load(tree(t, ".git/"))
	if none != nil || err != nil {
		t.Errorf("got %+v, %v", none, err)
	}
	write(t, filepath.Join(root, "a", "standup.yaml"), "clutser: {}\n")
	if _, err := (Flags{}).Load(dir); err == nil || err.Error() != `standup.yaml:1:1: field "clutser" is unknown: standup.yaml knows apiVersion, cluster, crds, flux, kind, metadata, nodes, resume, variables, verify` {
		t.Errorf("got %v", err)
	}
	if got := (Position{Path: "p", Line: 3}).String(); got != "p:3" {
		t.Errorf("got %s", got)
	}
	if _, err := Find(filepath.Join(root, "standup.yaml", "x")); err == nil {
		t.Error("found one below a file")
	}
}
