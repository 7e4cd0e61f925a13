// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"context"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// containment says which Kustomizations apply which, by the files that each
// would read: nothing is built for it.
type containment struct {
	survey *survey
	reads  map[string]map[string]bool
}

func (s *survey) containment() *containment {
	return &containment{survey: s, reads: map[string]map[string]bool{}}
}

// holds are the files that the Kustomization takes objects from.
func (c *containment) holds(m *manifest) map[string]bool {
	folder := build.InTree(m.text("spec", "path"))
	components, _, _ := unstructured.NestedStringSlice(m.object.Object, "spec", "components")
	key := folder + "\x00" + strings.Join(components, "\x00")
	if files, known := c.reads[key]; known {
		return files
	}
	files := map[string]bool{}
	if build.SourceOf(m.object).Kind == externalArtifact {
		return files // what its artifact holds is not looked at before it is built
	}
	for _, folder := range append([]string{folder}, joined(folder, components)...) {
		manifests, _ := c.survey.tree.Reads(folder)
		for _, file := range manifests {
			files[file] = true
		}
	}
	c.reads[key] = files
	return files
}

func joined(folder string, names []string) []string {
	all := make([]string, 0, len(names))
	for _, name := range names {
		all = append(all, path.Join(folder, name))
	}
	return all
}

// roots are the Kustomizations that no other one of them applies. Of several
// that apply each other in a circle it is the one that applies itself, or else
// the first.
func (c *containment) roots(all []*manifest) []*manifest {
	byFile := map[string][]int{}
	for i, m := range all {
		byFile[m.File] = append(byFile[m.File], i)
	}
	children := make([][]int, len(all))
	parents := make([][]int, len(all))
	for i, m := range all {
		for file := range c.holds(m) {
			for _, child := range byFile[file] {
				if child != i {
					children[i] = append(children[i], child)
					parents[child] = append(parents[child], i)
				}
			}
		}
	}
	var roots []*manifest
	for i, m := range all {
		below := reach(children, i)
		circle := []int{i}
		contained := false
		for _, parent := range parents[i] {
			contained = contained || !below[parent]
			circle = append(circle, parent)
		}
		if contained {
			continue
		}
		slices.SortStableFunc(circle, func(a, b int) int { return c.compare(all[a], all[b]) })
		if circle[0] == i && !c.behind(all, below, children, i) {
			roots = append(roots, m)
		}
	}
	return roots
}

// behind is true when a better beginning of the same circle exists.
func (c *containment) behind(all []*manifest, below map[int]bool, children [][]int, i int) bool {
	for j := range below {
		if j != i && c.compare(all[j], all[i]) < 0 && reach(children, j)[i] {
			return true
		}
	}
	return false
}

// compare orders the Kustomizations of a circle: what applies itself first.
func (c *containment) compare(a, b *manifest) int {
	self := func(m *manifest) int { return btoi(!c.holds(m)[m.File]) }
	if d := self(a) - self(b); d != 0 {
		return d
	}
	if d := strings.Compare(a.File, b.File); d != 0 {
		return d
	}
	return a.Line - b.Line
}

func reach(children [][]int, from int) map[int]bool {
	seen := map[int]bool{}
	for next := slices.Clone(children[from]); len(next) > 0; {
		i := next[len(next)-1]
		if next = next[:len(next)-1]; !seen[i] {
			seen[i] = true
			next = append(next, children[i]...)
		}
	}
	return seen
}

// folderEntry makes an entry point of the Kustomizations that stand in a folder,
// or in a file.
func (r *Repository) folderEntry(ctx context.Context, name string) ([]*entry, error) {
	files := map[string]bool{name: true}
	manifests, folders := r.survey.tree.Reads(name)
	for _, file := range manifests {
		files[file] = true
	}
	var all []*manifest
	for _, m := range r.survey.kustomizations {
		if files[m.File] {
			all = append(all, m)
		}
	}
	if len(all) == 0 {
		return nil, nil
	}
	if slices.Contains(folders, name) {
		built, err := r.overlay(ctx, name)
		if err != nil {
			return nil, err
		}
		if len(built) > 0 {
			all = built
		}
	}
	roots := r.survey.containment().roots(all)
	return []*entry{{name: name, file: name, roots: roots}}, nil
}

// overlay are the Kustomizations as kustomize makes them of the folder, which
// somebody applies by hand. None where it does not build.
func (r *Repository) overlay(ctx context.Context, folder string) ([]*manifest, error) {
	tier := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": flux.KustomizeGroup + "/v1", "kind": flux.KustomizationKind,
		"metadata": map[string]any{"name": "entry", "namespace": "flux-system"},
		"spec":     map[string]any{"interval": "1h", "prune": false, "path": folder, "sourceRef": map[string]any{"kind": "GitRepository", "name": "entry"}},
	}}
	result, err := r.builder().Build(ctx, tier, r.survey.tree)
	if err != nil {
		return nil, ctx.Err() // the Kustomizations stand for themselves then
	}
	var all []*manifest
	for _, child := range result.Children() {
		at, found := result.Locate(child)
		if !found {
			at = build.Position{File: folder}
		}
		labels := child.GetLabels()
		delete(labels, flux.KustomizeGroup+"/name")
		delete(labels, flux.KustomizeGroup+"/namespace")
		child.SetLabels(labels)
		all = append(all, &manifest{Position: at, object: child.Unstructured})
	}
	return all, nil
}
