// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/fluxcd/pkg/runtime/cel"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/knowledge"
	"github.com/kubestandup/kubestandup/pkg/standup/config"
	"github.com/kubestandup/kubestandup/pkg/tiers"
)

func emptyBook() *checkBook {
	return &checkBook{ofTier: map[string][]objectCheck{}, evaluators: map[kustomize.HealthCheckExpressions]*cel.StatusEvaluator{}}
}

func checkOf(t *testing.T, apiVersion, kind, current string) objectCheck {
	t.Helper()
	c, err := emptyBook().check("the check", apiVersion, kind, kustomize.HealthCheckExpressions{Current: current})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestChecks(t *testing.T) {
	cdi := "{apiVersion: cdi.kubevirt.io/v1beta1, kind: CDI, metadata: {name: cdi, generation: 2}, status: {phase: %s}}"
	e := kustomize.HealthCheckExpressions{Current: "status.phase == 'Deployed'", Failed: "status.phase == 'Error'", InProgress: "status.phase == 'Upgrading'"}
	for name, tt := range map[string]struct {
		object     string
		configured bool
		class      class
		why        string
	}{
		"true":                          {fmt.Sprintf(cdi, "Deployed"), false, wellSaid, ""},
		"not true yet":                  {fmt.Sprintf(cdi, "Deploying"), false, late, "the check is not true: status.phase == 'Deployed'"},
		"in progress":                   {fmt.Sprintf(cdi, "Upgrading"), false, late, "the check is not true"},
		"failed":                        {fmt.Sprintf(cdi, "Error"), false, broken, "the check says that it has failed"},
		"nothing to look at":            {"{apiVersion: cdi.kubevirt.io/v1beta1, kind: CDI, metadata: {name: cdi}}", false, late, "cannot be evaluated"},
		"an older generation":           {"{apiVersion: cdi.kubevirt.io/v1beta1, kind: CDI, metadata: {name: cdi, generation: 2}, status: {phase: Deployed, observedGeneration: 1}}", false, late, ""},
		"configured, and true":          {fmt.Sprintf(cdi, "Deployed"), true, wellSaid, ""},
		"configured, and not true":      {fmt.Sprintf(cdi, "Deploying"), true, refuted, "is not true"},
		"configured, nothing to see":    {"{apiVersion: cdi.kubevirt.io/v1beta1, kind: CDI, metadata: {name: cdi}}", true, refuted, "cannot be evaluated"},
		"a check never outlives delete": {"{apiVersion: cdi.kubevirt.io/v1beta1, kind: CDI, metadata: {name: cdi, deletionTimestamp: '2026-01-01T00:00:00Z'}, status: {phase: Deployed}}", true, goingAway, "2026-01-01"},
	} {
		c, err := emptyBook().check("the check", "cdi.kubevirt.io/v1beta1", "CDI", e)
		if err != nil {
			t.Fatal(err)
		}
		c.configured = tt.configured
		p := judge(t.Context(), parsed(t, tt.object), []objectCheck{c})
		if p.class != tt.class || !strings.Contains(p.why, tt.why) {
			t.Errorf("%s: got class %d, %q", name, p.class, p.why)
		}
	}
}

// TestAllChecksHaveToBeTrue: one that is true does not excuse another.
func TestAllChecksHaveToBeTrue(t *testing.T) {
	u := parsed(t, custom+"status: {a: 1}}")
	yes, no := checkOf(t, "example.org/v1", "Thing", "has(status.a)"), checkOf(t, "example.org/v1", "Thing", "has(status.b)")
	if p := judge(t.Context(), u, []objectCheck{yes, no}); p.class != late {
		t.Errorf("got %+v", p)
	}
	// As in Flux, a check replaces what kstatus makes of the object.
	u = parsed(t, custom+"status: {a: 1, conditions: [{type: Ready, status: 'False'}]}}")
	if p := judge(t.Context(), u, []objectCheck{yes}); p.class != wellSaid {
		t.Errorf("got %+v", p)
	}
}

func verifying(t *testing.T, file *config.Config, all ...flux.Tier) *verify {
	t.Helper()
	base, err := knowledge.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	v := &verify{look: looking(all...).look, base: base, pieces: map[identity]*piece{}, done: map[string]*tally{}, checks: emptyBook()}
	if v.env.File = file; file == nil {
		v.env.File = &config.Config{}
	}
	v.raw = map[string][]*unstructured.Unstructured{flux.KustomizationKind: nil, flux.HelmReleaseKind: nil}
	return v
}

func TestWhichChecksAreAboutAnObject(t *testing.T) {
	file := &config.Config{Verify: config.Verify{Checks: []config.HealthCheck{
		{APIVersion: "example.org/v1beta1", Kind: "Thing", Name: "one", Current: "has(status.one)"},
		{APIVersion: "example.org/v1", Kind: "Thing", Namespace: "here", Current: "has(status.here)"},
		{APIVersion: "v1", Kind: "Secret", Current: "has(data.key)"},
		{APIVersion: "example.org/v1", Kind: "Other"},
	}}}
	v := verifying(t, file, tier("a", "True", "", ""), tier("b", "True", "", ""))
	v.raw[flux.KustomizationKind] = []*unstructured.Unstructured{parsed(t, `
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: a, namespace: flux-system}
spec:
  healthCheckExprs:
  - {apiVersion: example.org/v1, kind: Thing, current: has(status.tier)}
  - {apiVersion: group.example.org/v1, current: has(status.group)}
  - {apiVersion: example.org/v1, kind: Thing, current: "("}
  - {apiVersion: cdi.kubevirt.io/v1beta1, kind: CDI, current: has(status.own)}
  - {apiVersion: v1, kind: Secret, current: has(data.key)}
`)}
	book, broken, err := v.book(t.Context())
	if err != nil || len(broken) != 3 {
		t.Fatalf("broken %v, %v", broken, err)
	}
	for i, want := range []string{
		"verify.checks[2] of standup.yaml is about Secrets, and what they hold is never read",
		"verify.checks[3] of standup.yaml cannot be used: expression Current not specified",
		"healthCheckExprs of Kustomization/flux-system/a cannot be used: ",
	} {
		if !strings.Contains(broken[i].Error(), want) {
			t.Errorf("got %v, want %s", broken[i], want)
		}
	}
	object := func(apiVersion, kind, namespace, name string) flux.Ref {
		return flux.Ref{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: name}
	}
	for _, tt := range []struct {
		object flux.Ref
		tier   string
		want   []string
	}{
		{object("example.org/v1", "Thing", "here", "one"), "a", []string{"has(status.one)", "has(status.here)", "has(status.tier)"}},
		{object("example.org/v1", "Thing", "there", "two"), "a", []string{"has(status.tier)"}},
		{object("example.org/v1", "Thing", "there", "two"), "b", nil},
		{object("group.example.org/v1", "Any", "", "x"), "a", []string{"has(status.group)"}},
		{object("cdi.kubevirt.io/v1beta1", "CDI", "", "cdi"), "a", []string{"has(status.own)"}},
		// What is known proves a trigger where its tier does not.
		{object("cdi.kubevirt.io/v1beta1", "CDI", "", "cdi"), "b", []string{"has(status.phase) && status.phase == 'Deployed'"}},
		{object("v1", "Secret", "here", "key"), "a", nil},
	} {
		p := &piece{ref: tt.object, tiers: []*tiers.Node{v.graph.Node(flux.Ref{Kind: flux.KustomizationKind, Namespace: "flux-system", Name: tt.tier})}}
		var got []string
		for _, c := range book.about(p) {
			got = append(got, c.current)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s of %s: got %q, want %q", tt.object, tt.tier, got, tt.want)
		}
	}
	if got := book.versions(schema.GroupKind{Group: "example.org", Kind: "Thing"}); !slices.Equal(got, []string{"v1beta1", "v1"}) {
		t.Errorf("versions %v: those of standup.yaml come first", got)
	}
}
