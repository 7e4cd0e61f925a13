// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"context"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// maxFollows bounds how often a cluster is built again because what its sources
// leave out of their artifacts turned out to be something else.
const maxFollows = 3

// cluster builds the tiers of one cluster.
func (r *Repository) cluster(ctx context.Context, e *entry) (*Cluster, error) {
	if e.failure != nil {
		return nil, e.failure
	}
	s := &sources{repository: r, entry: e, working: map[flux.Ref]bool{}, declared: map[flux.Ref]*unstructured.Unstructured{}, opened: map[flux.Ref]treeKey{}}
	c := &Cluster{Entry: e.name, repository: r, entry: e, sources: s, at: map[string]int{}}
	roots := make([]*unstructured.Unstructured, 0, len(e.roots))
	for _, root := range e.roots {
		source := r.survey.sourceOf(root)
		if len(roots) == 0 {
			c.Source = source
			s.base = r.base(root, source)
		}
		s.working[key(source)] = true
		c.Roots = append(c.Roots, root.ref())
		roots = append(roots, root.object)
	}
	if c.Base = s.base; c.Base != "" && e.name != e.file && (e.name == "." || !r.survey.exists(e.name)) {
		c.Entry = path.Join(c.Base, e.name)
	}
	for _, source := range e.sources {
		s.declared[key(source.ref())] = source.object
	}
	builder := r.builder()
	builder.Built = s.built
	given := builder.LooseSubstitution || e.loose
	// What the cluster's own FluxInstance says is known once its tiers are. All
	// of the tree are asked first, not to build everything again.
	builder.LooseSubstitution = given || looseInstance(r.survey.instances)
	for range maxFollows {
		var err error
		if c.Tiers, err = builder.Follow(ctx, s.trees, roots...); err != nil {
			return nil, err
		}
		loose := given || looseInstance(c.instances())
		if !s.changed() && loose == builder.LooseSubstitution {
			break
		}
		builder.LooseSubstitution = loose
	}
	c.LooseSubstitution = builder.LooseSubstitution
	for i := range c.Tiers {
		c.at[c.Tiers[i].Tier.Key()] = i
		if outside := c.Tiers[i].Outside; outside != nil && !slices.Contains(c.Outside, *outside) {
			c.Outside = append(c.Outside, *outside)
		}
	}
	slices.SortFunc(c.Outside, flux.Ref.Compare)
	var err error
	if c.Bootstrap, err = r.bootstrapOf(ctx, c.Entry); err != nil {
		return nil, err
	}
	c.Standing = r.stands
	if at := c.operator(); at != nil {
		c.Bootstrap = append(c.Bootstrap, Installed{Name: operatorChart, Chart: operatorChart, Position: *at})
	}
	return c, nil
}

// key is a reference without its API version.
func key(r flux.Ref) flux.Ref {
	r.APIVersion = ""
	return r
}

// base is the one folder of the tree below which the root's path exists, where
// it does not exist at the top: an artifact is pushed from any folder. Where the
// path is the artifact's own top, it is the folder of the cluster's files. Empty
// for the top, and for git, which has no other.
func (r *Repository) base(root *manifest, source flux.Ref) string {
	name := build.InTree(root.text("spec", "path"))
	switch {
	case source.Kind == "GitRepository":
		return ""
	case name == ".":
		return r.survey.home(root.File)
	case r.survey.exists(name):
		return ""
	}
	var found []string
	top, err := r.survey.tree.Path(".")
	if err != nil {
		return ""
	}
	// What cannot be read is not there.
	_ = filepath.WalkDir(top, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return nil // as above
		}
		if relative, err := filepath.Rel(top, file); err == nil {
			if base, ok := strings.CutSuffix(filepath.ToSlash(relative), "/"+name); ok {
				found = append(found, base)
			}
		}
		return nil
	})
	if len(found) != 1 {
		return ""
	}
	return found[0]
}

// home is the folder with the Kustomizations of the cluster that a file begins:
// its own, or the one that its folder flux-system is in. Empty for the top, and
// where neither has any.
func (s *survey) home(file string) string {
	folder := folderOf(file)
	if path.Base(folder) == "flux-system" {
		folder = path.Dir(folder)
	}
	holds := func(m *manifest) bool { return folderOf(m.File) == folder }
	if folder == "." || slices.Contains(s.folders, ".") || !slices.ContainsFunc(s.kustomizations, holds) {
		return ""
	}
	return folder
}

// exists is true of a folder or a file of the tree.
func (s *survey) exists(name string) bool {
	file, err := s.tree.Path(name)
	if err != nil {
		return false
	}
	_, err = os.Stat(file)
	return err == nil
}

// narrow leaves the clusters that have a tier at the folder, and answers false,
// leaving all, where none has.
func (r *Repository) narrow(below string) bool {
	left := slices.DeleteFunc(slices.Clone(r.Clusters), func(c *Cluster) bool { return !c.concerns(below) })
	if len(left) == 0 {
		return false
	}
	r.Clusters = left
	return true
}

// begins says where the clusters begin.
func (r *Repository) begins() string {
	names := make([]string, 0, len(r.Clusters))
	for _, c := range r.Clusters {
		names = append(names, c.Entry)
	}
	return "clusters begin at " + shortList(names)
}

func (c *Cluster) concerns(folder string) bool {
	if inside(folder, c.Entry) || inside(folder, c.entry.file) {
		return true
	}
	for i := range c.Tiers {
		t := &c.Tiers[i]
		if t.Outside != nil {
			continue
		}
		text, _, _ := unstructured.NestedString(t.Kustomization.Object, "spec", "path")
		at := path.Join(c.base(t), build.InTree(text))
		if files := c.folders(t); len(files) > 0 {
			if slices.ContainsFunc(files, func(file string) bool { return inside(folder, file) }) {
				return true
			}
			continue
		}
		if inside(folder, at) || at != "." && inside(at, folder) {
			return true
		}
	}
	return false
}

// base is the folder that the files of a tier are relative to.
func (c *Cluster) base(t *build.Followed) string {
	if c.sources.working[key(build.SourceOf(t.Kustomization))] {
		return c.Base
	}
	return ""
}

// folders are the files that the artifact of a tier is made of, in its path.
func (c *Cluster) folders(t *build.Followed) []string {
	source := key(build.SourceOf(t.Kustomization))
	if source.Kind != externalArtifact {
		return nil
	}
	text, _, _ := unstructured.NestedString(t.Kustomization.Object, "spec", "path")
	var all []string
	for name, of := range c.repository.origins[c.sources.opened[source]] {
		if inside(build.InTree(text), name) {
			all = append(all, of)
		}
	}
	return all
}
