// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/coldstart"
	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// IgnoreAnnotation stands on a Kustomization, or on the object that a finding
// is about, and hides findings: "CS003: why; HG001: why". A reason is required.
// Flux does not read it.
const IgnoreAnnotation = "lint.kubestandup.dev/ignore"

// ignored is what an annotation says of one rule.
type ignored struct {
	rule, reason string
}

// parseIgnore reads an annotation. Pairs are parted by semicolons or line feeds;
// a part that does not begin with a rule belongs to the reason before it. unread
// is text that belongs to no rule.
func parseIgnore(text string) (all []ignored, unread string) {
	pair := regexp.MustCompile(`^([A-Z]+[0-9]{3}(?:\s*,\s*[A-Z]+[0-9]{3})*)\s*(?::(.*))?$`)
	last := 0 // how many rules share the reason that was read last
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ';' || r == '\n' }) {
		part = strings.TrimSpace(part)
		m := pair.FindStringSubmatch(part)
		switch {
		case part == "":
		case m != nil:
			rules := strings.FieldsFunc(m[1], func(r rune) bool { return r == ',' || r == ' ' || r == '\t' })
			for _, rule := range rules {
				all = append(all, ignored{rule: rule, reason: strings.TrimSpace(m[2])})
			}
			last = len(rules)
		case len(all) == 0:
			unread = cmp.Or(unread, part)
		default:
			for i := len(all) - last; i < len(all); i++ {
				all[i].reason = strings.TrimLeft(all[i].reason+"; "+part, "; ")
			}
		}
	}
	return all, unread
}

// suppression is one rule of one annotation, in all clusters that it is in.
type suppression struct {
	ignored
	tier, object flux.Ref // object is the Kustomization itself where the annotation is there
	at           build.Position
	entries      []string
	used         bool
}

// suppressions are the annotations of all clusters. One that several clusters
// share is one.
type suppressions struct {
	known map[string]bool
	all   []*suppression
	// on finds those that apply to an object of a tier of a cluster; with the
	// zero object, to everything of the tier.
	on     map[scope][]*suppression
	unread []*suppression
}

type scope struct {
	entry        string
	tier, object flux.Ref
}

func newSuppressions() *suppressions {
	s := &suppressions{known: map[string]bool{}, on: map[scope][]*suppression{}}
	for _, rule := range everyRule() {
		s.known[rule.ID] = rule.ID != unusedSuppression && rule.ID != reasonlessSuppression
	}
	return s
}

// read finds the annotations of a cluster.
func (s *suppressions) read(subject *Subject) {
	for i := range subject.World.Tiers {
		t := &subject.World.Tiers[i]
		if text := t.Kustomization.GetAnnotations()[IgnoreAnnotation]; text != "" {
			s.add(subject, text, t.Tier, t.Tier, subject.tierAt(t.Tier))
		}
		if t.Result == nil {
			continue
		}
		for _, o := range t.Result.Objects {
			text := o.GetAnnotations()[IgnoreAnnotation]
			if text == "" || isTier(subject, o.Ref()) {
				continue // it was read with the tier that it is
			}
			at := build.Position{}
			if subject.Locate != nil {
				at = subject.Locate(t.Tier, o.Ref())
			}
			s.add(subject, text, t.Tier, o.Ref(), at)
		}
	}
}

func isTier(s *Subject, ref flux.Ref) bool {
	return ref.Kind == flux.KustomizationKind && ref.Group() == flux.KustomizeGroup &&
		slices.ContainsFunc(s.World.Tiers, func(f build.Followed) bool { return coldstart.Key(f.Tier) == coldstart.Key(ref) })
}

func (s *suppressions) add(subject *Subject, text string, tier, object flux.Ref, at build.Position) {
	all, unread := parseIgnore(text)
	if unread != "" {
		s.unread = s.enter(s.unread, suppression{ignored: ignored{reason: unread}, tier: tier, object: object, at: at}, subject.Entry)
	}
	for _, i := range all {
		s.all = s.enter(s.all, suppression{ignored: i, tier: tier, object: object, at: at}, subject.Entry)
	}
}

// enter finds the suppression among those of clusters that were read before, or
// adds it, and says what it applies to.
func (s *suppressions) enter(to []*suppression, one suppression, entry string) []*suppression {
	i := slices.IndexFunc(to, func(o *suppression) bool {
		return o.ignored == one.ignored && o.tier == one.tier && o.object == one.object && o.at == one.at && !slices.Contains(o.entries, entry)
	})
	if i < 0 {
		i = len(to)
		to = append(to, &one)
	}
	to[i].entries = append(to[i].entries, entry)
	at := scope{entry: entry, tier: coldstart.Key(one.tier), object: coldstart.Key(one.object)}
	s.on[at] = append(s.on[at], to[i])
	return to
}

// hide is true, with the reason, for a finding of a cluster that an annotation
// suppresses: one on its tier, or one on its object.
func (s *suppressions) hide(entry string, f *finding.Finding) (reason string, hidden bool) {
	tier, object := coldstart.Key(orNone(f.Tier)), coldstart.Key(orNone(f.Object))
	for _, at := range []scope{
		{entry, tier, object},   // the object itself
		{entry, tier, tier},     // its tier
		{entry, object, object}, // a tier, seen as an object of its parent
	} {
		for _, o := range s.on[at] {
			if o.rule != f.Rule || o.reason == "" || !s.known[o.rule] {
				continue
			}
			o.used = true
			if !hidden {
				reason, hidden = o.reason, true
			}
		}
	}
	return reason, hidden
}

// findings are what is wrong with the annotations themselves.
func (s *suppressions) findings() []finding.Finding {
	var all []finding.Finding
	report := func(o *suppression, rule, message, fix string) {
		all = append(all, finding.Finding{
			Rule: rule, Severity: finding.Warning, Message: message, Fix: fix,
			Object: &o.object, Tier: &o.tier, File: o.at.File, Line: o.at.Line,
		})
	}
	for _, o := range s.unread {
		report(o, unusedSuppression,
			fmt.Sprintf("%s of %s suppresses nothing: %q does not begin with a rule", IgnoreAnnotation, o.object, o.reason),
			ruleNamed(o.reason)+"write rule and reason: "+IgnoreAnnotation+`: "CS003: why it is meant to be so"`)
	}
	for _, o := range s.all {
		switch {
		case !s.known[o.rule]:
			report(o, unusedSuppression,
				fmt.Sprintf("%s of %s names %s, which is no rule that can be suppressed", IgnoreAnnotation, o.object, o.rule),
				"take it out of the annotation, or write the rule that is meant")
		case o.reason == "":
			report(o, reasonlessSuppression,
				fmt.Sprintf("%s of %s suppresses %s without a reason, so it does not count", IgnoreAnnotation, o.object, o.rule),
				fmt.Sprintf(`say why: %s: "%s: why it is meant to be so"`, IgnoreAnnotation, o.rule))
		case !o.used:
			report(o, unusedSuppression,
				fmt.Sprintf("%s of %s suppresses %s, which is not found there", IgnoreAnnotation, o.object, o.rule),
				"take "+o.rule+" out of the annotation: it would hide a new mistake")
		}
	}
	return all
}

// suppress notes of a tier that never comes up that what is found there is
// hidden, unless an error is shown.
func (e *Entry) suppress(f *finding.Finding, hidden bool) {
	if f.Tier == nil || f.Severity == finding.Info {
		return
	}
	for i := range e.Outcomes {
		o := &e.Outcomes[i]
		if o.Verdict != coldstart.Never || coldstart.Key(o.Tier) != coldstart.Key(*f.Tier) {
			continue
		}
		o.shown = o.shown || !hidden
		o.hidden = o.hidden || hidden
		o.Suppressed = o.hidden && !o.shown
	}
}

// ruleNamed says which rule has the name that a suppression begins with.
func ruleNamed(text string) string {
	name, _, _ := strings.Cut(text, ":")
	name = strings.TrimSpace(name)
	for _, rule := range everyRule() {
		if rule.Name == name {
			return fmt.Sprintf("%s is %s: ", name, rule.ID)
		}
	}
	return ""
}
