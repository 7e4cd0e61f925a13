// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubestandup/kubestandup/pkg/guard"
)

func TestParse(t *testing.T) {
	t.Parallel()
	const full = `# the production cluster
cluster:
  server: https://api.prod.example.org:6443
  uid: "3f0c1d6e-58a1-4b0e-9c57-2d1f7a8e4b11"
  domain: prod.example.org
flux:
  namespace: flux-system
  root: flux-system
`
	for name, tt := range map[string]struct {
		text string
		want Config
	}{
		"full": {full, Config{
			Cluster: Cluster{Server: "https://api.prod.example.org:6443", UID: "3f0c1d6e-58a1-4b0e-9c57-2d1f7a8e4b11", Domain: "prod.example.org"},
			Flux:    Flux{Namespace: "flux-system", Root: "flux-system"},
		}},
		"windows":         {strings.ReplaceAll("\ufeff"+full, "\n", "\r\n"), Config{Cluster: Cluster{Server: "https://api.prod.example.org:6443", UID: "3f0c1d6e-58a1-4b0e-9c57-2d1f7a8e4b11", Domain: "prod.example.org"}, Flux: Flux{Namespace: "flux-system", Root: "flux-system"}}},
		"flow style":      {`{cluster: {server: "https://h"}}`, Config{Cluster: Cluster{Server: "https://h"}}},
		"empty":           {"", Config{}},
		"only comments":   {"# nothing\n---\n# still nothing\n", Config{}},
		"empty mapping":   {"{}", Config{}},
		"empty section":   {"cluster: {}", Config{}},
		"document marker": {"---\nflux:\n  root: a\n...\n", Config{Flux: Flux{Root: "a"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := parse([]byte(tt.text), "standup.yaml")
			if err != nil {
				t.Fatal(err)
			}
			if got.Cluster != tt.want.Cluster || got.Flux != tt.want.Flux || got.Path != "standup.yaml" {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

// Every complaint has a place, and says what would be right.
func TestParseComplains(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ text, want string }{
		"unknown at the top":    {"cluster: {}\nclutser: {}\n", `f:2:1: field "clutser" is unknown: standup.yaml knows apiVersion, cluster, crds, flux, kind, metadata, nodes, resume, variables, verify`},
		"unknown below":         {"cluster:\n  sever: https://h\n", `f:2:3: field "sever" is unknown: cluster knows domain, server, uid`},
		"other case":            {"cluster:\n  UID: x\n", `f:2:3: field "UID" is unknown: cluster knows domain, server, uid`},
		"key with an escape":    {"\"\\e[2J\": x\n", `f:1:1: field "\x1b[2J" is unknown: standup.yaml knows apiVersion, cluster, crds, flux, kind, metadata, nodes, resume, variables, verify`},
		"key that is a list":    {"? [a]\n: b\n", `f:1:3: field that is no word is unknown: standup.yaml knows apiVersion, cluster, crds, flux, kind, metadata, nodes, resume, variables, verify`},
		"twice":                 {"cluster:\n  uid: a\n  uid: b\n", `f:3:3: field uid is given twice`},
		"section twice":         {"cluster: {uid: a}\nflux: {}\ncluster: {}\n", `f:3:1: field cluster is given twice`},
		"number":                {"cluster:\n  uid: 123\n", `f:2:8: cluster.uid must be a string, not a number: put it in quotes`},
		"octal":                 {"cluster: {uid: 0123}\n", `f:1:16: cluster.uid must be a string, not a number: put it in quotes`},
		"float":                 {"cluster: {uid: 1e3}\n", `f:1:16: cluster.uid must be a string, not a number: put it in quotes`},
		"bool":                  {"flux: {root: true}\n", `f:1:14: flux.root must be a string, not true or false: put it in quotes`},
		"date":                  {"cluster: {uid: 2026-10-01}\n", `f:1:16: cluster.uid must be a string, not a date: put it in quotes`},
		"list for a string":     {"cluster:\n  server:\n  - a\n", `f:3:3: cluster.server must be a string, not a list`},
		"mapping for a string":  {"cluster:\n  server: {url: a}\n", `f:2:11: cluster.server must be a string, not a mapping`},
		"string for a mapping":  {"cluster: https://h\n", `f:1:10: cluster must be a mapping, not a string`},
		"list for a mapping":    {"cluster:\n- server: a\n", `f:2:1: cluster must be a mapping, not a list`},
		"list at the top":       {"- cluster\n", `f:1:1: standup.yaml must be a mapping, not a list`},
		"text at the top":       {"hello\n", `f:1:1: standup.yaml must be a mapping, not a string`},
		"no value":              {"cluster:\n  server: https://h\n  uid:\n", `f:3:7: cluster.uid has no value: fill it in or remove the line`},
		"null":                  {"cluster: {uid: ~}\n", `f:1:16: cluster.uid has no value: fill it in or remove the line`},
		"empty string":          {"cluster: {uid: \"\"}\n", `f:1:16: cluster.uid has no value: fill it in or remove the line`},
		"section without value": {"cluster:\nflux: {}\n", `f:1:9: cluster has no value: fill it in or remove the line`},
		"anchor":                {"cluster: &c\n  uid: a\n", `f:1:10: cluster uses an anchor or an alias: write the value out`},
		"alias":                 {"cluster: {uid: &a b, domain: *a}\n", `f:1:16: cluster.uid uses an anchor or an alias: write the value out`},
		"merge key":             {"cluster:\n  <<: {uid: a}\n", `f:2:3: field "<<" is unknown: cluster knows domain, server, uid`},
		"custom tag":            {"cluster: {uid: !x a}\n", `f:1:16: cluster.uid must be a string, not !x: put it in quotes`},
		"binary":                {"cluster: {uid: !!binary aGVsbG8=}\n", `f:1:16: cluster.uid must be a string, not binary: put it in quotes`},
		"two documents":         {"cluster: {}\n---\ncluster: {}\n", `f:2:1: a second document: standup.yaml holds one cluster`},
		"no YAML":               {"cluster: {}\nflux: [\n", `f:2: this is not YAML: did not find expected node content`},
		"no YAML later":         {"cluster: {}\n---\n: : :\n\t", `f:`},
		"a tab":                 {"cluster:\n\tserver: x\n", `f:2: this is not YAML: found character that cannot start any token`},
		"an unknown alias":      {"cluster: *c\n", `f:1: this is not YAML: unknown anchor 'c' referenced`},
		"bytes":                 {"cluster: \xff\xfe\n", `f:1: this is not YAML: `},
		"control character":     {"cluster: \x07\n", `f:1: this is not YAML: control characters are not allowed`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := parse([]byte(tt.text), "f")
			if err == nil {
				t.Fatalf("got %+v", got)
			}
			if text := err.Error(); text != tt.want && (!strings.HasSuffix(tt.want, ":") && !strings.HasSuffix(tt.want, ": ") || !strings.HasPrefix(text, tt.want)) {
				t.Errorf("got %q, want %q", text, tt.want)
			}
			var placed *Error
			if !errors.As(err, &placed) || placed.Line < 1 {
				t.Errorf("%v has no place", err)
			}
		})
	}
}

// A file of a few hundred bytes must not become gigabytes.
func TestParseBomb(t *testing.T) {
	t.Parallel()
	bomb := "a0: &a0 [x, x, x, x, x, x, x, x, x]\n"
	for _, level := range strings.Split("123456789", "") {
		before := string(level[0] - 1)
		bomb += "a" + level + ": &a" + level + " [" + strings.TrimSuffix(strings.Repeat("*a"+before+", ", 9), ", ") + "]\n"
	}
	for name, text := range map[string]string{
		"laughs":          "cluster:\n  " + strings.ReplaceAll(strings.TrimSpace(bomb), "\n", "\n  ") + "\n",
		"laughs at top":   bomb,
		"flux is a laugh": bomb + "flux: *a9\n",
		"deep":            "cluster: " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000),
		"deeper":          strings.Repeat("{a: ", 20000),
	} {
		if got, err := parse([]byte(text), "f"); err == nil {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, FileName)
	write(t, path, "cluster:\n  server: https://h:6443\n  uid: u\n")
	c, err := Flags{File: path}.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := guard.Expectation{Server: "https://h:6443", UID: "u", Origin: "standup.yaml:2:11"}
	if got := c.Expectation(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	write(t, path, "cluster:\n  uid: u\n")
	if c, err = (Flags{File: path}).Load(dir); err != nil || c.Expectation().Origin != "standup.yaml:2:8" {
		t.Errorf("got %+v, %v", c.Expectation(), err)
	}
	write(t, path, "cluster: {domain: d}\n")
	if c, err = (Flags{File: path}).Load(dir); err != nil || !c.Expectation().Empty() {
		t.Errorf("got %+v, %v", c.Expectation(), err)
	}
	write(t, path, strings.Repeat("#", maxSize+1))
	if _, err = Read(path, "f"); err == nil || err.Error() != "f is larger than 1024 KiB: this is not a standup.yaml" {
		t.Errorf("got %v", err)
	}
	write(t, path, strings.Repeat("#", maxSize))
	if _, err = Read(path, "f"); err != nil {
		t.Error(err)
	}
	if _, err = Read(filepath.Join(dir, "none"), "none"); !errors.Is(err, os.ErrNotExist) || !strings.HasPrefix(err.Error(), "none cannot be read: ") {
		t.Errorf("got %v", err)
	}
	if _, err = Read(dir, "dir"); err == nil {
		t.Error("a directory was read")
	}
	var none *Config
	if p, ok := none.Position("x"); ok || !none.Expectation().Empty() {
		t.Errorf("no file has %v", p)
	}
}
