// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package suggest

import (
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/finding"
)

// move takes the objects out of their files and puts them into new ones.
func (s *split) move() error {
	first := s.owners[0]
	var emptied []manifest
	for _, n := range s.tiers {
		var by, files []string
		byFile := map[string][]address{}
		for _, o := range n.users {
			m, err := s.object(first.cluster, first.old.Tier, o.Ref())
			if err != nil {
				return err
			}
			for _, u := range m.uses {
				if u.by != "" && !slices.Contains(by, u.by) {
					by = append(by, u.by)
				}
				if (u.by == "") != (m.uses[0].by == "") {
					return refuse("%s is listed in %s, and taken from its folder by %s", m.path, m.uses[0].by+u.by, s.user(u))
				}
			}
			if byFile[m.path] == nil {
				files = append(files, m.path)
			}
			byFile[m.path] = append(byFile[m.path], m.at)
			emptied = append(emptied, m)
		}
		var names []string
		for _, name := range files {
			f, err := s.tree.open(name)
			if err != nil {
				return err
			}
			content, err := f.cut(func(object *yaml.Node) bool { return slices.Contains(byFile[name], addressOf(object)) })
			if err != nil {
				return err
			}
			target := freeName(names, name)
			names = append(names, target)
			s.tree.create(path.Join(n.dir, target), content)
		}
		if err := s.list(n, by, names); err != nil {
			return err
		}
	}
	for _, m := range emptied {
		if m.content() != "" {
			continue
		}
		for _, u := range m.uses {
			if err := s.unlist(u.by, m.path); err != nil {
				return err
			}
		}
	}
	return nil
}

// freeName is the name of the file, with that of its folder where it is taken.
func freeName(taken []string, file string) string {
	name := path.Base(file)
	for dir := path.Dir(file); slices.Contains(taken, name); dir = path.Dir(dir) {
		name = path.Base(dir) + "-" + name
	}
	return name
}

// movable refuses objects of which the new tier would make something else.
func (s *split) movable(m manifest, from use, of *owner, o build.Object) error {
	switch {
	case o.Encrypted:
		return refuse("%s is encrypted, and SOPS signs the file as a whole", o)
	case from.component:
		return refuse("%s is part of a kustomize component", m.path)
	case from.artifact != "":
		return refuse("%s is built from %s, whose folders are not those of the repository", s.user(from), from.artifact)
	}
	segments, err := m.segments()
	if err != nil {
		return err
	}
	for _, other := range segments {
		if field(other.object, "sops") != nil {
			return refuse("%s holds encrypted objects, and SOPS signs the file as a whole", m.path)
		}
	}
	c := comparison{}
	c.spec, _ = of.old.Kustomization.Object["spec"].(map[string]any)
	if from.by != "" {
		if c.kustomization, err = s.kustomizationFile(from.by); err != nil {
			return err
		}
	}
	found, err := m.find(m.at)
	if err != nil {
		return err
	}
	if !c.same(found.object, o) {
		return refuse("%s is changed on its way from %s to %s, by a patch or by a kustomization file", o, m.path, s.user(from))
	}
	for _, name := range from.via {
		file, err := s.kustomizationFile(name)
		if err != nil {
			return err
		}
		if by := s.named(path.Dir(name), file, m.at); by != "" {
			return refuse("%s of %s names %s", by, name, o)
		}
	}
	return nil
}

func (s *split) kustomizationFile(name string) (map[string]any, error) {
	f, err := s.tree.open(s.tree.real(name))
	if err != nil {
		return nil, err
	}
	var all map[string]any
	if err := yaml.Unmarshal([]byte(f.content()), &all); err != nil {
		return nil, refuse("%s is not YAML: %v", name, err)
	}
	return all, nil
}

// list writes the kustomization file of a new folder, where the old one has one.
func (s *split) list(n *newTier, by, names []string) error {
	if len(by) == 0 {
		return nil // Flux finds the files by itself, as it did
	}
	var head []*yaml.Node
	var old segment
	var f *file
	for i, name := range by {
		var err error
		if f, err = s.tree.open(name); err != nil {
			return err
		}
		if old, err = f.first(); err != nil {
			return err
		}
		var fields []*yaml.Node
		for _, key := range carried() {
			if value := field(old.object, key); value != nil {
				fields = append(fields, text(key), plain(value))
			}
		}
		if i > 0 && !sameNodes(head, fields) {
			return refuse("what moves is named in %s, which do not treat it alike", finding.Some(by))
		}
		head = fields
	}
	file := mapping("apiVersion", "kustomize.config.k8s.io/v1beta1", "kind", "Kustomization")
	file.Content = append(file.Content, head...)
	resources := &yaml.Node{Kind: yaml.SequenceNode}
	for _, name := range names {
		resources.Content = append(resources.Content, text(name))
	}
	file.Content = append(file.Content, text("resources"), resources)
	lines, err := encode(file, f.step(old), f.indented(old))
	if err != nil {
		return err
	}
	eol := f.eol()
	s.tree.create(path.Join(n.dir, "kustomization.yaml"), strings.Join(lines, eol)+eol)
	return nil
}

// unlist takes a file that is gone out of the kustomization file that names it.
func (s *split) unlist(by, name string) error {
	if by == "" {
		return nil
	}
	f, err := s.tree.open(by)
	if err != nil {
		return err
	}
	segments, err := f.segments()
	if err != nil {
		return err
	}
	is := func(item *yaml.Node) bool { return path.Join(path.Dir(by), scalar(item)) == name }
	for _, g := range segments {
		if g.object == nil {
			continue
		}
		for _, key := range []string{"resources", "bases"} {
			if err := f.removeItems(addressOf(g.object), "", key, is); err != nil {
				return err
			}
		}
	}
	return nil
}

// plain is a copy without comments, anchors and aliases.
func plain(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode {
		return plain(node.Alias)
	}
	copied := &yaml.Node{Kind: node.Kind, Style: node.Style, Tag: node.Tag, Value: node.Value}
	for _, child := range node.Content {
		copied.Content = append(copied.Content, plain(child))
	}
	return copied
}
