// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/kubestandup/kubestandup/pkg/coldstart"
	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/lint/suggest"
)

// Suggested are the rules for whose findings patches are written.
func Suggested() []string { return []string{"CS001", "CS003", "CS006", "CS011", "HG001"} }

// Patch mends all findings that can be mended together.
type Patch struct {
	// Diff is what git apply takes, with one part for each file.
	Diff string
	// Notes are what it says of itself, which git apply drops.
	Notes []string
	// Left are how many findings have a patch of their own that does not go
	// together with this one: they are for the next run.
	Left int
}

// occurrence is one finding of one cluster.
type occurrence struct {
	cluster int
	*finding.Finding
}

// suggestions gives each finding that a patch can mend that patch, or says in
// its fix why none is safe, and answers with the patch of all of them together.
// others are clusters that are not looked at.
func suggestions(files fs.FS, clusters []examined, others []suggest.Cluster) Patch {
	var all []suggest.Cluster
	for i := range clusters {
		s := clusters[i].subject
		all = append(all, suggest.Cluster{Name: s.Entry, World: s.World, Prediction: s.Prediction, Locate: s.Locate})
	}
	groups := alike(clusters)
	if len(groups) == 0 {
		return Patch{}
	}
	together := suggest.New(files, slices.Concat(all, others))
	var patch Patch
	for _, group := range groups {
		alone := together.Fresh()
		for _, o := range group {
			if err := suggestion(alone, o); err != nil {
				why := "\n" + noPatch + because(err, o)
				if !strings.Contains(o.Fix, why) {
					o.Fix += why
				}
			}
		}
		own := alone.Patch().Diff
		if own == "" {
			continue
		}
		left := false
		for _, o := range group {
			o.Suggestion = own
			left = suggestion(together, o) != nil && refusal(o.Fix) == "" || left
		}
		if left {
			patch.Left++
		}
	}
	whole := together.Patch()
	patch.Diff, patch.Notes = whole.Diff, whole.Notes
	return patch
}

// alike are the findings for which patches are written, the worst first: what is
// found at one place in several clusters goes together. What an annotation
// hides is meant to stay.
func alike(clusters []examined) [][]occurrence {
	annotations := newSuppressions()
	var all []occurrence
	for i := range clusters {
		c := &clusters[i]
		annotations.read(c.subject)
		for k := range c.findings {
			f := &c.findings[k]
			if f.Tier == nil || f.Severity == finding.Info || !slices.Contains(Suggested(), f.Rule) {
				continue
			}
			placed := *f
			c.place(&placed)
			if _, hidden := annotations.hide(c.subject.Entry, &placed); !hidden {
				all = append(all, occurrence{i, f})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b occurrence) int { return compare(*a.Finding, *b.Finding) })
	type key struct {
		place
		missing string
	}
	var groups [][]occurrence
	at := map[key]int{}
	for _, o := range all {
		f := found{Finding: *o.Finding}
		k := key{f.place(), fmt.Sprint(o.Missing)}
		if i, known := at[k]; known {
			groups[i] = append(groups[i], o)
			continue
		}
		at[k] = len(groups)
		groups = append(groups, []occurrence{o})
	}
	return groups
}

func suggestion(draft *suggest.Draft, o occurrence) error {
	tier := *o.Tier
	switch o.Rule {
	case "CS001":
		return draft.Split(o.cluster, tier)
	case "HG001":
		return draft.Gate(o.cluster, tier)
	case "CS011":
		return draft.Namespace(o.cluster, tier, orNone(o.Object))
	case "CS006":
		return draft.Edge(o.cluster, tier, func(n coldstart.Need) bool {
			return n.Stage == 0 && n.Kind.Kind == "" && strings.Contains(o.Message, n.Object.String())
		})
	}
	return draft.Edge(o.cluster, tier, func(n coldstart.Need) bool {
		return slices.ContainsFunc(o.Missing, func(m finding.Missing) bool {
			return n.Kind.Kind == m.Kind && n.Kind.GroupVersion() == (flux.Ref{APIVersion: m.APIVersion}).GroupVersionKind().GroupVersion()
		})
	})
}

// noPatch begins the line of a fix that says why there is no patch.
const noPatch = "No patch: "

// because is why there is no patch and what to do instead. The fix of a deadlock
// says what moves, and where: a second wording of that could contradict it.
func because(err error, o occurrence) string {
	var refusal *suggest.Refusal
	if o.Rule == "CS001" && strings.HasPrefix(o.Fix, "Move ") && errors.As(err, &refusal) {
		return refusal.Because + "; do the move above by hand"
	}
	return strings.TrimPrefix(err.Error(), "cannot be written as a patch because ")
}

// refusal is that line, empty where there is none.
func refusal(fix string) string {
	if i := strings.LastIndex(fix, "\n"+noPatch); i >= 0 {
		return fix[i+1:]
	}
	return ""
}

// join takes over what was suggested for the same finding in another cluster:
// a patch of its own files, or why there is none for that cluster.
func (f *found) join(other *found) {
	f.entries = append(f.entries, other.entries...)
	switch patch, why := other.Suggestion, refusal(other.Fix); {
	case patch != "" && !strings.Contains(f.Suggestion, patch):
		if f.Suggestion != "" {
			f.Suggestion = strings.TrimRight(f.Suggestion, "\n") + "\n"
		}
		f.Suggestion += patch
	case why != "" && !strings.Contains(f.Fix, why):
		f.Fix += "\n" + why
	}
}
