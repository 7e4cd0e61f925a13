// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubestandup/kubestandup/pkg/chart"
	"github.com/kubestandup/kubestandup/pkg/crds"
	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// TestWhatIsSaidOfACRD: what was applied needs no word, and what others have as
// the chart does needs no act.
func TestWhatIsSaidOfACRD(t *testing.T) {
	release := flux.Ref{Kind: flux.HelmReleaseKind, Namespace: "kyverno", Name: "kyverno"}
	for _, tt := range []struct {
		one      crds.Applied
		rule     string
		severity finding.Severity
		says     string
	}{
		{crds.Applied{Act: crds.Created}, "", "", ""},
		{crds.Applied{Act: crds.Updated}, "", "", ""},
		{crds.Applied{Act: crds.Unchanged}, "", "", ""},
		{
			crds.Applied{Act: crds.Left, Reason: crds.NotOurs, Why: "x manages its spec"},
			"crd-not-ours", finding.Info,
			"CRD a.example.com is left as it is: x manages its spec. It is as the chart has it",
		},
		{
			crds.Applied{Act: crds.Left, Reason: crds.NotOurs, Why: "x manages its spec", Differences: []string{"version v2 is missing", "spec.scope differs"}},
			"crd-not-ours", finding.Warning, "It is not as the chart has it: version v2 is missing, spec.scope differs",
		},
		{crds.Applied{Act: crds.Refused, Reason: crds.TooBig, Why: "it is big"}, "crd-too-big", finding.Error, "CRD a.example.com is not applied: it is big"},
		{crds.Applied{Act: crds.Refused, Reason: crds.LosesStored, Why: "w"}, "crd-stored-version", finding.Error, "is not applied: w"},
		{crds.Applied{Act: crds.Refused, Reason: crds.Deleting, Why: "w"}, "crd-deleting", finding.Error, "is not applied: w"},
		{crds.Applied{Act: crds.Refused, Reason: crds.NotAccepted, Why: "w"}, "crd-not-accepted", finding.Error, "is not applied: w"},
	} {
		tt.one.Name = "a.example.com"
		f, said := definitionFinding(tt.one, release)
		if said != (tt.rule != "") {
			t.Errorf("%+v: said %v", tt.one, said)
		}
		if !said {
			continue
		}
		if f.Rule != tt.rule || f.Severity != tt.severity || !strings.Contains(f.Message, tt.says) || f.Object.Name != "a.example.com" || *f.Tier != release {
			t.Errorf("got %+v, want %s, %s, %s", f, tt.rule, tt.severity, tt.says)
		}
		if (f.Fix == "") != (f.Severity == finding.Info) {
			t.Errorf("%s: what to do is %q", f.Rule, f.Fix)
		}
	}
}

func TestCountActs(t *testing.T) {
	all := []crds.Applied{{Act: crds.Created}, {Act: crds.Unchanged}, {Act: crds.Created}, {Act: crds.Left}, {Act: crds.Refused}, {Act: crds.Updated}}
	if got, want := countActs(all, false), "2 created, 1 updated, 1 unchanged, 1 left, 1 refused"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := countActs(all, true), "2 would be created, 1 would be updated, 1 unchanged, 1 left, 1 refused"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestTwoChartsOfOneCRD would change it back and forth.
func TestTwoChartsOfOneCRD(t *testing.T) {
	named := func(all ...string) []*unstructured.Unstructured {
		var out []*unstructured.Unstructured
		for _, name := range all {
			u := &unstructured.Unstructured{}
			u.SetKind("CustomResourceDefinition")
			u.SetName(name)
			out = append(out, u)
		}
		return out
	}
	seen := map[string]string{}
	first, found := firstOnly(named("a", "b"), flux.Ref{Kind: "HelmRelease", Namespace: "x", Name: "one"}, seen)
	if len(first) != 2 || len(found) != 0 {
		t.Fatalf("got %v, %v", first, found)
	}
	second, found := firstOnly(named("b", "c"), flux.Ref{Kind: "HelmRelease", Namespace: "x", Name: "two"}, seen)
	if len(second) != 1 || second[0].GetName() != "c" || len(found) != 1 {
		t.Fatalf("got %v, %v", second, found)
	}
	if f := found[0]; f.Rule != "crd-in-two-charts" || f.Severity != finding.Warning || f.Object.Name != "b" ||
		f.Message != "CRD b is in the chart of HelmRelease/x/one as well, and the first was taken" {
		t.Errorf("got %+v", f)
	}
}

func TestAnOverrideThatSwitchesNothingOn(t *testing.T) {
	loaded := &chart.Chart{Name: "kyverno", Version: "3.2.1", Release: flux.Ref{Kind: "HelmRelease", Namespace: "x", Name: "kyverno"}}
	f := noDefinitions(finding.Finding{Severity: finding.Error}, loaded, []string{"crds.install: false"})
	if f.Rule != "chart-crds-none" || f.Severity != finding.Warning ||
		!strings.Contains(f.Message, "chart kyverno 3.2.1 of HelmRelease/x/kyverno renders no CRD") || !strings.HasSuffix(f.Fix, "these look like it: crds.install: false") {
		t.Errorf("got %+v", f)
	}
	if f := noDefinitions(finding.Finding{}, loaded, nil); !strings.HasSuffix(f.Fix, "nothing in the chart looks like a switch") {
		t.Errorf("got %s", f.Fix)
	}
}
