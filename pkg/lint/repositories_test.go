// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package lint_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/kubestandup/kubestandup/pkg/coldstart"
	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/lint"
)

// TestRepositories lints the repositories of testdata and compares what is
// found with what the comment of each file says. What a file does not name may
// be found only as information, and nothing at all where it says so.
func TestRepositories(t *testing.T) {
	files, err := filepath.Glob("testdata/repositories/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d repositories in testdata: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			report, err := lint.Run(t.Context(), lint.Options{Path: unpack(t, archive)})
			if err != nil {
				t.Fatal(err)
			}
			want := expected(t, string(archive.Comment))
			want.compare(t, report)
			if t.Failed() {
				t.Log(text(report))
			}
		})
	}
}

func unpack(t *testing.T, archive *txtar.Archive) string {
	t.Helper()
	dir := t.TempDir()
	for _, f := range archive.Files {
		path := filepath.Join(dir, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// expectation is what the comment of a repository says.
type expectation struct {
	verdicts map[string]coldstart.Verdict // by the name of the tier
	findings []line
	// none is true where not even information is expected, absent are the
	// rules that must not report anything.
	none   bool
	absent []string
}

type line struct{ rule, severity, tier, text string }

func expected(t *testing.T, comment string) expectation {
	t.Helper()
	want, said := expectation{verdicts: map[string]coldstart.Verdict{}}, false
	for l := range strings.Lines(comment) {
		l = strings.TrimRight(l, "\n")
		verdict, isVerdict := strings.CutPrefix(l, "want: ")
		found, isFinding := strings.CutPrefix(l, "finding: ")
		switch {
		case isVerdict:
			tier, v, _ := strings.Cut(verdict, " ")
			want.verdicts[tier] = coldstart.Verdict(v)
		case isFinding && found == "none at all":
			want.none, said = true, true
		case isFinding && found == "none":
			said = true // nothing but what other lines say
		case isFinding && strings.HasPrefix(found, "none of "):
			want.absent = append(want.absent, strings.Fields(found)[2])
		case isFinding:
			words := strings.SplitN(found, " ", 4)
			if len(words) < 4 {
				t.Fatalf("finding line %q: it is RULE SEVERITY TIER TEXT", l)
			}
			want.findings = append(want.findings, line{words[0], words[1], words[2], words[3]})
		}
	}
	if len(want.verdicts)+len(want.findings) == 0 && !said {
		t.Fatal("the comment expects nothing: add lines that begin with want: and finding:")
	}
	return want
}

func (l line) matches(f finding.Finding) bool {
	return f.Rule == l.rule && string(f.Severity) == l.severity && f.Tier != nil && f.Tier.Name == l.tier &&
		strings.Contains(f.Message+"\n"+strings.Join(f.Causes, "\n")+"\n"+f.Fix, l.text)
}

func (want expectation) compare(t *testing.T, report *lint.Report) {
	t.Helper()
	for tier, v := range want.verdicts {
		key := ""
		for k := range report.Verdicts {
			if k == tier || strings.HasSuffix(k, "/"+tier) {
				key = k
			}
		}
		if got := report.Verdicts[key]; got != v {
			t.Errorf("tier %s: %q, want %q", tier, got, v)
		}
	}
	claimed := map[int]bool{}
	for _, l := range want.findings {
		var hits []int
		for i, f := range report.Findings {
			if l.matches(f) {
				hits = append(hits, i)
				claimed[i] = true
			}
		}
		if len(hits) != 1 {
			t.Errorf("%d findings are %s %s of tier %s with %q, want one", len(hits), l.severity, l.rule, l.tier, l.text)
		}
	}
	for i, f := range report.Findings {
		if !claimed[i] && (f.Severity != finding.Info || want.none) || slices.Contains(want.absent, f.Rule) {
			t.Errorf("not expected: %s", f.Rule)
		}
	}
}

// text is the report as a person would want to read it when a test fails.
func text(r *lint.Report) string {
	var b strings.Builder
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "\n%s %s %s:%d %s\n", f.Rule, f.Severity, f.File, f.Line, f.Message)
		for _, c := range f.Causes {
			fmt.Fprintf(&b, "  - %s\n", c)
		}
		fmt.Fprintf(&b, "  fix: %s\n", strings.ReplaceAll(f.Fix, "\n", "\n  | "))
	}
	for _, tier := range slices.Sorted(func(yield func(string) bool) {
		for k := range r.Verdicts {
			if !yield(k) {
				return
			}
		}
	}) {
		fmt.Fprintf(&b, "%s: %s\n", tier, r.Verdicts[tier])
	}
	return b.String()
}
