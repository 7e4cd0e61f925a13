// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package suggest

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// manifest is the document of an object, ready to be edited.
type manifest struct {
	*file
	at address
	// uses are all the tiers that build the file.
	uses []use
	// position is where the document was.
	position build.Position
}

// def is a tier that a manifest makes.
type def struct {
	*cluster
	tier flux.Ref
}

// object finds the document of an object that a tier applies.
func (d *Draft) object(c *cluster, holder, object flux.Ref) (manifest, error) {
	position := c.Locate(holder, object)
	if position.File == "" {
		return manifest{}, refuse("%s is generated, renamed, written inside of a List, or in several files", object)
	}
	name := d.tree.real(position.File)
	f, err := d.tree.open(name)
	if err != nil {
		return manifest{}, err
	}
	// The line is that of the file as it was.
	at, err := newFile(name, d.tree.before[name]).at(position.Line)
	if err != nil {
		return manifest{}, err
	}
	if at.kind != object.Kind {
		return manifest{}, refuse("%s is not a document of its own in %s", object, position.File)
	}
	uses := d.built[name]
	if len(uses) == 0 {
		return manifest{}, refuse("it is not clear by which kustomization file %s is built", position.File)
	}
	return manifest{f, at, uses, position}, nil
}

// user names a tier that builds a file, for a sentence.
func (d *Draft) user(u use) string {
	if len(d.clusters) < 2 {
		return u.tier
	}
	return u.tier + " of " + d.clusters[u.cluster].Name
}

// tier finds the document of a tier's Kustomization, with all the tiers that it
// makes: clusters may share it. It refuses one whose fields are set by a patch
// as well.
func (d *Draft) tier(c *cluster, ref flux.Ref, fields ...string) (manifest, []def, error) {
	if m := c.made[ref.Key()]; m != nil {
		f, err := d.tree.open(m.file)
		return manifest{file: f, at: m.at}, m.defs, err
	}
	followed := c.followed(ref)
	switch {
	case followed == nil:
		return manifest{}, nil, refuse("%s is not a Kustomization of this cluster", ref)
	case len(followed.Parents) == 0:
		m, err := d.root(c, ref)
		return m, []def{{c, ref}}, err
	case len(followed.Parents) > 1:
		return manifest{}, nil, refuse("%s is applied by several tiers", ref.Name)
	}
	m, err := d.object(c, followed.Parents[0], ref)
	if err != nil {
		return manifest{}, nil, err
	}
	var defs []def
	for _, u := range m.uses {
		other := d.clusters[u.cluster]
		is := other.definedAt(u.tier, m.position)
		switch {
		case is == nil:
			return manifest{}, nil, refuse("%s is built by %s too, which makes something else of %s", m.path, d.user(u), ref.Name)
		case len(is.Parents) > 1:
			return manifest{}, nil, refuse("%s is applied by several tiers", is.Tier.Name)
		case slices.ContainsFunc(defs, func(have def) bool { return have.cluster == other }):
			return manifest{}, nil, refuse("%s is built several times by %s", m.path, d.user(u))
		}
		if err := d.unpatched(m, *is, fields); err != nil {
			return manifest{}, nil, err
		}
		defs = append(defs, def{other, is.Tier})
	}
	return m, defs, nil
}

// root finds the document of a tier that nothing applies but a person.
func (d *Draft) root(c *cluster, ref flux.Ref) (manifest, error) {
	bootstrapped := refuse("%s%s is where Flux begins, and what bootstraps the cluster writes its manifest", ref.Name, d.of(c))
	position := c.Locate(flux.Ref{}, ref)
	if position.File == "" || path.Base(position.File) == "gotk-sync.yaml" {
		return manifest{}, bootstrapped
	}
	f, err := d.tree.open(d.tree.real(position.File))
	if err != nil {
		return manifest{}, err
	}
	at, err := newFile(f.path, d.tree.before[f.path]).at(position.Line)
	if err != nil {
		return manifest{}, err
	}
	if at.kind != ref.Kind || at.name != ref.Name || strings.Contains(d.tree.before[f.path], "DO NOT EDIT") {
		return manifest{}, bootstrapped
	}
	d.note(d.in(c) + fmt.Sprintf("Mind that no tier applies %s: apply it by hand too.", f.path))
	return manifest{file: f, at: at, position: position}, nil
}

// definedAt is the tier whose manifest stands at a position, as one of the files
// of its parent.
func (c *cluster) definedAt(parent string, at build.Position) *build.Followed {
	for i := range c.World.Tiers {
		t := &c.World.Tiers[i]
		for _, p := range t.Parents {
			if p.Key() == parent && c.Locate(p, t.Tier) == at {
				return t
			}
		}
	}
	return nil
}

// unpatched refuses a tier of which fields are not as they are written.
func (d *Draft) unpatched(m manifest, tier build.Followed, fields []string) error {
	s, err := newFile(m.path, d.tree.before[m.path]).find(m.at)
	if err != nil {
		return err
	}
	for _, name := range fields {
		if equal, err := asWritten(s.object, tier.Kustomization.Object, name); err != nil || !equal {
			return refuse("spec.%s of %s is set by a patch", name, tier.Tier.Name)
		}
	}
	return nil
}

// asWritten is true where a field of the spec is what the document says.
func asWritten(document *yaml.Node, object map[string]any, name string) (bool, error) {
	var written any
	if node := field(field(document, "spec"), name); node != nil {
		if err := node.Decode(&written); err != nil {
			return false, err
		}
	}
	applied, _ := object["spec"].(map[string]any)
	c := comparison{spec: map[string]any{"postBuild": true}} // of the parent
	return c.equal(normal(written), normal(applied[name])), nil
}

// addEdge lets a tier depend on another one, in each cluster that shares its
// manifest.
func (d *Draft) addEdge(c *cluster, from, on flux.Ref) error {
	m, defs, err := d.tier(c, from, "dependsOn")
	if err != nil {
		return err
	}
	for _, is := range defs {
		to := on
		switch key := to.Key(); {
		case !is.has(key):
			return refuse("%s makes %s of %s too, where there is no %s", m.path, is.tier.Name, is.Name, on.Name)
		case slices.Contains(is.edges[is.tier.Key()], key):
			return refuse("%s depends on %s already in %s", is.tier.Name, on.Name, is.Name)
		case is.closes(is.tier.Key(), key):
			return refuse("%s waits for %s itself, so that the edge would close a loop%s", on.Name, is.tier.Name, d.of(is.cluster))
		}
	}
	if err := m.addItems(m.at, "dependsOn", dependsOn(from, on)); err != nil {
		return err
	}
	for _, is := range defs {
		is.link(is.tier.Key(), on.Key())
	}
	return nil
}

// of names the cluster at the end of a sentence, where there are several.
func (d *Draft) of(c *cluster) string {
	if len(d.clusters) < 2 {
		return ""
	}
	return " in " + c.Name
}

// dependsOn is an edge, as an entry of dependsOn.
func dependsOn(from, on flux.Ref) *yaml.Node {
	if from.Namespace == on.Namespace {
		return mapping("name", on.Name)
	}
	return mapping("name", on.Name, "namespace", on.Namespace)
}
