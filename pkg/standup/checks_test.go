// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/guard"
)

func TestTheIdentityIsNamed(t *testing.T) {
	p := &preflight{look: &look{env: &Env{
		Identity: guard.Identity{URL: "https://api.example.org:6443", UID: "u", CAFingerprint: "sha256:ab"},
		Expected: guard.Expectation{Server: "https://api.example.org:6443", UID: "u"},
	}}}
	c, err := p.identity(t.Context())
	if err != nil || c.Message != "https://api.example.org:6443, UID u, CA sha256:ab: as expected" {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestTheServedKinds(t *testing.T) {
	kustomization := flux.Resource{Group: flux.KustomizeGroup, Version: "v1", Kind: flux.KustomizationKind}
	git := flux.Resource{Group: flux.SourceGroup, Version: "v1", Kind: "GitRepository"}
	for name, tt := range map[string]struct {
		served []flux.Resource
		says   string
		rules  []string
	}{
		"a source":  {[]flux.Resource{kustomization, git}, "Kustomization v1, GitRepository v1", nil},
		"no source": {[]flux.Resource{kustomization}, "Kustomization v1", []string{"flux-sources-not-served"}},
	} {
		c, err := (&preflight{look: &look{snapshot: &flux.Snapshot{Served: tt.served}}}).fluxKinds(t.Context())
		if err != nil || c.Message != tt.says || fmt.Sprint(rules(c)) != fmt.Sprint(tt.rules) {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
		for _, f := range c.Findings {
			if !f.Blocks || f.Severity != finding.Error || f.Fix == "" {
				t.Errorf("%s: %+v", name, f)
			}
		}
	}
}

func rules(c Check) (out []string) {
	for _, f := range c.Findings {
		out = append(out, f.Rule)
	}
	return out
}

// TestTheSourcesInUse: what no tier is built from is nobody's trouble.
func TestTheSourcesInUse(t *testing.T) {
	s := &flux.Snapshot{Served: []flux.Resource{{Kind: flux.KustomizationKind}, {Kind: "GitRepository"}}}
	for i := range 6 {
		ref := flux.Ref{Kind: "GitRepository", Namespace: "ns", Name: fmt.Sprintf("s%d", i)}
		source := flux.Source{Ref: ref, Artifact: &flux.Artifact{Revision: "main@sha1:abc"}}
		switch i {
		case 4:
			source.Artifact = nil // and two tiers need it
		case 5:
			source.Artifact = nil // and none does
		}
		s.Sources = append(s.Sources, source)
		if i < 5 {
			s.Tiers = append(s.Tiers, flux.Tier{Ref: flux.Ref{Kind: flux.KustomizationKind, Namespace: "ns", Name: ref.Name}, Source: ref})
		}
		if i == 4 {
			s.Tiers = append(s.Tiers, flux.Tier{Ref: flux.Ref{Kind: flux.KustomizationKind, Namespace: "ns", Name: "second"}, Source: ref})
		}
	}
	p := lookingAt(s)
	c, err := p.sources(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const want = "GitRepository/ns/s0 at main@sha1:abc, GitRepository/ns/s1 at main@sha1:abc, GitRepository/ns/s2 at main@sha1:abc, and others"
	if c.Message != want {
		t.Errorf("got %s", c.Message)
	}
	if len(c.Findings) != 1 || c.Findings[0].Object.Name != "s4" || !strings.Contains(c.Findings[0].Message, "2 tiers are built from it") {
		t.Errorf("found %+v", c.Findings)
	}
}

// TestFluxCommandsCanBePasted: the Flux CLI has its own words for the kinds.
func TestFluxCommandsCanBePasted(t *testing.T) {
	for kind, want := range map[string]string{
		"GitRepository": "git", "OCIRepository": "oci", "HelmRepository": "helm", "HelmChart": "chart", "Bucket": "bucket",
	} {
		if got := fluxSource(kind); got != want {
			t.Errorf("%s: got %q, want %q", kind, got, want)
		}
	}
}

func TestTiersAreNamedUnmistakably(t *testing.T) {
	for want, ref := range map[string]flux.Ref{
		"ks/apps/vms": {Kind: flux.KustomizationKind, Namespace: "apps", Name: "vms"},
		"hr/apps/vms": {Kind: flux.HelmReleaseKind, Namespace: "apps", Name: "vms"},
	} {
		if got := tierArg(ref); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestTheSummaryOfABreak(t *testing.T) {
	for _, tt := range []struct {
		freed, nudged int
		dry           bool
		want          string
	}{{0, 0, false, ""}, {0, 0, true, ""}, {1, 0, false, "1 freed"}, {2, 1, true, "2 would be freed, 1 would be nudged, since what it lacked is there now"}} {
		if got := summary(tt.freed, tt.nudged, tt.dry); got != tt.want {
			t.Errorf("%+v: got %q", tt, got)
		}
	}
}
