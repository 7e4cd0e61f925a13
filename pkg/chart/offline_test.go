// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// treeOf is a working tree with these files.
func treeOf(t *testing.T, files map[string]string) *build.Tree {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tree, err := build.OpenDir(t.Context(), dir, "")
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

// offlineCharts are those of a repository whose tiers apply the manifests, and
// whose tree is that of the source of this kind.
func offlineCharts(t *testing.T, manifests, kind string, files map[string]string, cache *Cache) *Charts {
	t.Helper()
	source := ref(kind, "sources", "charts")
	return Offline(finder(t, manifests), build.Only(source, treeOf(t, files)), OfflineOptions{Cache: cache})
}

// remoteError wants the error to be of a chart that is elsewhere.
func remoteError(t *testing.T, err error) *RemoteError {
	t.Helper()
	remote, ok := errors.AsType[*RemoteError](err)
	if !ok {
		t.Fatalf("got %T %v, want a *RemoteError", err, err)
	}
	if remote.Release != ref(flux.HelmReleaseKind, "apps", "demo") {
		t.Errorf("it is of %v", remote.Release)
	}
	return remote
}

const lib = "lib/Chart.yaml"

func libFiles() map[string]string {
	return map[string]string{lib: "apiVersion: v2\nname: lib\nversion: 1.0.0\n", "lib/templates/crd.yaml": crd("libs")}
}

// inTree is the chart demo with more files, in the folder charts.
func inTree(more map[string]string) map[string]string {
	files := below("charts/", chartFiles("1.0.0"))
	maps.Copy(files, more)
	return files
}

func dependsOn(dependency string) string {
	return "apiVersion: v2\nname: demo\nversion: 1.0.0\ndependencies: [{name: lib, version: 1.0.0, " + dependency + "}]\n"
}

// TestOfflineTree: a chart of the working tree needs nothing but its release;
// the source itself may be what flux bootstrap made.
func TestOfflineTree(t *testing.T) {
	t.Parallel()
	chartRef := func(kind string) string {
		return "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: demo, namespace: apps}\n" +
			"spec: {interval: 1h, chartRef: {kind: " + kind + ", name: charts, namespace: sources}, values: {crds: {install: true}}}\n"
	}
	onValues := "values: {crds: {install: true}}"
	for _, tt := range []struct {
		name, kind, manifests string
		files                 map[string]string
		want                  []string
	}{
		{"a git repository", gitRepository, helmRelease(gitRepository, onValues), inTree(nil), []string{"widgets.example.com"}},
		{"a bucket", bucket, helmRelease(bucket, onValues), inTree(nil), []string{"widgets.example.com"}},
		{"an archive", gitRepository, strings.Replace(helmRelease(gitRepository, onValues), "./charts/demo", "./demo.tgz", 1), map[string]string{"demo.tgz": string(archive(t, chartFiles("1.0.0")))}, []string{"widgets.example.com"}},
		{"a HelmChart", gitRepository, objects(chartRef(helmChart), source(helmChart, ", chart: charts/demo, sourceRef: {kind: GitRepository, name: charts}", "{}")), inTree(nil), []string{"widgets.example.com"}},
		{"an OCIRepository of the tree", ociRepository, chartRef(ociRepository), chartFiles("1.0.0"), []string{"widgets.example.com"}},
		{"an OCIRepository whose root it is", ociRepository, chartRef(ociRepository), trimmed("demo/", chartFiles("1.0.0")), []string{"widgets.example.com"}},
		{"an ExternalArtifact of the tree", externalArtifact, chartRef(externalArtifact), chartFiles("1.0.0"), []string{"widgets.example.com"}},
		{
			"values files", gitRepository, strings.Replace(helmRelease(gitRepository), "chart: ./charts/demo", "chart: ./charts/demo, valuesFiles: [charts/demo/values.yaml, on.yaml]", 1),
			inTree(map[string]string{"on.yaml": "crds: {install: true}\nplural: gears\n"}),
			[]string{"gears.example.com"},
		},
		{"a dependency beside it", gitRepository, helmRelease(gitRepository), inTree(plus(libFiles(), "charts/demo/Chart.yaml", dependsOn(`repository: "file://../../lib"`))), []string{"libs.example.com"}},
		{"one that is switched off", gitRepository, helmRelease(gitRepository, "values: {lib: {enabled: false}}"), inTree(plus(libFiles(), "charts/demo/Chart.yaml", dependsOn(`repository: "file://../../lib", condition: lib.enabled`))), nil},
		{"one that is elsewhere and switched off", gitRepository, helmRelease(gitRepository, "values: {lib: {enabled: false}}"), inTree(plus(nil, "charts/demo/Chart.yaml", dependsOn(`repository: "https://charts.example.com", condition: lib.enabled`))), nil},
		{"one that is vendored", gitRepository, helmRelease(gitRepository), inTree(plus(below("charts/demo/charts/", libFiles()), "charts/demo/Chart.yaml", dependsOn(`repository: "https://charts.example.com"`))), []string{"libs.example.com"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := mustLoad(t, offlineCharts(t, tt.manifests, tt.kind, tt.files, nil))
			rendered, err := c.Render(t.Context(), DefaultServer())
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, u := range rendered.Objects {
				got = append(got, u.GetName())
			}
			if !slices.Equal(got, tt.want) || c.Name != "demo" || len(c.Notes) > 0 || len(c.Unknown) > 0 {
				t.Errorf("got %v of %s, notes %q", got, c.Name, c.Notes)
			}
		})
	}
}

func plus(files map[string]string, name, text string) map[string]string {
	out := maps.Clone(files)
	if out == nil {
		out = map[string]string{}
	}
	out[name] = text
	return out
}

func trimmed(folder string, files map[string]string) map[string]string {
	out := map[string]string{}
	for name, text := range files {
		out[strings.TrimPrefix(name, folder)] = text
	}
	return out
}

// TestOfflineRemote: what is elsewhere is named, so that it can be asked for by
// name.
func TestOfflineRemote(t *testing.T) {
	t.Parallel()
	chartRef := func(kind string) string {
		return "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: demo, namespace: apps}\n" +
			"spec: {interval: 1h, chartRef: {kind: " + kind + ", name: charts, namespace: sources}}\n"
	}
	const account = "https://me:" + marker + "@charts.example.com/x?token=" + marker
	for _, tt := range []struct {
		name, manifests     string
		chart, version, url string
		says                string
	}{
		{"a Helm repository", objects(helmRelease(helmRepository), repositoryOf(account, "", "{}")), "demo", ">=1.0.0", "https://charts.example.com/x", "chart demo >=1.0.0 of https://charts.example.com/x is not in this repository"},
		{"a registry", objects(helmRelease(helmRepository), repositoryOf("oci://r.example.com/charts", ", type: oci, provider: aws", "{}")), "demo", ">=1.0.0", "oci://r.example.com/charts", "HelmRepository/sources/charts: chart demo"},
		{"an OCIRepository", objects(chartRef(ociRepository), source(ociRepository, `, url: "oci://r.example.com/charts/podinfo", ref: {semver: 6.x}`, "{}")), "podinfo", "6.x", "oci://r.example.com/charts/podinfo", "chart podinfo 6.x"},
		{"an OCIRepository without a reference", objects(chartRef(ociRepository), source(ociRepository, `, url: "oci://r.example.com/podinfo"`, "{}")), "podinfo", "latest", "oci://r.example.com/podinfo", "chart podinfo latest"},
		{"another git repository", objects(strings.Replace(helmRelease(gitRepository), "name: charts", "name: other", 1), strings.Replace(source(gitRepository, `, url: "https://git.example.com/other"`, "{}"), "name: charts", "name: other", 1)), "demo", "", "https://git.example.com/other", "GitRepository/sources/other is another repository"},
		{"a bucket", objects(helmRelease(bucket), source(bucket, `, endpoint: s3.example.com, bucketName: b`, "{}")), "demo", "", "s3.example.com/b", "Bucket/sources/charts is another repository"},
		{"a source that nobody applies", helmRelease(helmRepository), "demo", ">=1.0.0", "", "HelmRepository/sources/charts is nothing that a tier of the repository applies, and HelmChart/sources/apps-demo names it"},
		{"a HelmChart that nobody applies", chartRef(helmChart), "", "", "", "HelmChart/sources/charts is nothing that a tier of the repository applies"},
		{"an ExternalArtifact", chartRef(externalArtifact), "", "", "", "only the controller of ExternalArtifact/sources/charts knows its chart"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := offlineCharts(t, tt.manifests, gitRepository, inTree(nil), nil).Load(t.Context(), "apps", "demo")
			fails(t, err, tt.says)
			fails(t, err, "chart of HelmRelease/apps/demo: ")
			if got := remoteError(t, err); got.Chart != tt.chart || got.Version != tt.version || got.URL != tt.url || got.Key != "" {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// TestOfflineRemoteDependency is in the way when the values enable it.
func TestOfflineRemoteDependency(t *testing.T) {
	t.Parallel()
	files := inTree(plus(nil, "charts/demo/Chart.yaml", dependsOn(`alias: books, repository: "https://charts.example.com", condition: books.enabled`)))
	c := mustLoad(t, offlineCharts(t, helmRelease(gitRepository), gitRepository, files, nil))
	_, err := c.Render(t.Context(), DefaultServer())
	fails(t, err, "chart demo 1.0.0 of HelmRelease/apps/demo: its dependency, chart lib 1.0.0, of https://charts.example.com is not in this repository")
	if got := remoteError(t, err); got.Chart != "lib" || got.Version != "1.0.0" || got.URL != "https://charts.example.com" || got.Key != "books" {
		t.Errorf("got %+v", got)
	}
	for _, tt := range []struct{ dependency, says string }{
		{`repository: "file://../../none"`, "its dependency lib: it is not there"},
		{`repository: "@stable"`, "its dependency, chart lib 1.0.0, is not in this repository: it does not lie in charts/"},
		{`repository: "file://../demo"`, "its dependencies lie more than 16 deep in each other"},
	} {
		c, err := offlineCharts(t, helmRelease(gitRepository), gitRepository, inTree(plus(nil, "charts/demo/Chart.yaml", dependsOn(tt.dependency))), nil).Load(t.Context(), "apps", "demo")
		if err == nil {
			_, err = c.Render(t.Context(), DefaultServer())
		}
		fails(t, err, tt.says)
	}
}

// TestOfflineValues: what is not known is left out and said.
func TestOfflineValues(t *testing.T) {
	t.Parallel()
	sealed := strings.SplitN(values, "---", 2)[0] + "sops: {mac: x}\n"
	generated := "apiVersion: v1\nkind: Secret\nmetadata: {name: generated, namespace: apps}\nstringData: {values.yaml: \"plural: ENC[AES256_GCM,data:x]\\nsops: {mac: 'ENC[AES256_GCM,data:y]'}\"}\n"
	template := strings.ReplaceAll(crd("x"), "x.example.com", "{{ .Values.password | default .Values.plural }}.example.com")
	for _, tt := range []struct {
		name, from, manifests string
		unknown               []string
		want, note            string
	}{
		{"known", "{kind: ConfigMap, name: values}, {kind: Secret, name: values}", values, nil, marker, ""},
		{"encrypted", "{kind: ConfigMap, name: values}, {kind: Secret, name: values}", objects(sealed, strings.SplitN(values, "---\n", 2)[1]), []string{"Secret/apps/values"}, "gadgets", "it is encrypted"},
		{"generated from an encrypted file", "{kind: Secret, name: generated}", generated, []string{"Secret/apps/generated"}, "widgets", "it is encrypted"},
		{"made by nobody here", "{kind: Secret, name: none}, {kind: Secret, name: none, valuesKey: other, targetPath: x}", values, []string{"Secret/apps/none"}, "widgets", "no tier of the repository applies it"},
		{"optional", "{kind: Secret, name: none, optional: true}", values, nil, "widgets", ""},
		{"optional and encrypted", "{kind: Secret, name: values, optional: true}", sealed, []string{"Secret/apps/values"}, "widgets", "it is encrypted"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			files := inTree(map[string]string{"charts/demo/templates/x.yaml": template})
			c := mustLoad(t, offlineCharts(t, objects(helmRelease(gitRepository, "valuesFrom: ["+tt.from+"]"), tt.manifests), gitRepository, files, nil))
			var unknown []string
			for _, each := range c.Unknown {
				unknown = append(unknown, each.String())
			}
			notes := strings.Join(c.Notes, "\n")
			if !slices.Equal(unknown, tt.unknown) || len(c.Notes) != len(tt.unknown) || !strings.Contains(notes, tt.note) || strings.Contains(notes, marker) {
				t.Errorf("got %v, notes %q", unknown, notes)
			}
			rendered, err := c.Render(t.Context(), DefaultServer())
			if err != nil {
				t.Fatal(err)
			}
			if got := rendered.Objects[len(rendered.Objects)-1].GetName(); got != tt.want+".example.com" {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// TestOfflineFails: what helm-controller would not accept either, and what a
// guess cannot know.
func TestOfflineFails(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, manifests, template, says string }{
		{"no release", values, "", "HelmRelease/apps/demo is nothing that a tier of the repository applies"},
		{"a key that is not there", objects(helmRelease(gitRepository, "valuesFrom: [{kind: Secret, name: values, valuesKey: none}]"), values), "", `Secret apps/values, key "none": key not found`},
		{"a kind that has no values", helmRelease(gitRepository, "valuesFrom: [{kind: Pod, name: values}]"), "", "unsupported values reference kind"},
		{"values that are none", objects(helmRelease(gitRepository, "valuesFrom: [{kind: Secret, name: bad}]"), badValues), "", "failed to read values data"},
		{"a value of a Secret in a message", objects(helmRelease(gitRepository, "valuesFrom: [{kind: Secret, name: values}]"), values), "{{ fail .Values.password }}", "templates/x.yaml:1:3"},
		{"a value of a Secret in what is no YAML", objects(helmRelease(gitRepository, "valuesFrom: [{kind: Secret, name: values}]"), values), "kind: [{{ .Values.password }}", "templates/x.yaml: a document is no YAML object"},
		{"a value that is required and not known", helmRelease(gitRepository, "valuesFrom: [{kind: Secret, name: none}]"), `{{ required "give it" .Values.password }}`, "cannot be rendered without the values of Secret/apps/none, which are not known: "},
		{"no kind", helmRelease(gitRepository), "metadata: {name: x}", "templates/x.yaml: an object has no apiVersion or no kind"},
		{"too much", helmRelease(gitRepository), `{{ range until 70 }}{{ repeat 1048576 "x" }}{{ end }}`, "its templates make more than 64 MiB"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			files := inTree(map[string]string{"charts/demo/templates/x.yaml": tt.template})
			c, err := offlineCharts(t, tt.manifests, gitRepository, files, nil).Load(t.Context(), "apps", "demo")
			if err == nil {
				_, err = c.Render(t.Context(), DefaultServer())
			}
			fails(t, err, tt.says)
		})
	}
	_, err := offlineCharts(t, helmRelease(gitRepository, "kubeConfig: {secretRef: {name: remote}}"), gitRepository, nil, nil).Load(t.Context(), "apps", "demo")
	if !errors.Is(err, ErrElsewhere) {
		t.Errorf("got %v", err)
	}
	gone := errors.New("the tree is gone")
	_, err = Offline(finder(t, helmRelease(gitRepository)), func(context.Context, flux.Ref) (*build.Tree, error) { return nil, gone }, OfflineOptions{}).Load(t.Context(), "apps", "demo")
	if !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
}
