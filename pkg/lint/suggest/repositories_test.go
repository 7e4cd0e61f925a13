// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package suggest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kubestandup/kubestandup/pkg/coldstart"
	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/lint"
	"github.com/kubestandup/kubestandup/pkg/lint/suggest"
)

// TestRepositories applies what lint suggests about its own fixtures, until it
// suggests nothing more: each patch makes its finding go away, brings no other
// one, and the tier that it is about converges at once in the end.
func TestRepositories(t *testing.T) {
	fixtures, err := filepath.Glob("../testdata/repositories/*.txtar")
	if err != nil || len(fixtures) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	patched := 0
	for _, fixture := range fixtures {
		content, err := os.ReadFile(fixture)
		if err != nil {
			t.Fatal(err)
		}
		if text := string(content); !strings.Contains(text, "finding: CS001 ") && !strings.Contains(text, "finding: HG001 ") {
			continue
		}
		t.Run(strings.TrimSuffix(filepath.Base(fixture), ".txtar"), func(t *testing.T) {
			patched += converge(t, suggest.Unpack(t, string(content)))
		})
	}
	t.Logf("%d patches", patched)
	if patched == 0 {
		t.Error("no fixture has a patch")
	}
}

// converge applies patches and answers how many there were.
func converge(t *testing.T, dir string) int {
	t.Helper()
	const enough = 10
	report := relint(t, dir)
	for n := range enough {
		i := slices.IndexFunc(report.Findings, func(f finding.Finding) bool { return f.Suggestion != "" })
		if i < 0 {
			for _, f := range report.Findings {
				if f.Rule == "CS001" || f.Rule == "HG001" {
					t.Logf("left: %s: %s", f.Message, f.Fix[strings.LastIndex(f.Fix, "\n")+1:])
				}
			}
			return n
		}
		f := report.Findings[i]
		suggest.Apply(t, dir, f.Suggestion)
		after := relint(t, dir)
		before := said(report)
		for key := range said(after) {
			if key == keyOf(f) && severest(after, key) == f.Severity {
				t.Errorf("%s is still there after\n%s", key, f.Suggestion)
			} else if _, was := before[key]; !was && !expected(key, f) {
				t.Errorf("%s came by\n%s", key, f.Suggestion)
			}
		}
		retries := strings.Contains(f.Suggestion, "# No gate: ")
		for tier, verdict := range after.Verdicts {
			_, was := report.Verdicts[tier]
			about := f.Rule == "CS001" && tier == f.Tier.Key()
			if (about || !was) && verdict != coldstart.AtOnce && (about || !retries || verdict != coldstart.ByRetry) {
				t.Errorf("%s is %s after\n%s", tier, verdict, f.Suggestion)
			}
		}
		report = after
	}
	t.Errorf("patches follow each other without an end")
	return enough
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

func severest(r *lint.Report, key string) finding.Severity {
	for _, f := range r.Findings {
		if keyOf(f) == key {
			return f.Severity
		}
	}
	return ""
}

// expected is the hollow gate that is left of a deadlock where no expression is
// known that proves the trigger reconciled. The patch says so.
func expected(key string, f finding.Finding) bool {
	return strings.HasPrefix(key, "HG001 ") && f.Rule == "CS001" && strings.Contains(f.Suggestion, "# No gate: ")
}
