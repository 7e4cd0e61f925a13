// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/standup/config"
	"github.com/kubestandup/kubestandup/pkg/tiers"
	"github.com/kubestandup/kubestandup/pkg/wait"
)

func tierRef(name string) flux.Ref {
	return flux.Ref{APIVersion: flux.KustomizeGroup + "/v1", Kind: flux.KustomizationKind, Namespace: "ns", Name: name}
}

// sleeping is a suspended tier without a status.
func sleeping(name string, dependsOn ...string) flux.Tier {
	t := flux.Tier{
		Ref: tierRef(name), Generation: 2, ObservedGeneration: 1, Suspended: true, SuspendedBy: "flux",
		SuspendedSince: time.Date(2026, 11, 30, 2, 0, 0, 0, time.UTC),
	}
	for _, d := range dependsOn {
		t.DependsOn = append(t.DependsOn, flux.Dependency{Ref: tierRef(d)})
	}
	return t
}

func resumerOf(file *config.Config, all ...flux.Tier) *resumer {
	env := &Env{File: file, Command: func(plugin, rest string) string { return "kubectl " + plugin + " " + rest }}
	s := &flux.Snapshot{Tiers: all, Served: []flux.Resource{{Kind: flux.KustomizationKind}}}
	return newResumer(env, &look{env: env, snapshot: s, graph: tiers.Build(s, tiers.Options{})})
}

func TestWhatIsMeantToStay(t *testing.T) {
	change := func(change func(*flux.Tier)) flux.Tier {
		out := sleeping("a")
		change(&out)
		return out
	}
	blocked := placeholder{Variable: config.Variable{Name: "ENDPOINT"}, Blocks: []flux.Ref{tierRef("a")}}
	tests := map[string]struct {
		tier     flux.Tier
		skip     []string
		unset    []placeholder
		rule     string
		says     string
		severity finding.Severity
	}{
		"nothing says so":  {tier: sleeping("a")},
		"it runs":          {tier: change(func(t *flux.Tier) { t.Suspended = false; t.Hold = "x" })},
		"skipped":          {tier: sleeping("a"), skip: []string{"ks/ns/a"}, rule: "tier-skipped", says: "resume.skip of standup.yaml names it", severity: finding.Info},
		"another skipped":  {tier: sleeping("a"), skip: []string{"hr/ns/a", "b"}},
		"held":             {tier: change(func(t *flux.Tier) { t.Hold = "until Monday" }), rule: "tier-held", says: "until Monday", severity: finding.Info},
		"in repair":        {tier: change(func(t *flux.Tier) { t.Unwedge = "release-pending" }), rule: "tier-in-repair", says: "release-pending", severity: finding.Warning},
		"being deleted":    {tier: change(func(t *flux.Tier) { t.Deleted = time.Now() }), rule: "tier-deleting", says: "never touched", severity: finding.Warning},
		"deleted and runs": {tier: change(func(t *flux.Tier) { t.Suspended = false; t.Deleted = time.Now() }), rule: "tier-deleting", severity: finding.Warning},
		"a placeholder":    {tier: sleeping("a"), unset: []placeholder{blocked}, rule: "placeholder-blocks", says: "ENDPOINT is still a placeholder", severity: finding.Info},
		"a placeholder, and it runs": {
			tier: change(func(t *flux.Tier) { t.Suspended = false }), unset: []placeholder{blocked},
			rule: "placeholder-blocks", says: "it is not suspended, so that Flux goes on trying", severity: finding.Info,
		},
		"a placeholder of another": {tier: sleeping("b"), unset: []placeholder{blocked}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := resumerOf(&config.Config{Resume: config.Resume{Skip: tc.skip}}, tc.tier)
			r.unset = tc.unset
			n := r.last.Tiers()[0]
			s := r.look.said(n, n.Suspended, r.unset)
			if s.rule != tc.rule || s.severity != tc.severity || !strings.Contains(s.why, tc.says) {
				t.Errorf("got %+v", s)
			}
		})
	}
}

func TestASuspendedSource(t *testing.T) {
	s := &flux.Source{Ref: flux.Ref{Kind: "GitRepository", Namespace: "ns", Name: "main"}, Suspended: true}
	if got := suspendedSource(s, 2); got.harmless || !strings.Contains(got.why, "2 tiers are built from it") {
		t.Errorf("without an artifact: %+v", got)
	}
	s.Artifact = &flux.Artifact{Revision: "main@sha1:aaaa"}
	got := suspendedSource(s, 1)
	if !got.harmless || !strings.Contains(got.why, "at main@sha1:aaaa") || got.fix != "if it is meant to run: flux resume source git main -n ns" {
		t.Errorf("with one: %+v", got)
	}
}

func manifestOf(kind, namespace, name string) build.Object {
	o := build.Object{Unstructured: &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind}}}
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

func TestWhatABuildKeeps(t *testing.T) {
	sealed := manifestOf("Secret", "ns", "token-abcde12345")
	sealed.Encrypted = true
	ignored := manifestOf("ConfigMap", "ns", "ignored")
	ignored.Ignored = true
	r := &build.Result{Objects: []build.Object{manifestOf("ConfigMap", "ns", "a"), manifestOf("Namespace", "ns", "b"), sealed, ignored}}
	ref := func(kind, namespace, name string) flux.Ref {
		return flux.Ref{APIVersion: "v1", Kind: kind, Namespace: namespace, Name: name}
	}
	for of, want := range map[flux.Ref]bool{
		ref("ConfigMap", "ns", "a"):               true,
		ref("ConfigMap", "other", "a"):            false,
		ref("Secret", "ns", "a"):                  false,
		ref("Namespace", "", "b"):                 true, // of cluster scope, whatever its manifest says
		ref("Secret", "ns", "token-zyxwv98765"):   true, // kustomize made another suffix of the ciphertext
		ref("Secret", "ns", "another-zyxwv98765"): false,
		ref("ConfigMap", "ns", "ignored"):         false,
	} {
		if got := keeps(r, of); got != want {
			t.Errorf("%s: %t", of, got)
		}
	}
}

func TestWhatAPruneTakes(t *testing.T) {
	own := map[string]string{flux.KustomizeGroup + "/name": "a", flux.KustomizeGroup + "/namespace": "ns"}
	with := func(key, value string) map[string]string {
		return map[string]string{flux.KustomizeGroup + "/" + key: value}
	}
	for name, tc := range map[string]struct {
		labels, annotations map[string]string
		want                bool
	}{
		"its own":               {own, nil, true},
		"of another tier now":   {with("name", "b"), nil, false},
		"prune is off":          {own, with("prune", "Disabled"), false},
		"reconcile is off":      {own, with("reconcile", "disabled"), false},
		"it is ignored":         {own, with("ssa", "Ignore"), false},
		"it is merged, and own": {own, with("ssa", "Merge"), true},
	} {
		live := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Labels: tc.labels, Annotations: tc.annotations}}
		if got := prunes(tierRef("a"), live); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestTheReportOfAResume: what stays, what that holds back, and what is left.
func TestTheReportOfAResume(t *testing.T) {
	r := resumerOf(&config.Config{}, sleeping("a"), sleeping("b", "a"), sleeping("c"))
	r.stays[tierRef("a")] = stay{rule: "resume-prunes", severity: finding.Error, refused: true, why: "its prune would DELETE x", fix: "a command"}
	r.chosen = map[flux.Ref]bool{tierRef("b"): true, tierRef("c"): true}
	r.unset = []placeholder{{Variable: config.Variable{Name: "ENDPOINT"}, Degrades: []flux.Ref{tierRef("c")}}}

	report := r.rehearsal()
	var lines []string
	for _, c := range report.Checks {
		lines = append(lines, c.Name+": "+c.Message)
		for _, f := range c.Findings {
			lines = append(lines, "  "+f.Message)
		}
	}
	want := `suspended: 2 tiers were suspended that are meant to run
  Kustomization/ns/a is left as it is (suspended by flux since 2026-11-30T02:00:00Z): its prune would DELETE x
level 0: would be resumed: Kustomization/ns/c (suspended by flux since 2026-11-30T02:00:00Z)
held back: 
  Kustomization/ns/b cannot become Ready, since Kustomization/ns/a stays as it is: its prune would DELETE x
degraded: 
  Kustomization/ns/c: Ready does not mean that it works, since ENDPOINT is still a placeholder`
	if got := strings.Join(lines, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if report.Next != "kubectl standup resume" || report.Result != Findings {
		t.Errorf("next %q, %s", report.Next, report.Result)
	}
	if err, ok := errors.AsType[*ResumeRefusedError](r.refused()); !ok || err.ExitCode() != 6 || len(err.Tiers) != 1 {
		t.Errorf("refused: %v", r.refused())
	}

	n := r.last.Node(tierRef("c"))
	r.left = []*tiers.Node{n}
	report = r.report(&wait.StuckError{Tier: n.Ref, Root: *n.Root, Diagnosed: true})
	stopped := report.Findings[len(report.Findings)-1]
	if stopped.Rule != "resume-stopped" || *stopped.Object != n.Ref || len(stopped.Causes) != 1 ||
		stopped.Fix != "break the deadlock: kubectl standup crds, then go on: kubectl standup resume" {
		t.Errorf("stopped: %+v", stopped)
	}
	if report.Result != Failed || report.Next != "kubectl standup resume" {
		t.Errorf("%s, next %q", report.Result, report.Next)
	}
	if report = r.report(r.refused()); report.Findings[len(report.Findings)-1].Rule == "resume-stopped" {
		t.Error("a refusal comes after everything else was done")
	}
}

// TestWhoSuspendedATier: the manager is forgotten where Flux dropped it.
func TestWhoSuspendedATier(t *testing.T) {
	unknown := sleeping("b")
	unknown.SuspendedBy, unknown.SuspendedSince = "", time.Time{}
	r := resumerOf(&config.Config{}, sleeping("a"), unknown)
	for name, want := range map[string]string{"a": " (suspended by flux since 2026-11-30T02:00:00Z)", "b": " (suspended by somebody)"} {
		if got := suspendedBy(r.last.Node(tierRef(name))); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
