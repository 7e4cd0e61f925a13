// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/coldstart"
	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

func builtTwice() Rule {
	return Rule{
		ID: "DG007", Name: "built-twice", Severity: finding.Warning,
		Title: "Two tiers build one object, and one of them prunes.",
		Check: func(s *Subject) []finding.Finding {
			l := newLook(s)
			var all []finding.Finding
			for _, t := range l.twice() {
				all = append(all, l.reportTwice(t))
			}
			return all
		},
	}
}

// shared are the objects that two tiers build.
type shared struct {
	a, b    *build.Followed
	objects []build.Object
}

// twice finds the pairs of tiers that build the same objects, one entry for
// each pair, in the order of the tiers.
func (l *look) twice() []*shared {
	type id struct {
		schema.GroupKind
		namespace, name string
	}
	first := map[id]*build.Followed{}
	pairs := map[[2]flux.Ref]*shared{}
	var all []*shared
	for i := range l.World.Tiers {
		f := &l.World.Tiers[i]
		if f.Remote || l.spec(f.Tier).KubeConfig != nil {
			continue // another cluster's objects
		}
		for _, o := range l.objects(f) {
			if marked(o, "ssa", "merge") || marked(o, "prune", "disabled") || l.ownRoot(f, o) {
				continue
			}
			key := id{o.GroupVersionKind().GroupKind(), o.GetNamespace(), o.GetName()}
			other, known := first[key]
			if !known {
				first[key] = f
				continue
			}
			if other == f || prunes(l.spec(f.Tier)) == "" && prunes(l.spec(other.Tier)) == "" {
				continue
			}
			pair := [2]flux.Ref{coldstart.Key(other.Tier), coldstart.Key(f.Tier)}
			if pairs[pair] == nil {
				pairs[pair] = &shared{a: other, b: f}
				all = append(all, pairs[pair])
			}
			pairs[pair].objects = append(pairs[pair].objects, o)
		}
	}
	return all
}

// ownRoot is true for the manifest of a tier in the tier itself, as flux
// bootstrap writes it, and for the source that goes with it.
func (l *look) ownRoot(f *build.Followed, o build.Object) bool {
	source := build.SourceOf(f.Kustomization)
	return coldstart.Key(o.Ref()) == coldstart.Key(f.Tier) ||
		o.GetKind() == source.Kind && o.GetName() == source.Name && o.GetNamespace() == source.Namespace && l.holder(f.Tier).Name == ""
}

func (l *look) reportTwice(t *shared) finding.Finding {
	var names []string
	for _, o := range t.objects {
		names = append(names, o.Ref().String())
	}
	a, b := l.name(t.a.Tier), l.name(t.b.Tier)
	message := fmt.Sprintf("%s and %s both build %s: each apply takes %s over, and the one that stops building %s deletes what the other one still wants",
		a, b, some(names), verb(len(names), "it", "them"), verb(len(names), "it", "them"))
	if isKustomization(t.objects[0].Ref()) {
		message = fmt.Sprintf("%s and %s both apply %s: each apply takes it over, and the one that stops applying it deletes the tier with all that it applied",
			a, b, some(names))
	}
	object := t.objects[0].Ref()
	f := l.report("DG007", finding.Warning, t.b.Tier, object, message)
	for i, o := range t.objects {
		const enough = 4
		if i == enough {
			f.Causes = append(f.Causes, fmt.Sprintf("and %s more", count(len(t.objects)-enough, "object")))
			break
		}
		f.Causes = append(f.Causes, l.place(t.a.Tier, o.Ref())+" in "+a, l.place(t.b.Tier, o.Ref())+" in "+b)
	}
	for _, tier := range []*build.Followed{t.a, t.b} {
		if how := prunes(l.spec(tier.Tier)); how != "" {
			f.Causes = append(f.Causes, fmt.Sprintf("%s has %s", l.place(tier.Tier, tier.Tier), how))
		}
	}
	f.Causes = unique(f.Causes)
	f.Fix = fmt.Sprintf("Leave %s to one tier, on which the other one depends; or annotate %s in both with %s/prune: disabled.",
		verb(len(names), "it", "them"), verb(len(names), "it", "them"), flux.KustomizeGroup)
	return f
}
