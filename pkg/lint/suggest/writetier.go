// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package suggest

import (
	"path"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// writeTiers writes the Kustomizations of the new tiers behind that of the old
// one, in its file: what builds the one builds the others.
func (s *split) writeTiers() error {
	var done []manifest
	for _, o := range s.owners {
		o.gates = make([]gate, len(s.tiers))
		for i := range s.tiers {
			s.newGate(o, i)
		}
		shared := slices.ContainsFunc(done, func(m manifest) bool { return m.file == o.manifest.file && m.at == o.manifest.at })
		done = append(done, o.manifest)
		place := newPlace(o.manifest)
		for i := len(s.tiers) - 1; i >= 0; i-- { // each is put right behind the old one
			if err := s.writeTier(o, i, place, shared); err != nil {
				return err
			}
		}
	}
	return nil
}

// place is where the manifests of new tiers go.
type place struct {
	manifest
	// file is a new one, beside that of the old tier; empty where the old one
	// takes further documents.
	file string
}

func newPlace(m manifest) place {
	if name, isJSON := strings.CutSuffix(m.path, ".json"); isJSON {
		return place{m, name}
	}
	return place{m, ""}
}

// newGate is what a new tier lacks for the one behind it.
func (s *split) newGate(o *owner, i int) {
	if i+1 == len(s.tiers) {
		return
	}
	var all []brought
	for _, k := range o.needs {
		if k.level == i+1 {
			b := brought{k.provider, k.Kind}
			b.Tier = o.refs[i]
			all = append(all, b)
		}
	}
	spec, _ := o.old.Kustomization.Object["spec"].(map[string]any)
	_, said := spec["wait"]
	g, err := o.gateOn(o.refs[i], kustomizationSpec{Wait: specOf(o.old).Wait}, !said, all)
	if err != nil {
		s.note(s.in(o.cluster) + "No gate: " + o.refs[i+1].Name + " may need a retry. A gate " + err.Error() + ".")
		return
	}
	o.gates[i] = g
}

// writeTier writes one new tier. One that is shared with another owner is
// written, and must be what this one would have written.
func (s *split) writeTier(o *owner, i int, to place, shared bool) error {
	old, err := newFile(to.path, s.tree.before[to.path]).find(to.at)
	if err != nil {
		return err
	}
	object, err := s.document(old.object, o, i)
	if err != nil {
		return err
	}
	for _, is := range o.defs {
		if err := s.sameOtherwise(o.manifest, old.object, is, o.refs[i].Name); err != nil {
			return err
		}
	}
	f, at := to.manifest.file, addressOf(object)
	if to.file != "" {
		f, err = s.besideJSON(o, to, i, object, shared)
	} else if !shared {
		err = f.behind(to.at, object)
	}
	if err != nil {
		return err
	}
	written, err := f.find(at)
	if err != nil {
		return err
	}
	var want, got any
	if object.Decode(&want) != nil || written.object.Decode(&got) != nil || !reflect.DeepEqual(want, got) {
		if shared {
			return refuse("%s is shared, and the clusters would need different ones", o.manifest.path)
		}
		return refuse("%s is written in a way to which no document can be added", f.path)
	}
	var defs []def
	for _, other := range s.owners {
		if other.manifest.file == o.manifest.file && other.manifest.at == o.manifest.at {
			defs = append(defs, def{other.cluster, other.refs[i]})
		}
	}
	o.settle(i, f.path, at, defs)
	o.specs[o.refs[i].Key()] = o.newSpec(i)
	if g := o.gates[i]; !g.empty() {
		s.noteGate(o.cluster, o.refs[i], g)
	}
	return nil
}

// newSpec is what is known of the gate of a new tier.
func (o *owner) newSpec(i int) kustomizationSpec {
	old := specOf(o.old)
	spec := kustomizationSpec{Wait: old.Wait || o.gates[i].wait, Prune: old.Prune}
	return o.gates[i].onto(spec)
}

// behind writes a document behind that of another object.
func (f *file) behind(at address, object *yaml.Node) error {
	old, err := f.find(at)
	if err != nil {
		return err
	}
	lines, err := encode(object, f.step(old), f.indented(old))
	if err != nil {
		return err
	}
	f.splice(old.to, old.to, append([]string{"---"}, lines...)...)
	return nil
}

// besideJSON writes a new file, since JSON holds one document, and lists it with
// the old one.
func (s *split) besideJSON(o *owner, to place, i int, object *yaml.Node, shared bool) (*file, error) {
	name := to.file + s.tiers[i].suffix + ".yaml"
	if shared {
		return s.tree.open(name)
	}
	if s.tree.exists(name) {
		return nil, refuse("%s is there already", name)
	}
	lines, err := encode(object, 2, true)
	if err != nil {
		return nil, err
	}
	f := s.tree.create(name, strings.Join(lines, "\n")+"\n")
	var done []string
	for _, u := range o.manifest.uses {
		if u.by == "" || slices.Contains(done, u.by) {
			continue
		}
		done = append(done, u.by)
		if err := s.enlist(u.by, name); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// enlist names a new file in a kustomization file.
func (d *Draft) enlist(by, name string) error {
	f, err := d.tree.open(by)
	if err != nil {
		return err
	}
	first, err := f.first()
	if err != nil {
		return err
	}
	relative := strings.TrimPrefix(name, path.Dir(by)+"/")
	if path.Join(path.Dir(by), relative) != name {
		return refuse("%s is not below %s", name, path.Dir(by))
	}
	return f.addTo(addressOf(first.object), "", "resources", text(relative))
}

// sameOtherwise refuses a tier that a patch changes by its name: a new one
// beside it would be another one.
func (s *split) sameOtherwise(m manifest, document *yaml.Node, is def, name string) error {
	followed := is.followed(is.tier)
	for _, key := range copied() {
		if equal, err := asWritten(document, followed.Kustomization.Object, key); err == nil && equal {
			continue
		}
		alone, err := s.singledOut(m, is, name)
		if alone {
			err = refuse("spec.%s of %s is set by a patch that names it, and %s would not get it", key, is.tier.Name, name)
		}
		return err
	}
	return nil
}
