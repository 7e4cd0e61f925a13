// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package knowledge

import (
	"embed"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// APIVersion and FileKind head a file of knowledge.
const (
	APIVersion = "kubestandup.dev/v1alpha1"
	FileKind   = "Knowledge"
)

//go:embed data/*.yaml
var data embed.FS

// Base is all that is known. It never changes, and what its methods answer
// must not be changed either: it is shared.
type Base struct {
	lists     map[string][]Kind
	relations []Relation
	charts    []Chart
	effects   []Effect
	*index
}

// Builtin is what this release knows.
func Builtin() (*Base, error) { return shipped() }

// shipped is read once: the lookups are asked for by many, and the files are
// long.
var shipped = sync.OnceValues(func() (*Base, error) {
	files, err := fs.Glob(data, "data/*.yaml")
	if err != nil {
		return nil, err
	}
	base := &Base{}
	for i, name := range files {
		content, err := data.ReadFile(name)
		if err != nil {
			return nil, err
		}
		// Only the last makes the index: each is thrown away by the next.
		if base, err = base.extend(name, content, i == len(files)-1); err != nil {
			return nil, err
		}
	}
	return base, nil
})

// Extend is the base with what a file says added. name is what messages call
// the file. A relation, a chart or an effect of the file replaces the one that
// has the same ID, name or kind. Lists that the base knows can be named.
//
// Unknown fields are errors, and so is what contradicts itself; the message
// names the relation, chart or effect, the field, and the line where it can.
func (b *Base) Extend(name string, content []byte) (*Base, error) {
	return b.extend(name, content, true)
}

func (b *Base) extend(name string, content []byte, last bool) (*Base, error) {
	file, err := parse(content)
	if err != nil {
		return nil, fmt.Errorf("knowledge file %s: %w", name, err)
	}
	if file.APIVersion != APIVersion || file.Kind != FileKind {
		return nil, fmt.Errorf("knowledge file %s: it is %s of %s, not %s of %s", name,
			orNothing(file.Kind), orNothing(file.APIVersion), FileKind, APIVersion)
	}
	lists := maps.Clone(b.lists)
	if lists == nil {
		lists = map[string][]Kind{}
	}
	maps.Copy(lists, file.Lists)
	if err := file.check(lists, b.ids(file)); err != nil {
		return nil, fmt.Errorf("knowledge file %s: %w", name, err.at(content))
	}
	file.expand(lists)
	all := &Base{lists: lists}
	all.relations = replace(b.relations, file.Relations, func(a, b Relation) bool { return a.ID == b.ID })
	all.charts = replace(b.charts, file.Charts, func(a, b Chart) bool { return a.same(&b) })
	all.effects = replace(b.effects, file.Effects, func(a, b Effect) bool { return a.GroupKind() == b.GroupKind() })
	if last {
		all.index = newIndex(all)
	}
	return all, nil
}

// ids are those of all relations that charts of the file may name.
func (b *Base) ids(file *File) map[string]bool {
	ids := map[string]bool{}
	for _, r := range b.relations {
		ids[r.ID] = true
	}
	for _, r := range file.Relations {
		ids[r.ID] = true
	}
	return ids
}

// replace puts the new ones behind the old ones that none of them is the same
// as.
func replace[T any](old, added []T, same func(T, T) bool) []T {
	all := make([]T, 0, len(old)+len(added))
	for _, o := range old {
		if !slices.ContainsFunc(added, func(a T) bool { return same(o, a) }) {
			all = append(all, o)
		}
	}
	return append(all, added...)
}

// expand replaces the lists by what they hold.
func (f *File) expand(lists map[string][]Kind) {
	fill := func(kinds *[]Kind) {
		if !slices.ContainsFunc(*kinds, func(k Kind) bool { return k.List != "" }) {
			return
		}
		var all []Kind
		for _, k := range *kinds {
			if k.List != "" {
				all = append(all, lists[k.List]...)
				continue
			}
			all = append(all, k)
		}
		*kinds = all
	}
	for i := range f.Relations {
		r := &f.Relations[i]
		fill(&r.Creates)
		fill(&r.Chain)
		fill(&r.Registers)
	}
	for i := range f.Charts {
		c := &f.Charts[i]
		fill(&c.Registers)
		for j := range c.Parts {
			fill(&c.Parts[j].Registers)
		}
	}
}

// Relations are all relations, in the order of the files.
func (b *Base) Relations() []Relation { return slices.Clone(b.relations) }

// Charts are all charts, in the order of the files.
func (b *Base) Charts() []Chart { return slices.Clone(b.charts) }

// Creators are the relations by which the kind comes to be: those that name
// it, then those that derive kinds of its group from their triggers. An
// installer that registers the kind itself is none of them.
func (b *Base) Creators(gk schema.GroupKind) []Relation {
	if b.index == nil {
		return nil
	}
	named, derived := b.creators[gk], b.derivers[gk.Group]
	if gk.Group == "" || len(derived) == 0 {
		return slices.Clone(named)
	}
	all := slices.Clone(named)
	for _, d := range derived {
		if !slices.ContainsFunc(named, func(r Relation) bool { return r.ID == d.ID }) {
			all = append(all, d)
		}
	}
	return all
}

// ByTrigger are the relations that objects of the kind set off.
func (b *Base) ByTrigger(gk schema.GroupKind) []Relation {
	if b.index == nil {
		return nil
	}
	return slices.Clone(b.triggers[gk])
}

// Relation finds a relation by its ID.
func (b *Base) Relation(id string) (Relation, bool) {
	if b.index == nil {
		return Relation{}, false
	}
	i, known := b.byID[id]
	if !known {
		return Relation{}, false
	}
	return b.relations[i], true
}

// Before is the system that registers the kind before Flux reconciles anything:
// a distribution, the cluster's network, or whoever bootstraps the cluster.
// Empty for a kind that is not there then.
func (b *Base) Before(gk schema.GroupKind) string {
	if b.index == nil {
		return ""
	}
	return b.before[gk]
}

// Effect finds the effect of a kind, nil where none is known.
func (b *Base) Effect(gk schema.GroupKind) *Effect {
	if b.index == nil {
		return nil
	}
	return b.effectOf[gk]
}
