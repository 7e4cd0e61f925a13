// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package e2e

import (
	"strings"
	"testing"
)

// oneSentence fails the test when an error is more than a sentence: one line
// that begins with error, and at most so many lines in all.
func oneSentence(t *testing.T, o outcome, lines int) {
	t.Helper()
	said := strings.Split(strings.TrimSpace(o.stderr), "\n")
	errors := 0
	for _, line := range said {
		if strings.HasPrefix(line, "error: ") {
			errors++
		}
	}
	if errors != 1 || len(said) > lines {
		t.Errorf("%s\nwant one sentence", o)
	}
}
