// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"sigs.k8s.io/kustomize/api/types"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

// TestRemoteBasesAreRefused: whatever kustomize could fetch, by each of the
// fields that it fetches for. The URLs are of a server that counts.
func TestRemoteBasesAreRefused(t *testing.T) {
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		fmt.Fprint(w, configMap("remote", "k: v"))
	}))
	t.Cleanup(server.Close)
	u := server.URL + "/a.yaml"

	tests := []struct{ name, kustomization, base string }{
		{"file", "resources: [" + u + "]", u},
		{"file, upper case", "resources: ['HTTP" + strings.TrimPrefix(u, "http") + "']", "HTTP" + strings.TrimPrefix(u, "http")},
		{"deprecated field", "bases: ['" + u + "']", u},
		{"repository", "resources: ['https://example.com/org/repo//path?ref=v1']", "https://example.com/org/repo//path?ref=v1"},
		{"repository by short name", "resources: [github.com/org/repo/path]", "github.com/org/repo/path"},
		{"repository over SSH", "resources: ['git@example.com:org/repo.git']", "git@example.com:org/repo.git"},
		{"repository over SSH, as URL", "resources: ['ssh://git@example.com/org/repo']", "ssh://git@example.com/org/repo"},
		{"repository with forced protocol", "resources: ['git::https://example.com/org/repo']", "git::https://example.com/org/repo"},
		{"repository of this machine", "resources: ['file:///srv/git/repo.git']", "file:///srv/git/repo.git"},
		{"component", "components: ['https://example.com/org/repo//component']", "https://example.com/org/repo//component"},
		{"CRDs", "crds: ['" + u + "']", u},
		{"configuration", "configurations: ['" + u + "']", u},
		{"patch", "patches: [{path: '" + u + "'}]", u},
		{"strategic patch", "patchesStrategicMerge: ['" + u + "']", u},
		{"JSON patch", "patchesJson6902: [{path: '" + u + "', target: {kind: ConfigMap, version: v1, name: a}}]", u},
		{"replacement", "replacements: [{path: '" + u + "'}]", u},
		{"schema", "openapi: {path: '" + u + "'}", u},
		{"ConfigMap's file", "configMapGenerator: [{name: g, files: ['key=" + u + "']}]", u},
		{"ConfigMap's env file", "configMapGenerator: [{name: g, envs: ['" + u + "']}]", u},
		{"Secret's file", "secretGenerator: [{name: g, files: ['" + u + "']}]", u},
		{"generator", "generators: ['" + u + "']", u},
		{"transformer", "transformers: ['" + u + "']", u},
		{"validator", "validators: ['" + u + "']", u},
		{"inline transformer", "transformers:\n- |\n  apiVersion: builtin\n  kind: PatchTransformer\n  metadata: {name: p}\n  path: '" + u + "'", u},
		{"transformer in a file", "transformers: [config.yaml]", u + "#patch"},
		{"below another base", "resources: [base]", u},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			kustomization := tt.kustomization
			if !strings.HasPrefix(kustomization, "resources") {
				kustomization = "resources: [own.yaml]\n" + kustomization
			}
			tree := openTree(t, writeTree(t, map[string]string{
				"apps/kustomization.yaml":      kustomization,
				"apps/own.yaml":                configMap("a", "k: v"),
				"apps/base/kustomization.yaml": "resources: ['" + u + "']\n",
				"apps/config.yaml":             "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: p}\npath: '" + u + "#patch'\n",
			}))
			_, err := Builder{}.Build(t.Context(), tierAt(t, "tier", "apps"), tree)
			var remote *RemoteBaseError
			if !errors.As(err, &remote) || remote.Base != tt.base {
				t.Fatalf("got %v, want a refusal of %s", err, tt.base)
			}
			if want := "kustomization flux-system/tier: build: remote base " + tt.base + ", named in apps/"; !strings.HasPrefix(err.Error(), want) {
				t.Errorf("got %v, want %s…", err, want)
			}
		})
	}
	if n := requests.Load(); n != 0 {
		t.Errorf("%d requests left the process", n)
	}
}

// TestRemoteNamesOfLocalFiles: what only looks like a remote base is built.
func TestRemoteNamesOfLocalFiles(t *testing.T) {
	tree := openTree(t, writeTree(t, map[string]string{
		"apps/kustomization.yaml":    "resources: [github.com/a/b.yaml, me@host/c.yaml, github.company/d.yaml]\ncommonAnnotations: {docs: 'https://example.com/builtin'}\n",
		"apps/github.com/a/b.yaml":   configMap("b", "k: v"),
		"apps/me@host/c.yaml":        configMap("c", "url: https://example.com/a.yaml"),
		"apps/github.company/d.yaml": configMap("d", "k: v"),
		"other/kustomization.yaml":   "resources: [a@b.yaml]\n",
		"other/a@b.yaml":             configMap("e", "k: v"),
	}))
	for path, want := range map[string]int{"apps": 3, "other": 1} {
		result, err := Builder{}.Build(t.Context(), tierAt(t, "tier", path), tree)
		if err != nil || len(result.Objects) != want {
			t.Errorf("%s: got %v, %v, want %d objects", path, result, err, want)
		}
	}
}

func TestRemoteBasesAllowed(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, configMap("remote", "k: v"))
	}))
	t.Cleanup(server.Close)
	tree := openTree(t, writeTree(t, map[string]string{"kustomization.yaml": "resources: ['" + server.URL + "/a.yaml']\n"}))
	result, err := Builder{AllowRemoteBases: true}.Build(t.Context(), tierAt(t, "tier", "."), tree)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := names(result.Objects), []string{"ConfigMap/flux-system/remote"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// FuzzKustomization: no kustomization file makes the check panic, and none
// that passes it names something remote among its resources.
func FuzzKustomization(f *testing.F) {
	f.Add("resources: [a.yaml]")
	f.Add("resources: ['HTTPS://example.com/a']\npatches: [{path: b}]")
	f.Add("transformers:\n- |\n  apiVersion: builtin\n  replacements: [{path: 1}]\n  files: [a=b]")
	f.Add("configMapGenerator: [{files: ['=']}]\nopenapi: {path: x}")
	tree := &Tree{root: f.TempDir()}
	f.Fuzz(func(t *testing.T, content string) {
		o, err := Builder{}.newOverlay(tree, "", nil, true)
		if err != nil {
			t.Fatal(err)
		}
		if o.checkKustomization("kustomization.yaml", []byte(content)) != nil {
			return
		}
		var k types.Kustomization
		if k.Unmarshal([]byte(content)) != nil {
			return
		}
		for _, path := range append(k.Resources, k.Crds...) {
			if u, err := url.Parse(path); err == nil && (u.Scheme == "http" || u.Scheme == "https") {
				t.Errorf("%s passes", path)
			}
		}
	})
}

// TestUnknownBases: what the tree holds of a tier is built beside the refusal,
// where it can be built at all without what is remote.
func TestUnknownBases(t *testing.T) {
	const remote = "https://example.com/org/repo/crds.yaml"
	tests := []struct {
		name  string
		files map[string]string
		want  []string // nil where nothing is known
	}{
		{"beside a file", map[string]string{"apps/kustomization.yaml": "resources: [" + remote + ", own.yaml]\n", "apps/own.yaml": configMap("a", "k: v")}, []string{"ConfigMap/flux-system/a"}},
		{"alone", map[string]string{"apps/kustomization.yaml": "resources: [" + remote + "]\nnamespace: x\n"}, []string{}},
		{"alone in a folder", map[string]string{"apps/kustomization.yaml": "resources: [crds, own.yaml]\n", "apps/crds/kustomization.yaml": "resources: [" + remote + "]\n", "apps/own.yaml": configMap("a", "k: v")}, []string{"ConfigMap/flux-system/a"}},
		{"by the deprecated field", map[string]string{"apps/kustomization.yaml": "bases: [" + remote + "]\nresources: [own.yaml]\n", "apps/own.yaml": configMap("a", "k: v")}, []string{"ConfigMap/flux-system/a"}},
		{"patched", map[string]string{"apps/kustomization.yaml": "resources: [" + remote + ", own.yaml]\npatches: [{patch: '{apiVersion: v1, kind: ConfigMap, metadata: {name: remote}}'}]\n", "apps/own.yaml": configMap("a", "k: v")}, nil},
		{"a transformer", map[string]string{"apps/kustomization.yaml": "resources: [own.yaml]\ntransformers: ['" + remote + "']\n", "apps/own.yaml": configMap("a", "k: v")}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tree := openTree(t, writeTree(t, tt.files))
			trees := func(context.Context, flux.Ref) (*Tree, error) { return tree, nil }
			all, err := Builder{UnknownBases: true}.Follow(t.Context(), trees, tierAt(t, "tier", "apps"))
			if err != nil {
				t.Fatal(err)
			}
			var refused *RemoteBaseError
			if !errors.As(all[0].Err, &refused) || refused.Base != remote || all[0].Whole() {
				t.Errorf("got %v, want a refusal of %s", all[0].Err, remote)
			}
			var got []string
			if all[0].Result != nil {
				got = names(all[0].Result.Objects)
			}
			if known := all[0].Result != nil; !slices.Equal(got, tt.want) || known != (tt.want != nil) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
