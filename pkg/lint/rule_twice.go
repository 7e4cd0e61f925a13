// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"

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

// shared are the objects that the same tiers build, two or more of them.
type shared struct {
	tiers   []*build.Followed
	objects []build.Object
}

// twice finds what more than one tier builds, one entry for each set of tiers,
// in the order in which the objects are met.
func (l *look) twice() []*shared {
	type id struct {
		schema.GroupKind
		namespace, name string
	}
	builds := map[id]*shared{}
	var order []*shared
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
			one := builds[key]
			if one == nil {
				one = &shared{objects: []build.Object{o}}
				builds[key] = one
				order = append(order, one)
			}
			if !slices.Contains(one.tiers, f) {
				one.tiers = append(one.tiers, f)
			}
		}
	}
	sets := map[string]*shared{}
	var all []*shared
	for _, one := range order {
		if len(one.tiers) < 2 || !slices.ContainsFunc(one.tiers, func(f *build.Followed) bool { return prunes(l.spec(f.Tier)) != "" }) {
			continue
		}
		set := ""
		for _, f := range one.tiers {
			set += f.Tier.Key() + " "
		}
		if sets[set] == nil {
			sets[set] = &shared{tiers: one.tiers}
			all = append(all, sets[set])
		}
		sets[set].objects = append(sets[set].objects, one.objects...)
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
	names, by := make([]string, 0, len(t.objects)), make([]string, 0, len(t.tiers))
	for _, o := range t.objects {
		names = append(names, o.Ref().String())
	}
	for _, f := range t.tiers {
		by = append(by, l.name(f.Tier))
	}
	both, other := finding.Verb(len(by)-1, "both", "all"), finding.Verb(len(by)-1, "the other one still wants", "the others still want")
	it := finding.Verb(len(names), "it", "them")
	message := fmt.Sprintf("%s %s build %s: each apply takes %s over, and the one that stops building %s deletes what %s",
		finding.Some(by), both, finding.Some(names), it, it, other)
	if isKustomization(t.objects[0].Ref()) {
		message = fmt.Sprintf("%s %s apply %s: each apply takes it over, and the one that stops applying it deletes the tier with all that it applied",
			finding.Some(by), both, finding.Some(names))
	}
	f := l.report("DG007", finding.Warning, t.tiers[1].Tier, t.objects[0].Ref(), message)
	f.Causes = l.twiceCauses(t, by)
	f.Fix = fmt.Sprintf("Leave %s to one tier, on which the %s; or annotate %s in %s with %s/prune: disabled.",
		it, finding.Verb(len(by)-1, "other one depends", "others depend"), it, both, flux.KustomizeGroup)
	return f
}

// twiceCauses say where each object is, in each tier, and which of them prune.
func (l *look) twiceCauses(t *shared, by []string) []string {
	const enough = 4
	var causes []string
	for i, o := range t.objects {
		if i == enough {
			causes = append(causes, fmt.Sprintf("and %s more", finding.Count(len(t.objects)-enough, "object")))
			break
		}
		for j, f := range t.tiers {
			if j == enough {
				causes = append(causes, fmt.Sprintf("and in %s more", finding.Count(len(t.tiers)-enough, "tier")))
				break
			}
			causes = append(causes, l.place(f.Tier, o.Ref())+" in "+by[j])
		}
	}
	for i, f := range t.tiers {
		if how := prunes(l.spec(f.Tier)); how != "" && i < enough {
			causes = append(causes, fmt.Sprintf("%s has %s", l.place(f.Tier, f.Tier), how))
		}
	}
	return unique(causes)
}
