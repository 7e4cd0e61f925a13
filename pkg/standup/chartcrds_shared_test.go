// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/crds"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/knowledge"
	"github.com/kubestandup/kubestandup/pkg/standup/config"
)

// packed is a chart that has nothing but CRDs.
func packed(t *testing.T, name string, plurals ...string) []byte {
	t.Helper()
	files := [][2]string{{"Chart.yaml", "apiVersion: v2\nname: " + name + "\nversion: 1.0.0\n"}}
	for _, plural := range plurals {
		files = append(files, [2]string{"crds/" + plural + ".yaml", definitionOf(plural)})
	}
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	w := tar.NewWriter(zip)
	for _, f := range files {
		if err := w.WriteHeader(&tar.Header{Name: name + "/" + f[0], Mode: 0o600, Size: int64(len(f[1])), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(f[1])); err != nil {
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

// definitionOf is a CRD, in JSON.
func definitionOf(plural string) string {
	return fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"%[1]s.example.org"},`+
		`"spec":{"group":"example.org","scope":"Namespaced","names":{"kind":"X%[1]s","plural":%[1]q},`+
		`"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`, plural)
}

// chartRepository offers the charts, each in version 1.0.0.
func chartRepository(t *testing.T, charts map[string][]byte) string {
	t.Helper()
	index := "apiVersion: v1\nentries:\n"
	for name := range charts {
		index += fmt.Sprintf("  %s: [{name: %[1]s, version: 1.0.0, urls: [%[1]s.tgz]}]\n", name)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, ok := charts[strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, "/"), ".tgz")]
		switch {
		case r.URL.Path == "/index.yaml":
			raw = []byte(index)
		case !ok:
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(raw)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// TestCRDsOfTwoCharts: what the first has brought is not counted for the second,
// which is not said to have none.
func TestCRDsOfTwoCharts(t *testing.T) {
	w := &wire{lists: map[string]string{"/version": `{"major":"1","minor":"37","gitVersion":"v1.37.2"}`}}
	const at = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"
	for _, plural := range []string{"widgets", "gadgets"} {
		w.lists[at+plural+".example.org"] = "gone"
		w.lists[at+plural+".example.org?dryRun=All&fieldManager=standup&force=false"] = definitionOf(plural)
	}
	cfg, _ := w.serve(t)
	base, err := knowledge.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := crds.New(cfg, nil, base)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := cluster.Close(); err != nil {
			t.Error(err)
		}
	}()
	url := chartRepository(t, map[string][]byte{
		"one": packed(t, "one", "widgets"), "two": packed(t, "two", "widgets"), "three": packed(t, "three", "gadgets", "widgets"),
	})
	f := builtTier(t, "root", "{}", "apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: charts, namespace: apps}\nspec: {url: \""+url+"\"}")
	file := &config.Config{}
	for _, name := range []string{"one", "two", "three"} {
		o := yamlObject(t, fmt.Sprintf("apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: %[1]s, namespace: apps}\n"+
			"spec: {interval: 1h, chart: {spec: {chart: %[1]s, sourceRef: {kind: HelmRepository, name: charts}}}}", name))
		f.Result.Objects = append(f.Result.Objects, build.Object{Unstructured: o})
		file.CRDs.FromCharts = append(file.CRDs.FromCharts, config.FromChart{HelmRelease: "apps/" + name})
	}
	l := lookingAt(&flux.Snapshot{}, f).look
	var said []string
	l.env.Config, l.env.CRDs, l.env.File, l.env.DryRun, l.env.Timeout = cfg, cluster, file, true, time.Minute
	l.env.Say = func(line string) { said = append(said, line) }

	c, err := l.chartCRDs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if want := "apps/one: 1 would be created; apps/three: 1 would be created"; c.Message != want {
		t.Errorf("got  %s\nwant %s", c.Message, want)
	}
	from := "; it is from " + url + "/"
	if want := []string{
		"HelmRelease/apps/one: chart one 1.0.0 has 1 CRD" + from + "one.tgz",
		"CRD widgets.example.org would be created (server dry run)",
		"HelmRelease/apps/two: chart two 1.0.0 has 1 CRD" + from + "two.tgz",
		"HelmRelease/apps/three: chart three 1.0.0 has 2 CRDs" + from + "three.tgz",
		"CRD gadgets.example.org would be created (server dry run)",
	}; !slices.Equal(said, want) {
		t.Errorf("said %q\nwant %q", said, want)
	}
	if got := rules(c); !slices.Equal(got, []string{"crd-in-two-charts", "crd-in-two-charts"}) {
		t.Fatalf("got %q", got)
	}
	for i, name := range []string{"two", "three"} {
		if f := c.Findings[i]; f.Tier.Name != name || f.Object.Name != "widgets.example.org" || !strings.Contains(f.Message, "is in the chart of HelmRelease/apps/one as well") {
			t.Errorf("got %+v", f)
		}
	}
}
