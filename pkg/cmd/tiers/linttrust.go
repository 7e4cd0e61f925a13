// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package tiers

import (
	"fmt"
	"strings"

	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/lint"
)

// trust says what a verdict rests on that nobody looked at.
func (p *lintPage) trust(t *lint.Trust) {
	for i := range t.Unfetched {
		u := &t.Unfetched[i]
		name := strings.TrimSpace(u.Chart + " " + u.Version)
		p.say(onlyFirst(i, "unfetched"), lintSentence(fmt.Sprintf("chart %s of %s could not be fetched: %s", name, u.Object.Key(), u.Why)))
	}
	var said []string
	if by := t.ByName; by != nil {
		text := fmt.Sprintf("%s %s on what is known of %s by name (%s)", finding.Count(by.Kinds, "kind"), finding.Verb(by.Kinds, "rests", "rest"),
			finding.Count(len(by.Charts), "chart"), firstOf(by.Charts))
		if len(t.Unfetched) == 0 {
			text += fmt.Sprintf("; --fetch-charts renders %s", finding.Verb(len(by.Charts), "it", "them"))
		}
		said = append(said, text)
	}
	for _, group := range []struct {
		what string
		refs []flux.Ref
	}{{"taken to be there: ", t.Assumed}, {"what these make was not looked at: ", t.Unseen}} {
		var names []string
		for _, ref := range group.refs {
			names = append(names, ref.String())
		}
		if len(names) > 0 {
			said = append(said, group.what+firstOf(names))
		}
	}
	for _, b := range t.Before {
		said = append(said, fmt.Sprintf("taken to be installed before Flux, by %s: %s", b.File, firstOf(b.Charts)))
	}
	for i, text := range said {
		p.say(onlyFirst(i, "unproved"), lintSentence(text))
	}
}
