// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

const annotationsTooLong = `CustomResourceDefinition/prometheuses.monitoring.coreos.com dry-run failed (Invalid): ` +
	`CustomResourceDefinition.apiextensions.k8s.io "prometheuses.monitoring.coreos.com" is invalid: metadata.annotations: Too long: `

func TestBIG01AnnotationLimit(t *testing.T) {
	for _, wording := range []string{"must have at most 262144 bytes", "may not be more than 262144 bytes"} {
		v := fluxOne(t, applyFailures(fluxWorld(fluxFails("monitoring", annotationsTooLong+wording+"\nNamespace/x created"))))
		if v.Cause != TooLong || v.Object.Name != "monitoring" || v.ResolvesItself != Never || len(v.Actions) > 0 {
			t.Errorf("%+v", v)
		}
		fluxHolds(t, v, "the annotations of CustomResourceDefinition/prometheuses.monitoring.coreos.com", "--server-side", wording)
		fluxLacks(t, v, "Namespace/x created")
	}
	release := fluxHR("kube-prometheus")
	release.Conditions[0].Status, release.Conditions[0].Message = "False", "Helm upgrade failed: CustomResourceDefinition.apiextensions.k8s.io "+
		`"prometheuses.monitoring.coreos.com" is invalid: metadata.annotations: Too long: may not be more than 262144 bytes`
	v := fluxOne(t, applyFailures(fluxWorld(release)))
	fluxHolds(t, v, "CustomResourceDefinition/prometheuses.monitoring.coreos.com")
}

func TestBIG03FieldNotDeclaredInSchema(t *testing.T) {
	v := fluxOne(t, managedFields(fluxWorld(fluxFails("apps",
		`HorizontalPodAutoscaler/apps/web dry-run failed: failed to create typed patch object: .spec.targetCPUUtilizationPercentage: field not declared in schema`))))
	if v.Cause != ManagedFields || len(v.Actions) > 0 {
		t.Errorf("%+v", v)
	}
	fluxHolds(t, v, "MigrateAPIVersion", "v1.8.4", "HorizontalPodAutoscaler/apps/web", "no missing CRD", `"v1.6.4"`)
}

func storedVersionMessage(wording string) string {
	return `CustomResourceDefinition/helmreleases.helm.toolkit.fluxcd.io dry-run failed (Invalid): CustomResourceDefinition.apiextensions.k8s.io ` +
		`"helmreleases.helm.toolkit.fluxcd.io" is invalid: status.storedVersions[1]: Invalid value: "v1beta2": ` + wording
}

func TestBIG05DefinitionThatCouldNotBeRead(t *testing.T) {
	for _, wording := range []string{"must appear in spec.versions", "missing from spec.versions; v1beta2 was previously a storage version"} {
		w := fluxWorld(fluxFails("flux-system", storedVersionMessage(wording)))
		v := fluxOne(t, applyFailures(w))
		if v.Cause != StoredVersions || len(v.Actions) > 0 {
			t.Errorf("%+v", v)
		}
		fluxHolds(t, v, "where git is older than the cluster", "Never delete the CRD, nor uninstall Flux")
		// Of one that was read, more is known: it has a verdict of its own.
		w.Definitions = []*Definition{{Observed: Observed{Ref: flux.Ref{Name: "helmreleases.helm.toolkit.fluxcd.io"}}}}
		fluxNone(t, applyFailures(w))
	}
}

func TestApplyFailuresOfAnotherKind(t *testing.T) {
	suspended := fluxSuspended(fluxFails("monitoring", annotationsTooLong), "flux")
	for name, tier := range map[string]flux.Tier{
		"HELM-19 a release record that is too big": fluxFails("a", `Secret "sh.helm.release.v1.x.v1" is invalid: data: Too long: may not be more than 1048576 bytes`),
		"another failure":                          fluxFails("a", "boom"),
		"suspended":                                suspended,
		"Ready":                                    fluxKS("a"),
	} {
		t.Run(name, func(t *testing.T) {
			fluxNone(t, applyFailures(fluxWorld(tier)))
			fluxNone(t, managedFields(fluxWorld(tier)))
		})
	}
	fluxNone(t, applyFailures(&World{}))
}

const cachedHost = "https://10.0.0.1:6443"

// fluxCacheFile writes a file into the cache of a host, as kubectl would have at a
// time before now.
func fluxCacheFile(t *testing.T, root, folder, path, content string, age time.Duration) string {
	t.Helper()
	file := filepath.Join(root, "discovery", folder, path)
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	at := fluxNow().Add(-age)
	if err := os.Chtimes(file, at, at); err != nil {
		t.Fatal(err)
	}
	return file
}

const (
	testdefsNamespaced = `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"test.test/v1","resources":[` +
		`{"name":"testdefs","namespaced":true,"kind":"TestDef"},{"name":"testdefs/status","namespaced":true,"kind":"TestDef"}]}`
	oldsList    = `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"old.test/v1","resources":[{"name":"olds","namespaced":true,"kind":"Old"}]}`
	oldIsListed = `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"old.test","versions":[{"groupVersion":"old.test/v1","version":"v1"}]}]}`
)

func fluxCached(t *testing.T, root string, served ...string) *World {
	t.Helper()
	c, err := ObserveCache(root, cachedHost)
	if err != nil {
		t.Fatal(err)
	}
	return &World{Now: fluxNow(), Served: fluxServed(t, served...), Cache: c}
}

func TestDISC01ScopeChanged(t *testing.T) {
	root := t.TempDir()
	mine := fluxCacheFile(t, root, "10.0.0.1_6443", "test.test/v1/serverresources.json", testdefsNamespaced, time.Hour)
	other := fluxCacheFile(t, root, "10.0.0.2_6443", "test.test/v1/serverresources.json", testdefsNamespaced, time.Hour)
	behind := fluxCacheFile(t, root, "10.0.0.1_6443", "k8s/clusters/c-1/test.test/v1/serverresources.json", testdefsNamespaced, time.Hour)
	http := fluxCacheFile(t, root, "../http", "x", "", time.Hour)

	w := fluxCached(t, root, "test.test/v1 TestDef testdefs*")
	v := fluxOne(t, staleCache(w))
	if v.Cause != StaleCache || v.ResolvesItself != Itself || v.ResolvesWhen != "at 2026-11-30T15:15:00Z" || len(v.Actions) != 1 {
		t.Fatalf("%+v", v)
	}
	fluxHolds(t, v, "TestDef is of the cluster, cached as namespaced", "10.0.0.1_6443")
	if len(v.Evidence) != 1 {
		t.Errorf("a subresource is no kind of its own: %+v", v.Evidence)
	}
	if err := v.Actions[0].step.run(t.Context(), nil, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Dir(filepath.Dir(mine))); !os.IsNotExist(err) {
		t.Errorf("%s is still there", mine)
	}
	for _, kept := range []string{other, behind, http} {
		if _, err := os.Stat(kept); err != nil {
			t.Errorf("what is another server's must stay: %v", err)
		}
	}
	if err := v.Actions[0].step.run(t.Context(), nil, nil); err != nil {
		t.Errorf("a second time: %v", err)
	}
	fluxNone(t, staleCache(fluxCached(t, root, "test.test/v1 TestDef testdefs*")))
}

func TestDISC01KindIsGone(t *testing.T) {
	root := t.TempDir()
	fluxCacheFile(t, root, "10.0.0.1_6443", "old.test/v1/serverresources.json", oldsList, time.Hour)
	// Without the list of groups, kubectl asks for it, and reads the file no more.
	fluxNone(t, staleCache(fluxCached(t, root)))
	fluxCacheFile(t, root, "10.0.0.1_6443", "servergroups.json", oldIsListed, 7*time.Hour)
	fluxNone(t, staleCache(fluxCached(t, root)))
	fluxCacheFile(t, root, "10.0.0.1_6443", "servergroups.json", oldIsListed, time.Hour)
	fluxHolds(t, fluxOne(t, staleCache(fluxCached(t, root))), "Old is not served any more")
	// Another kind of its group version is there: the file is read.
	fluxCacheFile(t, root, "10.0.0.1_6443", "servergroups.json", oldIsListed, 7*time.Hour)
	fluxCacheFile(t, root, "10.0.0.1_6443", "old.test/v1/serverresources.json", strings.Replace(oldsList, "[{", `[{"name":"news","namespaced":true,"kind":"New"},{`, 1), time.Hour)
	fluxOne(t, staleCache(fluxCached(t, root, "old.test/v1 New news")))
}

func TestDISC01NothingToSay(t *testing.T) {
	root := t.TempDir()
	fluxNone(t, staleCache(fluxCached(t, root)))
	fluxCacheFile(t, root, "10.0.0.1_6443", "test.test/v1/serverresources.json", testdefsNamespaced, time.Hour)
	fluxCacheFile(t, root, "10.0.0.1_6443", "bad.test/v1/serverresources.json", `{"kind":`, time.Hour)
	fluxNone(t, staleCache(fluxCached(t, root, "test.test/v1 TestDef testdefs", "test.test/v1 New news")))
	fluxCacheFile(t, root, "10.0.0.1_6443", "test.test/v1/serverresources.json", testdefsNamespaced, 7*time.Hour)
	fluxNone(t, staleCache(fluxCached(t, root, "test.test/v1 TestDef testdefs*"))) // kubectl has forgotten it by itself
}

func TestDISC01OnlyThatFolderIsEverDeleted(t *testing.T) {
	root := t.TempDir()
	file := fluxCacheFile(t, root, "10.0.0.1_6443", "test.test/v1/serverresources.json", testdefsNamespaced, time.Hour)
	for name, s := range map[string]removeCacheStep{
		"the whole cache":        {root, cachedHost},
		"all servers":            {filepath.Join(root, "discovery"), cachedHost},
		"another server's":       {filepath.Join(root, "discovery", "10.0.0.1_6443"), "https://10.0.0.2:6443"},
		"no host":                {filepath.Join(root, "discovery"), ""},
		"a host that climbs":     {filepath.Join(root, "discovery", "10.0.0.1_6443"), "https://x/../10.0.0.1:6443"},
		"a host that is a dot":   {filepath.Join(root, "discovery"), "."},
		"a folder that climbs":   {root + "/discovery/10.0.0.1_6443/..", cachedHost},
		"a name that ends in it": {filepath.Join(root, "xdiscovery", "10.0.0.1_6443"), cachedHost},
	} {
		t.Run(name, func(t *testing.T) {
			if err := s.remove(); err == nil {
				t.Error("it must be refused")
			}
			if _, err := os.Stat(file); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestDISC01RelativeCacheDir(t *testing.T) {
	root := t.TempDir()
	cacheFile := fluxCacheFile(t, root, "10.0.0.1_6443", "test.test/v1/serverresources.json", testdefsNamespaced, time.Hour)
	t.Chdir(root)
	v := fluxOne(t, staleCache(fluxCached(t, ".", "test.test/v1 TestDef testdefs*")))
	t.Chdir(t.TempDir())
	if err := v.Actions[0].step.run(t.Context(), nil, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(cacheFile); !os.IsNotExist(err) {
		t.Error("it is still there")
	}
}

func TestCacheRoot(t *testing.T) {
	t.Setenv("KUBECACHEDIR", "/from/env")
	if got := CacheRoot("/from/flag"); got != "/from/flag" {
		t.Error(got)
	}
	if got := CacheRoot(""); got != "/from/env" {
		t.Error(got)
	}
	t.Setenv("KUBECACHEDIR", "")
	t.Setenv("HOME", "/home/somebody")
	if got := CacheRoot(""); got != "/home/somebody/.kube/cache" {
		t.Error(got)
	}
}

func TestCacheName(t *testing.T) {
	for host, want := range map[string]string{
		"https://10.0.0.1:6443":                       "10.0.0.1_6443",
		"https://[::1]:6443":                          "___1__6443",
		"https://rancher.example.com/k8s/clusters/c1": "rancher.example.com/k8s/clusters/c1",
	} {
		if got := cacheName(host); got != want {
			t.Errorf("%s: %s, not %s", host, got, want)
		}
	}
}
