// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"bytes"
	"encoding/xml"
	"strings"
	"testing"

	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/tiers"
)

// TestJUnit: a suite for each step, a case for each check; what is information
// is no failure, and what did not run is skipped.
func TestJUnit(t *testing.T) {
	r := &Report{Server: tiers.Server{URL: "https://h"}}
	r.Add([]StepReport{
		{Name: "preflight", Result: Findings, Seconds: 1.25, Checks: []Check{
			{Name: "identity", Message: "as expected"},
			{Name: "nodes", Message: "3 are Ready", Findings: []finding.Finding{{Rule: "node-young", Severity: finding.Info, Message: "one is new"}}},
			{Name: "tiers", Findings: []finding.Finding{{Rule: "tier-failing", Severity: finding.Error, Message: "a < b & \x1b[31m", Causes: []string{"no such host"}, Fix: "mend it"}, {Rule: "two", Severity: finding.Warning, Message: "second"}}},
		}},
		{Name: "crds", Result: Failed, Error: "boom"},
		{Name: "verify", Result: Skipped, Counts: Counts{Proved: 3, Unproved: 2, Failed: 1, Skipped: 4}},
	})
	if r.Proved != 3 || r.Unproved != 2 || r.Failed != 1 || r.Skipped != 4 {
		t.Errorf("counts %+v", r.Counts)
	}
	var b bytes.Buffer
	if err := r.WriteJUnit(&b); err != nil {
		t.Fatal(err)
	}
	var got junitSuites
	if err := xml.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatalf("%v\n%s", err, b.String())
	}
	if got.Tests != 5 || got.Failures != 1 || got.Errors != 1 || got.Skipped != 1 || len(got.Suites) != 3 {
		t.Errorf("%+v", got)
	}
	cases := got.Suites[0].Cases
	if got.Suites[0].Time != "1.250" || cases[0].Failure != nil || cases[0].Out != "as expected" || cases[1].Failure != nil || !strings.Contains(cases[1].Out, "one is new") {
		t.Errorf("%+v", cases)
	}
	failure := cases[2].Failure
	if failure == nil || failure.Type != "tier-failing" || !strings.Contains(failure.Text, "seen: no such host\n  fix: mend it") || !strings.Contains(failure.Text, "second") {
		t.Errorf("%+v", failure)
	}
	if e := got.Suites[1].Cases[0].Error; e == nil || e.Message != "boom" {
		t.Errorf("%+v", got.Suites[1])
	}
}
