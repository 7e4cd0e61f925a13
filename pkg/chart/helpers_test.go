// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	godigest "github.com/opencontainers/go-digest"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// marker is what no text of ours may hold.
const marker = "s3cr3t-marker"

// archive packs files as Flux and Helm do.
func archive(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	w := tar.NewWriter(zip)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(files[name])), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(files[name])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// crd is a manifest of one.
func crd(plural string) string {
	return fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %s.example.com, creationTimestamp: null}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: %s, plural: %s}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
status: {storedVersions: []}
`, plural, strings.ToUpper(plural[:1])+plural[1:], plural)
}

// chartFiles is a chart whose only template switches a CRD on.
func chartFiles(version string) map[string]string {
	return map[string]string{
		"demo/Chart.yaml":         "apiVersion: v2\nname: demo\nversion: " + version + "\n",
		"demo/values.yaml":        "crds: {install: false}\nplural: widgets\n",
		"demo/templates/crd.yaml": "{{ if .Values.crds.install }}\n" + strings.ReplaceAll(crd("widgets"), "widgets.example.com", "{{ .Values.plural }}.example.com") + "{{ end }}\n",
	}
}

// below is the same files in another folder.
func below(folder string, files map[string]string) map[string]string {
	out := map[string]string{}
	for name, text := range files {
		out[folder+name] = text
	}
	return out
}

// stored answers with the artifacts of sources, as source-controller does.
type stored struct {
	*httptest.Server
	files map[string][]byte
}

func newStored(t *testing.T) *stored {
	t.Helper()
	s := &stored{files: map[string][]byte{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, ok := s.files[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(raw)
	}))
	t.Cleanup(s.Close)
	return s
}

// artifact is the status of a source whose artifact the files are.
func (s *stored) artifact(path, revision string, raw []byte) string {
	s.files[path] = raw
	return fmt.Sprintf("{url: %q, path: %q, digest: %q, revision: %q, lastUpdateTime: 2026-01-01T00:00:00Z}",
		s.URL+path, path, godigest.FromBytes(raw).String(), revision)
}

// charts are those of a cluster with these objects; authored are what tiers
// would apply.
func charts(t *testing.T, live, authored string) *Charts {
	t.Helper()
	fetcher := build.NewFetcher(nil, nil)
	t.Cleanup(func() {
		if err := fetcher.Close(); err != nil {
			t.Error(err)
		}
	})
	return &Charts{live: finder(t, live), authored: finder(t, authored), artifacts: fetcher}
}

func finder(t *testing.T, manifests string) Find {
	t.Helper()
	var all []*unstructured.Unstructured
	for _, text := range strings.Split(manifests, "\n---\n") {
		if strings.TrimSpace(text) == "" {
			continue
		}
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		all = append(all, u)
	}
	return func(_ context.Context, r flux.Ref) (*unstructured.Unstructured, error) {
		for _, u := range all {
			if u.GetKind() == r.Kind && u.GetNamespace() == r.Namespace && u.GetName() == r.Name && u.GroupVersionKind().Group == r.Group() {
				return u.DeepCopy(), nil
			}
		}
		return nil, nil
	}
}

// helmRelease is one of namespace apps, whose chart comes from the source.
func helmRelease(kind string, more ...string) string {
	return fmt.Sprintf(`apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: demo, namespace: apps}
spec:
  interval: 1h
  chart: {spec: {chart: %s, version: ">=1.0.0", sourceRef: {kind: %s, name: charts, namespace: sources}}}
  %s
`, map[bool]string{true: "demo", false: "./charts/demo"}[kind == helmRepository], kind, strings.Join(more, "\n  "))
}

// objects joins manifests.
func objects(all ...string) string { return strings.Join(all, "\n---\n") }

func mustLoad(t *testing.T, c *Charts) *Chart {
	t.Helper()
	loaded, err := c.Load(t.Context(), "apps", "demo")
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// server is one of which charts may ask.
func server() Server { return Server{Version: "v1.37.2"} }

func on() map[string]any { return map[string]any{"crds": map[string]any{"install": true}} }

// names are those of the CRDs that the chart renders.
func names(t *testing.T, c *Chart, override map[string]any) []string {
	t.Helper()
	all, err := c.Definitions(t.Context(), server(), override)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, each := range all {
		out = append(out, each.GetName())
	}
	return out
}

// fails wants the error to say something, and nothing secret.
func fails(t *testing.T, err error, says string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), says) {
		t.Errorf("got  %v\nwant %s", err, says)
	}
	if err != nil && (strings.Contains(err.Error(), marker) || strings.Contains(err.Error(), "\n")) {
		t.Errorf("this says too much: %v", err)
	}
}
