// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/coldstart"
	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/lint/suggest"
)

// deadlockCauses is the chain, nearest first: who needs, what brings it, what
// keeps that back, who runs the controller.
func (l *look) deadlockCauses(d stuck) []string {
	var causes []string
	for _, b := range bring(d.needs, d.providers) {
		causes = append(causes, l.needCauses(d.Tier, b.needs)...)
		causes = append(causes, l.providerCause(b))
		stage := b.Stage
		switch {
		case b.Reach == coldstart.Behind:
			causes = append(causes, l.waitCauses(b.Waits)...)
		case b.needs[0].Stage > 0:
			causes = append(causes, fmt.Sprintf("%s is in stage %d of %s: it is not applied before every kind up to that stage is known",
				kept(b.Provider), max(stage, b.needs[0].Stage), l.name(d.Tier)))
		}
		if op := l.operatorCause(b.Provider); op != "" {
			causes = append(causes, op)
		}
	}
	return unique(causes)
}

// needCauses says which objects of a tier need the kinds, and where they are.
func (l *look) needCauses(tier flux.Ref, needs []coldstart.Need) []string {
	const enough = 5
	var causes []string
	for _, n := range needs {
		if len(n.Users) == 0 {
			causes = append(causes, fmt.Sprintf("%s is built %s %s", l.place(tier, tier), builtWith(n), n.Object))
			continue
		}
		for i, u := range n.Users {
			if i == enough {
				causes = append(causes, fmt.Sprintf("and %s more of that kind", finding.Count(len(n.Users)-enough, "object")))
				break
			}
			causes = append(causes, fmt.Sprintf("%s is in stage %d of %s and needs %s", l.place(tier, u.Ref()), u.Stage, l.name(tier), needKind(n)))
		}
	}
	return causes
}

// needKind names the kind with its group.
func needKind(n coldstart.Need) string {
	if n.Kind.Kind == "" {
		return n.Object.String()
	}
	return fmt.Sprintf("%s of %s", n.Kind.Kind, n.Kind.GroupVersion())
}

// providerCause says by which file or object the kinds come to be.
func (l *look) providerCause(b brought) string {
	kinds := finding.And(kindNames(b.needs))
	if b.needs[0].Kind.Kind == "" {
		from := l.place(b.Tier, b.Object)
		if b.How != coldstart.ByGit && isRelease(b.About()) {
			from = "the chart of " + l.place(b.Tier, b.About())
		}
		return fmt.Sprintf("%s comes from %s, in %s", kinds, from, l.name(b.Tier))
	}
	switch b.How {
	case coldstart.ByTrigger:
		where := l.place(b.Tier, b.Object)
		if b.Release != nil {
			where = fmt.Sprintf("%s in the chart of %s", b.Object, l.place(b.Tier, *b.Release))
		}
		return fmt.Sprintf("%s %s in no file: %s creates %s when it has reconciled %s, in %s", l.crds(b), finding.Verb(len(kindNames(b.needs)), "is", "are"),
			system(b.Provider), finding.Verb(len(kindNames(b.needs)), "it", "them"), where, l.name(b.Tier))
	case coldstart.ByStart:
		return fmt.Sprintf("%s %s in no file: %s creates %s when it starts: %s, in %s", l.crds(b), finding.Verb(len(kindNames(b.needs)), "is", "are"),
			system(b.Provider), finding.Verb(len(kindNames(b.needs)), "it", "them"), l.place(b.Tier, kept(b.Provider)), l.name(b.Tier))
	case coldstart.ByChart:
		return fmt.Sprintf("%s %s by the chart of %s, in %s", kinds, finding.Verb(len(kindNames(b.needs)), "is registered", "are registered"),
			l.place(b.Tier, b.About()), l.name(b.Tier))
	}
	return fmt.Sprintf("%s %s from %s, in %s", kinds, finding.Verb(len(kindNames(b.needs)), "comes", "come"), l.place(b.Tier, b.Object), l.name(b.Tier))
}

// providerCauses says of one need what brings it.
func (l *look) providerCauses(n coldstart.Need, by []coldstart.Provider) []string {
	var causes []string
	for _, p := range by {
		causes = append(causes, l.providerCause(brought{p, []coldstart.Need{n}}))
	}
	return causes
}

// crds names the CRDs by which a provider brings kinds.
func (l *look) crds(b brought) string {
	var names []string
	for _, n := range b.needs {
		if n.Kind.Kind != "" {
			names = append(names, l.definition(b.Provider, n.Kind))
		}
	}
	names = unique(names)
	return finding.Verb(len(names), "the CRD ", "the CRDs ") + finding.And(names)
}

// operatorCause says who runs the controller of a trigger.
func (l *look) operatorCause(p coldstart.Provider) string {
	if p.Operator == nil || p.How != coldstart.ByTrigger {
		return ""
	}
	for i := range l.World.Tiers {
		tier := l.World.Tiers[i].Tier
		if l.applies(tier, *p.Operator) {
			return fmt.Sprintf("%s runs as %s, in %s", system(p), l.place(tier, *p.Operator), l.name(tier))
		}
	}
	return fmt.Sprintf("%s runs as %s", system(p), p.Operator)
}

// waitCauses says why each tier of a chain waits for the next.
func (l *look) waitCauses(chain []flux.Ref) []string {
	var causes []string
	for i := 0; i+1 < len(chain); i++ {
		causes = append(causes, l.waitsFor(chain[i], chain[i+1]))
	}
	return causes
}

func (l *look) waitsFor(a, b flux.Ref) string {
	from, to := l.Graph.Node(a), l.Graph.Node(b)
	where := l.place(a, a)
	if from != nil {
		for _, d := range from.DependsOn {
			if coldstart.Key(d.Ref) == coldstart.Key(b) {
				return fmt.Sprintf("%s depends on %s", where, l.name(b))
			}
		}
		if from.ContainedBy != nil && coldstart.Key(from.ContainedBy.Ref) == coldstart.Key(b) {
			return fmt.Sprintf("%s is applied by %s", where, l.name(b))
		}
	}
	if to != nil && to.ContainedBy != nil && coldstart.Key(to.ContainedBy.Ref) == coldstart.Key(a) {
		return fmt.Sprintf("%s waits for %s, which it applies", where, l.name(b))
	}
	return fmt.Sprintf("%s waits for %s", where, l.name(b))
}

// deadlockFix moves the resources down into a tier of their own. Moving the
// trigger up would hang it on the tier that everything waits for.
func (l *look) deadlockFix(d stuck) string {
	if d.needs[0].Kind.Kind == "" {
		return l.variablesFix(d)
	}
	moved := users(d.needs)
	below := l.tierBelow(d)
	not := ""
	if p := d.providers[0]; p.How != coldstart.ByGit && !d.guessed {
		not = fmt.Sprintf(" (not %s up)", kept(p))
	}
	text := fmt.Sprintf("Move %s down into a tier of %s own%s, which %s:\n%s",
		finding.Some(refs(moved)), finding.Verb(len(moved), "its", "their"), not, dependsWords(below.Spec.DependsOn), encode(below))
	byTier := map[flux.Ref][]brought{}
	var order []flux.Ref
	for _, b := range bring(d.needs, d.providers) {
		key := coldstart.Key(b.Tier)
		if !slices.Contains(order, key) {
			order = append(order, key)
		}
		byTier[key] = append(byTier[key], b)
	}
	for _, key := range order {
		tier := byTier[key][0].Tier
		if g := l.gateFor(tier, byTier[key]); !g.none() {
			text += fmt.Sprintf("and let the Ready of %s prove that %s:\n%s", l.name(tier), gateWords(byTier[key]), g.text(l))
		}
	}
	if n := len(l.dependants(d.Tier)); n > 0 {
		text += fmt.Sprintf("%s on %s: what relies on %s needs an edge to %s.", sentence(finding.Count(n, "tier")+finding.Verb(n, " depends", " depend")), l.name(d.Tier),
			finding.Some(unique(kindsOf(moved))), below.Metadata.Name)
	}
	return text
}

func kindsOf(all []flux.Ref) []string {
	var kinds []string
	for _, r := range all {
		kinds = append(kinds, r.Kind)
	}
	return kinds
}

func dependsWords(on []dependencyYAML) string {
	var names []string
	for _, d := range on {
		names = append(names, d.Name)
	}
	return "depends on " + finding.And(names)
}

// gateWords says what a gate proves.
func gateWords(all []brought) string {
	var words []string
	for _, b := range all {
		switch b.How {
		case coldstart.ByTrigger:
			words = append(words, fmt.Sprintf("%s is reconciled", b.Object))
		case coldstart.ByChart:
			words = append(words, fmt.Sprintf("%s is installed", b.About()))
		case coldstart.ByStart:
			words = append(words, fmt.Sprintf("%s has registered its kinds", system(b.Provider)))
		default:
			words = append(words, fmt.Sprintf("%s is there", b.Object))
		}
	}
	return finding.And(unique(words))
}

// tierBelow is the tier that the resources move to: like the one that they are
// in, behind the tiers of what brings their kinds.
func (l *look) tierBelow(d stuck) manifest {
	spec := l.spec(d.Tier)
	suffix := "-" + suggest.Word(objects(d.needs), d.Tier.Name) // as in the patch
	m := manifest{
		APIVersion: d.Tier.APIVersion, Kind: flux.KustomizationKind,
		Metadata: manifestName{Name: d.Tier.Name + suffix, Namespace: d.Tier.Namespace},
	}
	for l.Graph.Node(flux.Ref{Kind: flux.KustomizationKind, Namespace: d.Tier.Namespace, Name: m.Metadata.Name}) != nil {
		m.Metadata.Name += "-2"
	}
	if m.APIVersion == "" {
		m.APIVersion = flux.KustomizeGroup + "/v1"
	}
	m.Spec = specYAML{
		Interval:  short(spec.Interval.Duration),
		SourceRef: &sourceYAML{Kind: spec.SourceRef.Kind, Name: spec.SourceRef.Name, Namespace: spec.SourceRef.Namespace},
		Path:      trimSlash(spec.Path) + suffix,
		Prune:     &spec.Prune,
	}
	if spec.RetryInterval != nil {
		m.Spec.RetryInterval = short(spec.RetryInterval.Duration)
	}
	if spec.Wait {
		m.Spec.Wait = &spec.Wait
	}
	for _, p := range d.providers {
		if on := dependsOn(d.Tier, p.Tier); !slices.Contains(m.Spec.DependsOn, on) {
			m.Spec.DependsOn = append(m.Spec.DependsOn, on)
		}
	}
	return m
}

func trimSlash(path string) string {
	for len(path) > 1 && path[len(path)-1] == '/' {
		path = path[:len(path)-1]
	}
	if path == "" || path == "." || path == "./" {
		return "./tier"
	}
	return path
}

// variablesFix is for a tier that is built with what it applies: here it is the
// object that moves, and up.
func (l *look) variablesFix(d stuck) string {
	p := d.providers[0]
	if p.Reach == coldstart.Behind {
		return fmt.Sprintf("Move %s into a tier that waits for nothing of %s, and let %s depend on that one.", d.needs[0].Object, l.name(d.Tier), l.name(d.Tier))
	}
	name := d.Tier.Name + "-variables"
	if builtWith(d.needs[0]) == "from" {
		name = d.Tier.Name + "-source"
	}
	return fmt.Sprintf("Move %s into a tier of its own, %s, and let %s depend on it:\n%s", d.needs[0].Object, name, l.name(d.Tier),
		addTo(l, d.Tier, specYAML{DependsOn: []dependencyYAML{{Name: name}}}))
}

// objects are those of the tier that need what is missing.
func objects(needs []coldstart.Need) []build.Object {
	var all []build.Object
	for _, n := range needs {
		all = append(all, n.Users...)
	}
	return all
}
