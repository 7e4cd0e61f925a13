// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package tiers

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubestandup/kubestandup/pkg/cmd/util"
	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/lint"
)

type linted struct {
	code        int
	out, errOut string
	asked       *lint.Options // nil when it was not run
}

// runs types a command line, and answers it with a report.
func runs(t *testing.T, report *lint.Report, failure error, args ...string) linted {
	t.Helper()
	streams, _, out, errOut := genericiooptions.NewTestIOStreams()
	var l linted
	l.code = util.Execute(t.Context(), func(streams genericiooptions.IOStreams) *cobra.Command {
		root := &cobra.Command{Use: "tiers"}
		shell := util.NewShell(root, streams)
		root.AddCommand(newCmdLint(shell, func(_ context.Context, o lint.Options) (*lint.Report, error) {
			l.asked = &o
			return report, failure
		}))
		return root
	}, streams, append([]string{"lint"}, args...)...)
	l.out, l.errOut = out.String(), errOut.String()
	return l
}

// with is a report with findings of these severities.
func with(severities ...finding.Severity) *lint.Report {
	r := proven("clusters/prod")
	for _, s := range severities {
		r.Findings = append(r.Findings, finding.Finding{Rule: "CS001", Severity: s, Message: "m"})
	}
	return r
}

func TestLintEndsWithWhatItFound(t *testing.T) {
	for _, tt := range []struct {
		args   string
		report *lint.Report
		code   int
	}{
		{"", with(), 0},
		{"", with(finding.Error), 3},
		{"", with(finding.Warning, finding.Info), 0},
		{"--fail-on error", with(finding.Warning), 0},
		{"--fail-on warning", with(finding.Warning), 3},
		{"--fail-on warning", with(finding.Error), 3},
		{"--fail-on warning", with(finding.Info), 0},
		{"-o json", with(finding.Error), 3},
		{"-o yaml", with(), 0},
		{"-o sarif", with(finding.Error), 3},
		{"--suggest", with(finding.Error), 3},
	} {
		if got := runs(t, tt.report, nil, strings.Fields(tt.args)...); got.code != tt.code || got.asked == nil {
			t.Errorf("%s with %d findings: exit code %d, want %d (%s)", tt.args, len(tt.report.Findings), got.code, tt.code, got.errOut)
		}
	}
}

func TestLintTypedWrongly(t *testing.T) {
	for _, tt := range []struct{ args, says string }{
		{"-o wide", "choose one of: text, json, yaml, sarif"},
		{"--fail-on info", "choose one of: error, warning"},
		{"a b", "accepts at most 1 arg"},
		{"--entry=", "--entry is empty"},
		{"--suggest -o sarif", "--suggest does not go with -o sarif"},
		{"--kinds -o sarif", "--kinds does not go with -o sarif"},
		{"--kinds --suggest", "--kinds and --suggest contradict each other"},
		{"--nothing", "unknown flag: --nothing"},
		{"--wait", "unknown flag: --wait"},
	} {
		got := runs(t, with(), nil, strings.Fields(tt.args)...)
		if got.code != util.ExitUsage || !strings.Contains(got.errOut, tt.says) || got.asked != nil || got.out != "" {
			t.Errorf("%s: exit code %d, %s", tt.args, got.code, got.errOut)
		}
	}
	if got := runs(t, with(), nil, ""); got.code != util.ExitUsage || !strings.Contains(got.errOut, "PATH is empty") {
		t.Errorf("an empty PATH: exit code %d, %s", got.code, got.errOut)
	}
}

func TestLintPassesOnWhatWasTyped(t *testing.T) {
	file := filepath.Join(t.TempDir(), "own.yaml")
	if err := os.WriteFile(file, []byte("relations: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := runs(t, with(), nil, "repo", "--entry", "clusters/a", "--entry", "clusters/b", "--knowledge", file,
		"--fetch-charts", "--chart-cache", "cache", "--remote-bases", "--loose-substitution", "--suggest")
	want := &lint.Options{
		Path: "repo", Entries: []string{"clusters/a", "clusters/b"}, Knowledge: []lint.KnowledgeFile{{Name: file, Content: []byte("relations: []\n")}},
		FetchCharts: true, ChartCache: "cache", RemoteBases: true, LooseSubstitution: true, Suggest: true,
	}
	if !reflect.DeepEqual(got.asked, want) {
		t.Errorf("got  %+v\nwant %+v", got.asked, want)
	}
	// What was fetched once is used in later runs.
	t.Setenv("XDG_CACHE_HOME", "/cache")
	if got := runs(t, with(), nil); !reflect.DeepEqual(got.asked, &lint.Options{Path: ".", ChartCache: "/cache/kubestandup/charts"}) {
		t.Errorf("nothing typed: %+v", got.asked)
	}
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("HOME", "")
	if got := runs(t, with(), nil); got.code != 0 || got.asked.ChartCache != "" {
		t.Errorf("no home: exit code %d, %+v", got.code, got.asked)
	}
	if got := runs(t, with(), nil, "--fetch-charts"); got.code != util.ExitUsage || !strings.Contains(got.errOut, "name one with --chart-cache") {
		t.Errorf("no home: exit code %d, %s", got.code, got.errOut)
	}
	absent := filepath.Join(t.TempDir(), "absent.yaml")
	if got := runs(t, with(), nil, "--knowledge", absent); got.code != util.ExitError || got.asked != nil ||
		got.errOut != "error: --knowledge "+absent+" cannot be read: no such file or directory\n" {
		t.Errorf("exit code %d, %s", got.code, got.errOut)
	}
}

func TestLintFails(t *testing.T) {
	got := runs(t, nil, errors.New("working tree x is not a directory"), "x")
	if got.code != util.ExitError || got.errOut != "error: working tree x is not a directory\n" || got.out != "" {
		t.Errorf("exit code %d, %q, %q", got.code, got.out, got.errOut)
	}
}

// TestLintAsksNoCluster: a kubeconfig that would be an error to read is not
// read, and neither is one that is named.
func TestLintAsksNoCluster(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(broken, []byte("\x00no kubeconfig"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", broken)
	for _, args := range []string{"", "--context nowhere", "--kubeconfig " + broken} {
		if got := runs(t, with(), nil, strings.Fields(args)...); got.code != 0 || got.errOut != "" {
			t.Errorf("%q: exit code %d, %s", args, got.code, got.errOut)
		}
	}
	help := runs(t, with(), nil, "--help").out
	for _, not := range []string{"--context=", "--kubeconfig", "--server", "--namespace", "--expect-server="} {
		if strings.Contains(help, not) {
			t.Errorf("help speaks of %s", not)
		}
	}
	for _, flag := range []string{"--fail-on", "--entry", "--kinds", "--knowledge", "--fetch-charts", "--chart-cache", "--suggest", "--remote-bases", "--output"} {
		if !strings.Contains(help, flag) {
			t.Errorf("help does not speak of %s", flag)
		}
	}
}

func TestLintForPrograms(t *testing.T) {
	var report struct {
		APIVersion, Kind string
		Findings         []finding.Finding
		Kinds            []struct{ Kind string }
	}
	got := runs(t, deadlocked(), nil, "-o", "json")
	if err := json.Unmarshal([]byte(got.out), &report); err != nil {
		t.Fatal(err)
	}
	if report.Kind != "LintReport" || report.APIVersion != "kubestandup.dev/v1alpha1" || len(report.Findings) != 3 || len(report.Kinds) != 7 || got.errOut != "" {
		t.Errorf("%+v, %s", report, got.errOut)
	}
	if got := runs(t, with(), nil, "-o", "yaml"); !strings.Contains(got.out, "kind: LintReport\n") || !strings.Contains(got.out, "findings: []\n") {
		t.Errorf("got\n%s", got.out)
	}
	var log struct{ Version string }
	if err := json.Unmarshal([]byte(runs(t, deadlocked(), nil, "-o", "sarif").out), &log); err != nil || log.Version != "2.1.0" {
		t.Errorf("%+v, %v", log, err)
	}
}

// TestThePatchIsAllThatIsPipedOn: the findings are for the person, on stderr.
func TestThePatchIsAllThatIsPipedOn(t *testing.T) {
	r := with(finding.Error, finding.Error, finding.Warning, finding.Info)
	r.Findings[0].Suggestion = "--- a/x\n+++ b/x\n"
	r.Patch = lint.Patch{Diff: "--- a/x\n+++ b/x\n--- a/y\n+++ b/y\n"}
	got := runs(t, r, nil, "--suggest")
	if got.out != "--- a/x\n+++ b/x\n--- a/y\n+++ b/y\n" || !strings.Contains(got.errOut, "CS001") {
		t.Errorf("stdout\n%s\nstderr\n%s", got.out, got.errOut)
	}
	if got := runs(t, r, nil); strings.Contains(got.out, "+++") || !strings.Contains(got.out, "CS001") || got.errOut != "" {
		t.Errorf("stdout\n%s\nstderr\n%s", got.out, got.errOut)
	}
}

func TestTiersHasLint(t *testing.T) {
	root := NewCmd(genericiooptions.NewTestIOStreamsDiscard())
	if cmd, _, err := root.Find([]string{"lint"}); err != nil || cmd.Name() != "lint" {
		t.Errorf("%v, %v", cmd, err)
	}
}

// TestALintThatIsMisspelt is not looked for as a tier alone.
func TestALintThatIsMisspelt(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	for _, args := range [][]string{{"lin"}, {"lnt", "."}, {"lin", "--suggest"}} {
		streams, _, _, errOut := genericiooptions.NewTestIOStreams()
		if code := util.Execute(t.Context(), NewCmd, streams, args...); code == 0 || !strings.Contains(errOut.String(), "\nif the command was meant: kubectl tiers lint\n") {
			t.Errorf("%q: exit code %d\n%s", args, code, errOut)
		}
	}
	streams, _, _, errOut := genericiooptions.NewTestIOStreams()
	if code := util.Execute(t.Context(), NewCmd, streams, "apps"); code == 0 || strings.Contains(errOut.String(), "was meant") {
		t.Errorf("exit code %d\n%s", code, errOut)
	}
}
