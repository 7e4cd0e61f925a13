// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package coldstart

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubestandup/kubestandup/pkg/build"
)

// release says what becomes of one HelmRelease.
func (m *model) release(r *release) Release {
	out := Release{Release: r.ref, Tier: r.tier.Tier, Attempted: m.held[r.start], Installed: m.held[r.installed]}
	if r.spec.KubeConfig != nil || r.chart.Basis != Rendered {
		return out
	}
	for _, n := range m.releaseNeeds(slices.Concat(r.chart.PreInstall, r.chart.Objects, r.chart.PostInstall)) {
		if need := m.judgeRelease(r, n); need.When != InTime {
			out.Needs = append(out.Needs, need)
		}
	}
	for _, n := range m.releaseNeeds(r.chart.Gated) {
		need := m.judgeRelease(r, n)
		if need.When != Late || !out.Attempted {
			continue
		}
		if !slices.ContainsFunc(n.kind.sources, func(s *source) bool { return m.held[s.done] && !m.before(s.done, r.start) }) {
			need.When = Missing // when the chart is rendered
		}
		out.Unrendered = append(out.Unrendered, need)
	}
	return out
}

// releaseNeeds are the kinds of objects of a chart.
func (m *model) releaseNeeds(objects []*unstructured.Unstructured) []*need {
	needs := map[schema.GroupVersionKind]*need{}
	var order []*need
	for _, o := range objects {
		n := needs[o.GroupVersionKind()]
		if n == nil {
			k := m.kind(o.GroupVersionKind())
			n = &need{stage: build.StageRest, needed: needed{kind: k}, fact: k.served}
			needs[o.GroupVersionKind()] = n
			order = append(order, n)
		}
		n.users = append(n.users, build.Object{Unstructured: o, Stage: build.StageRest})
	}
	return order
}

// judgeRelease says when a kind of the chart's objects is served. What the
// chart's own crds/ folder registers is there in time.
func (m *model) judgeRelease(r *release, n *need) Need {
	out := Need{Kind: n.kind.gvk, OtherVersions: n.kind.others, Users: n.users, Stage: n.stage}
	out.When = m.when(n, r.crds, n.kind.sources)
	if out.When == Late && m.afterOwn(r, n) {
		out.When = InTime
	}
	own := map[fact]bool{r.mapped: true, r.created: true, r.installed: true}
	for _, s := range n.kind.sources {
		p := s.Provider
		switch {
		case !m.held[s.done] && m.wayTo(s.done, own) != nil:
			p.Reach = Same
		case !m.held[s.done]:
			p.Reach = Down
		case m.before(r.crds, s.done):
			p.Reach = Proved
		default:
			p.Reach = NoPath
		}
		out.Providers = append(out.Providers, p)
	}
	m.complete(&out, n, n.kind.sources)
	return out
}

// afterOwn is true where every object of the kind is a hook that runs after the
// chart's own objects, one of which registers the kind.
func (m *model) afterOwn(r *release, n *need) bool {
	late := func(o build.Object) bool {
		return slices.ContainsFunc(r.chart.PostInstall, func(h *unstructured.Unstructured) bool { return h == o.Unstructured })
	}
	return !slices.ContainsFunc(n.users, func(o build.Object) bool { return !late(o) }) &&
		slices.ContainsFunc(n.kind.sources, func(s *source) bool { return s.done == r.created })
}
