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

// race is what a tier needs of another one to which no path of edges leads.
type race struct {
	on    flux.Ref
	needs []kept
}

func addRace(races []race, n coldstart.Need, p coldstart.Provider) []race {
	at := slices.IndexFunc(races, func(r race) bool { return same(r.on, p.Tier) })
	if at < 0 {
		at = len(races)
		races = append(races, race{on: p.Tier})
	}
	races[at].needs = append(races[at].needs, kept{Need: n, provider: p})
	return races
}

// Edge lets a tier wait for those that bring what it needs, with the gates that
// prove it: the patch for CS003, CS006, and for CS011 where another tier brings
// the Namespace. which picks the needs. It is a *Refusal where nothing can be
// written that is safe.
func (d *Draft) Edge(cluster int, tier flux.Ref, which func(coldstart.Need) bool) error {
	c := d.clusters[cluster]
	outcome := c.outcome(tier)
	if outcome == nil {
		return refuse("nothing is known of what %s applies", tier.Name)
	}
	var races []race
	for _, n := range outcome.Needs {
		p := n.Nearest()
		if n.When != coldstart.Late || p == nil || p.Reach != coldstart.NoPath || !which(n) {
			continue
		}
		races = addRace(races, n, *p)
	}
	if len(races) == 0 {
		return refuse("no other tier brings what %s needs", tier.Name)
	}
	return d.step(func() error {
		for _, r := range races {
			if err := d.order(cluster, tier, r); err != nil {
				return byHand(err, "let %s depend on %s, with a gate there that proves it, or set a short retryInterval in %s", tier.Name, r.on.Name, tier.Name)
			}
		}
		return nil
	})
}

// order writes the edge and the gate of one race. Where the edge would close a
// loop, what needs the other tier moves down instead.
func (d *Draft) order(cluster int, tier flux.Ref, r race) error {
	c := d.clusters[cluster]
	from := tier
	var users []build.Object
	for _, k := range r.needs {
		users = append(users, k.Users...)
	}
	if len(users) > 0 && len(c.staying(tier, users)) == 0 {
		from = c.homes[home{tier.Key(), coldstart.Key(users[0].Ref())}] // an earlier step moved them
	}
	switch {
	case c.waits(from.Key(), r.on.Key()):
	case !c.closes(from.Key(), r.on.Key()):
		if err := d.addEdge(c, from, r.on); err != nil {
			return err
		}
		d.note(d.in(c) + fmt.Sprintf("Edge: %s depends on %s now, which brings %s.", from.Name, r.on.Name, finding.Some(wanted(r.needs))))
	default:
		return d.behindLoop(cluster, from, r, users)
	}
	var all []brought
	for _, k := range r.needs {
		all = append(all, brought{k.provider, k.Kind})
	}
	return d.prove(c, r.on, all, true)
}

// letFollow orders the tiers that never came up for want of what the old tier
// brings: now that it does, they are merely too early. What cannot be ordered is
// found by the next run.
func (s *split) letFollow(o *owner) {
	if o.Prediction == nil {
		return
	}
	for _, outcome := range o.Prediction.Outcomes {
		var races []race
		for _, n := range outcome.Needs {
			at := slices.IndexFunc(n.Providers, func(p coldstart.Provider) bool { return p.Reach == coldstart.Down && same(p.Tier, o.old.Tier) })
			if n.When != coldstart.Missing || n.Kind.Kind == "" || at < 0 || same(outcome.Tier, o.old.Tier) {
				continue
			}
			p := n.Providers[at]
			if moved := o.homes[home{o.old.Tier.Key(), coldstart.Key(p.Object)}]; moved.Name != "" {
				p.Tier = moved
			}
			races = addRace(races, n, p)
		}
		for _, r := range races {
			if o.waits(outcome.Tier.Key(), r.on.Key()) || !o.closes(outcome.Tier.Key(), r.on.Key()) {
				_ = s.step(func() error { return s.order(o.index, outcome.Tier, r) }) // as above
			}
		}
	}
}

// behindLoop moves what needs a tier that waits for this one itself.
func (d *Draft) behindLoop(cluster int, from flux.Ref, r race, users []build.Object) error {
	c := d.clusters[cluster]
	followed := c.followed(from)
	loop := refuse("%s waits for %s, so that an edge would close a loop", r.on.Name, from.Name)
	loop.ByHand = fmt.Sprintf("move what needs %s into a tier of its own that depends on %s", finding.Some(wanted(r.needs)), r.on.Name)
	if followed == nil || followed.Result == nil || len(users) == 0 {
		return loop
	}
	if !slices.ContainsFunc(r.needs, func(k kept) bool { return k.Kind.Kind != "" }) {
		return loop
	}
	return d.splitOff(&owner{cluster: c, index: cluster, old: *followed, needs: r.needs})
}

// wanted names what is needed.
func wanted(needs []kept) []string {
	var all []string
	for _, k := range needs {
		text := k.Kind.Kind
		if text == "" {
			text = k.Object.String()
		}
		if !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return all
}
