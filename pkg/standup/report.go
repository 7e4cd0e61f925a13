// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

// Package standup is the bring-up of a cluster as steps that can be run again
// at any time.
package standup

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/guard"
	"github.com/kubestandup/kubestandup/pkg/tiers"
)

// Result is how a step ended.
type Result string

// The results of a step.
const (
	OK       Result = "ok"
	Findings Result = "findings"
	Failed   Result = "failed"
	Skipped  Result = "skipped"
)

// Report is the versioned report of `kubectl standup`.
type Report struct {
	metav1.TypeMeta `json:",inline"`
	Server          tiers.Server `json:"server"`
	Steps           []StepReport `json:"steps"`
	// DryRun is true where nothing was changed because that was asked for.
	DryRun bool `json:"dryRun,omitempty"`
	Counts `json:",inline"`
}

// Counts are how many things verify looked at, by how it ended.
type Counts struct {
	// Proved are well, and something said so.
	Proved int `json:"proved"`
	// Unproved may be well: nothing tells.
	Unproved int `json:"unproved"`
	Failed   int `json:"failed"`
	// Skipped were not meant to run: suspended on purpose, or held.
	Skipped int `json:"skipped"`
}

// String is how a person reads them.
func (c Counts) String() string {
	return fmt.Sprintf("%d proved, %d unproved, %d failed, %d skipped", c.Proved, c.Unproved, c.Failed, c.Skipped)
}

// IdentityReport is the versioned report of `kubectl standup identify`.
type IdentityReport struct {
	metav1.TypeMeta `json:",inline"`
	guard.Identity  `json:",inline"`
}

// Add adds what steps reported.
func (r *Report) Add(steps []StepReport) {
	for _, s := range steps {
		r.Steps = append(r.Steps, s)
		r.Proved += s.Counts.Proved
		r.Unproved += s.Counts.Unproved
		r.Failed += s.Counts.Failed
		r.Skipped += s.Counts.Skipped
	}
}

// StepReport is what one step found and did.
type StepReport struct {
	Name   string `json:"name"`
	Result Result `json:"result"`
	// Seconds is how long the step took.
	Seconds  float64           `json:"seconds"`
	Checks   []Check           `json:"checks,omitempty"`
	Findings []finding.Finding `json:"findings,omitempty"`
	// Error is why the step failed, absent when it did not.
	Error string `json:"error,omitempty"`
	// Next is the command that goes on from here, absent when nothing is left.
	Next string `json:"next,omitempty"`
	// from is the step from which a sequence goes on that this one stopped;
	// itself where it is empty.
	from string
	// Counts are those of verify, which go into the report once.
	Counts Counts `json:"-"`
}

// Check is one question that a step asked, and the answer where it is good.
type Check struct {
	Name string `json:"name"`
	// Message says what was found to be as it should.
	Message string `json:"message,omitempty"`
	// Findings are what was not.
	Findings []finding.Finding `json:"-"`
}

// close sets what follows from the checks.
func (s *StepReport) close() {
	for _, c := range s.Checks {
		s.Findings = append(s.Findings, c.Findings...)
	}
	s.Result = OK
	if slices.ContainsFunc(s.Findings, func(f finding.Finding) bool { return f.Severity != finding.Info }) {
		s.Result = Findings
	}
}
