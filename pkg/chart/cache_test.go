// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// cachedFiles are the files of a cache, by folder.
func cachedFiles(t *testing.T, dir string) map[string][]string {
	t.Helper()
	files := map[string][]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o077 != 0 && path != filepath.Dir(dir) {
			t.Errorf("%s is %v: it is not for this user alone", path, info.Mode())
		}
		if !entry.IsDir() {
			folder := filepath.Base(filepath.Dir(path))
			files[folder] = append(files[folder], path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// cached is the chart of HelmRelease apps/demo, by a cache.
func cached(t *testing.T, manifests string, cache *Cache) (*Chart, error) {
	t.Helper()
	return offlineCharts(t, manifests, gitRepository, nil, cache).Load(t.Context(), "apps", "demo")
}

// sameCharts wants two loads to be of the same chart, and to render.
func sameCharts(t *testing.T, first, second *Chart) {
	t.Helper()
	if first.Name != second.Name || first.Version != second.Version || first.Origin != second.Origin {
		t.Errorf("got %s %s from %s, then %s %s from %s", first.Name, first.Version, first.Origin, second.Name, second.Version, second.Origin)
	}
	if a, b := names(t, first, on()), names(t, second, on()); len(a) != 1 || !slices.Equal(a, b) {
		t.Errorf("got %v, then %v", a, b)
	}
}

// TestCacheOffline: what was fetched once is there without a network, and the
// version that was chosen of a range stays.
func TestCacheOffline(t *testing.T) {
	t.Parallel()
	const ranged = ">=1.0.0"
	helm := func(t *testing.T) (manifests, version string, stop func()) {
		s := newHelmServer(t, false, false)
		s.offer(t, "", "1.0.0", "1.2.0")
		return objects(helmRelease(helmRepository), repositoryOf(s.URL+"/charts", "", "{}")), "1.2.0", s.Close
	}
	private := func(t *testing.T) (manifests, version string, stop func()) {
		s := newHelmServer(t, false, true)
		s.offer(t, "", "1.0.0")
		return objects(helmRelease(helmRepository), repositoryOf(s.URL+"/charts", ", secretRef: {name: account}", "{}"), credentials()), "1.0.0", s.Close
	}
	oci := func(spec func(host string) string, version string) func(*testing.T) (string, string, func()) {
		return func(t *testing.T) (string, string, func()) {
			host, stop := ociServerToStop(t)
			for _, v := range []string{"1.0.0", "1.2.0"} {
				digest := pushChart(t, host+"/charts/demo", v, archive(t, chartFiles(v)), chartLayers()[0])
				version = strings.ReplaceAll(version, "DIGEST"+v, strings.TrimPrefix(digest, "sha256:")[:shortRevision])
			}
			return spec(host), version, stop
		}
	}
	chartRef := func(reference string) func(string) string {
		return func(host string) string {
			return objects("apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: demo, namespace: apps}\nspec: {interval: 1h, chartRef: {kind: OCIRepository, name: charts, namespace: sources}}\n",
				source(ociRepository, `, url: "oci://`+host+`/charts/demo", insecure: true, layerSelector: {mediaType: "`+chartLayers()[0]+`", operation: copy}, ref: {`+reference+`}`, "{}"))
		}
	}
	for name, serve := range map[string]func(*testing.T) (string, string, func()){
		"a Helm repository": helm, "one that wants an account": private,
		"a registry": oci(func(host string) string {
			return objects(helmRelease(helmRepository), repositoryOf("oci://"+host+"/charts", ", type: oci, insecure: true", "{}"))
		}, "1.2.0"),
		"an OCIRepository's tag":   oci(chartRef("tag: 1.0.0"), "1.0.0+DIGEST1.0.0"),
		"an OCIRepository's range": oci(chartRef(`semver: "`+ranged+`"`), "1.2.0+DIGEST1.2.0"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			manifests, version, stop := serve(t)
			dir := filepath.Join(t.TempDir(), "cache")
			_, err := cached(t, manifests, NewCache(dir, false))
			fails(t, err, "is not in this repository: it is not in the cache at "+dir+": fetch it once (--fetch-charts)")
			remoteError(t, err)
			if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("a cache that fetches nothing was made: %v", err)
			}
			first, err := cached(t, manifests, NewCache(dir, true))
			if err != nil {
				t.Fatal(err)
			}
			if first.Version != version {
				t.Errorf("got %s, want %s", first.Version, version)
			}
			stop()
			before := cachedFiles(t, dir)
			for _, fetch := range []bool{false, true} {
				again, err := cached(t, manifests, NewCache(dir, fetch))
				if err != nil {
					t.Fatal(err)
				}
				sameCharts(t, again, mustCached(t, manifests, dir))
				if again.Version != first.Version || again.Origin != first.Origin {
					t.Errorf("got %s from %s, want %s from %s", again.Version, again.Origin, first.Version, first.Origin)
				}
			}
			if after := cachedFiles(t, dir); len(after[chartsFolder]) != 1 || !slices.Equal(before[requestsFolder], after[requestsFolder]) {
				t.Errorf("the cache holds %v", after)
			}
			for folder, files := range cachedFiles(t, dir) {
				for _, file := range files {
					raw, err := os.ReadFile(file)
					if err != nil || strings.Contains(string(raw), marker) {
						t.Errorf("%s holds what is secret: %v", folder, err)
					}
				}
			}
		})
	}
}

func mustCached(t *testing.T, manifests, dir string) *Chart {
	t.Helper()
	c, err := cached(t, manifests, NewCache(dir, false))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// ociServerToStop is a registry without an account, and how it goes away.
func ociServerToStop(t *testing.T) (host string, stop func()) {
	t.Helper()
	behind := ociServer(t, false)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.URL.Scheme, r.URL.Host, r.RequestURI = "http", behind, ""
		answer, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer func() { _ = answer.Body.Close() }()
		for name, values := range answer.Header {
			w.Header()[name] = values
		}
		w.WriteHeader(answer.StatusCode)
		raw := make([]byte, 32<<10)
		for {
			n, err := answer.Body.Read(raw)
			_, _ = w.Write(raw[:n])
			if err != nil {
				return
			}
		}
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://"), s.Close
}

// TestCacheKnowsTheVersion: who asks for the version that a range led to needs
// no network, and another version does.
func TestCacheKnowsTheVersion(t *testing.T) {
	t.Parallel()
	s := newHelmServer(t, false, false)
	s.offer(t, "", "1.0.0", "1.2.0")
	manifests := objects(helmRelease(helmRepository), repositoryOf(s.URL+"/charts", "", "{}"))
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := cached(t, manifests, NewCache(dir, true)); err != nil {
		t.Fatal(err)
	}
	s.offer(t, "", "1.0.0", "1.2.0", "1.9.0")
	if c := mustCached(t, manifests, dir); c.Version != "1.2.0" {
		t.Errorf("the range has another version now: %s", c.Version)
	}
	if c := mustCached(t, strings.Replace(manifests, ">=1.0.0", "1.2.0", 1), dir); c.Version != "1.2.0" {
		t.Errorf("got %s", c.Version)
	}
	_, err := cached(t, strings.Replace(manifests, ">=1.0.0", "1.0.0", 1), NewCache(dir, false))
	if got := remoteError(t, err); got.Version != "1.0.0" {
		t.Errorf("got %+v", got)
	}
}

// TestCacheDependencies: those of a chart in the repository are fetched too, once
// the folder is there, and no index is written down.
func TestCacheDependencies(t *testing.T) {
	t.Parallel()
	s := newHelmServer(t, false, false)
	s.files["/charts/lib-1.0.0.tgz"] = archive(t, libFiles())
	s.files["/charts/index.yaml"] = []byte("apiVersion: v1\nentries:\n  lib: [{name: lib, version: 1.0.0, urls: [lib-1.0.0.tgz], digest: " + digestOf(s.files["/charts/lib-1.0.0.tgz"]) + "}]\n")
	host, stop := ociServerToStop(t)
	pushChart(t, host+"/charts/lib", "1.0.0", archive(t, libFiles()), chartLayers()[0])
	dir := t.TempDir()
	load := func(repository string, fetch bool) ([]string, error) {
		files := inTree(plus(nil, "charts/demo/Chart.yaml", dependsOn(`repository: "`+repository+`"`)))
		c := mustLoad(t, offlineCharts(t, helmRelease(gitRepository), gitRepository, files, NewCache(dir, fetch)))
		rendered, err := c.Render(t.Context(), DefaultServer())
		if err != nil {
			return nil, err
		}
		return refs(rendered.Objects), nil
	}
	_, err := load(s.URL+"/charts", false)
	if got := remoteError(t, err); got.Chart != "lib" || got.Key != "lib" || !errors.Is(err, errNotCached) {
		t.Errorf("got %v", err)
	}
	for _, fetch := range []bool{true, false} {
		if got, err := load(s.URL+"/charts", fetch); err != nil || !slices.Equal(got, []string{"CustomResourceDefinition/libs.example.com"}) {
			t.Errorf("got %v, %v", got, err)
		}
		s.Close()
	}
	// The registry of a dependency is asked over TLS, which this one has not.
	_, err = load("oci://"+host+"/charts", true)
	fails(t, err, "oci://"+host+"/charts/lib:1.0.0 cannot be fetched from here")
	stop()
}

// TestCacheSideBySide: many that want the same fetch it once, and caches of
// other processes do not meet a part of a file.
func TestCacheSideBySide(t *testing.T) {
	t.Parallel()
	s := newHelmServer(t, false, false)
	s.offer(t, "", "1.0.0", "1.2.0")
	manifests := objects(helmRelease(helmRepository), repositoryOf(s.URL+"/charts", "", "{}"))
	dir := filepath.Join(t.TempDir(), "cache")
	caches := []*Cache{NewCache(dir, true), NewCache(dir, true), NewCache(dir, true)}
	var all sync.WaitGroup
	for i := range 24 {
		all.Go(func() {
			wanted := []string{">=1.0.0", "1.0.0"}[i%2]
			c, err := offlineCharts(t, strings.Replace(manifests, ">=1.0.0", wanted, 1), gitRepository, nil, caches[i%3]).Load(t.Context(), "apps", "demo")
			if err != nil {
				t.Error(err)
			} else if want := []string{"1.2.0", "1.0.0"}[i%2]; c.Version != want {
				t.Errorf("got %s, want %s", c.Version, want)
			}
		})
	}
	all.Wait()
	files := cachedFiles(t, dir)
	if len(files[chartsFolder]) != 2 || len(files[requestsFolder]) != 3 {
		t.Errorf("the cache holds %v", files)
	}
	if asked := len(s.asked); asked > 3*(1+2) {
		t.Errorf("%d requests by three caches for one index and two charts", asked)
	}
}
