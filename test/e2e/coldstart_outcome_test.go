// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package e2e

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/kubestandup/kubestandup/pkg/coldstart"
	"github.com/kubestandup/kubestandup/pkg/lint"
)

// coldOutcome is what became of a tier.
type coldOutcome struct {
	verdict  coldstart.Verdict
	ready    bool
	messages []string // of the attempts that failed
	last     string   // what its status says
}

// outcomes are those of all tiers of a repository that exist, as they are now,
// by namespace/name.
func (w *coldWatch) outcomes(r *coldRepo) map[string]coldOutcome {
	w.mu.Lock()
	defer w.mu.Unlock()
	if all := w.ended[r.id]; all != nil {
		return all
	}
	all := map[string]coldOutcome{}
	for key, tier := range w.tiers {
		if r.owns(key.Namespace) {
			all[key.String()] = tier.outcome()
		}
	}
	return all
}

func (t *coldTier) outcome() coldOutcome {
	o := coldOutcome{verdict: coldstart.Blocked, ready: tierReady(t.newest), last: coldCondition(t.newest).Message}
	for _, f := range t.failures {
		o.messages = append(o.messages, f.reason+": "+f.message)
	}
	switch {
	case t.applied && t.failedFirst:
		o.verdict = coldstart.ByRetry
	case t.applied:
		o.verdict = coldstart.AtOnce
	case t.newest.Spec.Suspend:
		o.verdict = coldstart.Suspended
	case len(t.failures) > 0:
		o.verdict = coldstart.Never
	}
	return o
}

// coldTally is how often which prediction came true.
type coldTally struct {
	agreed map[coldstart.Verdict]int
	// free are races that ended either way, and were foretold as such.
	free, wrong int
}

// compare says where what happened is not what was predicted. before is the
// standstill without helm-controller.
func (p *coldPrediction) compare(t *testing.T, r *coldRepo, before, after map[string]coldOutcome, tally *coldTally) {
	t.Helper()
	unready := 0
	for _, key := range slices.Sorted(maps.Keys(after)) {
		if _, known := p.verdicts[key]; !known {
			t.Errorf("%s: %s exists, and is in no prediction", r.name, key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(p.verdicts)) {
		want := p.verdicts[key]
		is, exists := after[key]
		if !exists {
			is.verdict, is.last = coldstart.Blocked, "it does not exist"
		}
		if exists && !is.ready && (is.verdict == coldstart.AtOnce || is.verdict == coldstart.ByRetry) {
			unready++
		}
		why := p.unforeseen(key, is)
		switch {
		case want == is.verdict:
		case want == coldstart.Suspended && !exists:
		case want == coldstart.ByRetry && is.verdict == coldstart.AtOnce && p.mayWin(key, before):
			tally.free++
		default:
			why = append(why, "predicted "+string(want))
		}
		tally.agreed[want]++
		if len(why) > 0 {
			tally.wrong++
			t.Errorf("%s: %s is %s, ready %t (%s): %s\n  late: %v\n  its failures: %q", r.name, key, is.verdict, is.ready, is.last,
				strings.Join(why, "; "), p.late[key], slices.Compact(is.messages))
		}
	}
	if unready != p.unready {
		tally.wrong++
		t.Errorf("%s: %d tiers applied everything and are not Ready, predicted %d:\n%s", r.name, unready, p.unready, describeCold(after))
	}
}

// mayWin is true of a tier that was predicted to fail first, and may be lucky:
// its race is with other tiers, not with a chart, or began when both ran.
func (p *coldPrediction) mayWin(key string, before map[string]coldOutcome) bool {
	if was, existed := before[key]; !existed || was.verdict == coldstart.Blocked {
		return true
	}
	kinds := p.late[key]
	return len(kinds) == 0 || slices.ContainsFunc(slices.Collect(maps.Values(kinds)), func(by lint.Via) bool { return by != lint.ViaChart })
}

var noMatch = regexp.MustCompile(`no matches for kind "([^"]+)" in version "([^"]+)"`)

// unforeseen are the kinds that an attempt lacked, and that were predicted to
// be there.
func (p *coldPrediction) unforeseen(key string, is coldOutcome) []string {
	var why []string
	for _, message := range is.messages {
		for _, match := range noMatch.FindAllStringSubmatch(message, -1) {
			if _, late := p.late[key][match[2]+" "+match[1]]; !late {
				why = append(why, fmt.Sprintf("%s %s was predicted to be there", match[2], match[1]))
			}
		}
	}
	slices.Sort(why)
	return slices.Compact(why)
}

func describeCold(all map[string]coldOutcome) string {
	var lines []string
	for key, o := range all {
		lines = append(lines, fmt.Sprintf("  %s %s, ready %t, %d failures: %s", key, o.verdict, o.ready, len(o.messages), o.last))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// cannotRun are the fixtures that cannot come up here, and why.
func cannotRun() map[string]string {
	const (
		gatekeeper = "Gatekeeper would have to run"
		network    = "what it needs is on the network"
		others     = "it needs the repository of somebody else"
		clusters   = "there is no other cluster"
		volumes    = "nothing provisions volumes here"
		answers    = "its webhook would have to answer"
		cdi        = "it has a test of its own, with the real operator"
	)
	return map[string]string{
		"crd-03-gated":                          gatekeeper,
		"crd-03-gated-by-definition":            gatekeeper,
		"crd-03-split":                          gatekeeper,
		"crd-06-operator-trigger-and-resource":  cdi,
		"cs001-network":                         "Cilium would have been there before",
		"cs002-creators":                        "its kinds come with CDI, which another test runs",
		"cs002-kinds-before-flux":               "this is no k3s",
		"cs002-chart-perhaps":                   network,
		"cs002-flux-operator":                   "Flux Operator would have to run",
		"cs002-opaque":                          network,
		"cs005-values-from":                     network,
		"cs005-values-unknown":                  network,
		"cs005-chart-without-crds":              network,
		"cs005-not-needed":                      network,
		"cs005-switched-on":                     network,
		"build001-included":                     others,
		"build002-remote-definitions":           network,
		"build002-remote-namespace":             network,
		"build002-remote-others":                network,
		"build004-unknown":                      "its values are made by hand",
		"crd-13-known-chart-of-another-cluster": clusters,
		"crd-13-release-of-another-cluster":     clusters,
		"crd-13-tier-of-another-cluster":        clusters,
		"dg002-not-built":                       network,
		"dg007-of-another-cluster":              clusters,
		"dg009-kustomization":                   others,
		"dg009-outside":                         others,
		"dg010-no-wait":                         network,
		"cs001-beside-another-repository":       others,
		"cs002-below-another-repository":        others,
		"cs002-definitions-elsewhere":           others,
		"hg002-unknown-content":                 others,
		"cs014-either-order":                    "it may end either way, and never",
		"cs014-known-chart":                     network,
		"cs014-known-chart-gated":               network,
		"cs014-known-chart-no-edge":             network,
		"cs014-gate":                            answers,
		"cs014-no-gate":                         answers,
		"cs007-decrypted":                       "nobody has its key",
		"dep-05-outside":                        others,
		"dep-07-cross-source":                   others,
		"dg008-not-below":                       others,
		"dg008-self-served-source":              others,
		"hg001-operator-that-registers":         "Cilium would have to run",
		"kst-05-bound-at-once":                  volumes,
		"kst-05-class-of-a-chart":               volumes,
		"kst-05-default-class":                  volumes,
		"kst-05-default-class-at-once":          volumes,
		"kst-05-waiting-class-of-a-chart":       volumes,
		"kst-05-mounted":                        volumes,
		"mission-before":                        cdi,
		"mission-split":                         cdi,
		"mission-gated":                         cdi,
	}
}
