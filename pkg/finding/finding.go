// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

// Package finding is the one shape in which every command reports what it
// found: preflight, unwedge and lint all speak it.
package finding

import "github.com/kubestandup/kubestandup/pkg/flux"

// Severity says how much a finding matters.
type Severity string

// The severities, worst first.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
	Info    Severity = "info"
)

// Missing is a kind that nothing serves yet, and who creates it where that is
// known.
type Missing struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	CreatedBy  string `json:"createdBy,omitempty"`
}

// Finding is one thing that a person should know, with what to do about it.
type Finding struct {
	// Rule is stable: scripts select on it.
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`
	// Blocks stops `kubectl standup all`.
	Blocks  bool   `json:"blocks,omitempty"`
	Message string `json:"message"`
	// Object is what the finding is about; Tier the tier that it belongs to.
	Object *flux.Ref `json:"object,omitempty"`
	Tier   *flux.Ref `json:"tier,omitempty"`
	// File and Line are set by findings about a working tree.
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
	// Causes is the chain of evidence, nearest first.
	Causes  []string  `json:"causes,omitempty"`
	Missing []Missing `json:"missing,omitempty"`
	// Fix says in words what to do; Suggestion is a command or a patch that
	// does it.
	Fix        string `json:"fix,omitempty"`
	Suggestion string `json:"suggestion,omitempty"`
}
