// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"slices"
	"strconv"
	"strings"

	"github.com/kubestandup/kubestandup/pkg/coldstart"
	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// suppressed is a finding that an annotation hides, and the reason it gives.
type suppressed struct {
	finding.Finding
	reason string
}

// merger puts together what is found in several clusters at one place: the
// clusters of a repository share most of their files.
type merger struct {
	found []found
}

// found is a finding with the clusters that it is in.
type found struct {
	finding.Finding
	entries []string
	reason  string
	hidden  bool
}

// place is what the same finding has in every cluster.
type place struct {
	rule         string
	severity     finding.Severity
	tier, object flux.Ref
	file         string
	line         int
	hidden       bool
}

func (f *found) place() place {
	return place{
		rule: f.Rule, severity: f.Severity, tier: coldstart.Key(orNone(f.Tier)), object: coldstart.Key(orNone(f.Object)),
		file: f.File, line: f.Line, hidden: f.hidden,
	}
}

func (m *merger) add(f finding.Finding, entry, reason string, hidden bool) {
	m.found = append(m.found, found{Finding: f, entries: []string{entry}, reason: reason, hidden: hidden})
}

// merge leaves one finding of each place. Where a rule says several things of
// one place in one cluster, it is by their messages that they are told apart;
// elsewhere messages may differ, by how many tiers a cluster has.
func (m *merger) merge() []found {
	type seen struct {
		place
		entry string
	}
	times, many := map[seen]int{}, map[place]bool{}
	for i := range m.found {
		f := &m.found[i]
		at := f.place()
		key := seen{at, f.entries[0]}
		times[key]++
		many[at] = many[at] || times[key] > 1 || f.File == ""
	}
	type identity struct {
		place
		message string
	}
	var all []found
	first := map[identity]int{}
	for i := range m.found {
		f := &m.found[i]
		id := identity{place: f.place()}
		if many[id.place] {
			id.message = f.Message
		}
		if at, known := first[id]; known {
			all[at].join(f)
			continue
		}
		first[id] = len(all)
		all = append(all, *f)
	}
	return all
}

// merged are the findings, those that are hidden apart. Where there are several
// clusters, the last cause says in which of them it was found.
func (m *merger) merged(clusters int) (shown []finding.Finding, hidden []suppressed) {
	shown = []finding.Finding{}
	for _, f := range m.merge() {
		if where := inClusters(f.entries, clusters); where != "" {
			f.Causes = append(slices.Clone(f.Causes), where)
		}
		if f.hidden {
			hidden = append(hidden, suppressed{Finding: f.Finding, reason: f.reason})
			continue
		}
		shown = append(shown, f.Finding)
	}
	slices.SortStableFunc(hidden, func(a, b suppressed) int { return compare(a.Finding, b.Finding) })
	return shown, hidden
}

// FoundIn begins the last cause of a finding where there are several clusters:
// in which of them it was found.
const FoundIn = "found in "

func inClusters(entries []string, clusters int) string {
	entries = slices.DeleteFunc(slices.Clone(entries), func(e string) bool { return e == "" })
	slices.Sort(entries)
	entries = slices.Compact(entries)
	switch {
	case clusters < 2 || len(entries) == 0:
		return ""
	case len(entries) == 2 && clusters == 2:
		return FoundIn + "both clusters"
	case len(entries) == clusters:
		return FoundIn + "all " + strconv.Itoa(clusters) + " clusters"
	}
	return FoundIn + strings.Join(entries, ", ")
}
