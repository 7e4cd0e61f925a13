// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package coldstart

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/knowledge"
)

const (
	crdGroup = "apiextensions.k8s.io"
	crdKind  = "CustomResourceDefinition"
)

// operator is a workload, or a chart, that runs the controller of a relation.
type operator struct {
	item    *item
	release *release
	// started is when the controller has begun its work.
	started fact
}

// findOperators finds the controllers that the tiers themselves bring.
func (m *model) findOperators() {
	for _, i := range m.items {
		for _, r := range m.book.OperatorOf(i.Unstructured) {
			m.operators[r.ID] = append(m.operators[r.ID], &operator{item: i, started: m.start(i)})
		}
	}
	for _, r := range m.releases {
		if r.chart.Basis == Rendered || r.spec.KubeConfig != nil {
			continue // its workloads are among the items
		}
		for _, relation := range r.chart.Relations {
			m.operators[relation] = append(m.operators[relation], &operator{release: r, started: r.done(m, m.add(r.installed))})
		}
	}
}

// running is when a controller of the relation works. One that the tiers do not
// bring is taken to be there.
func (m *model) running(relation string) fact {
	fact := m.add()
	for _, o := range m.operators[relation] {
		m.way(fact, o.started)
	}
	return fact
}

// register enters what an object brings: kinds, by whichever way.
func (m *model) register(i *item) {
	gk := i.GroupVersionKind().GroupKind()
	if gk.Group == crdGroup && gk.Kind == crdKind {
		m.registerDefinition(i)
	}
	if gk.Group == operatorGroup && gk.Kind == "ResourceSet" {
		// What it makes is in its templates.
		m.unknown = append(m.unknown, candidate{i.ref(), i.created, i.tier})
	}
	for _, relation := range m.book.ByTrigger(gk) {
		m.registerTrigger(i, relation)
	}
}

func (m *model) registerDefinition(i *item) {
	d := knowledge.DefinitionOf(i.Unstructured)
	m.definitions[i.GetName()] = d.Kind
	m.scopes[d.Kind] = d.Scope == knowledge.Namespaced
	s := m.sourceOf(i, i.created)
	s.versions = d.Versions
	m.addSource(d.Kind, s)
}

// sourceOf is the object as what brings something about.
func (m *model) sourceOf(i *item, done fact) *source {
	how := ByGit
	if i.release != nil {
		how = ByChart
	}
	return &source{Provider: m.provider(how, i), tier: i.tier, done: done, applied: m.appliedBy(i), by: i.by()}
}

// brings is the release, whose chart is not looked into, as what brings
// something about.
func (r *release) brings(how How, done fact) *source {
	return &source{
		Provider: Provider{How: how, Tier: r.tier.Tier, Object: r.ref, Stage: build.StageRest},
		tier:     r.tier, done: done, applied: r.tier.stages[build.StageRest], by: r.by,
	}
}

// appliedBy is when the object that a tier itself applies is on the cluster:
// for an object of a chart, the HelmRelease.
func (m *model) appliedBy(i *item) fact {
	if i.release != nil {
		return i.release.tier.stages[i.stage]
	}
	return i.created
}

func (m *model) provider(how How, i *item) Provider {
	p := Provider{How: how, Tier: i.tier.Tier, Object: i.ref(), Stage: i.stage}
	if i.release != nil {
		ref := i.release.ref
		p.Release = &ref
	}
	return p
}

// registerTrigger enters the kinds that a controller makes of a trigger, and
// those of the triggers that it makes in turn.
func (m *model) registerTrigger(i *item, relation knowledge.Relation) {
	kinds := m.derived(relation, i.Unstructured, nil)
	if len(kinds) == 0 {
		if relation.Second() && len(relation.Creates)+len(relation.Derive)+len(relation.Chain) == 0 && !isRelease(i) {
			// Which kinds it registers stands nowhere in git.
			m.unknown = append(m.unknown, candidate{i.ref(), m.reconciled(i, relation), i.tier})
		}
		return
	}
	s := &source{Provider: m.provider(ByTrigger, i), tier: i.tier, done: m.reconciled(i, relation), applied: m.appliedBy(i)}
	s.Relation = &relation
	for _, o := range m.operators[relation.ID] {
		ref := o.ref()
		s.Operator = &ref
		break
	}
	for _, k := range kinds {
		m.knowKind(k)
		m.addSource(k.GroupKind(), s)
	}
}

// derived are the kinds of a relation; of a chain, those of all its members.
// seen guards against a chain that bites its tail.
func (m *model) derived(relation knowledge.Relation, trigger *unstructured.Unstructured, seen []string) []knowledge.Kind {
	var kinds []knowledge.Kind
	if trigger != nil {
		// A trigger that does not say what it must makes no kind.
		kinds, _ = relation.Derived(trigger)
	} else {
		kinds = relation.Creates
	}
	seen = append(seen, relation.ID)
	for _, link := range relation.Chain {
		for _, next := range m.book.ByTrigger(link.GroupKind()) {
			if !slices.Contains(seen, next.ID) {
				kinds = append(kinds, m.derived(next, nil, seen)...)
			}
		}
	}
	return kinds
}

func (m *model) knowKind(k knowledge.Kind) {
	m.scopes[k.GroupKind()] = k.Scope == knowledge.Namespaced
	m.definitions[k.CRD()] = k.GroupKind()
}

// reconciled is when the trigger's controller has done its work.
func (m *model) reconciled(i *item, relation knowledge.Relation) fact {
	key := reconcileKey{i, relation.ID}
	if f, ok := m.reconciles[key]; ok {
		return f
	}
	f := m.add(i.created, m.running(relation.ID))
	m.reconciles[key] = f
	return f
}

type reconcileKey struct {
	item     *item
	relation string
}

// registerStarts enters the kinds that controllers make when they start.
func (m *model) registerStarts() {
	for _, relation := range m.book.Relations() {
		if relation.Class != knowledge.Start && relation.Class != knowledge.AutoCR {
			continue
		}
		for _, o := range m.operators[relation.ID] {
			m.registerStart(o, relation)
		}
	}
}

func (m *model) registerStart(o *operator, relation knowledge.Relation) {
	var s *source
	if o.item != nil {
		s = m.sourceOf(o.item, o.started)
		s.How = ByStart
	} else {
		s = o.release.brings(ByStart, o.started)
	}
	s.Relation = &relation
	for _, k := range m.derived(relation, nil, nil) {
		m.knowKind(k)
		m.addSource(k.GroupKind(), s)
	}
}

// registerCharts enters the kinds of charts that are known by name.
func (m *model) registerCharts() {
	for _, r := range m.releases {
		if r.chart.Basis != Known {
			continue
		}
		s := r.brings(ByChart, r.done(m, r.installed))
		for _, gk := range r.chart.Registers {
			m.addSource(gk, s)
		}
		for _, group := range r.chart.Groups {
			m.groups[group] = append(m.groups[group], s)
		}
	}
}

func (m *model) addSource(gk schema.GroupKind, s *source) {
	m.sources[gk] = append(m.sources[gk], s)
}

func (o *operator) ref() flux.Ref {
	if o.item != nil {
		return o.item.ref()
	}
	return o.release.ref
}

// by says who brought the object before Flux was there.
func (i *item) by() string {
	if i.release != nil {
		return i.release.by
	}
	return ""
}

// isRelease is true of a HelmRelease: what its chart brings is entered with it.
func isRelease(i *item) bool {
	gk := i.GroupVersionKind().GroupKind()
	return gk.Group == flux.HelmGroup && gk.Kind == flux.HelmReleaseKind
}
