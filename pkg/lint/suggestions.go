// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"io/fs"
	"slices"
	"strings"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/lint/suggest"
)

// suggestions gives each finding that a patch can mend that patch, or says in
// its fix why none is safe.
// others are the tiers of clusters that are not looked at.
func suggestions(files fs.FS, clusters []examined, others []build.Followed) {
	for i := range clusters {
		subject := clusters[i].subject
		input := suggest.Input{Files: files, World: subject.World, Prediction: subject.Prediction, Locate: subject.Locate, Others: slices.Clone(others)}
		for j := range clusters {
			if i != j {
				input.Others = append(input.Others, clusters[j].cluster.Tiers...)
			}
		}
		for k := range clusters[i].findings {
			suggestion(input, &clusters[i].findings[k])
		}
	}
}

func suggestion(input suggest.Input, f *finding.Finding) {
	var patch suggest.Patch
	var err error
	switch {
	case f.Tier == nil || f.Severity == finding.Info:
		return
	case f.Rule == "CS001":
		patch, err = suggest.Split(input, *f.Tier)
	case f.Rule == "HG001":
		patch, err = suggest.Gate(input, *f.Tier)
	default:
		return
	}
	if err != nil {
		f.Fix += "\n" + noPatch + strings.TrimPrefix(err.Error(), "cannot be written as a patch because ")
		return
	}
	f.Suggestion = patch.Diff
}

// noPatch begins the line of a fix that says why there is no patch.
const noPatch = "No patch: "

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
