// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubestandup/kubestandup/pkg/coldstart"
	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/knowledge"
)

func unregistered() Rule {
	return Rule{
		ID: "CS002", Name: "unregistered-kind", Severity: finding.Error,
		Title: "A tier applies a kind that nothing in the repository registers, or not in that version.",
		Check: func(s *Subject) []finding.Finding {
			l := newLook(s)
			var all []finding.Finding
			if s.Prediction == nil {
				return nil
			}
			for i := range s.Prediction.Outcomes {
				all = append(all, l.unregisteredIn(&s.Prediction.Outcomes[i])...)
			}
			all = append(all, l.perhaps()...)
			return append(all, l.ofReleases(l.unregisteredRelease)...)
		},
	}
}

func (l *look) unregisteredIn(o *coldstart.Outcome) []finding.Finding {
	if o.Verdict == coldstart.Suspended {
		return nil
	}
	var all []finding.Finding
	// One finding per API group: that is what one install brings.
	groups := map[string][]coldstart.Need{}
	var order []string
	for _, n := range o.Needs {
		switch {
		case n.Kind.Kind == "" || len(n.Providers) > 0 || n.When != coldstart.Missing && (n.When != coldstart.Perhaps || len(n.OtherVersions) == 0):
		case len(l.switchedOff(n.Kind.GroupKind())) > 0 && len(n.OtherVersions) == 0: // CS005
		case len(n.OtherVersions) > 0:
			all = append(all, l.otherVersion(o, n))
		default:
			key := n.Kind.Group
			if groups[key] == nil {
				order = append(order, key)
			}
			groups[key] = append(groups[key], n)
		}
	}
	for _, key := range order {
		all = append(all, l.nobody(o, groups[key]))
	}
	return append(all, l.onlySuspended(o)...)
}

// otherVersion is for a kind that is registered, in other versions.
func (l *look) otherVersion(o *coldstart.Outcome, n coldstart.Need) finding.Finding {
	f := l.report("CS002", finding.Error, o.Tier, firstUser(o, n), fmt.Sprintf(
		"%s applies %s in version %s, and what registers the kind serves %s: Flux fails the whole stage with `no matches for kind %q in version %q`, and no retry heals it",
		l.name(o.Tier), n.Kind.Kind, n.Kind.Version, finding.And(n.OtherVersions), n.Kind.Kind, n.Kind.GroupVersion()))
	f.Causes = l.needCauses(o.Tier, []coldstart.Need{n})
	f.Causes = append(f.Causes, l.definitionCauses(n.Kind.GroupKind())...)
	f.Missing = missing([]coldstart.Need{n})
	f.Fix = inServedVersion(n)
	return f
}

// inServedVersion is what to do about objects in a version that is not served.
func inServedVersion(n coldstart.Need) string {
	if knowledge.FluxKind(n.Kind.GroupKind()) {
		return "Export gotk-components.yaml anew, of the version of Flux that runs (flux install --export): it holds the CRDs of another one."
	}
	gv := schema.GroupVersion{Group: n.Kind.Group, Version: n.OtherVersions[len(n.OtherVersions)-1]}
	return fmt.Sprintf("Write %s in %s, or install the release whose CRD serves %s; a HelmRelease needs `upgrade.crds: CreateReplace` to update CRDs of crds/.",
		"`apiVersion: "+gv.String()+"`", finding.Some(refs(users([]coldstart.Need{n}))), n.Kind.Version)
}

// definitionCauses says where the CRD of a kind is.
func (l *look) definitionCauses(gk schema.GroupKind) []string {
	var causes []string
	for i := range l.World.Tiers {
		f := &l.World.Tiers[i]
		for _, o := range l.objects(f) {
			if o.GetKind() == crdKind && crdOf(o.Unstructured, gk) {
				causes = append(causes, fmt.Sprintf("%s registers it, in %s", l.place(f.Tier, o.Ref()), l.name(f.Tier)))
			}
		}
	}
	for _, r := range l.releases() {
		chart := l.World.Charts[coldstart.Key(r)]
		for _, o := range append(slices.Clone(chart.Definitions), chart.Objects...) {
			if o.GetKind() == crdKind && crdOf(o, gk) {
				causes = append(causes, fmt.Sprintf("CRD %s of the chart of %s registers it", o.GetName(), r))
			}
		}
	}
	return causes
}

// releases are the HelmReleases that tiers apply.
func (l *look) releases() []flux.Ref {
	var all []flux.Ref
	for i := range l.World.Tiers {
		for _, o := range l.objects(&l.World.Tiers[i]) {
			if isRelease(o.Ref()) && !slices.Contains(all, o.Ref()) {
				all = append(all, o.Ref())
			}
		}
	}
	return all
}

func firstUser(o *coldstart.Outcome, n coldstart.Need) flux.Ref {
	if len(n.Users) > 0 {
		return n.Users[0].Ref()
	}
	return o.Tier
}

// nobody is for kinds that nothing brings, as far as is known.
func (l *look) nobody(o *coldstart.Outcome, needs []coldstart.Need) finding.Finding {
	f := l.report("CS002", finding.Warning, o.Tier, firstUser(o, needs[0]), fmt.Sprintf(
		"%s applies %s, which nothing in the repository registers: unless something outside of it does before, Flux fails the whole stage on a cold cluster, and no retry heals it",
		l.name(o.Tier), described(needs)))
	f.Causes = l.needCauses(o.Tier, needs)
	f.Missing = missing(needs)
	f.Fix = l.install(needs)
	return f
}

// perhaps is for kinds that only something of unknown content may bring: one
// finding per API group, whichever tiers apply it.
func (l *look) perhaps() []finding.Finding {
	type group struct {
		first  *coldstart.Outcome
		needs  []coldstart.Need
		tiers  []string
		causes []string
	}
	type key struct {
		group string
		late  bool
	}
	groups := map[key]*group{}
	var order []key
	l.eachNeed(func(o *coldstart.Outcome, n coldstart.Need) {
		known := n.Kind.Kind == "" || len(n.Providers) > 0 || len(n.OtherVersions) > 0
		if n.When != coldstart.Perhaps || known || l.keptGuess(o, n) != nil || len(l.switchedOff(n.Kind.GroupKind())) > 0 {
			return
		}
		k := key{n.Kind.Group, len(n.TooLate) > 0}
		g := groups[k]
		if g == nil {
			g = &group{first: o}
			groups[k] = g
			order = append(order, k)
		}
		g.needs, g.tiers = append(g.needs, n), unique(append(g.tiers, l.name(o.Tier)))
		g.causes = append(g.causes, l.needCauses(o.Tier, []coldstart.Need{n})...)
	})
	var all []finding.Finding
	for _, k := range order {
		g := groups[k]
		who, may := g.needs[0].Candidates, l.candidates(g.needs[0].Candidates)
		severity, text := finding.Info, fmt.Sprintf("which nothing known registers; %s may, whose content is not known", may)
		if len(g.needs[0].TooLate) > 0 {
			severity = finding.Warning
			text = fmt.Sprintf("and what is known to register %s does so too late: unless %s %s it before, whose content is not known, Flux fails the whole stage on a cold cluster",
				finding.Verb(len(g.needs), "it", "them"), may, finding.Verb(len(who), "registers", "register"))
		}
		f := l.report("CS002", severity, g.first.Tier, firstUser(g.first, g.needs[0]), fmt.Sprintf(
			"%s %s %s, %s", finding.Some(g.tiers), finding.Verb(len(g.tiers), "applies", "apply"), described(g.needs), text))
		for _, n := range g.needs {
			g.causes = append(g.causes, l.providerCauses(n, n.TooLate)...)
		}
		f.Causes, f.Missing, f.Fix = unique(g.causes), missing(g.needs), l.install(g.needs)
		all = append(all, f)
	}
	return all
}

// candidates names those that may bring a kind, or says how many they are.
func (l *look) candidates(all []flux.Ref) string {
	if len(all) > 4 {
		return fmt.Sprintf("one of %d charts and tiers", len(all))
	}
	return finding.Some(l.candidateNames(all))
}

func (l *look) candidateNames(all []flux.Ref) []string {
	var names []string
	for _, c := range all {
		if isRelease(c) {
			names = append(names, c.String())
			continue
		}
		names = append(names, l.name(c))
	}
	return names
}

// install says what is known to register the kinds.
func (l *look) install(needs []coldstart.Need) string {
	gk := needs[0].Kind.GroupKind()
	var ways []string
	for _, r := range needs[0].Creators {
		if len(r.Triggers) > 0 && relationWords(r) != r.System+", when it starts" {
			ways = append(ways, fmt.Sprintf("install %s and apply a %s (%s)", r.System, r.Triggers[0].Kind, r.Triggers[0].Group))
			continue
		}
		ways = append(ways, "install "+r.System+", which registers it when it starts")
	}
	if l.Book != nil && len(ways) == 0 {
		var charts []string
		for _, c := range l.Book.ChartsOf(gk) {
			charts = append(charts, c.Name)
		}
		if len(charts) > 0 {
			ways = append(ways, fmt.Sprintf("install the chart %s, which registers it", strings.Join(unique(charts), " or ")))
		}
	}
	perhaps := needs[0].When == coldstart.Perhaps
	switch {
	case len(needs[0].TooLate) > 0:
		return fmt.Sprintf("Where it does not, move %s down into a tier that depends on %s; where it does, name it in a file for --knowledge.",
			finding.Some(refs(users(needs))), l.name(needs[0].TooLate[0].Tier))
	case len(ways) > 0 && perhaps:
		return sentence(strings.Join(unique(ways), ", or ")) + "; or name what brings it in a file for --knowledge."
	case len(ways) > 0:
		return sentence(strings.Join(unique(ways), ", or ")) + ", in a tier that this one depends on."
	case perhaps:
		return "Let --fetch-charts look into the charts, or name what brings it in a file for --knowledge."
	}
	return fmt.Sprintf("Apply the CRD of %s in this tier, or in one that it depends on; where something outside of the repository installs it before Flux, say so in a file for --knowledge (class: before).",
		finding.And(kindNames(needs)))
}

// onlySuspended is for kinds that only a tier brings which git suspends.
func (l *look) onlySuspended(o *coldstart.Outcome) []finding.Finding {
	if o.Verdict != coldstart.Never {
		return nil // one that depends on a suspended tier is told so (DG004)
	}
	var needs []coldstart.Need
	var providers []coldstart.Provider
	for _, n := range o.Needs {
		if n.When != coldstart.Missing || n.Kind.Kind == "" || len(n.Providers) == 0 || keptBack(n) != nil {
			continue
		}
		off := !slices.ContainsFunc(n.Providers, func(p coldstart.Provider) bool {
			of := l.outcome(p.Tier)
			return of == nil || of.Verdict != coldstart.Suspended
		})
		if off {
			needs, providers = append(needs, n), append(providers, n.Providers[0])
		}
	}
	if len(needs) == 0 {
		return nil
	}
	tier := providers[0].Tier
	f := l.report("CS002", finding.Warning, o.Tier, firstUser(o, needs[0]), fmt.Sprintf(
		"%s applies %s, which only %s brings, and git suspends that tier: on a cold cluster %s stays down until somebody resumes it",
		l.name(o.Tier), described(needs), l.name(tier), l.name(o.Tier)))
	f.Causes = append(l.needCauses(o.Tier, needs), l.place(tier, tier)+" has spec.suspend: true")
	f.Missing = missing(needs)
	f.Fix = fmt.Sprintf("Take spec.suspend out of %s, or suspend %s too.", l.name(tier), l.name(o.Tier))
	return []finding.Finding{f}
}
