// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// uncontained are the entry points of a tree that holds none in so many words:
// every Kustomization that no other one applies, sorted into clusters.
func (r *Repository) uncontained(ctx context.Context) ([]*entry, error) {
	held := r.survey.containment()
	roots := held.roots(r.ours(held))
	units, err := r.units(ctx, roots)
	if err != nil {
		return nil, err
	}
	var all []*group
	for _, unit := range units {
		names := r.survey.names(held, unit.roots)
		key, ofCluster := clusterFolder(unit.name)
		i := slices.IndexFunc(all, func(g *group) bool {
			if ofCluster || g.ofCluster {
				return ofCluster && g.ofCluster && g.key == key
			}
			return g.takes(r.survey, unit, names)
		})
		if i < 0 {
			all = append(all, &group{key: key, ofCluster: ofCluster, names: map[string]build.Position{}, entry: &entry{name: unit.name, file: unit.file}})
			i = len(all) - 1
		}
		all[i].add(unit, names)
	}
	entries := make([]*entry, 0, len(all))
	for _, g := range all {
		entries = append(entries, g.entry)
	}
	return distinct(entries), nil
}

// group is a cluster in the making.
type group struct {
	*entry
	key       string
	ofCluster bool
	// names are the tiers that it would have, and where each is written.
	names map[string]build.Position
}

// takes is true when the unit may be of the same cluster: it is built from the
// same sources, and no cluster can hold two tiers of one name.
func (g *group) takes(s *survey, unit *entry, names map[string]build.Position) bool {
	for name := range names {
		if _, taken := g.names[name]; taken {
			return false
		}
	}
	return s.sourceOf(g.roots[0]) == s.sourceOf(unit.roots[0])
}

func (g *group) add(unit *entry, names map[string]build.Position) {
	g.roots = append(g.roots, unit.roots...)
	for name, at := range names {
		g.names[name] = at
	}
	if g.name == unit.name {
		return
	}
	if g.ofCluster {
		g.name = g.key
		return
	}
	for !inside(g.name, unit.name) {
		g.name = path.Dir(g.name)
	}
}

// clusterFolder is the folder of the cluster that a name belongs to by the
// layout that most repositories have: clusters/NAME/….
func clusterFolder(name string) (string, bool) {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		if (part == "clusters" || part == "cluster") && i+1 < len(parts) {
			return strings.Join(parts[:i+2], "/"), true
		}
	}
	return name, false
}

// units are the smallest entry points: a folder that kustomize builds and that
// no other one includes, or the Kustomizations of one folder.
func (r *Repository) units(ctx context.Context, roots []*manifest) ([]*entry, error) {
	overlays := r.survey.overlays()
	var all []*entry
	add := func(name string, root *manifest) {
		i := slices.IndexFunc(all, func(e *entry) bool { return e.name == name })
		if i < 0 {
			all = append(all, &entry{name: name, file: root.File})
			i = len(all) - 1
		}
		all[i].roots = append(all[i].roots, root)
	}
	for _, root := range roots {
		folders := overlays[root.File]
		for _, folder := range folders {
			if slices.ContainsFunc(all, func(e *entry) bool { return e.name == folder }) {
				continue
			}
			unit, err := r.folderEntry(ctx, folder)
			if err != nil {
				return nil, err
			}
			all = append(all, unit...)
		}
		if len(folders) == 0 {
			add(folderOf(root.File), root)
		}
	}
	slices.SortStableFunc(all, func(a, b *entry) int { return strings.Compare(a.name, b.name) })
	return all, nil
}

// overlays are, by manifest, the folders that kustomize builds it in and that no
// other kustomization file includes.
func (s *survey) overlays() map[string][]string {
	reads := map[string][]string{}
	included := map[string]bool{}
	for _, folder := range s.folders {
		manifests, folders := s.tree.Reads(folder)
		reads[folder] = manifests
		for _, other := range folders {
			included[other] = included[other] || other != folder
		}
	}
	all := map[string][]string{}
	for _, folder := range s.folders {
		if included[folder] {
			continue
		}
		for _, file := range reads[folder] {
			all[file] = append(all[file], folder)
		}
	}
	return all
}

// names are the tiers that the roots lead to.
func (s *survey) names(held *containment, roots []*manifest) map[string]build.Position {
	byFile := map[string][]*manifest{}
	for _, m := range s.kustomizations {
		byFile[m.File] = append(byFile[m.File], m)
	}
	names := map[string]build.Position{}
	for next := slices.Clone(roots); len(next) > 0; {
		m := next[0]
		next = next[1:]
		key := m.ref().Key()
		if _, known := names[key]; known {
			continue
		}
		names[key] = m.Position
		for file := range held.holds(m) {
			next = append(next, byFile[file]...)
		}
	}
	return names
}

// ours are the Kustomizations that may be built from this tree, by what the tree
// says of their sources, the surest first: those of a git repository that is this
// one, or of a source that the tree does not hold, because somebody makes it
// together with the root; else all whose folder is there.
func (r *Repository) ours(held *containment) []*manifest {
	known := map[string]bool{}
	for url := range r.remotes {
		known[url] = true
	}
	var there []*manifest
	for _, m := range r.survey.kustomizations {
		if hidden(m.File) || !r.survey.builds(m) && r.survey.declares(m) {
			continue
		}
		there = append(there, m)
		// The root of a tree holds everything, and tells nothing.
		if url := r.survey.urlOf(m); url != "" && build.InTree(m.text("spec", "path")) != "." && held.holds(m)[m.File] {
			known[url] = true
		}
	}
	sure := slices.DeleteFunc(slices.Clone(there), func(m *manifest) bool {
		return !known[r.survey.urlOf(m)] && r.survey.declares(m)
	})
	if len(sure) > 0 {
		return sure
	}
	return there
}

// hidden is true of what lies in a folder like .archive: nobody begins there.
func hidden(file string) bool {
	return slices.ContainsFunc(strings.Split(folderOf(file), "/"), func(part string) bool { return len(part) > 1 && part[0] == '.' })
}

// builds is true when what the Kustomization is built of may be in the tree.
func (s *survey) builds(m *manifest) bool {
	if build.SourceOf(m.object).Kind == externalArtifact {
		return s.sourceOf(m).Kind != externalArtifact
	}
	return s.exists(build.InTree(m.text("spec", "path")))
}

// declares is true when the tree holds the source of the Kustomization.
func (s *survey) declares(m *manifest) bool {
	ref := s.sourceOf(m)
	return slices.ContainsFunc(s.sources, func(source *manifest) bool {
		return source.object.GetKind() == ref.Kind && source.object.GetName() == ref.Name
	})
}

// urlOf is the URL of the git repository that a Kustomization is built from,
// normalised, where the tree says so.
func (s *survey) urlOf(m *manifest) string {
	ref := s.sourceOf(m)
	var url string
	for _, source := range s.sources {
		of := source.ref()
		if of.Kind != "GitRepository" || ref.Kind != of.Kind || of.Name != ref.Name {
			continue
		}
		here := normalURL(source.text("spec", "url"))
		if url != "" && url != here {
			return ""
		}
		url = here
	}
	return url
}

// findLoose finds the Kustomizations that are in no cluster.
func (r *Repository) findLoose() {
	taken := map[build.Position]bool{}
	names := map[string]bool{}
	for _, c := range r.Clusters {
		for i := range c.Tiers {
			taken[c.Where(c.Tiers[i].Tier)] = true
			names[c.Tiers[i].Tier.Key()] = true
		}
	}
	for _, m := range r.survey.kustomizations {
		// A name that is found is taken for the same tier: patches and overlays
		// hide where it is written.
		if !taken[m.Position] && !(names[m.ref().Key()] || m.object.GetNamespace() == "" && hasName(names, m.object.GetName())) {
			r.Loose = append(r.Loose, Loose{Tier: flux.Ref{APIVersion: m.object.GetAPIVersion(), Kind: flux.KustomizationKind, Namespace: m.object.GetNamespace(), Name: m.object.GetName()}, Position: m.Position})
		}
	}
}

func hasName(names map[string]bool, name string) bool {
	for key := range names {
		if strings.HasSuffix(key, "/"+name) {
			return true
		}
	}
	return false
}
