// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"errors"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/standup/config"
)

func suspended(t flux.Tier) flux.Tier {
	t.Suspended, t.SuspendedBy = true, "kubectl-edit"
	return t
}

// tiersCheck is the check of the tiers, where git suspends none.
func (v *verify) tiersCheck(t *testing.T) Check {
	t.Helper()
	var err error
	if v.built == nil {
		v.built = &builds{}
	}
	if v.aside, err = v.findAside(t.Context()); err != nil {
		t.Fatal(err)
	}
	c, err := v.tiers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func found(c Check) []string {
	var out []string
	for _, f := range c.Findings {
		out = append(out, string(f.Severity)+" "+f.Rule+" "+f.Object.Name)
	}
	return out
}

// TestVerifyTiers: what is held on purpose is skipped together with what waits
// for it; all else that is not Ready failed, and each root cause is said once.
func TestVerifyTiers(t *testing.T) {
	held := suspended(tier("held", "False", "", ""))
	held.Hold = "Jo works on it"
	inRepair := suspended(tier("in-repair", "False", "", ""))
	inRepair.Unwedge = "hook-timeout"
	stale := tier("stale", "True", "", "")
	stale.LastAppliedRevision = "main@sha1:old"
	file := &config.Config{Resume: config.Resume{Skip: []string{"ks/skipped"}}}
	v := verifying(t, file,
		tier("good", "True", "", ""), tier("green", "True", "", ""),
		held, tier("below-held", "False", "DependencyNotReady", "", "held"), tier("below-that", "False", "DependencyNotReady", "", "below-held"),
		suspended(tier("skipped", "True", "", "")), suspended(tier("stopped", "True", "", "")), inRepair, stale,
		tier("blocked", "False", "BuildFailed", "no such file"),
		tier("failing", "False", "BuildFailed", "boom"), tier("below-failing", "False", "DependencyNotReady", "", "failing"),
	)
	ref := func(name string) flux.Ref {
		return flux.Ref{Kind: flux.KustomizationKind, Namespace: "flux-system", Name: name}
	}
	v.unset = []placeholder{{Variable: config.Variable{Name: "ENDPOINT"}, Blocks: []flux.Ref{ref("blocked")}, Degrades: []flux.Ref{ref("green")}}}
	c := v.tiersCheck(t)
	if c.Message != "2 of 12 Ready, at the revisions that their sources have now" {
		t.Error(c.Message)
	}
	// Two are below what is held, and three are not meant to run.
	if want := (Counts{Proved: 1, Unproved: 1, Failed: 5, Skipped: 5}); v.counts != want {
		t.Errorf("got %+v, want %+v", v.counts, want)
	}
	got := found(c)
	slices.Sort(got)
	want := []string{
		"error tier-failing failing", "error tier-suspended in-repair", "error tier-suspended stopped",
		"info tier-skipped blocked", "info tier-skipped held", "info tier-skipped skipped", "warning tier-progressing stale",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
	for _, f := range c.Findings {
		says := map[string]string{
			"held": "Jo works on it; it holds up 2 other tiers", "skipped": "resume.skip", "blocked": "ENDPOINT is still a placeholder, and standup.yaml says that this blocks it",
			"stopped": "suspended by kubectl-edit", "in-repair": "suspended", "stale": "its source is at " + rev, "failing": "boom; it holds up one other tier",
		}[f.Object.Name]
		if !strings.Contains(f.Message, says) {
			t.Errorf("%q does not say %q", f.Message, says)
		}
		fix := map[string]string{"stopped": "kubectl standup resume", "in-repair": "kubectl standup unwedge", "stale": "kubectl tiers --wait"}[f.Object.Name]
		if !strings.Contains(f.Fix, fix) {
			t.Errorf("%s: fix %q", f.Object.Name, f.Fix)
		}
	}
	if v.next() != "kubectl standup unwedge" {
		t.Errorf("next %s", v.next())
	}
}

// TestVerifySources: what a source has done wrong is said once, and not of each
// tier below it.
func TestVerifySources(t *testing.T) {
	other := func(name string, dependsOn ...string) flux.Tier {
		ft := tier(name, "False", "ArtifactFailed", "", dependsOn...)
		ft.Source.Name = "other"
		return ft
	}
	lost := tier("lost", "False", "DependencyNotReady", "", "nowhere")
	v := verifying(t, nil, tier("good", "True", "", ""), other("a"), other("b"), other("c", "a"), lost, tier("below-lost", "False", "DependencyNotReady", "", "lost"))
	v.snapshot.Sources[0].Conditions = []metav1.Condition{{Type: "Ready", Status: "False", Message: "authentication required"}}
	c, err := v.sources(t.Context())
	if err != nil || c.Message != "0 of 1 that tiers are built from are fetched" || len(c.Findings) != 2 {
		t.Fatalf("got %+v, %v", c, err)
	}
	behind, missing := c.Findings[0], c.Findings[1]
	if behind.Severity == finding.Info || behind.Blocks || !strings.Contains(behind.Message, "is still at "+rev) {
		t.Errorf("green at an old revision: %+v", behind)
	}
	// c is not counted: it waits for a as well.
	if missing.Rule != "source-missing" || missing.Message != "GitRepository/flux-system/other does not exist; 2 tiers are built from it" {
		t.Errorf("got %+v", missing)
	}
	if got := found(v.tiersCheck(t)); !slices.Equal(got, []string{"error tier-blocked lost"}) || v.counts.Failed != 5 {
		t.Errorf("got %q, %+v", got, v.counts)
	}
	v.snapshot.Sources[0].Suspended = true
	if c, err = v.sources(t.Context()); err != nil || c.Findings[0].Rule != "source-suspended" || c.Findings[0].Severity != finding.Info {
		t.Errorf("pinned: %+v, %v", c, err)
	}
}

// TestGitCannotBeAsked: what is not known is said.
func TestGitCannotBeAsked(t *testing.T) {
	v := verifying(t, nil, suspended(tier("stopped", "True", "", "")))
	v.built = &builds{unfetched: map[flux.Ref]error{git(): errors.New("connection refused")}}
	c := v.tiersCheck(t)
	if len(c.Findings) != 1 || !slices.Contains(c.Findings[0].Causes, "whether git wants it suspended is not known: GitRepository/flux-system/repo: connection refused") {
		t.Errorf("got %+v", c.Findings)
	}
	if v.next() != "kubectl standup resume" {
		t.Errorf("next %s", v.next())
	}
}

func TestPlaceholders(t *testing.T) {
	file := &config.Config{Variables: []config.Variable{{Name: "A", Placeholder: "TBD-*"}, {Name: "B", Placeholder: "TBD-*"}, {Name: "C"}}}
	backups, red := flux.Ref{Kind: flux.KustomizationKind, Namespace: "flux-system", Name: "backups"}, flux.Ref{Kind: flux.KustomizationKind, Namespace: "flux-system", Name: "red"}
	from := flux.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "flux-system", Name: "vars"}
	for name, tt := range map[string]struct {
		p        placeholder
		rule     string
		severity finding.Severity
		says     string
	}{
		"green, and of no use": {
			placeholder{From: []flux.Ref{from}, Degrades: []flux.Ref{backups, red}},
			"tier-degraded", finding.Info,
			"Kustomization/flux-system/backups is Ready and cannot do what it is for: A is still a placeholder",
		},
		"not green at all": {placeholder{From: []flux.Ref{from}, Degrades: []flux.Ref{red}}, "placeholder", finding.Info, "A is still a placeholder"},
		"it blocks":        {placeholder{From: []flux.Ref{from}, Blocks: []flux.Ref{red}}, "placeholder", finding.Info, "it blocks Kustomization/flux-system/red"},
		"nobody can say": {
			placeholder{Unread: errors.New("secrets is forbidden"), Degrades: []flux.Ref{backups}},
			"tier-degraded", finding.Warning,
			"A may still be a placeholder, since its value could not be read",
		},
	} {
		v := verifying(t, file, tier("backups", "True", "", ""), tier("red", "False", "BuildFailed", "boom"))
		tt.p.Variable.Name = "A"
		v.unset = []placeholder{tt.p}
		c, err := v.placeholderCheck(t.Context())
		if err != nil || c.Message != "1 of 2 variables have a real value" || len(c.Findings) != 1 {
			t.Fatalf("%s: %+v, %v", name, c, err)
		}
		if f := c.Findings[0]; f.Rule != tt.rule || f.Severity != tt.severity || !strings.Contains(f.Message, tt.says) || !strings.HasPrefix(f.Fix, "give it its value in git") {
			t.Errorf("%s: got %+v", name, f)
		}
	}
}

// TestNext: of all that is left, the command that has to come first.
func TestNext(t *testing.T) {
	v := verifying(t, nil)
	for _, tt := range []struct {
		left left
		want string
	}{
		{left{}, ""},
		{left{lateObjects: true}, "kubectl standup verify"},
		{left{late: true, lateObjects: true}, "kubectl tiers --wait"},
		{left{suspended: true, late: true}, "kubectl standup resume"},
		{left{wedged: true, suspended: true}, "kubectl standup unwedge"},
		{left{deadlocked: true, wedged: true, suspended: true}, "kubectl standup crds"},
		{left{unserved: true, suspended: true}, "kubectl standup crds"},
	} {
		if v.left = tt.left; v.next() != tt.want {
			t.Errorf("%+v: got %q, want %q", tt.left, v.next(), tt.want)
		}
	}
}
