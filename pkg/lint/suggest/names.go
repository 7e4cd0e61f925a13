// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package suggest

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// nameLength is what a label holds: Flux labels each object with the name of its
// tier.
const nameLength = 63

// name names the new tiers of every owner, and says what they depend on.
func (s *split) name() error {
	for _, o := range s.owners {
		for i, n := range s.tiers {
			ref := o.old.Tier
			ref.Name = shortened(ref.Name, n.suffix)
			o.refs = append(o.refs, ref)
			behind := []flux.Ref{o.old.Tier}
			if i > 0 {
				behind = []flux.Ref{o.refs[i-1]}
			}
			for _, k := range o.needs {
				is := func(b flux.Ref) bool { return same(b, k.provider.Tier) }
				if k.level == i && !is(o.old.Tier) && !slices.ContainsFunc(behind, is) {
					behind = append(behind, k.provider.Tier)
				}
			}
			o.behind = append(o.behind, behind)
		}
	}
	return nil
}

// place finds a folder for each new tier, beside that of what moves, and a name
// that no cluster has.
func (s *split) place() error {
	first := s.owners[0]
	dir := pathOf(first.old)
	if len(s.owners) > 1 {
		m, err := s.object(first.cluster, first.old.Tier, s.tiers[0].users[0].Ref())
		if err != nil {
			return err
		}
		if by := m.uses[0].by; by != "" {
			dir = path.Dir(by)
		}
	}
	for _, n := range s.tiers {
		word := Word(n.users, first.old.Tier.Name)
		for i := 1; n.dir == "" && i < 100; i++ {
			suffix := "-" + word
			if i > 1 {
				suffix += fmt.Sprintf("-%d", i)
			}
			used := slices.ContainsFunc(s.tiers, func(other *newTier) bool { return other.suffix == suffix })
			if used || slices.ContainsFunc(s.owners, func(o *owner) bool {
				ref := o.old.Tier
				ref.Name = shortened(ref.Name, suffix)
				return s.taken(ref)
			}) {
				continue
			}
			candidates := []string{dir + suffix, path.Join(dir, suffix[1:]), shortened(first.old.Tier.Name, suffix)}
			if dir == "." {
				candidates = candidates[1:]
			}
			if at := slices.IndexFunc(candidates, s.free); at >= 0 {
				n.dir, n.suffix = candidates[at], suffix
			}
		}
		if n.dir == "" {
			return refuse("no folder beside %s is free that no other tier builds", dir)
		}
	}
	return nil
}

// shortened is a name with an end, within what a label holds.
func shortened(name, suffix string) string {
	if over := len(name) + len(suffix) - nameLength; over > 0 {
		name = strings.TrimRight(name[:max(0, len(name)-over)], "-.")
	}
	return name + suffix
}

// taken is true for a name that a tier of some cluster has.
func (s *split) taken(ref flux.Ref) bool {
	return slices.ContainsFunc(s.clusters, func(c *cluster) bool { return c.has(ref.Key()) })
}

// free is true for a folder that is not there, and that no tier would take up:
// Flux builds folders below one without a kustomization file.
func (s *split) free(dir string) bool {
	if s.tree.exists(dir) || s.tree.makes(dir) || slices.ContainsFunc(s.tiers, func(n *newTier) bool { return n.dir == dir }) {
		return false
	}
	return !slices.ContainsFunc(s.clusters, func(c *cluster) bool {
		return slices.ContainsFunc(c.World.Tiers, func(f build.Followed) bool {
			return f.Outside == nil && f.Kustomization != nil && s.tree.takes(pathOf(f), dir)
		})
	})
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
