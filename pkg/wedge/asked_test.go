// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/release"
	"github.com/kubestandup/kubestandup/pkg/tiers"
)

// askedWorld: app applies db, which waits for base; umbrella's chart has brought
// part; plain is nobody's, in another namespace.
func askedWorld() *World {
	child := func(t flux.Tier, parent string) flux.Tier {
		t.Owner = flux.Ref{Kind: flux.KustomizationKind, Namespace: "flux-system", Name: parent}
		return t
	}
	waits := saying(fluxHR("db", "base"), "Ready False DependencyNotReady x")
	base := saying(fluxHR("base"), "Ready False InstallFailed x")
	w := fluxWorld(fluxFails("app", "boom"), fluxFails("web", "boom"), child(waits, "app"), base, fluxHR("part"), fluxHR("umbrella"))
	w.Flux.Served = []flux.Resource{
		{Group: flux.KustomizeGroup, Version: "v1", Kind: flux.KustomizationKind, Plural: "kustomizations"},
		{Group: flux.HelmGroup, Version: "v2", Kind: flux.HelmReleaseKind, Plural: "helmreleases"},
	}
	for _, n := range w.Graph.Tiers() {
		if n.Helm != nil {
			w.Releases = append(w.Releases, &Release{Key: keyOf(n.Tier), Node: n})
		}
	}
	plain := release.Key{Namespace: "apps", Name: "plain"}
	w.Releases = append(w.Releases, &Release{Key: plain, Revisions: []release.Revision{{Key: plain, Version: 7}}})
	return w
}

// askedCluster says of each tier what it is part of: part is umbrella's.
func askedCluster(t *testing.T, broken bool) *Cluster {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		if broken {
			out.WriteHeader(http.StatusForbidden)
			return
		}
		marks := ""
		if strings.HasSuffix(in.URL.Path, "/part") {
			marks = `"meta.helm.sh/release-name":"umbrella","meta.helm.sh/release-namespace":"flux-system"`
		}
		out.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(out, `{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":{"annotations":{%s}}}`, marks)
	}))
	t.Cleanup(server.Close)
	c, err := New(&rest.Config{Host: server.URL, QPS: -1}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestWhatIsAskedAbout is what has to be looked at, and nothing else is.
func TestWhatIsAskedAbout(t *testing.T) {
	const everyRelease, everyTier = "base db part plain umbrella", "app base db part umbrella web"
	for name, tt := range map[string]struct {
		names, namespace       string
		broken                 bool
		releases, tiers, built string
	}{
		"nothing":                              {releases: everyRelease, tiers: everyTier, built: "app web"},
		"a HelmRelease":                        {names: "hr/umbrella", releases: "umbrella", tiers: "umbrella"},
		"one that a Kustomization applies":     {names: "hr/flux-system/db", releases: "db", tiers: "db", built: "app"},
		"one that another's chart has brought": {names: "hr/part", releases: "part umbrella", tiers: "part"},
		"one that others wait for":             {names: "helmrelease/base", releases: "base db", tiers: "base"},
		"a Kustomization":                      {names: "ks/web", tiers: "web", built: "web"},
		"a record":                             {names: "secret/flux-system/sh.helm.release.v1.db.v3", releases: "db", tiers: "db"},
		"a record in whatever namespace":       {names: "Secret/sh.helm.release.v1.db.v3", releases: "db", tiers: "db"},
		"a release":                            {names: "release/plain", releases: "plain"},
		"a release in another namespace":       {names: "release/other/plain"},
		"two":                                  {names: "release/apps/plain ks/web", releases: "plain", tiers: "web", built: "web"},
		"any other Secret":                     {names: "secret/apps/password", releases: everyRelease, tiers: everyTier, built: "app web"},
		"a Deployment beside one":              {names: "hr/db deployment/web", releases: everyRelease, tiers: everyTier, built: "app web"},
		"a tier that is not there":             {names: "hr/gone", releases: everyRelease, tiers: everyTier, built: "app web"},
		"one that may not be read":             {names: "hr/umbrella", broken: true, releases: everyRelease, tiers: everyTier, built: "app web"},
		"a namespace":                          {namespace: "apps", releases: "plain", built: "app web"},
		"a namespace and a name":               {namespace: "apps", names: "hr/db", built: "app"},
		"a namespace and anything":             {namespace: "flux-system", names: "cm/x", releases: "base db part umbrella", tiers: everyTier, built: "app web"},
	} {
		t.Run(name, func(t *testing.T) {
			w := askedWorld()
			w.Choices = Choices{Names: strings.Fields(tt.names), Namespace: tt.namespace}
			a := askedCluster(t, tt.broken).narrow(t.Context(), w)
			var releases, looked, built []string
			for _, r := range w.Releases {
				if a.release(r) {
					releases = append(releases, r.Name)
				}
			}
			for _, n := range w.Graph.Tiers() {
				if a.tier(n.Tier) {
					looked = append(looked, n.Ref.Name)
				}
				if n.State == tiers.Retrying && n.Helm == nil && a.build(n.Tier) {
					built = append(built, n.Ref.Name)
				}
			}
			for what, is := range map[string]struct {
				got  []string
				want string
			}{"releases": {releases, tt.releases}, "tiers": {looked, tt.tiers}, "built": {built, tt.built}} {
				slices.Sort(is.got)
				if got := strings.Join(is.got, " "); got != is.want {
					t.Errorf("%s: %q, want %q", what, got, is.want)
				}
			}
		})
	}
}

// TestWhatWasNotLookedAt has no verdict, whatever its label says.
func TestWhatWasNotLookedAt(t *testing.T) {
	r := stored(t, release.PendingInstall)
	r.Record, r.Unlooked = nil, true
	fluxNone(t, Judge(&World{Now: noon, Releases: []*Release{r}}))
}

// TestWhatWasMissed: a gap is that of whoever asked, by whatever name.
func TestWhatWasMissed(t *testing.T) {
	w, db := askedWorld(), fluxRef(flux.HelmReleaseKind, "db")
	for name, want := range map[string]bool{
		"hr/db": true, "hr/other/db": false, "hr/base": false, "release/flux-system/db": true, "release/plain": false,
		"secret/flux-system/sh.helm.release.v1.db.v3": true, "deployment/db": false,
	} {
		if w.Missed(Gap{Object: &db}, name) != want || w.Missed(Gap{}, name) {
			t.Errorf("%s: want %v", name, want)
		}
	}
}
