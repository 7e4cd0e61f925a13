// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package knowledge

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// index answers what is asked for each of thousands of objects.
type index struct {
	byID     map[string]int
	creators map[schema.GroupKind][]Relation
	// derivers are those that may derive any kind of a group.
	derivers map[string][]Relation
	triggers map[schema.GroupKind][]Relation
	before   map[schema.GroupKind]string
	effectOf map[schema.GroupKind]*Effect
	// named are the charts of a name, makers those that register a kind,
	// makersOfGroup those that register every kind of a group.
	named         map[string][]*Chart
	makers        map[schema.GroupKind][]*Chart
	makersOfGroup map[string][]*Chart
	// images are the relations by the last part of an image's repository.
	images map[string][]imageOf
	// labelled are the relations whose operator has labels.
	labelled []Relation
}

type imageOf struct {
	repository string
	relation   int
}

func newIndex(b *Base) *index {
	x := &index{
		byID:          map[string]int{},
		creators:      map[schema.GroupKind][]Relation{},
		derivers:      map[string][]Relation{},
		triggers:      map[schema.GroupKind][]Relation{},
		before:        map[schema.GroupKind]string{},
		effectOf:      map[schema.GroupKind]*Effect{},
		named:         map[string][]*Chart{},
		makers:        map[schema.GroupKind][]*Chart{},
		makersOfGroup: map[string][]*Chart{},
		images:        map[string][]imageOf{},
	}
	for i, r := range b.relations {
		x.byID[r.ID] = i
		x.addRelation(i, r)
	}
	for i := range b.charts {
		x.addChart(&b.charts[i])
	}
	for i := range b.effects {
		x.effectOf[b.effects[i].GroupKind()] = &b.effects[i]
	}
	return x
}

func (x *index) addRelation(i int, r Relation) {
	seen := map[schema.GroupKind]bool{}
	for _, t := range r.Triggers {
		if gk := t.GroupKind(); !seen[gk] {
			seen[gk] = true
			x.triggers[gk] = append(x.triggers[gk], r)
		}
	}
	if r.Operator != nil {
		for _, image := range r.Operator.Images {
			x.images[lastPart(image)] = append(x.images[lastPart(image)], imageOf{image, i})
		}
		if len(r.Operator.Labels) > 0 {
			x.labelled = append(x.labelled, r)
		}
	}
	if r.Network {
		for _, k := range r.Registers {
			x.before[k.GroupKind()] = r.System
		}
	}
	if !r.Second() {
		return
	}
	clear(seen)
	for _, k := range r.Creates {
		gk := k.GroupKind()
		if r.Class == Before || r.Network {
			x.before[gk] = r.System
		}
		if !seen[gk] {
			seen[gk] = true
			x.creators[gk] = append(x.creators[gk], r)
		}
	}
	groups := map[string]bool{}
	for _, d := range r.Derive {
		for _, group := range []string{d.Group.Constant, d.Group.Default} {
			if group != "" && !groups[group] {
				groups[group] = true
				x.derivers[group] = append(x.derivers[group], r)
			}
		}
	}
}

func (x *index) addChart(c *Chart) {
	x.named[c.Name] = append(x.named[c.Name], c)
	kinds, groups := map[schema.GroupKind]bool{}, map[string]bool{}
	for _, p := range c.parts() {
		for _, k := range p.Registers {
			if gk := k.GroupKind(); !kinds[gk] {
				kinds[gk] = true
				x.makers[gk] = append(x.makers[gk], c)
			}
		}
		for _, g := range p.Groups {
			if !groups[g] {
				groups[g] = true
				x.makersOfGroup[g] = append(x.makersOfGroup[g], c)
			}
		}
	}
}
