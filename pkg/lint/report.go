// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/coldstart"
	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/repository"
)

// Report is what was found out about a repository: what becomes of each of its
// clusters when it is empty, and what is wrong with that.
type Report struct {
	metav1.TypeMeta `json:",inline"`
	// Entries are the clusters, by where Flux begins.
	Entries []Entry `json:"entries"`
	Summary Summary `json:"summary"`
	// Findings are sorted: the worst first, then by file.
	Findings []finding.Finding `json:"findings"`
	// Kinds are the audit: each kind that is not built in, as each tier uses it.
	Kinds []Kind `json:"kinds,omitempty"`
	// Loose are Kustomizations of the repository that no cluster holds: nothing
	// was proved of them.
	Loose []Loose `json:"loose,omitempty"`

	// Verdicts are what becomes of each tier, by namespace/name; where there are
	// several clusters, by entry:namespace/name.
	Verdicts map[string]coldstart.Verdict `json:"-"`

	// Root is the top of the repository, absolute: what the paths of patches are
	// relative to.
	Root string `json:"-"`

	// Patch mends all that patches are written for at once. It is empty unless
	// it was asked for.
	Patch Patch `json:"-"`

	suppressed []suppressed
	several    bool // clusters
}

// Summary counts.
type Summary struct {
	Tiers    int `json:"tiers"`
	Objects  int `json:"objects"`
	Errors   int `json:"errors"`
	Warnings int `json:"warnings"`
	Infos    int `json:"infos"`
	// Suppressed are findings that an annotation with a reason hides. They are
	// not among the others.
	Suppressed int `json:"suppressed"`
}

// Worst is whether a finding is at least as bad as the severity.
func (r *Report) Worst(than finding.Severity) bool {
	return slices.ContainsFunc(r.Findings, func(f finding.Finding) bool { return rank(f.Severity) <= rank(than) })
}

// examined is one cluster, with what the rules found in it.
type examined struct {
	subject  *Subject
	cluster  *repository.Cluster
	findings []finding.Finding
	// fetches is true where charts were to be fetched.
	fetches bool
}

// newReport makes the report of the clusters of a repository. What the rules
// found is completed by what does not build, and by what is wrong with the
// suppressions.
func newReport(clusters []examined) *Report {
	r := &Report{
		Entries: []Entry{}, Findings: []finding.Finding{}, Verdicts: map[string]coldstart.Verdict{},
		several: len(clusters) > 1,
	}
	annotations := newSuppressions()
	var all merger
	for i := range clusters {
		c := &clusters[i]
		entry := c.entry()
		r.Entries = append(r.Entries, entry)
		r.Summary.Tiers += entry.Tiers
		r.Summary.Objects += entry.Objects
		r.verdicts(c)
		r.Kinds = append(r.Kinds, c.kinds(r.several)...)
		annotations.read(c.subject)
		for _, f := range slices.Concat(c.unbuilt(), c.findings) {
			c.place(&f)
			reason, hidden := annotations.hide(c.subject.Entry, &f)
			all.add(f, c.subject.Entry, reason, hidden)
			r.Entries[i].suppress(&f, hidden)
		}
	}
	for _, f := range annotations.findings() {
		all.add(f, "", "", false)
	}
	r.Findings, r.suppressed = all.merged(len(clusters))
	slices.SortStableFunc(r.Findings, compare)
	r.Summary.Suppressed = len(r.suppressed)
	for _, f := range r.Findings {
		switch f.Severity {
		case finding.Error:
			r.Summary.Errors++
		case finding.Warning:
			r.Summary.Warnings++
		default:
			r.Summary.Infos++
		}
	}
	return r
}

// place gives a finding about what is written nowhere, because it is generated,
// the place of its tier.
func (c *examined) place(f *finding.Finding) {
	if f.File != "" || f.Tier == nil {
		return
	}
	at := c.subject.tierAt(*f.Tier)
	f.File, f.Line = at.File, at.Line
}

// tierAt is where the Kustomization is written: in what its parent builds.
func (s *Subject) tierAt(tier flux.Ref) build.Position {
	if s.Locate == nil {
		return build.Position{}
	}
	for i := range s.World.Tiers {
		t := &s.World.Tiers[i]
		if coldstart.Key(t.Tier) != coldstart.Key(tier) {
			continue
		}
		for _, parent := range t.Parents {
			if at := s.Locate(parent, t.Tier); at.File != "" {
				return at
			}
		}
		return s.Locate(flux.Ref{}, t.Tier)
	}
	return build.Position{}
}

func (r *Report) verdicts(c *examined) {
	for _, o := range c.subject.Prediction.Outcomes {
		key := o.Tier.Key()
		if r.several {
			key = c.subject.Entry + ":" + key
		}
		r.Verdicts[key] = o.Verdict
	}
}

func rank(s finding.Severity) int {
	return slices.Index([]finding.Severity{finding.Error, finding.Warning, finding.Info}, s)
}

// compare orders findings as a person mends them: the worst first, then file by
// file. It tells any two apart that differ, so that the order is the same in
// each run.
func compare(a, b finding.Finding) int {
	return cmp.Or(
		cmp.Compare(rank(a.Severity), rank(b.Severity)),
		strings.Compare(a.File, b.File),
		cmp.Compare(a.Line, b.Line),
		strings.Compare(a.Rule, b.Rule),
		orNone(a.Tier).Compare(orNone(b.Tier)),
		orNone(a.Object).Compare(orNone(b.Object)),
		strings.Compare(a.Message, b.Message),
	)
}

func orNone(r *flux.Ref) flux.Ref {
	if r == nil {
		return flux.Ref{}
	}
	return *r
}
