// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/coldstart"
	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/knowledge"
	"github.com/kubestandup/kubestandup/pkg/tiers"
)

// Subject is one cluster of a repository, with all that was found out about it.
type Subject struct {
	Entry      string
	Root       string // the source of the roots, for messages
	World      *coldstart.Cluster
	Prediction *coldstart.Prediction
	Graph      *tiers.Graph
	Book       *knowledge.Base
	// Locate finds where an object of a tier is written; the zero Position when
	// it is generated. The object of a root tier is asked for with the zero Ref
	// as its tier.
	Locate func(tier flux.Ref, object flux.Ref) build.Position
}

// Rule is one thing to look for.
type Rule struct {
	// ID is stable: CS001. Name is for people and for the page's address.
	ID, Name string
	// Severity is the worst that the rule reports.
	Severity finding.Severity
	// Title is one sentence: what is wrong.
	Title string
	// Check reports what is wrong with the subject.
	Check func(*Subject) []finding.Finding
}
