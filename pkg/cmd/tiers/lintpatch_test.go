// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package tiers

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/kubestandup/kubestandup/pkg/finding"
)

// TestWhatAPatchSaysIsNotLost: git apply reads stdout, and nobody its comments.
func TestWhatAPatchSaysIsNotLost(t *testing.T) {
	r := with(finding.Error, finding.Warning, finding.Warning, finding.Info)
	r.Findings[0].Suggestion = "# Moves it\n# down.\n#\n# Mind a cluster that runs already.\n--- a/x\n+++ b/x\n+# no note\n# Of the other cluster.\n--- a/y\n"
	r.Root = "/src/my fleet"
	for _, tt := range []struct {
		here string
		want string
	}{
		{"/src", "  patch 1   Moves it down.\n            Mind a cluster that runs already.\n            Of the other cluster.\n" +
			"2 of 3 findings have no patch: patches are written for CS001 and HG001 alone, and only where they are safe.\n" +
			"The patches are relative to the root of the repository; apply them with: git -C '/src/my fleet' apply\n"},
		{r.Root, "  patch 1   Moves it down.\n            Mind a cluster that runs already.\n            Of the other cluster.\n" +
			"2 of 3 findings have no patch: patches are written for CS001 and HG001 alone, and only where they are safe.\n"},
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

// Two patches of one file do not apply one after the other.
func TestPatchesOfOneFileComeOneByOne(t *testing.T) {
	const of = "diff --git a/x b/x\n--- a/x\n+++ b/x\n"
	r := with(finding.Error, finding.Error, finding.Error)
	r.Findings[0].Suggestion = of + "+1\n"
	r.Findings[1].Suggestion = of + "+2\n"
	r.Findings[2].Suggestion = "diff --git a/y b/y\n+3\n"
	got := runs(t, r, nil, "--suggest")
	if want := of + "+1\n" + "diff --git a/y b/y\n+3\n"; got.out != want {
		t.Errorf("got\n%s\nwant\n%s", got.out, want)
	}
	if !strings.Contains(got.errOut, "1 more patch changes files that these change too: apply these, and run this again.") {
		t.Errorf("stderr:\n%s", got.errOut)
	}
}
