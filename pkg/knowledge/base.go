// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package knowledge

import (
	_ "embed"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// APIVersion and FileKind head a file of knowledge.
const (
	APIVersion = "kubestandup.dev/v1alpha1"
	FileKind   = "Knowledge"
)

//go:embed relations.yaml
var builtin []byte

// Base is all that is known. It never changes.
type Base struct {
	relations []Relation // by ID
}

// Builtin is what this release knows.
func Builtin() (*Base, error) { return (&Base{}).Extend("relations.yaml", builtin) }

// Extend is the base with the relations of a file added. name is what messages
// call the file. Unknown fields are errors, and so is what contradicts itself;
// the message names the relation and the field.
func (b *Base) Extend(name string, content []byte) (*Base, error) {
	file, err := parse(content)
	if err != nil {
		return nil, fmt.Errorf("knowledge file %s: %w", name, err)
	}
	if file.APIVersion != APIVersion || file.Kind != FileKind {
		return nil, fmt.Errorf("knowledge file %s: it is %s of %s, not %s of %s", name,
			orNothing(file.Kind), orNothing(file.APIVersion), FileKind, APIVersion)
	}
	if err := file.check(); err != nil {
		return nil, fmt.Errorf("knowledge file %s: %w", name, err)
	}
	all := slices.Clone(b.relations)
	for _, relation := range file.Relations {
		relation.expand(file.Lists)
		all = slices.DeleteFunc(all, func(r Relation) bool { return r.ID == relation.ID })
		all = append(all, relation)
	}
	return &Base{relations: all}, nil
}

// parse is strict, and says where in the file an unknown field is.
func parse(content []byte) (File, error) {
	var file File
	raw, err := yaml.YAMLToJSONStrict(content)
	if err != nil {
		return file, err
	}
	unknown, err := json.UnmarshalStrict(raw, &file)
	return file, errors.Join(append(unknown, err)...)
}

func orNothing(s string) string {
	if s == "" {
		return "nothing"
	}
	return s
}

// expand replaces the lists by what they hold.
func (r *Relation) expand(lists map[string][]Kind) {
	for _, kinds := range []*[]Kind{&r.Creates, &r.Chain, &r.Registers} {
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
}

// Relations are all relations, in the order of the files.
func (b *Base) Relations() []Relation { return slices.Clone(b.relations) }

// Creators are the relations by which the kind comes to be: those that name
// it, then those that derive kinds of its group from their triggers. An
// installer that registers the kind itself is none of them.
func (b *Base) Creators(gk schema.GroupKind) []Relation {
	var named, derived []Relation
	for _, r := range b.relations {
		switch {
		case !r.Second():
		case slices.ContainsFunc(r.Creates, func(k Kind) bool { return k.GroupKind() == gk }):
			named = append(named, r)
		case slices.ContainsFunc(r.Derive, func(d Derivation) bool { return d.Group.Constant == gk.Group && gk.Group != "" }):
			derived = append(derived, r)
		}
	}
	return append(named, derived...)
}

// ByTrigger are the relations that objects of the kind set off.
func (b *Base) ByTrigger(gk schema.GroupKind) []Relation {
	var all []Relation
	for _, r := range b.relations {
		if r.HasTrigger(gk) {
			all = append(all, r)
		}
	}
	return all
}
