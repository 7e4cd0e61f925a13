// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package e2e

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/kubestandup/kubestandup/test/cluster"
)

// packaged writes the chart and lets Helm package it as these versions. It
// returns the folder with the archives.
func packaged(t *testing.T, c *cluster.Cluster, files cluster.Files, versions ...string) string {
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
	for _, v := range versions {
		if _, err := c.Helm(t.Context(), 4, "package", filepath.Join(dir, "chart"), "--version", v, "-d", filepath.Join(dir, "out")); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "out")
}

// helmAccount is the account that the scene's repositories want.
const helmAccount = "p4ssw0rd-of-the-charts"

func account(ns string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: account, namespace: %s}\nstringData: {username: charts, password: %s}\n", ns, helmAccount)
}

// withAccount serves whoever has the account.
func withAccount(t *testing.T, next http.Handler) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "charts" || password != helmAccount {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			http.Error(w, "log in", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// secret fails the test when the account is in what was printed.
func (s *chartScene) secret(t *testing.T, o outcome) {
	t.Helper()
	if strings.Contains(o.stdout+o.stderr, helmAccount) {
		t.Errorf("%s\nthis is secret", o)
	}
}

// fromSuspended applies the CRDs while the HelmRelease is suspended, so that
// nobody has made a HelmChart of it; then from what Flux has made.
func (s *chartScene) fromSuspended(t *testing.T, version, first, then string) {
	t.Helper()
	o := s.crds(t, 0, switchedOn)
	o.holds(t, o.stderr, "chart web "+version+" has 1 CRD; it is from "+first)
	s.secret(t, o)
	s.ours(t, "widgets")
	s.again(t, s.ns+"/web: 1 unchanged")

	s.patch(t, s.hr(), `{"suspend":false}`)
	hr := s.untilReleased(t)
	if got := hr.Status.History[0].ChartVersion; got != version {
		t.Errorf("Flux released version %s, and the CRDs are of %s", got, version)
	}
	mark := s.c.Mark()
	o = s.crds(t, 0, switchedOn)
	o.holds(t, o.stdout, s.ns+"/web: 1 unchanged")
	o.holds(t, o.stderr, "it is from the artifact of "+then)
	s.mutatedNothing(t, mark)
}

// fromHelmRepository: the index and the chart want an account.
func fromHelmRepository(t *testing.T, c *cluster.Cluster, named []string) {
	s := newChartScene(t, c, named, "repository", cluster.Files{"README.md": "nothing"})
	out := packaged(t, c, chartFiles("chart", map[string]string{"crd": chartCRD(s.group(), "widgets", "", "v1")}), "1.0.0", "1.2.0", "2.0.0-rc.1")
	if _, err := c.Helm(t.Context(), 4, "repo", "index", out); err != nil {
		t.Fatal(err)
	}
	host := withAccount(t, http.FileServer(http.Dir(out)))
	s.add(t, account(s.ns), fmt.Sprintf(`apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: charts, namespace: %s}
spec: {interval: 1h, url: "http://%s", secretRef: {name: account}}
`, s.ns, host), s.releaseOf("chart: {spec: {chart: web, version: 1.x, interval: 1h, sourceRef: {kind: HelmRepository, name: charts}}}", "suspend: true"))
	s.fromSuspended(t, "1.2.0", "http://"+host+"/web-1.2.0.tgz", "HelmChart/repository/repository-web")
}

// fromRegistry: a HelmRepository of type oci, then an OCIRepository in both of
// its ways to keep a layer.
func fromRegistry(t *testing.T, c *cluster.Cluster, named []string) {
	open := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(open.Close)
	host := strings.TrimPrefix(open.URL, "http://")
	push := func(t *testing.T, s *chartScene) {
		t.Helper()
		out := packaged(t, c, chartFiles("chart", map[string]string{"crd": chartCRD(s.group(), "widgets", "", "v1")}), "1.0.0", "1.2.0")
		for _, v := range []string{"1.0.0", "1.2.0"} {
			if _, err := c.Helm(t.Context(), 4, "push", filepath.Join(out, "web-"+v+".tgz"), "oci://"+host+"/"+s.ns, "--plain-http"); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Run("HelmRepository", func(t *testing.T) {
		s := newChartScene(t, c, named, "registry", cluster.Files{"README.md": "nothing"})
		push(t, s)
		s.add(t, fmt.Sprintf("apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: charts, namespace: %[1]s}\n"+
			"spec: {type: oci, interval: 1h, insecure: true, url: \"oci://%[2]s/%[1]s\"}\n", s.ns, host),
			s.releaseOf("chart: {spec: {chart: web, version: 1.x, interval: 1h, sourceRef: {kind: HelmRepository, name: charts}}}", "suspend: true"))
		s.fromSuspended(t, "1.2.0", "oci://"+host+"/registry/web:1.2.0", "HelmChart/registry/registry-web")
	})
	for ns, operation := range map[string]string{"oci-copy": "copy", "oci-extract": "extract"} {
		t.Run("OCIRepository, "+operation, func(t *testing.T) {
			s := newChartScene(t, c, named, ns, cluster.Files{"README.md": "nothing"})
			push(t, s)
			repository := fmt.Sprintf("apiVersion: source.toolkit.fluxcd.io/v1\nkind: OCIRepository\nmetadata: {name: charts, namespace: %[1]s}\n"+
				"spec: {interval: 1h, insecure: true, suspend: true, url: \"oci://%[2]s/%[1]s/web\", ref: {semver: 1.x}, "+
				"layerSelector: {mediaType: application/vnd.cncf.helm.chart.content.v1.tar+gzip, operation: %[3]s}}\n", s.ns, host, operation)
			s.add(t, repository, s.releaseOf("chartRef: {kind: OCIRepository, name: charts}", "suspend: true"))
			o := s.crds(t, 0, switchedOn)
			o.holds(t, o.stderr, "it is from oci://"+host+"/"+ns+"/web:1.2.0")
			_, version, _ := strings.Cut(o.stderr, "chart web ")
			version, _, _ = strings.Cut(version, " has")
			if !strings.HasPrefix(version, "1.2.0+") {
				t.Fatalf("%s\nthe version has no digest", o)
			}
			s.add(t, strings.Replace(repository, "suspend: true, ", "", 1))
			s.fromSuspended(t, version, "", "OCIRepository/"+ns+"/charts")
		})
	}
}
