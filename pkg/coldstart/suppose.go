// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package coldstart

import (
	"slices"

	"github.com/kubestandup/kubestandup/pkg/build"
)

// maxSuppositions bounds how often what stops everything else is taken to be
// mended. Each one mends at least one tier.
const maxSuppositions = 50

// further looks behind what stops a cold cluster: it takes each tier that never
// comes up as mended, and says what the tiers that it blocks would lack for
// ever then. What they would only be late for is not said: mending the first
// mistake may mend that too.
func (m *model) further() map[*tier][]Need {
	found := map[*tier][]Need{}
	blocked := func(t *tier) bool { return !t.spec.Suspend && !m.held[t.attempt] }
	if !slices.ContainsFunc(m.tiers, blocked) {
		return found
	}
	next := *m
	next.facts = facts{nodes: slices.Clone(m.nodes)}
	next.solve()
	for range maxSuppositions {
		mended := false
		for _, t := range m.tiers {
			if next.mend(t, func(n Need) {
				if blocked(t) {
					found[t] = append(found[t], n)
				}
			}) {
				mended = true
			}
		}
		if !mended && !next.untie() {
			break
		}
		nodes := next.nodes
		next.facts = facts{nodes: nodes}
		next.solve()
	}
	return found
}

// mend grants a tier what it is attempted without. It answers false for one
// that needs no mending, or is not attempted.
func (m *model) mend(t *tier, missing func(Need)) bool {
	switch {
	case !m.held[t.attempt] || m.held[t.ready]:
		return false
	case t.broken && m.nodes[t.built].never:
		m.grant(t.built)
		return true
	}
	mended := false
	for _, n := range t.needs {
		if !m.held[n.fact] && (n.hook == nil || n.certain) {
			missing(m.judge(t, n))
			m.grant(n.fact)
			mended = true
		}
	}
	if !mended && m.held[t.stages[build.StageRest]] {
		// It waits for ever for the health of something.
		m.grant(t.ready)
		mended = true
	}
	return mended
}

// untie takes a tier that waits in a circle, or for what does not exist, as
// attempted.
func (m *model) untie() bool {
	for _, t := range m.tiers {
		if m.held[t.exists] && !m.held[t.attempt] && !t.spec.Suspend {
			m.grant(t.attempt)
			return true
		}
	}
	return false
}

func (m *model) grant(f fact) { m.nodes[f] = node{} }
