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
