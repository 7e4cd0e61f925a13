// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"

	"github.com/kubestandup/kubestandup/pkg/coldstart"
	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

func deadlock() Rule {
	return Rule{
		ID: "CS001", Name: "deadlock", Severity: finding.Error,
		Title: "A tier applies resources together with what registers their kinds, so that neither is ever applied.",
		Check: func(s *Subject) []finding.Finding {
			l := newLook(s)
			var all []finding.Finding
			for _, d := range l.deadlocks() {
				all = append(all, l.reportDeadlock(d))
			}
			return append(all, l.ofReleases(l.deadlockedRelease)...)
		},
	}
}

// stuck is a tier that waits for what it keeps back itself.
type stuck struct {
	*coldstart.Outcome
	// needs are those that never come for that reason, by providers in
	// the same order.
	needs     []coldstart.Need
	providers []coldstart.Provider
	// guessed is true where a chart of unknown content is all that may register
	// the kinds.
	guessed bool
}

// deadlocks are the tiers that keep back what brings their kinds, or whose
// kinds come from a tier that waits for them.
func (l *look) deadlocks() []stuck {
	var all []stuck
	if l.Prediction == nil {
		return nil
	}
	for i := range l.Prediction.Outcomes {
		d := stuck{Outcome: &l.Prediction.Outcomes[i]}
		if d.Verdict == coldstart.Suspended {
			continue
		}
		for _, n := range d.Needs {
			if p := keptBack(n); p != nil {
				d.needs, d.providers = append(d.needs, n), append(d.providers, *p)
			}
		}
		if len(d.needs) == 0 {
			d.guessed = true
			for _, n := range d.Needs {
				if p := l.keptGuess(d.Outcome, n); p != nil {
					d.needs, d.providers = append(d.needs, n), append(d.providers, *p)
				}
			}
		}
		if len(d.needs) > 0 {
			all = append(all, d)
		}
	}
	return all
}

// keptBack is the provider that the need itself keeps off the cluster.
// Namespaces, webhooks and what Pods need have rules of their own.
func keptBack(n coldstart.Need) *coldstart.Provider {
	if n.When != coldstart.Missing || n.Object.Kind == "Namespace" || n.Webhook != nil || ofPod(n) {
		return nil
	}
	for i, p := range n.Providers {
		if p.How == coldstart.ByGit && p.Reach == coldstart.Same && p.Stage < n.Stage {
			return nil // applied in time, if the tier were applied at all
		}
		if p.Reach == coldstart.Same || p.Reach == coldstart.Behind {
			return &n.Providers[i]
		}
	}
	return nil
}

// keptGuess is the opaque chart of the same tier, where nothing else may
// register the kind.
func (l *look) keptGuess(o *coldstart.Outcome, n coldstart.Need) *coldstart.Provider {
	if n.When != coldstart.Perhaps || len(n.Candidates) == 0 || n.Kind.Kind == "" || len(n.Providers) > 0 {
		return nil
	}
	for _, c := range n.Candidates {
		if !isRelease(c) || !l.applies(o.Tier, c) {
			return nil
		}
	}
	return &coldstart.Provider{
		How: coldstart.ByChart, Tier: o.Tier, Object: n.Candidates[0], Stage: 4, Reach: coldstart.Same,
	}
}

// applies is true when the object is one of the tier's own.
func (l *look) applies(tier, object flux.Ref) bool {
	for _, o := range l.objects(l.followed(tier)) {
		if same(o.Ref(), object) {
			return true
		}
	}
	return false
}

// variables is true where it is the build that never gets what it needs.
func (d stuck) variables() bool { return d.needs[0].Stage == 0 && d.needs[0].Kind.Kind == "" }

func (l *look) reportDeadlock(d stuck) finding.Finding {
	severity := finding.Error
	if d.guessed || d.variables() {
		// Many create the object that a root is built with by hand, before Flux.
		severity = finding.Warning
	}
	object := d.Tier
	if u := users(d.needs); len(u) > 0 {
		object = u[0]
	}
	f := l.report("CS001", severity, d.Tier, object, l.deadlockMessage(d))
	f.Causes = l.deadlockCauses(d)
	f.Missing = missing(d.needs)
	f.Fix = l.deadlockFix(d)
	return f
}

// unhealed ends the message about a tier that no retry heals.
func (l *look) unhealed(tier flux.Ref) string {
	tail := "no retry heals it"
	if n := l.below(tier); n > 0 {
		tail += fmt.Sprintf(", and the %s below it %s down until it is changed", finding.Count(n, "tier"), finding.Verb(n, "stays", "stay"))
	}
	return tail
}

func (l *look) deadlockMessage(d stuck) string {
	name, p := l.name(d.Tier), d.providers[0]
	first := ofProvider(d, p)
	tail := l.unhealed(d.Tier)
	if others := len(d.needs) - len(first); others > 0 {
		tail = fmt.Sprintf("the same holds for %s; %s", finding.Some(kindNames(rest(d, p))), tail)
	}
	start := fmt.Sprintf("%s never comes up on a cold cluster", name)
	what := described(first)
	switch {
	case d.guessed:
		return fmt.Sprintf("%s may never come up on a cold cluster: nothing is known to register %s but perhaps the chart of %s, "+
			"in the same tier, of which Flux applies nothing until every kind is known: then %s", name, what, finding.Some(refs(first[0].Candidates)), tail)
	case d.variables():
		tail = "unless something outside of the repository creates it before, " + tail
		if p.Reach == coldstart.Behind {
			return fmt.Sprintf("%s: it is built %s %s, which %s brings, and %s waits for %s: %s",
				start, builtWith(d.needs[0]), what, l.name(p.Tier), l.name(p.Tier), name, tail)
		}
		return fmt.Sprintf("%s: it is built %s %s, which it applies itself: %s", start, builtWith(d.needs[0]), what, tail)
	case p.Reach == coldstart.Behind:
		return fmt.Sprintf("%s: %s %s only once %s, and that is in %s, which itself waits for %s: %s", start, what,
			finding.Verb(len(kindNames(first)), "exists", "exist"), once(p), l.name(p.Tier), name, tail)
	}
	where := fmt.Sprintf("waits in the same stage of %s, of which Flux applies nothing until every kind in it is known", name)
	if p.Stage > first[0].Stage {
		where = fmt.Sprintf("waits in a later stage of %s, which Flux does not get to until every kind of the one before is known", name)
	}
	return fmt.Sprintf("%s: %s %s only once %s, and %s %s: %s",
		start, what, finding.Verb(len(kindNames(first)), "exists", "exist"), once(p), kept(p), where, tail)
}

// once says what has to happen before the kinds of a provider exist.
func once(p coldstart.Provider) string {
	switch p.How {
	case coldstart.ByTrigger:
		if p.Release != nil {
			return fmt.Sprintf("%s has reconciled %s of the chart of %s", system(p), p.Object, p.Release)
		}
		return fmt.Sprintf("%s has reconciled %s", system(p), p.Object)
	case coldstart.ByStart:
		return fmt.Sprintf("%s has started", system(p))
	case coldstart.ByChart:
		return fmt.Sprintf("%s is installed", p.About())
	}
	if p.Object.Kind == crdKind {
		return "the CRD is applied"
	}
	return fmt.Sprintf("%s is applied", p.Object)
}

// kept is the object of the tier that a provider comes about by.
func kept(p coldstart.Provider) flux.Ref {
	if p.Release != nil {
		return *p.Release
	}
	return p.Object
}

// ofProvider are the needs that one provider brings, rest those of the others.
func ofProvider(d stuck, p coldstart.Provider) []coldstart.Need {
	var all []coldstart.Need
	for i, n := range d.needs {
		if sameProvider(d.providers[i], p) {
			all = append(all, n)
		}
	}
	return all
}

func rest(d stuck, p coldstart.Provider) []coldstart.Need {
	var all []coldstart.Need
	for i, n := range d.needs {
		if !sameProvider(d.providers[i], p) {
			all = append(all, n)
		}
	}
	return all
}

// sameProvider is true where one thing has to happen for both: the CRDs of a
// tier, or of a chart, come at once.
func sameProvider(a, b coldstart.Provider) bool {
	if a.How != b.How || coldstart.Key(a.Tier) != coldstart.Key(b.Tier) {
		return false
	}
	switch a.How {
	case coldstart.ByGit:
		return true
	case coldstart.ByChart:
		return same(a.About(), b.About())
	}
	return same(kept(a), kept(b)) && same(a.Object, b.Object)
}

// bring groups needs by what brings them.
func bring(needs []coldstart.Need, providers []coldstart.Provider) []brought {
	var all []brought
	for i, n := range needs {
		at := slices.IndexFunc(all, func(b brought) bool { return sameProvider(b.Provider, providers[i]) })
		if at < 0 {
			at = len(all)
			all = append(all, brought{Provider: providers[i]})
		}
		all[at].needs = append(all[at].needs, n)
	}
	return all
}

// builtWith says what an object is to the build of a tier.
func builtWith(n coldstart.Need) string {
	if n.Object.Kind == "ConfigMap" || n.Object.Kind == "Secret" {
		return "with the variables of"
	}
	return "from"
}
