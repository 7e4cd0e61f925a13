// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package coldstart

import (
	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// need is what a stage of a tier, or a release, cannot do without.
type need struct {
	stage int
	needed
	fact fact
	// sources bring the object.
	sources []*source
	users   []build.Object
	// certain is true where the webhook is asked whenever the tier is applied;
	// else it may come before the tier, and after.
	certain bool
}

// needed is what is needed: a kind, an object, or that a webhook answers.
type needed struct {
	kind   *kind
	object flux.Ref
	hook   *webhook
}

// addNeed enters what a stage cannot do without, or one more object that cannot.
// Objects come stage by stage, so that the first to need something decides.
func (m *model) addNeed(t *tier, n need, users ...build.Object) {
	if t.needed == nil {
		t.needed = map[needed]*need{}
	}
	known := t.needed[n.needed]
	if known == nil {
		known = &n
		t.needed[n.needed] = known
		t.needs = append(t.needs, known)
		if n.hook == nil || n.certain {
			m.need(t.stages[n.stage], n.fact)
		}
	}
	known.users = append(known.users, users...)
}

func (m *model) objectSources(key id) []*source {
	var all []*source
	for _, i := range m.objects[key] {
		all = append(all, m.sourceOf(i, i.created))
	}
	return all
}

// needObject enters the need of an object that some tier makes. One that nothing
// makes is taken to be there.
func (m *model) needObject(t *tier, stage int, ref flux.Ref, users ...build.Object) {
	key := idOfRef(ref)
	if f, made := m.exists[key]; made && !m.there[key] {
		m.addNeed(t, need{stage: stage, needed: needed{object: ref}, fact: f, sources: m.objectSources(key)}, users...)
	}
}

// anyOf is when what nothing known brings may be there: never, unless one of the
// candidates brings it.
func (m *model) anyOf(candidates []candidate) fact {
	f := m.add()
	if len(candidates) == 0 {
		m.forbid(f)
	}
	for _, c := range candidates {
		m.way(f, c.done)
	}
	return f
}
