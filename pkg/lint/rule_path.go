// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kubestandup/kubestandup/pkg/coldstart"
	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// late is what a tier needs of another one and may come too early for, all by
// the same way.
type late struct {
	*coldstart.Outcome
	brought []brought
}

// lateBy collects the needs that come late and whose best provider is reached
// in that way, one entry per tier and provider's tier, in the order of the
// tiers. Namespaces, variables and webhooks have rules of their own.
func (l *look) lateBy(reach coldstart.Reach, tierOf func(coldstart.Provider) flux.Ref) []late {
	var all []late
	if l.Prediction == nil {
		return nil
	}
	for i := range l.Prediction.Outcomes {
		o := &l.Prediction.Outcomes[i]
		if o.Verdict == coldstart.Suspended {
			continue
		}
		var order []flux.Ref
		needs, providers := map[flux.Ref][]coldstart.Need{}, map[flux.Ref][]coldstart.Provider{}
		for _, n := range o.Needs {
			p := n.Nearest()
			if p == nil || p.Reach != reach || n.When != coldstart.Late {
				continue
			}
			if n.Kind.Kind == "" && reach != coldstart.Hollow || n.Webhook != nil {
				continue
			}
			key := coldstart.Key(tierOf(*p))
			if needs[key] == nil {
				order = append(order, key)
			}
			needs[key], providers[key] = append(needs[key], n), append(providers[key], *p)
		}
		for _, key := range order {
			all = append(all, late{o, bring(needs[key], providers[key])})
		}
	}
	return all
}

func (d late) needs() []coldstart.Need {
	var all []coldstart.Need
	for _, b := range d.brought {
		all = append(all, b.needs...)
	}
	return all
}

func providersTier(p coldstart.Provider) flux.Ref { return p.Tier }

func noPath() Rule {
	return Rule{
		ID: "CS003", Name: "no-path", Severity: finding.Warning,
		Title: "A tier applies a kind that another tier brings, and nothing makes it wait for that tier.",
		Check: func(s *Subject) []finding.Finding {
			l := newLook(s)
			var all []finding.Finding
			for _, d := range l.lateBy(coldstart.NoPath, providersTier) {
				all = append(all, l.reportRace("CS003", finding.Warning, d, fmt.Sprintf("and nothing makes %s wait for %s", l.name(d.Tier), l.name(d.brought[0].Tier))))
			}
			return all
		},
	}
}

func retryOnly() Rule {
	return Rule{
		ID: "CS004", Name: "retry-only", Severity: finding.Warning,
		Title: "A tier is applied together with what brings its kinds, so that only a retry heals its first attempt.",
		Check: func(s *Subject) []finding.Finding {
			l := newLook(s)
			var all []finding.Finding
			for _, d := range l.lateBy(coldstart.Applied, providersTier) {
				p := d.brought[0]
				all = append(all, l.reportRace("CS004", finding.Warning, d, fmt.Sprintf("and %s applies %s and %s without waiting for the first",
					l.name(p.Tier), kept(p.Provider), l.name(d.Tier))))
			}
			return append(all, l.ofReleases(l.lateRelease)...)
		},
	}
}

func (l *look) reportRace(rule string, severity finding.Severity, d late, why string) finding.Finding {
	needs, p := d.needs(), d.brought[0]
	f := l.report(rule, severity, d.Tier, firstUser(d.Outcome, needs[0]), fmt.Sprintf(
		"%s applies %s, which %s only once %s in %s, %s: on a cold cluster its first attempt may fail with `no matches for kind %q`, and is repeated only %s",
		l.name(d.Tier), described(needs), finding.Verb(len(kindNames(needs)), "exists", "exist"), onces(d.brought), l.name(p.Tier), why, needs[0].Kind.Kind, retry(d.Outcome)))
	for _, b := range d.brought {
		f.Causes = append(f.Causes, l.needCauses(d.Tier, b.needs)...)
		f.Causes = append(f.Causes, l.providerCause(b))
		if op := l.operatorCause(b.Provider); op != "" {
			f.Causes = append(f.Causes, op)
		}
	}
	f.Causes = unique(f.Causes)
	f.Missing = missing(needs)
	f.Fix = l.raceFix(d)
	return f
}

// raceFix is an edge to the provider's tier, and a gate there, or what can be
// done where the edge would close a loop.
func (l *look) raceFix(d late) string {
	p := d.brought[0]
	var text string
	switch {
	case p.Reach == coldstart.Applied:
		text = fmt.Sprintf("Move %s out of %s into a tier of its own, and let %s depend on that one, with a gate: wait: true, and healthCheckExprs where a controller creates the kinds.\n",
			kept(p.Provider), l.name(p.Tier), l.name(d.Tier))
	case l.waitsAlready(p.Tier, d.Tier):
		text = fmt.Sprintf("%s waits for %s, so that an edge would close a loop: move %s into a tier of %s own that depends on %s.\n",
			l.name(p.Tier), l.name(d.Tier), finding.Some(refs(users(d.needs()))), finding.Verb(len(users(d.needs())), "its", "their"), l.name(p.Tier))
	default:
		text = "Let it wait, in " + addTo(l, d.Tier, specYAML{DependsOn: []dependencyYAML{dependsOn(d.Tier, p.Tier)}})
		if g := l.gateFor(p.Tier, d.brought); !g.none() {
			text += fmt.Sprintf("and let the Ready of %s prove that %s (%s for it then):\n%s", l.name(p.Tier), gateWords(d.brought),
				finding.Count(l.below(p.Tier)+1, "tier")+finding.Verb(l.below(p.Tier)+1, " waits", " wait"), g.text(l))
		}
	}
	if d.RetryIsInterval && d.Retry > 2*retryEnough {
		text += fmt.Sprintf("Second best, where the edge is not wanted: retryInterval: %s.", short(retryEnough))
	}
	return strings.TrimSpace(text)
}

// waitsAlready is true when a tier cannot be Ready before the other one is.
func (l *look) waitsAlready(tier, other flux.Ref) bool {
	from, to := l.Graph.Node(tier), l.Graph.Node(other)
	return from != nil && to != nil && slices.Contains(l.Graph.Ancestors(from), to)
}

// onces says what has to happen before the kinds of all the providers exist.
func onces(all []brought) string {
	var words []string
	for _, b := range all {
		words = append(words, once(b.Provider))
	}
	return finding.And(unique(words))
}
