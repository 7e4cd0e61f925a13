// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package e2e

import (
	"testing"

	"github.com/kubestandup/kubestandup/pkg/coldstart"
	"github.com/kubestandup/kubestandup/pkg/lint"
)

// coldPrediction is what lint says of a repository.
type coldPrediction struct {
	verdicts map[string]coldstart.Verdict
	// unready is how many tiers apply everything and are never Ready.
	unready int
	// late are, by tier, the kinds that may not be there at its first attempt,
	// each with what registers it.
	late map[string]map[string]lint.Via
}

// predict lints the repository as it is pushed.
func predict(t *testing.T, r *coldRepo) coldPrediction {
	t.Helper()
	report, err := lint.Run(t.Context(), lint.Options{Path: r.dir(t)})
	if err != nil {
		t.Fatalf("%s: %v", r.name, err)
	}
	if len(report.Entries) != 1 {
		t.Fatalf("%s: %d entry points, want one", r.name, len(report.Entries))
	}
	p := coldPrediction{report.Verdicts, report.Entries[0].Verdicts.Unready, map[string]map[string]lint.Via{}}
	for _, k := range report.Kinds {
		if k.When == coldstart.InTime {
			continue
		}
		key := k.Tier.Key()
		if p.late[key] == nil {
			p.late[key] = map[string]lint.Via{}
		}
		p.late[key][k.APIVersion+" "+k.Kind] = k.RegisteredBy.How
	}
	return p
}
