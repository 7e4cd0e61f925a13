// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package suggest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/kubestandup/kubestandup/pkg/coldstart"
	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/lint"
	"github.com/kubestandup/kubestandup/pkg/lint/suggest"
)

// TestRepositories applies what lint suggests about each of its own fixtures,
// all at once with the real git: what had a patch is gone, nothing else has
// come, and what is suggested next is nothing, in the end at least.
func TestRepositories(t *testing.T) {
	fixtures, err := filepath.Glob("../testdata/repositories/*.txtar")
	if err != nil || len(fixtures) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	var patched atomic.Int64
	for _, fixture := range fixtures {
		content, err := os.ReadFile(fixture)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(strings.TrimSuffix(filepath.Base(fixture), ".txtar"), func(t *testing.T) {
			t.Parallel()
			patched.Add(int64(converge(t, suggest.Unpack(t, string(content)))))
		})
	}
	t.Cleanup(func() {
		if n := patched.Load(); n < 26 && !t.Failed() {
			t.Errorf("%d patches", n)
		}
	})
}

// converge applies patches and answers how many there were. A second one is for
// what the first brings to light: tiers that were blocked come up.
func converge(t *testing.T, dir string) int {
	t.Helper()
	const enough = 3
	report := relint(t, dir)
	for n := range enough {
		patch := report.Patch
		if patch.Diff == "" {
			for _, f := range report.Findings {
				if f.Suggestion != "" {
					t.Errorf("%s has a patch that is not among all", keyOf(f))
				}
				if slices.Contains(lint.Suggested(), f.Rule) && f.Severity != finding.Info {
					t.Logf("left: %s: %s", f.Message, f.Fix[strings.LastIndex(f.Fix, "\n")+1:])
				}
			}
			return n
		}
		suggest.Apply(t, dir, patch.Diff)
		after := relint(t, dir)
		compared(t, report, after)
		report = after
	}
	t.Errorf("patches follow each other without an end")
	return enough
}

// compared is what a patch has to do.
func compared(t *testing.T, report, after *lint.Report) {
	t.Helper()
	patch := report.Patch
	if patch.Left > 0 {
		t.Errorf("%d patches do not go together with the rest", patch.Left)
	}
	before, now := said(report), said(after)
	retries := strings.Contains(patch.Diff, "# No gate: ")
	for _, f := range report.Findings {
		if _, still := now[keyOf(f)]; f.Suggestion != "" && still {
			t.Errorf("%s is still there after\n%s", keyOf(f), patch.Diff)
		}
	}
	for key := range now {
		if _, was := before[key]; !was && !(retries && strings.HasPrefix(key, "HG001 ")) && !unblocked(report, after, key) {
			t.Errorf("%s came by\n%s", now[key], patch.Diff)
		}
	}
	for tier, verdict := range after.Verdicts {
		if _, was := report.Verdicts[tier]; !was && verdict != coldstart.AtOnce && (!retries || verdict != coldstart.ByRetry) {
			t.Errorf("%s is %s after\n%s", tier, verdict, patch.Diff)
		}
	}
	for _, f := range report.Findings {
		if f.Suggestion == "" || f.Rule != "CS001" {
			continue
		}
		for tier, verdict := range after.Verdicts {
			// What a remote base holds is not known afterwards either.
			up := verdict == coldstart.AtOnce || verdict == coldstart.Unknown
			if (tier == f.Tier.Key() || strings.HasSuffix(tier, ":"+f.Tier.Key())) && !up {
				t.Errorf("%s is %s after\n%s", tier, verdict, patch.Diff)
			}
		}
	}
}

// unblocked is true for what is found of a tier that was blocked before.
func unblocked(report, after *lint.Report, key string) bool {
	for _, f := range after.Findings {
		if keyOf(f) == key && f.Tier != nil {
			for tier, verdict := range report.Verdicts {
				if verdict == coldstart.Blocked && (tier == f.Tier.Key() || strings.HasSuffix(tier, ":"+f.Tier.Key())) {
					return true
				}
			}
		}
	}
	return false
}

func relint(t *testing.T, dir string) *lint.Report {
	t.Helper()
	report, err := lint.Run(t.Context(), lint.Options{Path: dir, Suggest: true})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func keyOf(f finding.Finding) string {
	tier := ""
	if f.Tier != nil {
		tier = f.Tier.Key()
	}
	return fmt.Sprintf("%s of %s", f.Rule, tier)
}

// said are the errors and warnings.
func said(r *lint.Report) map[string]string {
	all := map[string]string{}
	for _, f := range r.Findings {
		if f.Severity != finding.Info {
			all[keyOf(f)] = f.Message
		}
	}
	return all
}

// fleet is a repository of two clusters that build the same folder.
const fleet = `
-- clusters/a/flux-system/gotk-sync.yaml --
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: flux-system, namespace: flux-system}
spec: {interval: 1m, ref: {branch: main}, url: "https://git.example.com/fleet"}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: flux-system, namespace: flux-system}
spec: {interval: 10m, path: ./clusters/a, prune: true, sourceRef: {kind: GitRepository, name: flux-system}}
-- clusters/a/tiers.yaml --
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: config, namespace: flux-system}
spec: {interval: 10m, path: ./config, prune: true, wait: true, sourceRef: {kind: GitRepository, name: flux-system}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: late, namespace: flux-system}
spec: {interval: 10m, path: ./late, prune: true, sourceRef: {kind: GitRepository, name: flux-system}}
-- config/all.yaml --
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: cdis.cdi.kubevirt.io}
spec:
  group: cdi.kubevirt.io
  names: {kind: CDI, plural: cdis}
  scope: Cluster
  versions: [{name: v1beta1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
---
apiVersion: cdi.kubevirt.io/v1beta1
kind: CDI
metadata: {name: cdi}
---
apiVersion: cdi.kubevirt.io/v1beta1
kind: StorageProfile
metadata: {name: longhorn}
-- late/a.yaml --
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: media}
`

// TestFleet: both clusters are mended by one patch, whether one was asked for or
// both; what an annotation hides is left alone.
func TestFleet(t *testing.T) {
	first, _, _ := strings.Cut(fleet, "-- config/")
	second := strings.ReplaceAll(first, "clusters/a", "clusters/b")
	run := func(t *testing.T, text string, entries ...string) (string, *lint.Report) {
		t.Helper()
		dir := suggest.Unpack(t, text)
		report, err := lint.Run(t.Context(), lint.Options{Path: dir, Suggest: true, Entries: entries})
		if err != nil {
			t.Fatal(err)
		}
		return dir, report
	}
	dir, both := run(t, second+fleet)
	_, one := run(t, second+fleet, "clusters/a")
	for _, part := range []string{"diff --git a/clusters/a/tiers.yaml ", "diff --git a/clusters/b/tiers.yaml ", "+++ b/config-cdi/all.yaml", "+++ b/late/namespace.yaml"} {
		if strings.Count(both.Patch.Diff, part) != 1 || strings.Count(one.Patch.Diff, part) != 1 && !strings.Contains(part, "late") {
			t.Errorf("%q is not once in\n%s\n%s", part, both.Patch.Diff, one.Patch.Diff)
		}
	}
	for _, f := range both.Findings {
		if f.Suggestion == "" && f.Severity != finding.Info {
			t.Errorf("no patch: %s\n%s", f.Message, f.Fix)
		}
	}
	suggest.Apply(t, dir, both.Patch.Diff)
	if after := relint(t, dir); len(said(after)) > 0 || after.Patch.Diff != "" {
		t.Errorf("%v\n%s", said(after), after.Patch.Diff)
	}
	_, hidden := run(t, strings.Replace(fleet, "{name: longhorn}", `{name: longhorn, annotations: {lint.kubestandup.dev/ignore: "CS001: meant"}}`, 1))
	if strings.Contains(hidden.Patch.Diff, "config") || !strings.Contains(hidden.Patch.Diff, "late/namespace.yaml") {
		t.Errorf("what is hidden is changed:\n%s", hidden.Patch.Diff)
	}
}
