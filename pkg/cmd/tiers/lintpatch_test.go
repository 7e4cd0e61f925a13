// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package tiers

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/lint"
)

// TestWhatAPatchSaysIsNotLost: git apply reads stdout, and nobody its comments.
func TestWhatAPatchSaysIsNotLost(t *testing.T) {
	r := with(finding.Error, finding.Warning, finding.Warning, finding.Info)
	r.Findings[0].Suggestion = "# Moves it down.\n--- a/x\n+++ b/x\n"
	r.Patch = lint.Patch{Diff: r.Findings[0].Suggestion, Notes: []string{"Moves it\ndown.", "Mind a cluster that runs already."}}
	r.Root = "/src/my fleet"
	for _, tt := range []struct {
		here string
		want string
	}{
		{"/src", "  patch     Moves it down.\n            Mind a cluster that runs already.\n" +
			"2 of 3 findings have no patch (information is not counted): patches are written for CS001, CS003, CS006, CS011 and HG001 alone, and only where they are safe.\n" +
			"The patch is relative to the root of the repository; apply it with: git -C '/src/my fleet' apply\n"},
		{r.Root, "  patch     Moves it down.\n            Mind a cluster that runs already.\n" +
			"2 of 3 findings have no patch (information is not counted): patches are written for CS001, CS003, CS006, CS011 and HG001 alone, and only where they are safe.\n"},
	} {
		var out bytes.Buffer
		if err := writePatched(&out, r, tt.here, 0); err != nil || out.String() != tt.want {
			t.Errorf("from %s: %v\n%s\nwant\n%s", tt.here, err, out.String(), tt.want)
		}
	}
	if got := runs(t, r, nil, "--suggest"); !strings.Contains(got.errOut, "Mind a cluster that runs already.\n") || !strings.Contains(got.errOut, "git -C '/src/my fleet' apply") {
		t.Errorf("stderr:\n%s", got.errOut)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	r.Root = here
	if got := runs(t, r, nil, "--suggest"); strings.Contains(got.errOut, "git -C") {
		t.Errorf("stderr:\n%s", got.errOut)
	}
	if got := runs(t, with(), nil, "--suggest"); strings.Contains(got.errOut, "patch") {
		t.Errorf("of nothing:\n%s", got.errOut)
	}
}

// TestThePatchAppliesAsAWhole: it is written as it is, and not finding by
// finding; what does not go together with it is said.
func TestThePatchAppliesAsAWhole(t *testing.T) {
	const whole = "# Two things.\ndiff --git a/x b/x\n--- a/x\n+++ b/x\n+1\n+2"
	r := with(finding.Error, finding.Error, finding.Error)
	for i, suggestion := range []string{"+1\n", "+2\n", "+3\n"} {
		r.Findings[i].Suggestion = "diff --git a/x b/x\n" + suggestion
	}
	for left, want := range map[int]string{
		0: "", 1: "1 more patch does not go together with the rest: apply this one, and run it again.\n",
		2: "2 more patches do not go together with the rest: apply this one, and run it again.\n",
	} {
		r.Patch = lint.Patch{Diff: whole, Left: left}
		got := runs(t, r, nil, "--suggest")
		if got.out != whole {
			t.Errorf("got\n%s\nwant\n%s", got.out, whole)
		}
		if said := strings.Contains(got.errOut, "go together"); said != (left > 0) || !strings.Contains(got.errOut, want) {
			t.Errorf("with %d left, stderr is\n%s", left, got.errOut)
		}
	}
}

// TestAPatchIsRefusedBelowTheRoot: git apply would leave out the other half.
func TestAPatchIsRefusedBelowTheRoot(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	r := with(finding.Error)
	r.Patch = lint.Patch{Diff: "--- a/x\n+++ b/x\n"}
	r.Root = filepath.Dir(here)
	var out bytes.Buffer
	if err := patches(&out, r); err == nil || out.Len() > 0 || !strings.Contains(err.Error(), "cd "+shellWord(r.Root)+" && kubectl tiers lint --suggest") {
		t.Errorf("%v\n%s", err, out.String())
	}
	for _, root := range []string{here, here + "/below", "/elsewhere", ""} {
		r.Root = root
		if err := patches(&bytes.Buffer{}, r); err != nil {
			t.Errorf("root %q: %v", root, err)
		}
	}
}
