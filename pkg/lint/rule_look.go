// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"cmp"
	"fmt"
	"slices"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/coldstart"
	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/tiers"
)

// look is a subject with what the rules ask of it again and again.
type look struct {
	*Subject
	at       map[flux.Ref]int
	outcomes map[flux.Ref]*coldstart.Outcome
	// named counts the tiers of a name, whatever their namespace.
	named map[string]int
	// followers are the tiers that come after each, by an edge or by containment;
	// nil until somebody asks.
	followers map[flux.Ref][]flux.Ref
}

func newLook(s *Subject) *look {
	l := &look{Subject: s, at: map[flux.Ref]int{}, outcomes: map[flux.Ref]*coldstart.Outcome{}, named: map[string]int{}}
	for i, t := range s.World.Tiers {
		l.at[coldstart.Key(t.Tier)] = i
		l.named[t.Tier.Name]++
	}
	if s.Prediction != nil {
		for i := range s.Prediction.Outcomes {
			o := &s.Prediction.Outcomes[i]
			l.outcomes[coldstart.Key(o.Tier)] = o
		}
	}
	return l
}

// followed is a Kustomization with what it applies, nil for what is none.
func (l *look) followed(tier flux.Ref) *build.Followed {
	if i, ok := l.at[coldstart.Key(tier)]; ok {
		return &l.World.Tiers[i]
	}
	return nil
}

func (l *look) outcome(tier flux.Ref) *coldstart.Outcome { return l.outcomes[coldstart.Key(tier)] }

// objects are what the tier applies; what the controller is told to leave alone
// is not among them.
func (l *look) objects(f *build.Followed) []build.Object {
	if f == nil || f.Result == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(f.Result.Objects), func(o build.Object) bool { return o.Ignored })
}

// spec is what git says of a Kustomization, the zero value where that does not
// decode: the API server refuses it, and the build has said so.
func (l *look) spec(tier flux.Ref) kustomizev1.KustomizationSpec {
	var k kustomizev1.Kustomization
	if f := l.followed(tier); f != nil && f.Kustomization != nil {
		_ = runtime.DefaultUnstructuredConverter.FromUnstructured(f.Kustomization.Object, &k)
	}
	return k.Spec
}

// name is how the tier is named in a sentence: without its namespace, where
// that is clear.
func (l *look) name(tier flux.Ref) string {
	if tier.Kind == flux.HelmReleaseKind {
		return tier.String()
	}
	if l.named[tier.Name] > 1 || l.followed(tier) == nil {
		return tier.Key()
	}
	return tier.Name
}

func (l *look) names(all []flux.Ref) []string {
	var names []string
	for _, t := range all {
		names = append(names, l.name(t))
	}
	return names
}

// below is the number of Kustomizations that cannot come up before this tier:
// those behind it and those in it. Its HelmReleases are not counted: they are
// what it is made of.
func (l *look) below(tier flux.Ref) int {
	if l.followers == nil {
		l.followers = map[flux.Ref][]flux.Ref{}
		for _, n := range l.Graph.Tiers() {
			for _, d := range n.DependsOn {
				l.followers[coldstart.Key(d.Ref)] = append(l.followers[coldstart.Key(d.Ref)], coldstart.Key(n.Ref))
			}
			if n.ContainedBy != nil {
				l.followers[coldstart.Key(n.ContainedBy.Ref)] = append(l.followers[coldstart.Key(n.ContainedBy.Ref)], coldstart.Key(n.Ref))
			}
		}
	}
	seen := map[flux.Ref]bool{coldstart.Key(tier): true}
	count := 0
	for todo := []flux.Ref{coldstart.Key(tier)}; len(todo) > 0; todo = todo[1:] {
		for _, next := range l.followers[todo[0]] {
			if seen[next] {
				continue
			}
			seen[next] = true
			todo = append(todo, next)
			if next.Kind == flux.KustomizationKind {
				count++
			}
		}
	}
	return count
}

// dependants are the tiers that wait for this one to be Ready, by an edge.
func (l *look) dependants(tier flux.Ref) []*tiers.Node {
	var all []*tiers.Node
	for _, n := range l.Graph.Tiers() {
		for _, d := range n.DependsOn {
			if coldstart.Key(d.Ref) == coldstart.Key(tier) {
				all = append(all, n)
				break
			}
		}
	}
	return all
}

// holder is the Kustomization that applies an object: for a Kustomization that
// nothing applies, the zero Ref, which Locate takes for the roots'.
func (l *look) holder(object flux.Ref) flux.Ref {
	if f := l.followed(object); f != nil && object.Kind == flux.KustomizationKind {
		for _, p := range f.Parents {
			if coldstart.Key(p) != coldstart.Key(object) {
				return p
			}
		}
		return flux.Ref{}
	}
	if n := l.Graph.Node(object); n != nil && n.ContainedBy != nil {
		return n.ContainedBy.Ref
	}
	return flux.Ref{}
}

// position is where the object of a tier is written; a tier's own manifest is
// asked for as an object of itself.
func (l *look) position(tier, object flux.Ref) build.Position {
	if l.Locate == nil {
		return build.Position{}
	}
	if coldstart.Key(tier) == coldstart.Key(object) {
		tier = l.holder(object)
	}
	return l.Locate(tier, object)
}

// place names an object and where it is written: CDI/cdi (config/cdi.yaml:3).
func (l *look) place(tier, object flux.Ref) string {
	if p := l.position(tier, object); p.File != "" {
		return fmt.Sprintf("%s (%s:%d)", object, p.File, p.Line)
	}
	return object.String()
}

// report makes a finding about an object of a tier.
func (l *look) report(rule string, severity finding.Severity, tier, object flux.Ref, message string) finding.Finding {
	if isRelease(tier) {
		// A tier of the graph, but what is suppressed, and counted, is the
		// Kustomization that applies it.
		tier = l.holder(tier)
	}
	f := finding.Finding{Rule: rule, Severity: severity, Message: message, Tier: &tier, Object: &object}
	if p := l.position(tier, object); p.File != "" {
		f.File, f.Line = p.File, p.Line
	}
	return f
}

// refOf names an object that is no build's.
func refOf(o *unstructured.Unstructured) flux.Ref { return build.Object{Unstructured: o}.Ref() }

// made are the objects that the chart of a release makes, without their versions.
func made(release flux.Ref, chart coldstart.Chart) []flux.Ref {
	var all []flux.Ref
	for _, o := range slices.Concat(chart.PreInstall, chart.Objects, chart.PostInstall) {
		ref := coldstart.Key(refOf(o))
		ref.Namespace = cmp.Or(ref.Namespace, release.Namespace)
		all = append(all, ref)
	}
	return all
}

// isResourceSet is true of what Flux Operator makes other objects of.
func isResourceSet(o build.Object) bool {
	return o.GetKind() == "ResourceSet" && o.GroupVersionKind().Group == "fluxcd.controlplane.io"
}

func groupKind(r flux.Ref) schema.GroupKind { return r.GroupVersionKind().GroupKind() }

func isKustomization(r flux.Ref) bool {
	return r.Kind == flux.KustomizationKind && (r.APIVersion == "" || r.Group() == flux.KustomizeGroup)
}

func isRelease(r flux.Ref) bool {
	return r.Kind == flux.HelmReleaseKind && (r.APIVersion == "" || r.Group() == flux.HelmGroup)
}

// same compares references as Flux does, without their version.
func same(a, b flux.Ref) bool {
	return a.Kind == b.Kind && a.Namespace == b.Namespace && a.Name == b.Name && groupKind(a) == groupKind(b)
}
