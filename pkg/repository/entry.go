// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// entry is where one cluster begins.
type entry struct {
	// name is Cluster.Entry, file the file that makes it an entry point.
	name, file string
	// roots are the Kustomizations that nobody in the tree applies.
	roots []*manifest
	// sources are those that are made together with the roots.
	sources []*manifest
	// operated is true where flux-operator makes the roots.
	operated bool
	// astray is true where the path of the root is not in the tree: Flux fails.
	astray bool
	// loose is true where variables that are not set are empty.
	loose bool
	// failure is why the roots cannot be had.
	failure error
}

// ErrNoEntry is wrapped by the errors of Open that say that nothing in the tree
// begins a cluster.
var ErrNoEntry = errors.New("no entry point")

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func folderOf(file string) string { return path.Dir(file) }

// entries are where the clusters begin that are asked for. all is true when
// these are all that there are, whatever is asked for.
func (r *Repository) entries(ctx context.Context, below string) (found []*entry, all bool, err error) {
	written := distinct(append(r.survey.bootstrapEntries(), r.survey.instanceEntries()...))
	explicit := r.present(written)
	if len(r.options.Entries) > 0 {
		found, err = r.named(ctx, explicit)
		return found, false, err
	}
	if below != "." {
		if found = under(explicit, below); len(found) > 0 {
			return found, false, nil
		}
	}
	if len(explicit) > 0 {
		return explicit, below != ".", nil
	}
	found, err = r.uncontained(ctx)
	if err == nil && len(found) == 0 {
		if found = written; len(found) == 0 {
			err = r.nothing()
		}
	}
	return found, below != ".", err
}

// present are the entries whose path is in the tree. One that is not is of
// another repository, or of a base that an overlay changes.
func (r *Repository) present(all []*entry) []*entry {
	var found []*entry
	for _, e := range all {
		root := e.roots[0]
		if e.astray || r.survey.exists(build.InTree(root.text("spec", "path"))) || r.base(root, build.SourceOf(root.object)) != "" {
			found = append(found, e)
		}
	}
	return found
}

// bootstrapEntries are those that `flux bootstrap` writes: the Kustomization of
// gotk-sync.yaml, whose own path it is below.
func (s *survey) bootstrapEntries() []*entry {
	var all []*entry
	for _, m := range s.kustomizations {
		folder := build.InTree(m.text("spec", "path"))
		if path.Base(m.File) != "gotk-sync.yaml" {
			continue
		}
		e := &entry{name: folder, file: m.File, roots: []*manifest{m}}
		if !inside(folder, m.File) && !s.exists(folder) {
			if !s.begins(m) {
				continue
			}
			e.name, e.astray = path.Dir(folderOf(m.File)), true
		}
		for _, source := range s.sources {
			if source.File == m.File {
				e.sources = append(e.sources, source)
			}
		}
		e.loose = looseController(s.texts(folderOf(m.File)))
		all = append(all, e)
	}
	return all
}

// begins is true of a sync file in the folder that it should lead to, by all
// that is beside that: the Kustomizations of a cluster.
func (s *survey) begins(sync *manifest) bool {
	beside := path.Dir(folderOf(sync.File))
	return path.Base(folderOf(sync.File)) == "flux-system" && slices.ContainsFunc(s.kustomizations, func(m *manifest) bool {
		return folderOf(m.File) == beside && build.SourceOf(m.object).Name == build.SourceOf(sync.object).Name
	})
}

// distinct gives each entry a name of its own, and sorts by it. Two that begin
// at the same folder are named by their files.
func distinct(all []*entry) []*entry {
	count := map[string]int{}
	for _, e := range all {
		count[e.name]++
	}
	for _, e := range all {
		if count[e.name] > 1 {
			e.name = e.file
		}
	}
	slices.SortStableFunc(all, func(a, b *entry) int { return strings.Compare(a.name, b.name) })
	return all
}

// named are the entries that the options name.
func (r *Repository) named(ctx context.Context, explicit []*entry) ([]*entry, error) {
	var all []*entry
	for _, name := range r.options.Entries {
		name = r.relative(name)
		folder := build.InTree(name)
		if strings.HasPrefix(path.Clean(name), "..") || !r.survey.exists(folder) {
			return nil, fmt.Errorf("entry %s does not exist in %s; %s", name, r.Dir, r.found(explicit))
		}
		found := under(explicit, folder)
		if len(found) == 0 {
			var err error
			if found, err = r.folderEntry(ctx, folder); err != nil {
				return nil, err
			}
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("entry %s holds no Kustomization and no FluxInstance with a sync: %w; %s", name, ErrNoEntry, r.found(explicit))
		}
		all = append(all, found...)
	}
	slices.SortStableFunc(all, func(a, b *entry) int { return strings.Compare(a.name, b.name) })
	return slices.CompactFunc(all, func(a, b *entry) bool { return a.name == b.name }), nil
}

// relative is the name of an entry that is given by its absolute path, as one
// of the tree. What is outside of the tree stays as it is.
func (r *Repository) relative(name string) string {
	if !filepath.IsAbs(name) {
		return name
	}
	resolved, err := filepath.EvalSymlinks(name)
	if err != nil {
		return name
	}
	inTree, err := filepath.Rel(r.Dir, resolved)
	if err != nil || !filepath.IsLocal(inTree) {
		return name
	}
	return filepath.ToSlash(inTree)
}

// under are the entries that begin at the folder or file, or below it.
func under(all []*entry, name string) []*entry {
	var found []*entry
	for _, e := range all {
		if inside(name, e.file) || name != "." && inside(name, e.name) {
			found = append(found, e)
		}
	}
	return found
}

// found says which entry points there are.
func (r *Repository) found(explicit []*entry) string {
	names := make([]string, 0, len(explicit))
	for _, e := range explicit {
		names = append(names, e.name)
	}
	if len(names) == 0 {
		folders := map[string]bool{}
		for _, m := range r.survey.kustomizations {
			if folder := folderOf(m.File); !folders[folder] {
				folders[folder] = true
				names = append(names, folder)
			}
		}
		slices.Sort(names)
		if len(names) == 0 {
			return "the repository holds no Kustomization of Flux's at all"
		}
		return "Kustomizations are in " + shortList(names)
	}
	return "clusters begin at " + shortList(names)
}

// shortList names the first few.
func shortList(names []string) string {
	const most = 10
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// nothing says that there is no entry point, and what was looked at.
func (r *Repository) nothing() error {
	s := r.survey
	text := fmt.Sprintf("repository %s: its %d YAML files hold no gotk-sync.yaml, no FluxInstance with a sync and no Kustomization of %s", r.Dir, s.files, flux.KustomizeGroup)
	if len(s.unread) > 0 {
		text += "; these name a kind of Flux's and are not valid YAML: " + shortList(unique(s.unread))
	}
	if len(s.templated) > 0 {
		text += "; the names of the objects of these are templates: " + shortList(unique(s.templated))
	}
	return fmt.Errorf("%s: %w; name the folder that Flux begins with by --entry, or the right repository", text, ErrNoEntry)
}

func unique(names []string) []string {
	names = slices.Clone(names)
	slices.Sort(names)
	return slices.Compact(names)
}
