// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"cmp"
	"slices"
	"strings"

	"github.com/kubestandup/kubestandup/pkg/coldstart"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/knowledge"
)

// fluxItself is who registers Flux's own kinds.
const fluxItself = "Flux"

// FluxsOwn is true of a kind that comes with Flux, so that every cluster that
// reconciles anything has it.
func (k *Kind) FluxsOwn() bool {
	return k.RegisteredBy.How == ViaBefore && k.RegisteredBy.System == fluxItself
}

// Kind is a kind that is not built in, as one tier uses it.
type Kind struct {
	// Entry is the cluster, where there are several.
	Entry        string    `json:"entry,omitempty"`
	Tier         flux.Ref  `json:"tier"`
	APIVersion   string    `json:"apiVersion"`
	Kind         string    `json:"kind"`
	RegisteredBy Registrar `json:"registeredBy"`
	// Known says in which stage of which tier it is first known, in words.
	// Absent for never.
	Known string `json:"known,omitempty"`
	// Order is second for a kind that a controller creates at run time.
	Order Order `json:"order"`
	// Confidence says how it is known who registers the kind.
	Confidence Confidence     `json:"confidence,omitempty"`
	When       coldstart.When `json:"when"`
}

// Order is first for a kind that git or a chart registers.
type Order string

// The orders.
const (
	FirstOrder  Order = "first"
	SecondOrder Order = "second"
)

// Confidence says how it is known who registers a kind.
type Confidence string

// The degrees of confidence, best first.
const (
	// ByBuild is that it was built, or rendered, from what the repository holds.
	ByBuild Confidence = "built"
	// ByRun is that it was seen on a real control plane.
	ByRun Confidence = "run"
	// BySource is that the current source of the system says so.
	BySource Confidence = "source"
	// ByOldSource is that the source of an older release says so.
	ByOldSource Confidence = "old-source"
	// ByMemory is that somebody remembers it.
	ByMemory Confidence = "memory"
)

// Via is in which way a kind comes to be served.
type Via string

// The ways.
const (
	// ViaGit is that a tier applies the CRD.
	ViaGit Via = "git"
	// ViaChart is that a HelmRelease installs it.
	ViaChart Via = "chart"
	// ViaTrigger is that a controller creates it when it reconciles a trigger.
	ViaTrigger Via = "trigger"
	// ViaStart is that a controller creates it when it starts.
	ViaStart Via = "start"
	// ViaBefore is that it is there before Flux reconciles anything.
	ViaBefore Via = "before"
	// ViaNobody is that nothing registers it.
	ViaNobody Via = "nobody"
	// ViaPerhaps is that nothing known does, and something of unknown content
	// may.
	ViaPerhaps Via = "perhaps"
)

// Registrar is what registers a kind.
type Registrar struct {
	How Via `json:"how"`
	// Object is the CRD, the HelmRelease, the trigger or the operator's
	// workload. For perhaps it is what may register the kind.
	Object *flux.Ref `json:"object,omitempty"`
	// Release is the HelmRelease whose chart holds Object.
	Release *flux.Ref `json:"release,omitempty"`
	// Tier is the one that applies Object, or Release.
	Tier *flux.Ref `json:"tier,omitempty"`
	// File and Line are where Object, or Release, is written.
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
	// System is the name by which people know it; of a chart, its name and
	// version.
	System string `json:"system,omitempty"`
}

// kinds are the audit of a cluster: tier by tier, in the order in which they
// were met, and the kinds of a tier by group.
func (c *examined) kinds(several bool) []Kind {
	s := c.subject
	position := map[flux.Ref]int{}
	for i := range s.World.Tiers {
		position[coldstart.Key(s.World.Tiers[i].Tier)] = i
	}
	uses := slices.Clone(s.Prediction.Kinds)
	slices.SortStableFunc(uses, func(a, b coldstart.KindUse) int {
		return cmp.Or(
			cmp.Compare(position[coldstart.Key(a.Tier)], position[coldstart.Key(b.Tier)]),
			strings.Compare(a.Need.Kind.Group, b.Need.Kind.Group),
			strings.Compare(a.Need.Kind.Kind, b.Need.Kind.Kind),
			strings.Compare(a.Need.Kind.Version, b.Need.Kind.Version),
		)
	})
	var all []Kind
	for i := range uses {
		use := &uses[i]
		k := Kind{
			Tier: use.Tier, Known: use.First, Order: FirstOrder, When: use.Need.When,
			APIVersion: use.Need.Kind.GroupVersion().String(), Kind: use.Need.Kind.Kind,
		}
		if several {
			k.Entry = s.Entry
		}
		if use.SecondOrder {
			k.Order = SecondOrder
		}
		k.RegisteredBy, k.Confidence = s.registrar(use)
		all = append(all, k)
	}
	return all
}

// registrar is who brings the kind, the likeliest where there are several.
func (s *Subject) registrar(use *coldstart.KindUse) (Registrar, Confidence) {
	need := &use.Need
	switch {
	case use.Before != "", len(need.Providers) == 0 && need.When == coldstart.InTime:
		return s.before(use)
	case len(need.Providers) > 0:
		return s.provider(&need.Providers[0])
	case need.When == coldstart.Perhaps && len(need.Candidates) > 0:
		r := Registrar{How: ViaPerhaps, Object: &need.Candidates[0]}
		if chart, known := s.World.Charts[coldstart.Key(need.Candidates[0])]; known {
			r.System = chartName(chart)
		}
		return r, ""
	case need.When == coldstart.Perhaps:
		return Registrar{How: ViaPerhaps}, ""
	}
	r := Registrar{How: ViaNobody}
	if len(need.Creators) > 0 { // who would, were it there
		r.System = need.Creators[0].System
	}
	return r, ""
}

func (s *Subject) provider(p *coldstart.Provider) (Registrar, Confidence) {
	r, confidence := Registrar{Object: &p.Object, Release: p.Release, Tier: &p.Tier}, ByBuild
	written := p.Object
	if p.Release != nil { // the object is in a chart, and the release is in git
		written = *p.Release
	}
	if s.Locate != nil {
		at := s.Locate(p.Tier, written)
		r.File, r.Line = at.File, at.Line
	}
	switch p.How {
	case coldstart.ByGit:
		r.How = ViaGit
	case coldstart.ByChart:
		r.How, r.Object, r.Release = ViaChart, &written, nil
		chart := s.World.Charts[coldstart.Key(written)]
		r.System = chartName(chart)
		if chart.Basis == coldstart.Known {
			confidence = BySource
			if s.Book != nil {
				if row := s.Book.Chart(chart.Name, ""); row != nil {
					confidence = Confidence(row.Confidence)
				}
			}
		}
	case coldstart.ByTrigger, coldstart.ByStart:
		r.How = ViaTrigger
		if p.How == coldstart.ByStart {
			r.How = ViaStart
		}
		if p.Relation != nil {
			r.System, confidence = p.Relation.System, Confidence(p.Relation.Confidence)
		}
	}
	return r, confidence
}

// before says who registers a kind that is there before Flux is.
func (s *Subject) before(use *coldstart.KindUse) (Registrar, Confidence) {
	r, confidence := Registrar{How: ViaBefore, System: use.Before}, BySource
	if s.Book == nil {
		return r, confidence
	}
	for _, relation := range s.Book.Creators(use.Need.Kind.GroupKind()) {
		if relation.Class == knowledge.Before {
			return Registrar{How: ViaBefore, System: relation.System}, Confidence(relation.Confidence)
		}
	}
	return r, confidence
}

func chartName(c coldstart.Chart) string {
	return strings.TrimSuffix(c.Name+"@"+c.Version, "@")
}
