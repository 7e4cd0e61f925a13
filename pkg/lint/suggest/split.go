// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package suggest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/coldstart"
	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// kept is a need that its provider cannot come before.
type kept struct {
	coldstart.Need
	provider coldstart.Provider
	// level counts from 0: what stands on objects that move themselves moves
	// further down.
	level int
}

// split is the way out of one deadlock.
type split struct {
	*Draft
	// owners are the tiers that build what moves; the first is the one that was
	// asked about.
	owners []*owner
	// tiers are the new ones, each behind the one before it.
	tiers []*newTier
}

// newTier is what becomes a tier of its own, of each owner.
type newTier struct {
	dir, suffix string
	users       []build.Object // of the first owner
}

// Split moves the second-order objects of a deadlocked tier down into a tier of
// their own, with each cluster that builds them: the patch for CS001. It is a
// *Refusal where nothing can be written that is safe.
func (d *Draft) Split(cluster int, tier flux.Ref) error {
	c := d.clusters[cluster]
	followed, outcome := c.followed(tier), c.outcome(tier)
	if followed == nil || outcome == nil || followed.Result == nil {
		return refuse("nothing is known of what %s applies", tier.Name)
	}
	var needs []kept
	moved := false
	for _, n := range outcome.Needs {
		p := c.keeps(*followed, n)
		if p == nil || n.Kind.Kind == "" {
			continue
		}
		if n.Users = c.staying(tier, n.Users); len(n.Users) == 0 {
			moved = true // by an earlier step
			continue
		}
		needs = append(needs, kept{Need: n, provider: *p})
	}
	if len(needs) == 0 {
		if moved {
			return nil
		}
		return nothingMoves(outcome)
	}
	return d.splitOff(&owner{cluster: c, index: cluster, old: *followed, needs: needs})
}

// splitOff moves what has the needs.
func (d *Draft) splitOff(first *owner) error {
	s := &split{Draft: d, owners: []*owner{first}}
	err := d.step(s.run)
	return byHand(err, "move %s into a folder and a Kustomization of their own that depends on %s, and let the tiers that depend on %s depend on it too",
		finding.Some(names(first.moved())), first.old.Tier.Name, first.old.Tier.Name)
}

func (s *split) run() error {
	for _, step := range []func() error{s.plan, s.findOwners, s.place, s.name, s.move, s.writeTiers, s.writeEdges} {
		if err := step(); err != nil {
			return err
		}
	}
	for _, o := range s.owners {
		s.writeGates(o)
		if err := s.moveChecks(o); err != nil {
			return err
		}
	}
	for _, o := range s.owners {
		s.letFollow(o)
		if text := s.pruning(o); text != "" {
			s.note(text)
		}
	}
	return nil
}

// staying are the objects of the tier that no step has moved.
func (c *cluster) staying(tier flux.Ref, objects []build.Object) []build.Object {
	return slices.DeleteFunc(slices.Clone(objects), func(o build.Object) bool {
		return c.homes[home{tier.Key(), coldstart.Key(o.Ref())}].Name != ""
	})
}

// nothingMoves is the refusal where no kind is missing.
func nothingMoves(o *coldstart.Outcome) error {
	for _, n := range o.Needs {
		if n.When == coldstart.Missing && n.Stage == 0 && n.Object.Name != "" {
			return &Refusal{
				Because: fmt.Sprintf("%s is built with the variables of %s, and that would have to move up, not down", o.Tier.Name, n.Object),
				ByHand:  fmt.Sprintf("move %s into a tier that %s depends on", n.Object, o.Tier.Name),
			}
		}
	}
	return &Refusal{
		Because: fmt.Sprintf("none of the objects that %s itself applies is to be moved", o.Tier.Name),
		ByHand:  "where a chart holds both, let another HelmRelease that this one depends on install what registers the kinds",
	}
}

// keeps is the provider that the need itself keeps off the cluster: one that is
// known to be, else a chart of unknown content beside it.
func (c *cluster) keeps(tier build.Followed, n coldstart.Need) *coldstart.Provider {
	switch {
	case n.When == coldstart.Missing:
		i := slices.IndexFunc(n.Providers, func(p coldstart.Provider) bool { return p.Reach == coldstart.Same || p.Reach == coldstart.Behind })
		if i >= 0 {
			return &n.Providers[i]
		}
	case n.When == coldstart.Perhaps && len(n.Providers) == 0:
		for _, candidate := range n.Candidates {
			if candidate.Kind == flux.HelmReleaseKind && c.applies(tier.Tier.Key(), candidate) {
				return &coldstart.Provider{How: coldstart.ByChart, Tier: tier.Tier, Object: candidate, Stage: build.StageRest, Reach: coldstart.Same}
			}
		}
	}
	return nil
}

// plan puts the objects into new tiers.
func (s *split) plan() error {
	first := s.owners[0]
	moves := func(ref flux.Ref) int {
		return slices.IndexFunc(first.needs, func(k kept) bool {
			return slices.ContainsFunc(k.Users, func(o build.Object) bool { return same(o.Ref(), ref) })
		})
	}
	needs := first.needs
	for range needs {
		for i := range needs {
			if on := moves(needs[i].provider.Object); on >= 0 && on != i && needs[i].level <= needs[on].level && needs[on].level < len(needs) {
				needs[i].level = needs[on].level + 1
			}
		}
	}
	slices.SortStableFunc(needs, func(a, b kept) int { return a.level - b.level })
	level := -1
	for i := range needs {
		k := &needs[i]
		if k.level != level {
			level = k.level
			s.tiers = append(s.tiers, &newTier{})
		}
		k.level = len(s.tiers) - 1
		n := s.tiers[k.level]
		for _, o := range k.Users {
			if !slices.ContainsFunc(n.users, func(u build.Object) bool { return same(u.Ref(), o.Ref()) }) {
				n.users = append(n.users, o)
			}
		}
	}
	if !slices.ContainsFunc(first.old.Result.Objects, func(o build.Object) bool { return !o.Ignored && moves(o.Ref()) < 0 }) {
		return refuse("nothing would be left in %s", first.old.Tier.Name)
	}
	return nil
}

// writeEdges lets every tier that depends on an old one depend on the new one
// too: it relied on the old one's Ready for the objects that move.
func (s *split) writeEdges() error {
	for _, o := range s.owners {
		s.note(s.summary(o))
	}
	for _, o := range s.owners {
		below := o.last()
		var given, spared []string
		for _, key := range o.tiers() {
			if !slices.Contains(o.edges[key], o.old.Tier.Key()) || o.isNew(key) {
				continue
			}
			name := o.ref(key).Name
			switch {
			case slices.Contains(o.edges[key], below.Key()):
				given = append(given, name) // together with another cluster
				continue
			case o.closes(key, below.Key()):
				spared = append(spared, name)
				continue
			}
			if err := s.addEdge(o.cluster, o.ref(key), below); err != nil {
				return byHand(err, "move %s down into a tier %s, and let %s depend on it", finding.Some(names(o.moved())), below.Name, name)
			}
			given = append(given, name)
		}
		if len(given) > 0 {
			s.note(s.in(o.cluster) + fmt.Sprintf("Edges: %s depended on %s, whose Ready stood for these objects too, and so %s on %s as well now.",
				finding.Some(given), o.old.Tier.Name, finding.Verb(len(given), "depends", "depend"), below.Name))
		}
		if len(spared) > 0 {
			s.note(s.in(o.cluster) + fmt.Sprintf("No edge: %s %s on %s, but %s itself waits for %s.",
				finding.Some(spared), finding.Verb(len(spared), "depends", "depend"), o.old.Tier.Name, below.Name, finding.Verb(len(spared), "it", "them")))
		}
	}
	return nil
}

// writeGates lets the tiers that bring the kinds prove it. A gate that cannot be
// written leaves a race that a retry heals, and no deadlock.
func (s *split) writeGates(o *owner) {
	var order []flux.Ref
	byTier := map[string][]brought{}
	for _, k := range o.needs {
		if k.level > 0 {
			continue // in the manifest of a new tier
		}
		key := k.provider.Tier.Key()
		if byTier[key] == nil {
			order = append(order, k.provider.Tier)
		}
		byTier[key] = append(byTier[key], brought{k.provider, k.Kind})
	}
	for _, tier := range order {
		if err := s.prove(o.cluster, tier, byTier[tier.Key()], false); err != nil {
			s.note(s.in(o.cluster) + fmt.Sprintf("No gate: %s is Ready before the kinds are there, and %s may need a retry. A gate %v.", tier.Name, o.refs[0].Name, err))
		}
	}
}

func (s *split) summary(o *owner) string {
	var parts []string
	for i, n := range s.tiers {
		var behind []string
		for _, b := range o.behind[i] {
			behind = append(behind, b.Name)
		}
		objects := names(o.users[i])
		parts = append(parts, fmt.Sprintf("%s down from %s into %s, a tier of %s own built from %s, which depends on %s",
			finding.Some(objects), o.old.Tier.Name, o.refs[i].Name, finding.Verb(len(objects), "its", "their"), n.dir, finding.Some(behind)))
	}
	return s.in(o.cluster) + "Moves " + strings.Join(parts, "; ") + "."
}

// pruning is what becomes of the objects on a cluster that has them. The new
// tier depends on the old one, so that Flux deletes first and creates after.
func (s *split) pruning(o *owner) string {
	if !specOf(o.old).Prune {
		return ""
	}
	moved := names(o.moved())
	return s.in(o.cluster) + fmt.Sprintf("Mind a cluster that runs already: %[1]s prunes what it no longer builds, so there %[2]s %[3]s deleted, and created again by %[4]s only after that. "+
		"To keep %[5]s, go in two steps: first commit the annotation %[6]s/prune: disabled on %[5]s and wait until %[1]s is Ready at that commit; "+
		"then apply this patch, and take the annotation away again once %[4]s is Ready. A cluster that never had %[5]s loses nothing.",
		o.old.Tier.Name, finding.Some(moved), finding.Verb(len(moved), "is", "are"), o.last().Name, finding.Verb(len(moved), "it", "them"), flux.KustomizeGroup)
}
