// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package suggest

import (
	"fmt"
	"slices"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/coldstart"
	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// owner is a tier of one cluster that builds what moves.
type owner struct {
	*cluster
	index    int
	old      build.Followed
	manifest manifest
	defs     []def
	needs    []kept
	// What follows is one for each new tier: its name, what moves there, what it
	// depends on, and what its own Ready has to prove.
	refs   []flux.Ref
	users  [][]build.Object
	behind [][]flux.Ref
	gates  []gate
}

func (o *owner) last() flux.Ref { return o.refs[len(o.refs)-1] }

func (o *owner) isNew(key string) bool {
	return slices.ContainsFunc(o.refs, func(r flux.Ref) bool { return r.Key() == key })
}

func (o *owner) moved() []build.Object {
	if o.users != nil {
		return slices.Concat(o.users...)
	}
	var all []build.Object
	for _, k := range o.needs {
		all = append(all, k.Users...)
	}
	return all
}

// findOwners finds all tiers that build the files of what moves, and what each
// of them makes of it.
func (s *split) findOwners() error {
	first := s.owners[0]
	var whole []use
	for level, n := range s.tiers {
		first.users = append(first.users, n.users)
		for _, object := range n.users {
			m, err := s.object(first.cluster, first.old.Tier, object.Ref())
			if err != nil {
				return err
			}
			if whole == nil {
				whole = m.uses
			}
			if u, differs := difference(whole, m.uses); differs {
				return refuse("%s builds only some of %s, and would get all", s.user(u), finding.Some(names(first.moved())))
			}
			for i, u := range m.uses {
				if slices.ContainsFunc(m.uses[:i], u.of) {
					return refuse("%s is built twice by %s", m.path, s.user(u))
				}
				if err := s.own(m, u, level, object); err != nil {
					return err
				}
			}
		}
	}
	for _, o := range s.owners[1:] {
		o.findNeeds()
	}
	for _, o := range s.owners {
		var err error
		if o.manifest, o.defs, err = s.Draft.tier(o.cluster, o.old.Tier, "healthChecks", "healthCheckExprs", "path"); err != nil {
			return err
		}
	}
	for _, o := range s.owners {
		for _, is := range o.defs {
			if !slices.ContainsFunc(s.owners, func(other *owner) bool { return other.cluster == is.cluster && same(other.old.Tier, is.tier) }) {
				return refuse("%s makes %s of %s too, which does not build %s", o.manifest.path, is.tier.Name, is.Name, finding.Some(names(first.moved())))
			}
		}
	}
	return nil
}

// of is true for a use by the same tier.
func (u use) of(o use) bool { return o.cluster == u.cluster && o.tier == u.tier }

// difference is a tier that is among only one of the uses.
func difference(a, b []use) (use, bool) {
	for _, pair := range [][2][]use{{a, b}, {b, a}} {
		for _, u := range pair[0] {
			if !slices.ContainsFunc(pair[1], u.of) {
				return u, true
			}
		}
	}
	return use{}, false
}

// own notes that the tier of a use builds the object, and refuses what would
// become something else.
func (s *split) own(m manifest, u use, level int, object build.Object) error {
	first, o := s.owners[0], s.owner(u)
	if o == nil {
		followed := s.clusters[u.cluster].byKey(u.tier)
		if followed == nil || followed.Result == nil {
			return refuse("%s is built by %s too, and it is not known what that applies", m.path, s.user(u))
		}
		o = &owner{cluster: s.clusters[u.cluster], index: u.cluster, old: *followed, users: make([][]build.Object, len(s.tiers))}
		s.owners = append(s.owners, o)
	}
	if o != first {
		its := o.writtenAt(m)
		if its == nil {
			return refuse("%s is built by %s too, which makes something else of %s", m.path, s.user(u), object)
		}
		if u.cluster == first.index && same(its.Ref(), object.Ref()) {
			return refuse("%s is applied by %s and by %s", object, first.old.Tier.Key(), o.old.Tier.Key())
		}
		o.users[level] = append(o.users[level], *its)
		object = *its
	}
	return s.movable(m, u, o, object)
}

func (s *split) owner(u use) *owner {
	for _, o := range s.owners {
		if o.index == u.cluster && o.old.Tier.Key() == u.tier {
			return o
		}
	}
	return nil
}

// writtenAt is what the tier makes of a document.
func (o *owner) writtenAt(m manifest) *build.Object {
	for i := range o.old.Result.Objects {
		object := &o.old.Result.Objects[i]
		if object.GetKind() == m.at.kind && o.Locate(o.old.Tier, object.Ref()) == m.position {
			return object
		}
	}
	return nil
}

// findNeeds finds which providers what moves has in another cluster: there it
// may not be deadlocked at all.
func (o *owner) findNeeds() {
	outcome := o.outcome(o.old.Tier)
	if outcome == nil {
		return
	}
	for _, n := range outcome.Needs {
		p := o.keeps(o.old, n)
		if p == nil || n.Kind.Kind == "" || len(n.Users) == 0 {
			continue
		}
		for level, users := range o.users {
			if slices.ContainsFunc(users, func(m build.Object) bool { return same(m.Ref(), n.Users[0].Ref()) }) {
				o.needs = append(o.needs, kept{Need: n, provider: *p, level: level})
			}
		}
	}
}

// settle tells the clusters of the new tiers.
func (o *owner) settle(i int, file string, at address, defs []def) {
	key := o.refs[i].Key()
	o.made[key] = &made{ref: o.refs[i], file: file, at: at, defs: defs}
	o.parents[key] = o.parents[o.old.Tier.Key()]
	for _, on := range o.behind[i] {
		o.link(key, on.Key())
	}
	for _, u := range o.users[i] {
		o.homes[home{o.old.Tier.Key(), coldstart.Key(u.Ref())}] = o.refs[i]
	}
}

// names name objects, each once.
func names[T fmt.Stringer](objects []T) []string {
	var all []string
	for _, o := range objects {
		if text := o.String(); !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return all
}
