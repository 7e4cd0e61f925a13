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

// nameLength is what a label holds: Flux labels each object with the name of its
// tier.
const nameLength = 63

// name finds a name and a folder for a new tier.
func (s *split) name(n *newTier) error {
	word := Word(n.users, s.old.Tier.Name)
	for i := 1; i < 100; i++ {
		n.ref, n.dir = flux.Ref{}, ""
		suffix := "-" + word
		if i > 1 {
			suffix += fmt.Sprintf("-%d", i)
		}
		base := s.old.Tier.Name
		if over := len(base) + len(suffix) - nameLength; over > 0 {
			base = strings.TrimRight(base[:max(0, len(base)-over)], "-.")
		}
		ref := s.old.Tier
		if ref.Name = base + suffix; s.taken(ref) {
			continue
		}
		n.ref = ref
		dir := pathOf(s.old)
		candidates := []string{dir + suffix, path.Join(dir, suffix[1:]), ref.Name}
		if dir == "." {
			candidates = candidates[1:]
		}
		for _, dir := range candidates {
			if s.free(dir) {
				n.dir = dir
				return nil
			}
		}
	}
	return refuse("no folder beside %s is free that no other tier builds", pathOf(s.old))
}

func (s *split) taken(ref flux.Ref) bool {
	is := func(f build.Followed) bool { return same(f.Tier, ref) }
	return slices.ContainsFunc(s.World.Tiers, is) || slices.ContainsFunc(s.Others, is) ||
		slices.ContainsFunc(s.tiers, func(n *newTier) bool { return n.ref == ref })
}

// free is true for a folder that is not there, and that no tier would take up:
// Flux builds folders below one without a kustomization file.
func (s *split) free(dir string) bool {
	if s.tree.exists(dir) || slices.ContainsFunc(s.tiers, func(n *newTier) bool { return n.dir == dir }) {
		return false
	}
	takes := func(f build.Followed) bool {
		return f.Outside == nil && f.Kustomization != nil && s.tree.takes(pathOf(f), dir)
	}
	return !slices.ContainsFunc(s.World.Tiers, takes) && !slices.ContainsFunc(s.Others, takes)
}

// Word names the tier that objects move to, behind the name of their old one: it
// is what they have in common, in one word: the first of their
// API group, else their kind.
func Word(users []build.Object, tier string) string {
	var groups, kinds []string
	for _, o := range users {
		gk := o.GroupVersionKind().GroupKind()
		groups, kinds = append(groups, gk.Group), append(kinds, strings.ToLower(gk.Kind))
	}
	one := func(all []string) bool { return len(slices.Compact(slices.Sorted(slices.Values(all)))) == 1 }
	if one(groups) {
		word, _, _ := strings.Cut(groups[0], ".")
		if !slices.Contains(strings.Split(tier, "-"), word) {
			return word
		}
	}
	if one(kinds) {
		return kinds[0]
	}
	return "resources"
}

// move takes the objects out of their files and puts them into new ones.
func (s *split) move() error {
	type origin struct {
		manifest
		by string
	}
	var origins []origin
	for _, n := range s.tiers {
		by := map[string]bool{}
		var files []string // new ones, by name
		byFile := map[string][]address{}
		for _, o := range n.users {
			m, err := s.object(s.old.Tier, o.Ref())
			if err != nil {
				return err
			}
			from := s.built[m.path][0]
			if from.tier != s.old.Tier.Key() {
				return refuse("%s is built by %s", m.path, from.tier)
			}
			if err := s.movable(m, from, o); err != nil {
				return err
			}
			by[from.by] = true
			if byFile[m.path] == nil {
				files = append(files, m.path)
			}
			byFile[m.path] = append(byFile[m.path], m.at)
			origins = append(origins, origin{m, from.by})
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
	for _, o := range origins {
		if o.content() == "" && o.by != "" {
			if err := s.unlist(o.by, o.path); err != nil {
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
func (s *split) movable(m manifest, from use, o build.Object) error {
	if o.Encrypted {
		return refuse("%s is encrypted, and SOPS signs the file as a whole", o)
	}
	c := comparison{}
	c.spec, _ = s.old.Kustomization.Object["spec"].(map[string]any)
	if from.by != "" {
		var err error
		if c.kustomization, err = s.kustomizationFile(from.by); err != nil {
			return err
		}
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
	found, err := m.find(m.at)
	if err != nil {
		return err
	}
	if !c.same(found.object, o) {
		return refuse("%s is changed on its way from %s, by a patch or by a kustomization file", o, m.path)
	}
	return nil
}

func (s *split) kustomizationFile(name string) (map[string]any, error) {
	f, err := s.tree.open(name)
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
func (s *split) list(n *newTier, by map[string]bool, names []string) error {
	named := ""
	for name := range by {
		if name == "" {
			continue
		}
		if named != "" {
			return refuse("%s are named in several kustomization files", s.subject())
		}
		named = name
	}
	if named == "" {
		return nil // Flux finds the files by itself, as it did
	}
	f, err := s.tree.open(named)
	if err != nil {
		return err
	}
	segments, err := f.segments()
	if err != nil {
		return err
	}
	i := slices.IndexFunc(segments, func(g segment) bool { return g.object != nil })
	if i < 0 {
		return refuse("%s is empty", named)
	}
	old := segments[i]
	file := mapping("apiVersion", "kustomize.config.k8s.io/v1beta1", "kind", "Kustomization")
	for _, key := range carried() {
		if value := field(old.object, key); value != nil {
			file.Content = append(file.Content, text(key), plain(value))
		}
	}
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
