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

	suppressed []suppressed
	several    bool // clusters
}

// Entry is one cluster.
type Entry struct {
	// Entry is the file or folder that Flux begins with, relative to the root of
	// the repository.
	Entry string `json:"entry"`
	// Tiers and Objects are how many it has, and how many these apply; what
	// charts install is not counted.
	Tiers    int    `json:"tiers"`
	Objects  int    `json:"objects"`
	Verdicts Counts `json:"verdicts"`
	// Outcomes are what becomes of each tier, in the order in which they were
	// met.
	Outcomes []Outcome `json:"outcomes,omitempty"`
	// Kinds counts what tiers use that is not built in.
	Kinds KindCounts `json:"kinds"`
	// Outside are sources that are not this repository.
	Outside []Outside `json:"outside,omitempty"`
	// Opaque are HelmReleases of whose chart nothing is known.
	Opaque []Opaque `json:"opaque,omitempty"`
}

// Outcome is what becomes of one tier, when the cluster is empty at first.
type Outcome struct {
	Tier    flux.Ref          `json:"tier"`
	Verdict coldstart.Verdict `json:"verdict"`
	// Ready is whether it becomes Ready in the end.
	Ready bool `json:"ready"`
	// BlockedBy are the tiers that keep it from being attempted.
	BlockedBy []flux.Ref `json:"blockedBy,omitempty"`
}

// Counts are how many tiers end how, when the cluster is empty at first.
type Counts struct {
	AtOnce    int `json:"atOnce"`
	ByRetry   int `json:"byRetry"`
	Never     int `json:"never"`
	Blocked   int `json:"blocked"`
	Suspended int `json:"suspended"`
	// Unknown are tiers whose source is outside, or that do not build.
	Unknown int `json:"unknown"`
	// Unready are tiers that apply everything and never become Ready, since
	// they wait for something that never does. They are among the others.
	Unready int `json:"unready"`
}

// KindCounts are how often a tier uses a kind that is not built in, and when
// that kind is there.
type KindCounts struct {
	// Before are there before Flux reconciles anything: its own, and those of
	// the distribution.
	Before  int `json:"before"`
	InTime  int `json:"inTime"`
	Late    int `json:"late"`
	Missing int `json:"missing"`
	// Perhaps are kinds that nothing known registers, and something of unknown
	// content may.
	Perhaps int `json:"perhaps"`
}

// Outside is a source that is not this repository, so that what its tiers apply
// is not known.
type Outside struct {
	Source flux.Ref   `json:"source"`
	Tiers  []flux.Ref `json:"tiers,omitempty"`
}

// Opaque is a HelmRelease of whose chart nothing is known.
type Opaque struct {
	Object  flux.Ref `json:"object"`
	Chart   string   `json:"chart,omitempty"`
	Version string   `json:"version,omitempty"`
	Why     string   `json:"why,omitempty"`
}

// Loose is a Kustomization that is in no cluster.
type Loose struct {
	Tier flux.Ref `json:"tier"`
	File string   `json:"file"`
	Line int      `json:"line"`
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
}

// looseOf are the Kustomizations of a repository that no cluster holds.
func looseOf(repo *repository.Repository) []Loose {
	var all []Loose
	for _, l := range repo.Loose {
		all = append(all, Loose{Tier: l.Tier, File: l.File, Line: l.Line})
	}
	slices.SortFunc(all, func(a, b Loose) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), a.Tier.Compare(b.Tier))
	})
	return all
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

func (c *examined) entry() Entry {
	e := Entry{Entry: c.subject.Entry, Tiers: len(c.subject.World.Tiers)}
	outside := map[flux.Ref][]flux.Ref{}
	for _, t := range c.subject.World.Tiers {
		if t.Result != nil {
			e.Objects += len(t.Result.Objects)
		}
		if t.Outside != nil {
			source := coldstart.Key(*t.Outside)
			outside[source] = append(outside[source], t.Tier)
		}
	}
	if c.cluster != nil {
		for _, source := range c.cluster.Outside {
			if source := coldstart.Key(source); outside[source] == nil {
				outside[source] = []flux.Ref{}
			}
		}
	}
	for source, tiers := range outside {
		e.Outside = append(e.Outside, Outside{Source: source, Tiers: tiers})
	}
	slices.SortFunc(e.Outside, func(a, b Outside) int { return a.Source.Compare(b.Source) })
	for release, chart := range c.subject.World.Charts {
		if chart.Basis == coldstart.Opaque {
			e.Opaque = append(e.Opaque, Opaque{Object: release, Chart: chart.Name, Version: chart.Version, Why: chart.Why})
		}
	}
	slices.SortFunc(e.Opaque, func(a, b Opaque) int { return a.Object.Compare(b.Object) })
	for _, o := range c.subject.Prediction.Outcomes {
		e.Outcomes = append(e.Outcomes, Outcome{Tier: o.Tier, Verdict: o.Verdict, Ready: o.Ready, BlockedBy: o.BlockedBy})
		e.Verdicts.add(o.Verdict)
		if !o.Ready && (o.Verdict == coldstart.AtOnce || o.Verdict == coldstart.ByRetry) {
			e.Verdicts.Unready++
		}
	}
	for _, k := range c.subject.Prediction.Kinds {
		e.Kinds.add(&k)
	}
	return e
}

func (c *Counts) add(v coldstart.Verdict) {
	switch v {
	case coldstart.AtOnce:
		c.AtOnce++
	case coldstart.ByRetry:
		c.ByRetry++
	case coldstart.Never:
		c.Never++
	case coldstart.Blocked:
		c.Blocked++
	case coldstart.Suspended:
		c.Suspended++
	default:
		c.Unknown++
	}
}

func (c *KindCounts) add(k *coldstart.KindUse) {
	switch {
	case k.Before != "":
		c.Before++
	case k.Need.When == coldstart.InTime:
		c.InTime++
	case k.Need.When == coldstart.Late:
		c.Late++
	case k.Need.When == coldstart.Missing:
		c.Missing++
	default:
		c.Perhaps++
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
