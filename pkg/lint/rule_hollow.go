// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kubestandup/kubestandup/pkg/coldstart"
	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// retryEnough is the retryInterval that is proposed where none is set.
const retryEnough = 2 * time.Minute

func hollowGate() Rule {
	return Rule{
		ID: "HG001", Name: "hollow-gate", Severity: finding.Warning,
		Title: "A tier is Ready before what its dependants need is there.",
		Check: func(s *Subject) []finding.Finding {
			l := newLook(s)
			var all []finding.Finding
			for _, h := range l.hollowGates() {
				all = append(all, l.reportHollow(h))
			}
			return all
		},
	}
}

// hollow is a gate that proves nothing that its dependants need.
type hollow struct {
	gate flux.Ref
	late []late
}

func (l *look) hollowGates() []hollow {
	var all []hollow
	for _, d := range l.lateBy(coldstart.Hollow, coldstart.Provider.GateTier) {
		gate := d.brought[0].Provider.GateTier()
		at := slices.IndexFunc(all, func(h hollow) bool { return coldstart.Key(h.gate) == coldstart.Key(gate) })
		if at < 0 {
			at = len(all)
			all = append(all, hollow{gate: gate})
		}
		all[at].late = append(all[at].late, d)
	}
	return all
}

func (h hollow) needs() []coldstart.Need {
	var all []coldstart.Need
	for _, d := range h.late {
		all = append(all, d.needs()...)
	}
	return all
}

// brought merges what the dependants need by what brings it.
func (h hollow) brought() []brought {
	var needs []coldstart.Need
	var providers []coldstart.Provider
	for _, d := range h.late {
		for _, b := range d.brought {
			for _, n := range b.needs {
				needs, providers = append(needs, n), append(providers, b.Provider)
			}
		}
	}
	return bring(needs, providers)
}

func (l *look) reportHollow(h hollow) finding.Finding {
	all := h.brought()
	var dependants []string
	var longest *coldstart.Outcome
	for _, d := range h.late {
		dependants = append(dependants, l.name(d.Tier))
		if longest == nil || d.Retry > longest.Retry {
			longest = d.Outcome
		}
	}
	needs := h.needs()
	gate := l.name(h.gate)
	f := l.report("HG001", finding.Warning, h.gate, h.gate, fmt.Sprintf(
		"%s is Ready before %s %s: %s; on a cold cluster the first attempt of %s may fail with %s, and is repeated only %s",
		gate, described(needs), finding.Verb(len(kindNames(needs)), "exists", "exist"), l.whyHollow(h.gate, all[0]), finding.Some(dependants), "`"+failure(needs[0])+"`", retry(longest)))
	for _, b := range all {
		f.Causes = append(f.Causes, l.providerCause(b))
		if op := l.operatorCause(b.Provider); op != "" {
			f.Causes = append(f.Causes, op)
		}
	}
	for _, d := range h.late {
		f.Causes = append(f.Causes, l.needCauses(d.Tier, d.needs())...)
	}
	f.Causes = unique(f.Causes)
	f.Missing = missing(needs)
	held := max(l.below(h.gate), len(dependants))
	f.Fix = fmt.Sprintf("Let the Ready of %s prove that %s (%s for it then), in %s", gate, gateWords(all),
		finding.Count(held, "tier")+finding.Verb(held, " waits", " wait"), l.gateFix(h.gate, all))
	return f
}

// failure is how the controller reports the need.
func failure(n coldstart.Need) string {
	if n.Kind.Kind != "" {
		return fmt.Sprintf("no matches for kind %q", n.Kind.Kind)
	}
	return n.Object.String() + " not found"
}

// gateFix is the gate of the tier that is waited for and, where that contains
// the provider's tier, of that one too.
func (l *look) gateFix(gate flux.Ref, all []brought) string {
	text := l.gateFor(gate, all).text(l)
	var seen []flux.Ref
	for _, b := range all {
		key := coldstart.Key(b.Tier)
		if key == coldstart.Key(gate) || slices.Contains(seen, key) {
			continue
		}
		seen = append(seen, key)
		var its []brought
		for _, o := range all {
			if coldstart.Key(o.Tier) == key {
				its = append(its, o)
			}
		}
		if g := l.gateFor(b.Tier, its); !g.none() {
			text += "and in " + g.text(l)
		}
	}
	return strings.TrimSpace(text)
}

// whyHollow says what the tier's Ready proves instead.
func (l *look) whyHollow(gate flux.Ref, b brought) string {
	spec := l.spec(gate)
	name := l.name(gate)
	if coldstart.Key(b.Tier) != coldstart.Key(gate) && !spec.Wait {
		return fmt.Sprintf("they come about in %s, which %s applies and does not wait for", l.name(b.Tier), name)
	}
	waits := spec.Wait || l.checks(gate, kept(b.Provider))
	switch {
	case b.How == coldstart.ByChart || !waits:
		return fmt.Sprintf("its Ready says that %s is applied, and no more, since %s", kept(b.Provider), l.ungated(gate))
	case b.Release != nil:
		return fmt.Sprintf("%s is Ready when %s is applied, before %s", b.Release, b.Object, once(b.Provider))
	}
	return fmt.Sprintf("%s counts as healthy as soon as it is applied, before %s has reconciled it", b.Object, system(b.Provider))
}

func (l *look) checks(tier, object flux.Ref) bool {
	for _, h := range l.spec(tier).HealthChecks {
		if h.Kind == object.Kind && h.Name == object.Name {
			return true
		}
	}
	return false
}

func (l *look) ungated(tier flux.Ref) string {
	if len(l.spec(tier).HealthChecks) > 0 {
		return "its healthChecks do not name it"
	}
	return "neither wait nor healthChecks is set"
}
