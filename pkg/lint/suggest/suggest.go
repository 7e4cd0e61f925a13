// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package suggest

import (
	"fmt"
	"io/fs"
	"slices"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/coldstart"
	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// Cluster is one cluster of a repository.
type Cluster struct {
	// Name is where Flux begins. It is said where there are several clusters.
	Name  string
	World *coldstart.Cluster
	// Prediction is nil for a cluster that is not looked at: it counts for what
	// it builds from the same files.
	Prediction *coldstart.Prediction
	// Locate finds where an object of a tier is written, as lint.Subject.Locate
	// does.
	Locate func(tier, object flux.Ref) build.Position
}

// Draft is a change of the working tree in the making, of all clusters of a
// repository: each step that succeeds adds to it, and one that is refused
// leaves it as it was. Nothing is ever written.
type Draft struct {
	*reading
	tree     *tree
	clusters []*cluster
	notes    []note
}

// note is a paragraph of a patch; about a gate it ends in how many tiers that
// holds in the end.
type note struct {
	text  string
	of    *cluster
	gates string
}

// reading is what the files say, which no step changes.
type reading struct {
	// built are the tiers that build a file, through those that go through a
	// kustomization file.
	built, through map[string][]use
}

// use is a tier that builds a file, in one way.
type use struct {
	part
	cluster int
	tier    string
}

// New begins a draft. files is the working tree, for which os.Root.FS is best:
// it follows no link out of it.
func New(files fs.FS, clusters []Cluster) *Draft {
	d := &Draft{reading: &reading{built: map[string][]use{}, through: map[string][]use{}}, tree: newTree(files)}
	for i, c := range clusters {
		d.clusters = append(d.clusters, newCluster(c))
		for _, t := range c.World.Tiers {
			parts, folders := d.tree.parts(t)
			if t.Kustomization != nil && build.SourceOf(t.Kustomization).Kind != "GitRepository" {
				parts, folders = c.artifact(t, build.SourceOf(t.Kustomization)), nil
			}
			for _, p := range parts {
				d.built[p.file] = append(d.built[p.file], use{p, i, t.Tier.Key()})
			}
			for _, p := range folders {
				d.through[p.by] = append(d.through[p.by], use{p, i, t.Tier.Key()})
			}
		}
	}
	return d
}

// Fresh is a draft of the same repository in which nothing is changed.
func (d *Draft) Fresh() *Draft {
	fresh := &Draft{reading: d.reading, tree: newTree(d.tree.disk)}
	for _, c := range d.clusters {
		fresh.clusters = append(fresh.clusters, newCluster(c.Cluster))
	}
	return fresh
}

// step makes a change as a whole, or not at all.
func (d *Draft) step(change func() error) error {
	files, notes := d.tree.save(), d.notes
	clusters := make([]cluster, len(d.clusters))
	for i, c := range d.clusters {
		clusters[i] = c.clone()
	}
	err := change()
	if err != nil {
		d.tree.restore(files)
		d.notes = notes
		for i, c := range d.clusters {
			*c = clusters[i]
		}
	}
	return err
}

// Patch is a change of the working tree.
type Patch struct {
	// Diff is a unified diff, its paths relative to the root of the tree, with
	// one part for each file. It begins with the notes, as comments. It is empty
	// where nothing is changed.
	Diff string
	// Notes say what the patch does, what to look out for and how many tiers
	// each new gate holds, a paragraph each.
	Notes []string
}

// Patch is what the steps so far make together.
func (d *Draft) Patch() Patch {
	if !d.tree.changed() {
		return Patch{}
	}
	var notes []string
	for _, n := range d.notes {
		text := n.text
		if n.of != nil {
			text += fmt.Sprintf(" It holds %s.", finding.Count(n.of.holds(n.gates), "tier"))
		}
		notes = append(notes, text)
	}
	return Patch{Diff: d.tree.diff(notes), Notes: notes}
}

func (d *Draft) note(text string) { d.add(note{text: text}) }

func (d *Draft) add(n note) {
	if !slices.Contains(d.notes, n) {
		d.notes = append(slices.Clip(d.notes), n)
	}
}

// in names the cluster in front of a note, where there are several.
func (d *Draft) in(c *cluster) string {
	if len(d.clusters) < 2 {
		return ""
	}
	return "In " + c.Name + ": "
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
