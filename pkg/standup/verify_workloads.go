// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"context"
	"fmt"

	"github.com/kubestandup/kubestandup/pkg/finding"
)

// workloads looks at every object that the tiers say they have applied.
func (v *verify) workloads(ctx context.Context) (Check, error) {
	c := Check{Name: "workloads"}
	look, err := v.served(ctx)
	if err != nil {
		return c, err
	}
	hidden, err := v.collect(ctx, look.Served)
	if err != nil {
		return c, err
	}
	book, broken, err := v.book(ctx)
	if err != nil {
		return c, err
	}
	v.checks = book
	e, err := newExaminer(v.env.Config, look.Served, book)
	if err != nil {
		return c, err
	}
	kinds := v.kinds()
	blinds, err := e.examine(ctx, kinds)
	if err != nil {
		return c, err
	}
	said, applied := v.count()
	if len(v.pieces) > 0 {
		c.Message = fmt.Sprintf("%d of %d objects are well: %d say so or pass a check, %d have no status and are there", said+applied, len(v.pieces), said, applied)
	}
	for _, err := range broken {
		c.Findings = append(c.Findings, finding.Finding{
			Rule: "check-unusable", Severity: finding.Error, Message: firstLine(err.Error()), Fix: "mend the expression: nothing was checked with it",
		})
	}
	c.Findings = append(c.Findings, v.unmatched(book)...)
	c.Findings = append(c.Findings, v.failures()...)
	var unseen []finding.Finding
	for _, b := range blinds {
		unseen = append(unseen, v.blindFinding(b))
	}
	c.Findings = append(c.Findings, atOnce(unseen, "kinds of objects could not be looked at")...)
	c.Findings = append(c.Findings, v.muteFindings(book)...)
	c.Findings = append(c.Findings, hidden.findings()...)
	return c, nil
}

// unmatched are the checks of standup.yaml that are about nothing: a misspelt
// kind must not read as proof.
func (v *verify) unmatched(book *checkBook) []finding.Finding {
	var all []finding.Finding
	for i := range book.configured {
		check := &book.configured[i]
		about := false
		for _, p := range v.pieces {
			about = about || check.isAbout(p.ref)
		}
		if !about {
			all = append(all, finding.Finding{
				Rule: "check-unmatched", Severity: finding.Warning,
				Message: fmt.Sprintf("%s proves nothing: no tier has applied such a %s", check.from, check.kind),
				Fix:     "correct its apiVersion, kind, namespace and name in " + v.env.file() + ", or take it out",
			})
		}
	}
	return all
}

// count adds the pieces to what was proved, for all and for each tier.
func (v *verify) count() (said, applied int) {
	for _, p := range v.pieces {
		all := []*tally{}
		for _, n := range p.tiers {
			all = append(all, v.of(n.Ref))
		}
		switch p.class {
		case wellSaid, wellApplied:
			v.counts.Proved++
			if p.class == wellSaid {
				said++
			} else {
				applied++
			}
			for _, t := range all {
				t.proved++
			}
		case unjudged, mute, unasked:
			v.counts.Unproved++
			for _, t := range all {
				t.unproved++
			}
		default:
			v.counts.Failed++
			for _, t := range all {
				t.failed++
			}
		}
	}
	return said, applied
}
