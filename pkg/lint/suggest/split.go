// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package suggest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/coldstart"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// kept is a need that keeps its own provider off the cluster.
type kept struct {
	coldstart.Need
	provider coldstart.Provider
	// level counts from 0: what stands on objects that move themselves moves
	// further down.
	level int
}

// split is the way out of one deadlock.
type split struct {
	*work
	old      build.Followed
	manifest manifest
	needs    []kept
	// tiers are the new ones, each behind the one before it.
	tiers []*newTier
}

// newTier is a tier that second-order objects move to.
type newTier struct {
	ref   flux.Ref
	dir   string
	users []build.Object
	// behind are the tiers that it depends on.
	behind []flux.Ref
	gate   gate
}

// Split moves the second-order objects of a deadlocked tier down into a tier of
// their own: the patch for CS001. It is a *Refusal where nothing can be written
// that is safe.
func Split(in Input, tier flux.Ref) (Patch, error) {
	s := &split{work: newWork(in)}
	err := s.run(tier)
	if err != nil {
		return Patch{}, byHand(err, "move %s into a folder and a Kustomization of their own that depends on %s, and let the tiers that depend on %s depend on it too",
			s.subject(), tier.Name, tier.Name)
	}
	return s.patch(s.holds(s.needs[0].provider.Tier.Key()))
}

func (s *split) run(tier flux.Ref) error {
	if err := s.find(tier); err != nil {
		return err
	}
	if err := s.plan(); err != nil {
		return err
	}
	s.note(s.summary())
	if err := s.move(); err != nil {
		return err
	}
	if err := s.writeTiers(); err != nil {
		return err
	}
	if err := s.writeEdges(); err != nil {
		return err
	}
	s.writeGates()
	if err := s.moveChecks(); err != nil {
		return err
	}
	if text := s.pruning(); text != "" {
		s.note(text)
	}
	return nil
}

// find finds the deadlock, and the manifest of the tier that is in it.
func (s *split) find(tier flux.Ref) error {
	followed, outcome := s.followed(tier), s.outcome(tier)
	if followed == nil || outcome == nil || followed.Result == nil {
		return refuse("nothing is known of what %s applies", tier.Name)
	}
	s.old = *followed
	for _, n := range outcome.Needs {
		if p := s.keeps(n); p != nil && n.Kind.Kind != "" {
			s.needs = append(s.needs, kept{Need: n, provider: *p})
		}
	}
	if len(s.needs) == 0 {
		return nothingMoves(outcome)
	}
	var err error
	s.manifest, err = s.tier(tier, "healthChecks", "healthCheckExprs", "path")
	return err
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
func (s *split) keeps(n coldstart.Need) *coldstart.Provider {
	switch {
	case n.When == coldstart.Missing:
		i := slices.IndexFunc(n.Providers, func(p coldstart.Provider) bool { return p.Reach == coldstart.Same || p.Reach == coldstart.Behind })
		if i >= 0 {
			return &n.Providers[i]
		}
	case n.When == coldstart.Perhaps && len(n.Providers) == 0:
		for _, c := range n.Candidates {
			if c.Kind == flux.HelmReleaseKind && s.applies(c) {
				return &coldstart.Provider{How: coldstart.ByChart, Tier: s.old.Tier, Object: c, Stage: build.StageRest, Reach: coldstart.Same}
			}
		}
	}
	return nil
}

func (s *split) applies(ref flux.Ref) bool {
	return slices.ContainsFunc(s.old.Result.Objects, func(o build.Object) bool { return same(o.Ref(), ref) })
}

// plan puts the objects into new tiers.
func (s *split) plan() error {
	moves := func(ref flux.Ref) int {
		return slices.IndexFunc(s.needs, func(k kept) bool {
			return slices.ContainsFunc(k.Users, func(o build.Object) bool { return same(o.Ref(), ref) })
		})
	}
	for range s.needs {
		for i := range s.needs {
			if on := moves(s.needs[i].provider.Object); on >= 0 && on != i && s.needs[i].level <= s.needs[on].level && s.needs[on].level < len(s.needs) {
				s.needs[i].level = s.needs[on].level + 1
			}
		}
	}
	slices.SortStableFunc(s.needs, func(a, b kept) int { return a.level - b.level })
	level := -1
	for i := range s.needs {
		k := &s.needs[i]
		if k.level != level {
			level = k.level
			s.tiers = append(s.tiers, &newTier{})
		}
		k.level = len(s.tiers) - 1
		s.tiers[k.level].users = append(s.tiers[k.level].users, k.Users...)
	}
	if !slices.ContainsFunc(s.old.Result.Objects, func(o build.Object) bool { return !o.Ignored && moves(o.Ref()) < 0 }) {
		return refuse("nothing would be left in %s", s.old.Tier.Name)
	}
	for i, n := range s.tiers {
		if err := s.name(n); err != nil {
			return err
		}
		s.depend(n, s.old.Tier)
		if i > 0 {
			n.behind = []flux.Ref{s.tiers[i-1].ref}
		}
		for _, k := range s.needs {
			if k.level == i && !same(k.provider.Tier, s.old.Tier) {
				s.depend(n, k.provider.Tier)
			}
		}
		key := n.ref.Key()
		s.parents[key] = s.parents[s.old.Tier.Key()]
		for _, on := range n.behind {
			s.edges[key] = append(s.edges[key], on.Key())
		}
	}
	return nil
}

func (s *split) depend(n *newTier, on flux.Ref) {
	if !slices.ContainsFunc(n.behind, func(b flux.Ref) bool { return same(b, on) }) {
		n.behind = append(n.behind, on)
	}
}

func (s *split) last() *newTier { return s.tiers[len(s.tiers)-1] }

// writeEdges lets every tier that depends on the old one depend on the new one
// too: it relied on the old one's Ready for the objects that move.
func (s *split) writeEdges() error {
	below := s.last().ref
	var given, spared []string
	for _, t := range s.World.Tiers {
		key := t.Tier.Key()
		if !slices.Contains(s.edges[key], s.old.Tier.Key()) {
			continue
		}
		if s.waits(below.Key(), key, true) {
			spared = append(spared, t.Tier.Name)
			continue
		}
		m, err := s.tier(t.Tier, "dependsOn")
		if err == nil {
			err = m.addItems(m.at, "dependsOn", dependsOn(t.Tier, below))
		}
		if err != nil {
			return byHand(err, "move %s down into a tier %s, and let %s depend on it", s.subject(), below.Name, t.Tier.Name)
		}
		given = append(given, t.Tier.Name)
		s.edges[key] = append(s.edges[key], below.Key())
	}
	if len(given) > 0 {
		s.note(fmt.Sprintf("Edges: %s depended on %s, whose Ready stood for these objects too, and so %s on %s as well now.",
			list(given), s.old.Tier.Name, verb(given, "depends", "depend"), below.Name))
	}
	if len(spared) > 0 {
		s.note(fmt.Sprintf("No edge: %s %s on %s, but %s itself waits for %s.", list(spared), verb(spared, "depends", "depend"), s.old.Tier.Name, below.Name, verb(spared, "it", "them")))
	}
	return nil
}

func verb(of []string, one, many string) string {
	if len(of) == 1 {
		return one
	}
	return many
}

// writeGates lets the tiers that bring the kinds prove it. A gate that cannot be
// written leaves a race that a retry heals, and no deadlock.
func (s *split) writeGates() {
	var order []flux.Ref
	byTier := map[string][]brought{}
	for _, k := range s.needs {
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
		g, err := s.gateFor(tier, byTier[tier.Key()])
		switch {
		case err != nil:
		case g.empty():
			s.note(fmt.Sprintf("Gate: the Ready of %s proves already that the kinds are there. It holds %s.", tier.Name, count(s.holds(tier.Key()), "tier")))
		default:
			err = s.writeGate(tier, g)
		}
		if err != nil {
			s.note(fmt.Sprintf("No gate: %s is Ready before the kinds are there, and %s may need a retry. A gate %v.", tier.Name, s.tiers[0].ref.Name, err))
		}
	}
}

// subject names what moves.
func (s *split) subject() string {
	if len(s.needs) == 0 {
		return "the second-order objects"
	}
	return list(s.moved())
}

func (s *split) summary() string {
	var parts []string
	for _, n := range s.tiers {
		var objects, behind []string
		for _, o := range n.users {
			objects = append(objects, o.String())
		}
		for _, b := range n.behind {
			behind = append(behind, b.Name)
		}
		parts = append(parts, fmt.Sprintf("%s down from %s into %s, a tier of %s own built from %s, which depends on %s",
			list(objects), s.old.Tier.Name, n.ref.Name, verb(objects, "its", "their"), n.dir, list(behind)))
	}
	return "Moves " + strings.Join(parts, "; ") + "."
}

// pruning is what becomes of the objects on a cluster that has them. The new
// tier depends on the old one, so that Flux deletes first and creates after.
func (s *split) pruning() string {
	if !specOf(s.old).Prune {
		return ""
	}
	return fmt.Sprintf("Mind a cluster that runs already: %[1]s prunes what it no longer builds, so there %[2]s %[3]s deleted, and created again by %[4]s only after that. "+
		"To keep %[5]s, go in two steps: first commit the annotation %[6]s/prune: disabled on %[5]s and wait until %[1]s is Ready at that commit; "+
		"then apply this patch, and take the annotation away again once %[4]s is Ready. A cluster that never had %[5]s loses nothing.",
		s.old.Tier.Name, s.subject(), verb(s.moved(), "is", "are"), s.last().ref.Name, verb(s.moved(), "it", "them"), flux.KustomizeGroup)
}

func (s *split) moved() []string {
	var all []string
	for _, k := range s.needs {
		for _, o := range k.Users {
			all = append(all, o.String())
		}
	}
	return all
}
