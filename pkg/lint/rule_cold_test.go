// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubestandup/kubestandup/pkg/coldstart"
	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/knowledge"
)

func cdiProfile() schema.GroupKind {
	return schema.GroupKind{Group: "cdi.kubevirt.io", Kind: "StorageProfile"}
}

const widget = "-- obs/widget.yaml --\n{apiVersion: obs.example.com/v1, kind: Widget, metadata: {name: main, namespace: x-obs}}\n"

func TestUnregisteredKinds(t *testing.T) {
	for name, tc := range map[string]struct {
		change   func(*coldstart.Need)
		severity finding.Severity
		words    []string
	}{
		"nobody":         {func(*coldstart.Need) {}, finding.Warning, []string{"nothing in the repository registers", "Apply the CRD of Widget"}},
		"other versions": {func(n *coldstart.Need) { n.OtherVersions = []string{"v1beta1"} }, finding.Error, []string{"serves v1beta1", "apiVersion: obs.example.com/v1beta1"}},
		"a known system": {func(n *coldstart.Need) {
			n.Creators = []knowledge.Relation{{System: "Widgets", Class: knowledge.CR, Triggers: []knowledge.Trigger{{Group: "w.example.com", Kind: "Maker"}}}}
		}, finding.Warning, []string{"Install Widgets and apply a Maker (w.example.com)"}},
		"a system that starts": {func(n *coldstart.Need) {
			n.Creators = []knowledge.Relation{{System: "Widgets", Class: knowledge.Start}}
		}, finding.Warning, []string{"Install Widgets, which registers it when it starts"}},
		"perhaps": {
			func(n *coldstart.Need) {
				n.When, n.Candidates = coldstart.Perhaps, []flux.Ref{hr("x-a", "one"), ks("outside")}
			},
			finding.Info,
			[]string{"HelmRelease/x-a/one and flux-system/outside may", "--fetch-charts"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := subject(t, widget+tierFile("obs", ""))
			n := s.need(t, "obs", "Widget", coldstart.Missing)
			tc.change(&n)
			s.outcome(t, "obs", coldstart.Never, n)
			f := one(t, s, "CS002")
			if f.Severity != tc.severity || f.File != "obs/widget.yaml" || len(f.Missing) != 1 {
				t.Errorf("%s at %s, missing %v", f.Severity, f.File, f.Missing)
			}
			contains(t, "finding", f.Message+"\n"+f.Fix, tc.words...)
			none(t, s, "CS001")
		})
	}
}

func TestRegisteredKinds(t *testing.T) {
	provider := coldstart.Provider{How: coldstart.ByGit, Tier: ks("crds"), Stage: 1, Object: flux.Ref{APIVersion: crdVersion, Kind: crdKind, Name: "widgets.obs.example.com"}}
	with := func(reach coldstart.Reach) coldstart.Provider { p := provider; p.Reach = reach; return p }
	for name, tc := range map[string]struct {
		when  coldstart.When
		reach coldstart.Reach
		rules []string // that say something
	}{
		"in time":             {coldstart.InTime, coldstart.Proved, nil},
		"late, no path":       {coldstart.Late, coldstart.NoPath, []string{"CS003"}},
		"late, applied":       {coldstart.Late, coldstart.Applied, []string{"CS004"}},
		"late, a hollow gate": {coldstart.Late, coldstart.Hollow, []string{"HG001"}},
		"missing, behind":     {coldstart.Missing, coldstart.Behind, []string{"CS001", "CS010"}},
		"missing, down":       {coldstart.Missing, coldstart.Down, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := subject(t, widget+tierFile("obs", "")+files("crds"))
			s.outcome(t, "obs", coldstart.ByRetry, s.need(t, "obs", "Widget", tc.when, with(tc.reach)))
			s.outcome(t, "crds", coldstart.AtOnce)
			for _, id := range []string{"CS001", "CS002", "CS003", "CS004", "CS005", "CS006", "CS009", "CS011", "HG001"} {
				want := strings.Contains(strings.Join(tc.rules, " "), id)
				if got := len(check(t, s, id)); got > 1 || (got == 1) != want {
					t.Errorf("%s: %d findings", id, got)
				}
			}
		})
	}
	t.Run("the best of two providers counts", func(t *testing.T) {
		s := subject(t, widget+tierFile("obs", "")+files("crds"))
		s.outcome(t, "obs", coldstart.ByRetry, s.need(t, "obs", "Widget", coldstart.Late, with(coldstart.NoPath), with(coldstart.Hollow)))
		one(t, s, "HG001")
		none(t, s, "CS003")
	})
	t.Run("one finding per tier that is missed", func(t *testing.T) {
		s := subject(t, widget+strings.Replace(strings.Replace(widget, "widget.yaml", "gauge.yaml", 1), "Widget", "Gauge", 1)+tierFile("obs", "")+files("crds"))
		s.outcome(t, "obs", coldstart.ByRetry, s.need(t, "obs", "Widget", coldstart.Late, with(coldstart.NoPath)), s.need(t, "obs", "Gauge", coldstart.Late, with(coldstart.NoPath)))
		contains(t, "message", one(t, s, "CS003").Message, "Widget and Gauge (obs.example.com/v1), which exist only once")
	})
	t.Run("an edge that would close a loop", func(t *testing.T) {
		s := subject(t, widget+tierFile("obs", "")+files("crds: dependsOn: [{name: obs}]"))
		s.outcome(t, "obs", coldstart.ByRetry, s.need(t, "obs", "Widget", coldstart.Late, with(coldstart.NoPath)))
		contains(t, "fix", one(t, s, "CS003").Fix, "an edge would close a loop", "move Widget/x-obs/main into a tier of its own")
	})
}

func TestRetryWords(t *testing.T) {
	for _, tc := range []struct {
		outcome *coldstart.Outcome
		want    string
	}{
		{nil, "at its next retry"},
		{&coldstart.Outcome{}, "at its next retry"},
		{&coldstart.Outcome{Retry: 90e9}, "after 1m30s"},
		{&coldstart.Outcome{Retry: 3600e9, RetryIsInterval: true}, "after 1h (spec.interval: no retryInterval is set)"},
		{&coldstart.Outcome{Retry: 600e9}, "after 10m"},
		{&coldstart.Outcome{Retry: 10e9}, "after 10s"},
	} {
		if got := retry(tc.outcome); got != tc.want {
			t.Errorf("%+v: %q, want %q", tc.outcome, got, tc.want)
		}
	}
}

func TestWords(t *testing.T) {
	if got := finding.Some([]string{"a", "b", "c", "d", "e"}); got != "a, b, c, d and e" {
		t.Error(got)
	}
	if got := finding.Some([]string{"a", "b", "c", "d", "e", "f"}); got != "a, b, c, d and 2 more" {
		t.Error(got)
	}
	needs := []coldstart.Need{
		{Kind: schema.GroupVersionKind{Group: "a.example.com", Version: "v1", Kind: "X"}},
		{Kind: schema.GroupVersionKind{Group: "b.example.com", Version: "v1", Kind: "Y"}},
		{Kind: schema.GroupVersionKind{Group: "a.example.com", Version: "v1", Kind: "Z"}},
		{Object: flux.Ref{Kind: "Namespace", Name: "n"}},
	}
	if got := described(needs); got != "X and Z (a.example.com/v1), Y (b.example.com/v1) and Namespace/n" {
		t.Error(got)
	}
}

func TestNamespaces(t *testing.T) {
	object := flux.Ref{APIVersion: "v1", Kind: "Namespace", Name: "x-obs"}
	provider := func(tier string, stage int, reach coldstart.Reach) coldstart.Provider {
		return coldstart.Provider{How: coldstart.ByGit, Tier: ks(tier), Object: object, Stage: stage, Reach: reach}
	}
	for name, tc := range map[string]struct {
		when      coldstart.When
		providers []coldstart.Provider
		severity  finding.Severity // empty for none
	}{
		"nobody":                     {coldstart.Missing, nil, finding.Error},
		"perhaps":                    {coldstart.Perhaps, nil, finding.Info},
		"a sibling":                  {coldstart.Late, []coldstart.Provider{provider("crds", 1, coldstart.NoPath)}, finding.Warning},
		"behind a hollow gate":       {coldstart.Late, []coldstart.Provider{provider("crds", 1, coldstart.Hollow)}, ""},
		"a tier that waits for it":   {coldstart.Missing, []coldstart.Provider{provider("crds", 1, coldstart.Behind)}, finding.Error},
		"down for another reason":    {coldstart.Missing, []coldstart.Provider{provider("crds", 1, coldstart.Down)}, ""},
		"its own, which never comes": {coldstart.Missing, []coldstart.Provider{provider("obs", 1, coldstart.Same)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := subject(t, widget+tierFile("obs", "")+files("crds"))
			n := s.need(t, "obs", "Widget", tc.when, tc.providers...)
			n.Kind, n.Object = schema.GroupVersionKind{}, object
			s.outcome(t, "obs", coldstart.Never, n)
			none(t, s, "CS001")
			if tc.severity == "" {
				none(t, s, "CS011")
				return
			}
			if f := one(t, s, "CS011"); f.Severity != tc.severity {
				t.Errorf("it is a %s: %s", f.Severity, f.Message)
			}
		})
	}
}

// TestInServedVersion: Flux's own CRDs are exported, and what they are for is not
// written anew.
func TestInServedVersion(t *testing.T) {
	need := func(group string) coldstart.Need {
		return coldstart.Need{Kind: schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Kind"}, OtherVersions: []string{"v1beta1", "v1beta2"}}
	}
	for group, want := range map[string]string{
		"kustomize.toolkit.fluxcd.io": "flux install --export",
		"obs.example.com":             "apiVersion: obs.example.com/v1beta2",
	} {
		if got := inServedVersion(need(group)); !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", group, got, want)
		}
	}
}
