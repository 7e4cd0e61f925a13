// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package suggest

import (
	"fmt"
	"io/fs"
	"strings"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/coldstart"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// Input is one cluster of a repository, with what was predicted of it.
type Input struct {
	// Files is the working tree, for which os.Root.FS is best: it follows no
	// link out of it. Nothing is ever written.
	Files      fs.FS
	World      *coldstart.Cluster
	Prediction *coldstart.Prediction
	// Locate finds where an object of a tier is written, as lint.Subject.Locate
	// does.
	Locate func(tier, object flux.Ref) build.Position
	// Others are the tiers of the repository's other clusters. A file that they
	// build too is not touched.
	Others []build.Followed
}

// Patch is a change of the working tree.
type Patch struct {
	// Diff is a unified diff, its paths relative to the root of the tree. It
	// begins with the notes, as comments.
	Diff string
	// Notes say what the patch does, what to look out for and how many tiers
	// each new gate holds, a paragraph each.
	Notes []string
	// Holds is how many tiers the gate holds that the patch is about: those that
	// wait for it, directly or not, and those that they contain.
	Holds int
}

// Refusal is why there is no patch. Every error of this package is one.
type Refusal struct {
	// Because completes "cannot be written as a patch because"; ByHand is what
	// to do instead.
	Because, ByHand string
}

func (r *Refusal) Error() string {
	text := "cannot be written as a patch because " + r.Because
	if r.ByHand != "" {
		text += "; do this by hand: " + r.ByHand
	}
	return text
}

func refuse(format string, args ...any) *Refusal {
	return &Refusal{Because: fmt.Sprintf(format, args...)}
}

// byHand gives every refusal of a step the same way out.
func byHand(err error, format string, args ...any) error {
	if refusal, ok := err.(*Refusal); ok && refusal.ByHand == "" { //nolint:errorlint // never wrapped
		refusal.ByHand = fmt.Sprintf(format, args...)
	}
	return err
}

// list names things in a sentence.
func list(names []string) string {
	switch n := len(names); {
	case n < 2:
		return strings.Join(names, "")
	case n > 5:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:4], ", "), n-4)
	default:
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
}

func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
