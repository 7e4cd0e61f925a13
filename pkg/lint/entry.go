// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"cmp"
	"slices"
	"strings"

	"github.com/kubestandup/kubestandup/pkg/coldstart"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/repository"
)

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
	// Trust is what the verdicts rest on that nobody looked at.
	Trust `json:",inline"`
}

// Outcome is what becomes of one tier, when the cluster is empty at first.
type Outcome struct {
	Tier    flux.Ref          `json:"tier"`
	Verdict coldstart.Verdict `json:"verdict"`
	// Ready is whether it becomes Ready in the end.
	Ready bool `json:"ready"`
	// BlockedBy are the tiers that keep it from being attempted.
	BlockedBy []flux.Ref `json:"blockedBy,omitempty"`
	// UnlessOutside is true of a tier that never comes up for want alone of what
	// nothing in the repository brings: something outside of it may.
	UnlessOutside bool `json:"unlessOutside,omitempty"`
	// Suppressed is true of a tier that never comes up where what is found
	// there is suppressed.
	Suppressed bool `json:"suppressed,omitempty"`

	hidden, shown bool // findings
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
	Source flux.Ref `json:"source"`
	// Undefined is true where nothing that the cluster applies defines it.
	Undefined bool       `json:"undefined,omitempty"`
	Tiers     []flux.Ref `json:"tiers,omitempty"`
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
	undefined := map[flux.Ref]bool{}
	for _, m := range newLook(c.subject).missingSources() {
		undefined[m.source] = true
	}
	for source, tiers := range outside {
		e.Outside = append(e.Outside, Outside{Source: source, Undefined: undefined[source], Tiers: tiers})
	}
	slices.SortFunc(e.Outside, func(a, b Outside) int { return a.Source.Compare(b.Source) })
	for release, chart := range c.subject.World.Charts {
		if chart.Basis == coldstart.Opaque {
			e.Opaque = append(e.Opaque, Opaque{Object: release, Chart: chart.Name, Version: chart.Version, Why: chart.Why})
		}
	}
	slices.SortFunc(e.Opaque, func(a, b Opaque) int { return a.Object.Compare(b.Object) })
	for _, o := range c.subject.Prediction.Outcomes {
		e.Outcomes = append(e.Outcomes, Outcome{Tier: o.Tier, Verdict: o.Verdict, Ready: o.Ready, BlockedBy: o.BlockedBy, UnlessOutside: unlessOutside(&o)})
		e.Verdicts.add(o.Verdict)
		if !o.Ready && (o.Verdict == coldstart.AtOnce || o.Verdict == coldstart.ByRetry) {
			e.Verdicts.Unready++
		}
	}
	for _, k := range c.subject.Prediction.Kinds {
		e.Kinds.add(&k)
	}
	e.Trust = c.trust()
	return e
}

// unlessOutside is true where all that the tier lacks for ever are kinds that
// nothing registers, in no version, or what a Pod needs and nothing applies.
func unlessOutside(o *coldstart.Outcome) bool {
	lacks := false
	for i := range o.Needs {
		n := &o.Needs[i]
		if n.When != coldstart.Missing {
			continue
		}
		if n.Kind.Kind == "" && !ofPod(*n) || len(n.Providers)+len(n.OtherVersions) > 0 {
			return false
		}
		lacks = true
	}
	return lacks && o.Verdict == coldstart.Never
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
