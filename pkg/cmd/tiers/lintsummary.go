// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package tiers

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kubestandup/kubestandup/pkg/coldstart"
	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/lint"
	"github.com/kubestandup/kubestandup/pkg/printers"
)

// conclude says of each cluster what was proved and what was not, and counts.
func (p *lintPage) conclude(report *lint.Report) {
	for i := range report.Entries {
		p.entry(&report.Entries[i])
	}
	for i, l := range report.Loose {
		if i == 0 {
			p.write(printers.Paragraph(0, "", 0, fmt.Sprintf("In no cluster, so that nothing was proved of %s:", finding.Verb(len(report.Loose), "it", "them")), p.table.Width))
		}
		p.say("", fmt.Sprintf("%s at %s:%d", l.Tier, l.File, l.Line))
	}
	s := report.Summary
	var counts []string
	for _, c := range []struct {
		n   int
		one string
	}{{s.Errors, "error"}, {s.Warnings, "warning"}, {s.Infos, "info"}} {
		if c.n > 0 {
			counts = append(counts, finding.Count(c.n, c.one))
		}
	}
	text := strings.Join(counts, ", ")
	if text == "" {
		text = "no finding"
	}
	if s.Suppressed > 0 {
		text += fmt.Sprintf("; %d suppressed", s.Suppressed)
	}
	p.write(printers.Paragraph(0, "", 0, strings.ToUpper(text[:1])+text[1:]+".", p.table.Width))
}

func (p *lintPage) entry(e *lint.Entry) {
	p.write(printers.Paragraph(0, "", 0, proved(e), p.table.Width))
	p.blocked(e)
	for i := range e.Outside {
		o := &e.Outside[i]
		text := o.Source.String() + " is outside of this repository"
		if o.Undefined {
			text = o.Source.String() + ", which no manifest that this cluster applies defines, is outside of this repository"
		}
		if len(o.Tiers) > 0 {
			text += fmt.Sprintf(": what %s cannot be told", appliedBy(o.Tiers))
		}
		p.say("outside", lintSentence(text))
	}
	p.opaque(e)
	p.trust(&e.Trust)
	if n := e.Kinds.Perhaps; n > 0 {
		p.say("unproved", fmt.Sprintf("%s that a tier uses %s not proved: nothing known registers %s, and something of unknown content may (--kinds lists them).",
			finding.Count(n, "kind"), finding.Verb(n, "is", "are"), finding.Verb(n, "it", "them")))
	}
}

// opaque names the releases whose charts are not known, and why the first one
// is not: -o json says it of each.
func (p *lintPage) opaque(e *lint.Entry) {
	if len(e.Opaque) == 0 {
		return
	}
	var names []string
	for _, o := range e.Opaque {
		names = append(names, o.Object.Key())
	}
	p.say("opaque", fmt.Sprintf("what the %s of %s may register is not known.", finding.Verb(len(names), "chart", "charts"), firstOf(names)))
	if why := e.Opaque[0].Why; why != "" {
		if !strings.Contains(why, names[0]) {
			why = names[0] + ": " + why
		}
		p.say("", lintSentence(why))
	}
}

func appliedBy(tiers []flux.Ref) string {
	var names []string
	for _, t := range tiers {
		names = append(names, t.Key())
	}
	return firstOf(names) + " " + finding.Verb(len(tiers), "applies", "apply")
}

func firstOf(names []string) string {
	const most = 5
	if more := len(names) - most; more > 0 {
		names = append(names[:most:most], fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

// proved is the sentence about a cluster.
func proved(e *lint.Entry) string {
	head := fmt.Sprintf("%s: %s, %s: ", e.Entry, finding.Count(e.Tiers, "tier"), finding.Count(e.Objects, "object"))
	c := e.Verdicts
	if c.AtOnce == e.Tiers && e.Tiers > 0 && c.Unready == 0 {
		each := finding.Verb(e.Tiers, "at the first attempt", "each tier at its first attempt")
		switch n := e.Kinds.InTime; {
		case e.Kinds != lint.KindCounts{InTime: n, Before: e.Kinds.Before}, e.Any(), len(e.Opaque) > 0:
			return head + "an empty cluster converges, " + each + ", as far as is known."
		case n == 0:
			return head + "proved that an empty cluster converges, " + each + "."
		default:
			return head + fmt.Sprintf("proved that an empty cluster converges, %s; %s of kinds that are not built in %s traced to what registers %s in time (--kinds).",
				each, finding.Count(n, "use"), finding.Verb(n, "was", "were"), finding.Verb(n, "it", "them"))
		}
	}
	var parts []string
	outside := len(tiersWith(e, neverUnless))
	for _, part := range []struct {
		verdict   coldstart.Verdict
		n         int
		one, many string
	}{
		{coldstart.AtOnce, c.AtOnce, "converges at its first attempt", "converge at their first attempt"},
		{coldstart.ByRetry, c.ByRetry, "only by a retry", "only by a retry"},
		{coldstart.Never, c.Never - outside, "never", "never"},
		{neverUnless, outside, "never, unless something outside of the repository brings what it lacks", "never, unless something outside of the repository brings what they lack"},
		{coldstart.Blocked, c.Blocked, "is blocked for ever", "are blocked for ever"},
		{coldstart.Suspended, c.Suspended, "is suspended", "are suspended"},
		{coldstart.Unknown, c.Unknown, "is not known", "are not known"},
		{"", c.Unready, "applies everything and never becomes Ready", "apply everything and never become Ready"},
	} {
		if part.n == 0 {
			continue
		}
		text := fmt.Sprintf("%d %s", part.n, finding.Verb(part.n, part.one, part.many))
		if names := tiersWith(e, part.verdict); len(names) > 0 && part.verdict != coldstart.AtOnce {
			text += " (" + firstOf(names) + ")"
		}
		parts = append(parts, text)
	}
	if len(parts) == 0 {
		return head + "nothing to prove."
	}
	return head + strings.Join(parts, ", ") + "."
}

// neverUnless is the verdict never of a tier that lacks nothing but kinds which
// something outside of the repository may register.
const neverUnless coldstart.Verdict = "never-unless"

// blocked says that what was not attempted may hide more.
func (p *lintPage) blocked(e *lint.Entry) {
	ends := map[string]coldstart.Verdict{}
	for _, o := range e.Outcomes {
		ends[o.Tier.Key()] = o.Verdict
	}
	var by []string
	for _, o := range e.Outcomes {
		for _, on := range o.BlockedBy {
			if o.Verdict == coldstart.Blocked && ends[on.Key()] != coldstart.Blocked && !slices.Contains(by, on.Name) {
				by = append(by, on.Name)
			}
		}
	}
	if n := e.Verdicts.Blocked; n > 0 && len(by) > 0 {
		p.say("blocked", fmt.Sprintf("%s %s blocked: more may be found once %s %s up.", finding.Count(n, "tier"), finding.Verb(n, "is", "are"), firstOf(by), finding.Verb(len(by), "comes", "come")))
	}
}

// tiersWith are the tiers of a verdict; without one, those that apply everything
// and are never Ready.
func tiersWith(e *lint.Entry, verdict coldstart.Verdict) []string {
	var names []string
	for _, o := range e.Outcomes {
		applied := o.Verdict == coldstart.AtOnce || o.Verdict == coldstart.ByRetry
		end := o.Verdict
		if end == coldstart.Never && o.UnlessOutside {
			end = neverUnless
		}
		if end != verdict && (verdict != "" || !applied || o.Ready) {
			continue
		}
		name := o.Tier.Name
		if o.Suppressed {
			name += ", suppressed"
		}
		names = append(names, name)
	}
	return names
}
