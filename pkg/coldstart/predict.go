// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package coldstart

import (
	"cmp"
	"slices"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// Predict says what becomes of the cluster when Flux meets it empty. It is
// deterministic, and changes nothing of what it is given.
func Predict(c *Cluster) *Prediction {
	known := doubts{}
	m := newModel(c, known)
	for m.doubt(known) {
		m = newModel(c, known)
	}
	p := &Prediction{}
	further := m.further()
	for _, t := range m.tiers {
		needs := make([]Need, len(t.needs))
		for i, n := range t.needs {
			needs[i] = m.judge(t, n)
		}
		o := m.outcome(t, needs)
		if o.Verdict == Blocked {
			o.Needs = further[t]
		}
		p.Outcomes = append(p.Outcomes, o)
		p.Kinds = append(p.Kinds, m.audit(t, needs)...)
	}
	for _, r := range m.releases {
		p.Releases = append(p.Releases, m.release(r))
	}
	return p
}

func (m *model) outcome(t *tier, needs []Need) Outcome {
	o := Outcome{Tier: t.Tier, Ready: m.held[t.ready], Retry: t.spec.Interval.Duration, RetryIsInterval: true}
	if t.spec.RetryInterval != nil {
		o.Retry, o.RetryIsInterval = t.spec.RetryInterval.Duration, false
	}
	for i := range needs {
		if needs[i].When != InTime {
			o.Needs = append(o.Needs, needs[i])
		}
	}
	slices.SortStableFunc(o.Needs, func(a, b Need) int { return cmp.Compare(a.Stage, b.Stage) })
	o.Verdict = m.verdict(t, &o)
	for _, w := range m.waits[t] {
		if m.held[t.stages[build.StageRest]] && !m.held[w.fact] {
			o.WaitsFor = append(o.WaitsFor, w.ref)
		}
	}
	o.Claims = m.unbound(t)
	return o
}

func (m *model) verdict(t *tier, o *Outcome) Verdict {
	stops := func(n Need) bool { return n.When == Missing }
	switch {
	case t.spec.Suspend:
		return Suspended
	case !m.held[t.attempt]:
		o.BlockedBy = m.blockers(t)
		return Blocked
	case t.broken:
		return Never
	case !t.known:
		return Unknown
	case !m.held[t.stages[build.StageRest]]:
		if i := slices.IndexFunc(o.Needs, stops); i >= 0 {
			o.Stage = o.Needs[i].Stage
		}
		return Never
	case !t.Whole():
		return Unknown
	case slices.ContainsFunc(o.Needs, func(n Need) bool { return n.When == Late }):
		return ByRetry
	}
	return AtOnce
}

// blockers are the tiers for want of which the tier is never attempted.
func (m *model) blockers(t *tier) []flux.Ref {
	var refs []flux.Ref
	for _, d := range t.spec.DependsOn {
		ref := flux.Ref{APIVersion: t.Tier.APIVersion, Kind: flux.KustomizationKind, Namespace: cmp.Or(d.Namespace, t.Tier.Namespace), Name: d.Name}
		if other := m.byKey[ref.Key()]; other == nil || !m.held[other.ready] {
			refs = append(refs, ref)
		}
	}
	for _, parent := range t.Parents {
		if p := m.byKey[parent.Key()]; p != nil && !m.held[t.exists] {
			refs = append(refs, p.Tier)
		}
	}
	if source, made := m.builtFrom(t); made && !m.held[source] {
		for _, i := range m.objects[idOfSource(build.SourceOf(t.Kustomization))] {
			refs = append(refs, i.tier.Tier)
		}
	}
	return refs
}

// judge says when what the tier needs is there.
func (m *model) judge(t *tier, n *need) Need {
	out := Need{Object: n.object, Users: n.users, Stage: n.stage}
	before := t.attempt // what is necessarily done when the stage is looked at
	if n.stage > 0 {
		before = t.stages[n.stage-1]
	}
	sources := n.sources
	if n.kind != nil {
		out.Kind, out.OtherVersions = n.kind.gvk, n.kind.others
		sources = n.kind.sources
	}
	if n.hook != nil {
		out.Webhook = &Webhook{Name: n.hook.name, First: n.certain, Refused: n.hook.refused}
	}
	out.When = m.when(n, before, sources)
	for _, s := range sources {
		out.Providers = append(out.Providers, m.reach(t, n, before, s))
	}
	m.complete(&out, n, sources)
	if out.When == Perhaps && len(sources) > 0 {
		out.TooLate, out.Providers = out.Providers, nil
		out.Candidates = m.able(m.doubts[n.doubtful()], n)
	}
	return out
}

// complete says who brings what is needed, and who would.
func (m *model) complete(out *Need, n *need, sources []*source) {
	slices.SortStableFunc(out.Providers, func(a, b Provider) int { return cmp.Compare(rank(a.Reach), rank(b.Reach)) })
	if n.kind != nil && len(sources) == 0 && n.kind.before == "" {
		out.Creators = m.book.Creators(n.kind.gvk.GroupKind())
	}
	if len(sources) == 0 && out.When != InTime {
		out.Candidates = m.able(m.unknown, n)
	}
}

// able are the candidates that do not wait themselves for what is needed.
func (m *model) able(all []candidate, n *need) []flux.Ref {
	var refs []flux.Ref
	for _, c := range all {
		if !m.before(c.done, n.fact) {
			refs = append(refs, c.ref)
		}
	}
	return refs
}

func (m *model) when(n *need, before fact, sources []*source) When {
	switch {
	case n.kind != nil && n.kind.before != "" && len(n.kind.others) == 0:
		return InTime
	case !m.held[n.fact] && n.hook != nil && !n.certain:
		return InTime // it does not answer, and may come after the tier
	case !m.held[n.fact]:
		return Missing
	case len(sources) == 0, m.doubted(n, before, sources):
		return Perhaps
	case !m.held[before]:
		// Never looked at: what keeps the tier from it is another need.
		return InTime
	case m.before(before, n.fact) || slices.ContainsFunc(sources, func(s *source) bool { return m.before(before, s.done) }):
		return InTime
	}
	return Late
}

// rank puts first what explains best why a need is not met, or met in time.
func rank(r Reach) int {
	return slices.Index([]Reach{Proved, Same, Behind, Hollow, Applied, NoPath, Down}, r)
}

// reach says how an attempt of the tier comes after the source.
func (m *model) reach(t *tier, n *need, before fact, s *source) Provider {
	p := s.Provider
	switch {
	case m.held[s.done]:
		m.reachHeld(t, before, s, &p)
	case s.tier == t:
		// Something of the tier itself: in a stage that the need stops, or in
		// one before it whose controller waits for the need all the same.
		p.Reach = Down
		if m.waitsFor(s.done, t, n.stage) != nil {
			p.Reach = Same
		}
	default:
		p.Reach = Down
		if way := m.waitsFor(s.done, t, n.stage); way != nil {
			p.Reach, p.Waits = Behind, way
		}
	}
	return p
}

func (m *model) reachHeld(t *tier, before fact, s *source, p *Provider) {
	switch {
	case m.held[before] && m.before(before, s.done):
		p.Reach = Proved
	case !m.held[t.attempt]:
		p.Reach = NoPath
	default:
		if gate := m.hollow(t, s); gate != nil {
			p.Reach, p.Gate = Hollow, gate.Tier
			return
		}
		p.Reach = NoPath
		if m.before(before, s.applied) {
			p.Reach = Applied
		}
	}
}

// hollow is the tier that the attempt waits for and whose Ready would prove the
// source done, were its gate what it should be: the source's own tier, or one
// that contains it.
func (m *model) hollow(t *tier, s *source) *tier {
	seen := map[*tier]bool{}
	for level := []*tier{s.tier}; len(level) > 0; {
		var above []*tier
		for _, g := range level {
			if seen[g] || g == t {
				continue
			}
			seen[g] = true
			if m.before(t.attempt, g.ready) {
				return g
			}
			for _, parent := range g.Parents {
				if p := m.byKey[parent.Key()]; p != nil {
					above = append(above, p)
				}
			}
		}
		level = above
	}
	return nil
}

// waitsFor is the way from what is not done to the stage of the tier that it
// waits for: the tiers on it, the first one that of the fact. It is nil where
// there is none, and not nil, if empty, where there is.
func (m *model) waitsFor(from fact, t *tier, stage int) []flux.Ref {
	targets := map[fact]bool{t.ready: true}
	for s := max(stage, build.StageDefinitions); s <= build.StageRest; s++ {
		targets[t.stages[s]] = true
	}
	if stage == 0 {
		targets[t.built] = true
	}
	return m.wayTo(from, targets)
}

// wayTo looks for the shortest chain of what is not true and waits for the next.
func (m *model) wayTo(from fact, targets map[fact]bool) []flux.Ref {
	came := map[fact]fact{from: from}
	for queue := []fact{from}; len(queue) > 0; queue = queue[1:] {
		x := queue[0]
		if targets[x] {
			return m.tiersOn(came, x, from)
		}
		n := m.nodes[x]
		for _, p := range slices.Concat(n.all, n.any) {
			if _, seen := came[p]; !seen && !m.held[p] {
				came[p] = x
				queue = append(queue, p)
			}
		}
	}
	return nil
}

func (m *model) tiersOn(came map[fact]fact, x, from fact) []flux.Ref {
	way := []flux.Ref{}
	for {
		if t := m.owner(x); t != nil && (len(way) == 0 || way[len(way)-1] != t.Tier) {
			way = append(way, t.Tier)
		}
		if x == from {
			slices.Reverse(way)
			return way
		}
		x = came[x]
	}
}

// owner is the tier whose step a fact is.
func (m *model) owner(x fact) *tier {
	for _, t := range m.tiers {
		if x == t.exists || x == t.attempt || x == t.ready || slices.Contains(t.stages[:], x) {
			return t
		}
	}
	return nil
}
