// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubestandup/kubestandup/pkg/cmd/util"
	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/standup"
)

// printed is what a person sees of the reports.
func printed(t *testing.T, sequence bool, reports ...standup.StepReport) string {
	t.Helper()
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	f := &Flags{shell: util.NewShell(&cobra.Command{Use: "standup"}, streams)}
	for i := range reports {
		if err := f.print(&reports[i], sequence); err != nil {
			t.Fatal(err)
		}
	}
	return out.String()
}

func preflight() standup.StepReport {
	object := &flux.Ref{Kind: "Secret", Namespace: "flux-system", Name: "sops-age"}
	blocks := finding.Finding{Rule: "secret-missing", Severity: finding.Error, Blocks: true, Object: object, Message: "it does not exist", Fix: "kubectl create it\x1b[31m"}
	known := finding.Finding{Rule: "later", Severity: finding.Info, Message: "it comes later", Causes: []string{"because"}}
	unproved := finding.Finding{Rule: "unproved", Severity: finding.Info, Message: "nothing tells", Suggestion: "- {kind: A,\n   current: x}"}
	late := finding.Finding{Rule: "late", Severity: finding.Warning, Message: "it is late", Missing: []finding.Missing{{APIVersion: "a/v1", Kind: "A", CreatedBy: "nobody"}}}
	return standup.StepReport{
		Name: "preflight", Result: standup.Findings, Next: "kubectl standup all",
		Checks: []standup.Check{
			{Name: "identity", Message: "as expected"},
			{Name: "decryption", Findings: []finding.Finding{blocks}},
			{Name: "kinds", Message: "22 built", Findings: []finding.Finding{known}},
			{Name: "tiers", Message: "1 of 2", Findings: []finding.Finding{late, unproved}},
		},
		Findings: []finding.Finding{blocks, known, late, unproved},
	}
}

func TestWhatAPersonSeesOfAStep(t *testing.T) {
	const want = `CHECK        RESULT    DETAIL
identity     ok        as expected
decryption   blocks    it does not exist
kinds        ok        22 built
kinds        info      it comes later
tiers        partly    1 of 2
tiers        warning   it is late
tiers        info      nothing tells

secret-missing Secret/flux-system/sops-age
  fix       kubectl create it^[[31m

late
  missing   A a/v1, created by nobody

unproved
            - {kind: A,
               current: x}

Next: kubectl standup all
`
	if got := printed(t, false, preflight()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestWhatAPersonSeesOfASequence(t *testing.T) {
	got := printed(t, true, preflight(), standup.StepReport{Name: "crds", Result: standup.Skipped}, standup.StepReport{Name: "verify", Result: standup.Skipped})
	if !strings.HasPrefix(got, "\nPREFLIGHT: findings\nCHECK ") || !strings.HasSuffix(got, "Next: kubectl standup all\n\nCRDS: skipped\nVERIFY: skipped\n") {
		t.Errorf("got\n%s", got)
	}
}

// TestAllDeletesNothing: the flag is refused before any server is asked.
func TestAllDeletesNothing(t *testing.T) {
	for _, tt := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"all", "--confirm-destructive"}, util.ExitRefused, "'all' deletes nothing, by design"},
		{[]string{"all", "--from-step", "nothing"}, util.ExitUsage, `"nothing" is no step: the steps are preflight, crds, unwedge, resume, verify`},
		{[]string{"all", "--skip-steps", "preflight,crds,unwedge,resume,verify"}, util.ExitUsage, "no step is left"},
		{[]string{"all", "--timeout", "0s"}, util.ExitUsage, "--timeout 0s leaves no time"},
		{[]string{"preflight", "--report", "report.txt"}, util.ExitUsage, "has to end in .json, or in .xml for JUnit"},
		{[]string{"preflight", "--dry-run"}, util.ExitUsage, "unknown flag: --dry-run"},
		{[]string{"preflight", "more"}, util.ExitUsage, `takes no arguments, but got "more"`},
	} {
		streams, _, out, errOut := genericiooptions.NewTestIOStreams()
		code := util.Execute(t.Context(), NewCmd, streams, tt.args...)
		if code != tt.code || !strings.Contains(errOut.String(), tt.says) || out.String() != "" {
			t.Errorf("%v: exit code %d, %s%s", tt.args, code, out, errOut)
		}
	}
}
