// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"maps"
	"slices"

	"github.com/kubestandup/kubestandup/pkg/coldstart"
	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

func sourceBehind() Rule {
	return Rule{
		ID: "DG010", Name: "source-behind", Severity: finding.Error,
		Title: "A tier, or a HelmRelease, is built from a source that only a tier behind it applies.",
		Check: func(s *Subject) []finding.Finding {
			l := newLook(s)
			defined := l.definers()
			var all []finding.Finding
			l.eachSource(func(source, tier, object flux.Ref) {
				by := defined[coldstart.Key(source)]
				behind := l.without(tier, object)
				inTime := func(t flux.Ref) bool {
					// In one tier they come together: what keeps that back is another finding.
					together := isRelease(object) && coldstart.Key(t) == coldstart.Key(tier)
					return together || !behind[coldstart.Key(t)]
				}
				if len(by) == 0 || slices.ContainsFunc(by, inTime) {
					return
				}
				all = append(all, l.reportBehind(source, tier, object, by[0]))
			})
			return all
		},
	}
}

// definers are the tiers that apply each source, and those whose charts hold it.
// A source that is there before Flux is has none.
func (l *look) definers() map[flux.Ref][]flux.Ref {
	all, there := map[flux.Ref][]flux.Ref{}, map[flux.Ref]bool{}
	for _, d := range l.definitions() {
		if d.elsewhere {
			continue
		}
		all[d.source] = append(all[d.source], d.tier)
		there[d.source] = there[d.source] || d.there
	}
	maps.DeleteFunc(all, func(source flux.Ref, _ []flux.Ref) bool { return there[source] })
	return all
}

// without are the tiers that are not applied as long as the object is not Ready:
// a HelmRelease of the tier, or the tier itself, which is then not applied
// either.
func (l *look) without(tier, object flux.Ref) map[flux.Ref]bool {
	down, unapplied := map[flux.Ref]bool{}, map[flux.Ref]bool{}
	var isDown, isUnapplied func(flux.Ref)
	isUnapplied = func(t flux.Ref) {
		if unapplied[coldstart.Key(t)] {
			return
		}
		unapplied[coldstart.Key(t)] = true
		isDown(t)
		for i := range l.World.Tiers {
			f := &l.World.Tiers[i]
			if len(f.Parents) > 0 && !slices.ContainsFunc(f.Parents, func(p flux.Ref) bool { return !unapplied[coldstart.Key(p)] }) {
				isUnapplied(f.Tier)
			}
		}
	}
	isDown = func(of flux.Ref) {
		if down[coldstart.Key(of)] {
			return
		}
		down[coldstart.Key(of)] = true
		for _, n := range l.dependants(of) {
			// An expression may be true of what is not Ready.
			if slices.ContainsFunc(n.DependsOn, func(d flux.Dependency) bool {
				return coldstart.Key(d.Ref) == coldstart.Key(of) && d.ReadyExpr != ""
			}) {
				continue
			}
			if isRelease(n.Ref) {
				isDown(n.Ref)
			} else {
				isUnapplied(n.Ref)
			}
		}
		for _, holder := range l.holders(of) {
			if l.spec(holder).Wait || l.checks(holder, of) {
				isDown(holder)
			}
		}
	}
	if isRelease(object) {
		isDown(object)
	} else {
		isUnapplied(tier)
	}
	return unapplied
}

// holders are the tiers that apply a tier, or a HelmRelease.
func (l *look) holders(of flux.Ref) []flux.Ref {
	if f := l.followed(of); f != nil {
		return f.Parents
	}
	if holder := l.holder(of); holder.Name != "" {
		return []flux.Ref{holder}
	}
	return nil
}

func (l *look) reportBehind(source, tier, object, by flux.Ref) finding.Finding {
	severity, but := finding.Error, ""
	if may := l.mayDefine(); len(may) > 0 {
		severity = finding.Warning
		but = fmt.Sprintf(", unless %s %s it before, whose content is not known", finding.Some(may), finding.Verb(len(may), "brings", "bring"))
	}
	what := "never attempted"
	if isRelease(object) {
		what = "never installed"
	}
	f := l.report("DG010", severity, tier, object, fmt.Sprintf(
		"%s is %s on a cold cluster%s: it is built from %s, which %s applies, and that waits for it",
		l.name(object), what, but, source, l.name(by)))
	f.Causes = []string{
		l.place(tier, object) + " names the source",
		fmt.Sprintf("%s is applied by %s", l.place(by, source), l.name(by)),
	}
	if by != tier {
		f.Causes = append(f.Causes, fmt.Sprintf("%s is not applied before %s is Ready", l.name(by), l.name(tier)))
	}
	f.Fix = fmt.Sprintf("Move %s to a tier that comes before, or into the one that is built from it: into %s.", source, l.name(l.before(tier, object)))
	return f
}

// before is a tier that is applied before the object needs its source.
func (l *look) before(tier, object flux.Ref) flux.Ref {
	if isRelease(object) {
		return tier
	}
	if holders := l.holders(tier); len(holders) > 0 {
		return holders[0]
	}
	return tier
}
