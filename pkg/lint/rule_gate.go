// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubestandup/kubestandup/pkg/coldstart"
	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/knowledge"
)

const crdVersion, crdKind = "apiextensions.k8s.io/v1", "CustomResourceDefinition"

// brought is what a provider brings of what a tier needs.
type brought struct {
	coldstart.Provider
	needs []coldstart.Need
}

// gate is what is missing so that the Ready of a tier proves providers done.
type gate struct {
	tier flux.Ref
	add  specYAML
	// releases are what HelmReleases need on top: their own Ready does not
	// prove that a trigger of the chart is reconciled.
	releases []flux.Ref
	exprs    map[flux.Ref][]exprYAML
	// definitions is true where CRDs are waited for, since no expression over
	// the trigger is known that proves it reconciled.
	definitions bool
	// unwaits is true where wait has to go for that.
	unwaits bool
}

// gateFor finds what to add to a tier, nothing where its Ready proves the
// providers done already.
func (l *look) gateFor(tier flux.Ref, all []brought) gate {
	g := gate{tier: tier, exprs: map[flux.Ref][]exprYAML{}}
	spec := l.spec(tier)
	var watch []flux.Ref // to be Current
	var definitions []flux.Ref
	for _, b := range all {
		ready := readyOf(b.Provider)
		switch {
		case coldstart.Key(b.Tier) != coldstart.Key(tier):
			watch = append(watch, b.Tier) // contained: its own gate is its own matter
		case b.How == coldstart.ByGit:
			// Ready comes after the last stage, whatever the gate.
		case b.How == coldstart.ByChart:
			watch = append(watch, b.About())
		case ready != nil && b.Release != nil:
			watch = append(watch, *b.Release)
			g.expectRelease(*b.Release, exprOf(groupKind(b.Object), ready))
		case ready != nil:
			watch = append(watch, b.Object)
			g.expect(spec, exprOf(groupKind(b.Object), ready))
		default:
			for _, n := range b.needs {
				definitions = append(definitions, flux.Ref{APIVersion: crdVersion, Kind: crdKind, Name: l.definition(b.Provider, n.Kind)})
			}
		}
	}
	g.watch(l, spec, watch, definitions)
	return g
}

func (g *gate) expect(spec kustomizev1.KustomizationSpec, e exprYAML) {
	for _, have := range spec.HealthCheckExprs {
		gv, _ := schema.ParseGroupVersion(have.APIVersion)
		want, _ := schema.ParseGroupVersion(e.APIVersion)
		if gv.Group == want.Group && (have.Kind == e.Kind || have.Kind == "") {
			return
		}
	}
	if !slices.Contains(g.add.HealthCheckExprs, e) {
		g.add.HealthCheckExprs = append(g.add.HealthCheckExprs, e)
	}
}

func (g *gate) expectRelease(r flux.Ref, e exprYAML) {
	if !slices.Contains(g.releases, r) {
		g.releases = append(g.releases, r)
	}
	if !slices.Contains(g.exprs[r], e) {
		g.exprs[r] = append(g.exprs[r], e)
	}
}

// watch adds the objects that the tier has to wait for, in the way that changes
// least: wait does it for what the tier applies, and healthChecks for anything,
// but the controller looks at healthChecks only where wait is not set.
func (g *gate) watch(l *look, spec kustomizev1.KustomizationSpec, objects, definitions []flux.Ref) {
	listed := func(r flux.Ref) bool {
		return slices.ContainsFunc(spec.HealthChecks, func(h checkRef) bool {
			return h.Kind == r.Kind && h.Name == r.Name && (h.Namespace == r.Namespace || h.Namespace == "" && r.Namespace == g.tier.Namespace)
		})
	}
	var lacking []flux.Ref
	for _, r := range append(slices.Clone(objects), definitions...) {
		if !slices.Contains(lacking, r) && (spec.Wait || !listed(r)) {
			lacking = append(lacking, r)
		}
	}
	switch {
	case len(lacking) == 0:
	case len(definitions) > 0:
		g.definitions, g.unwaits = true, spec.Wait
		if spec.Wait {
			g.add.Wait = new(bool)
		}
		g.add.check(lacking)
	case spec.Wait:
	case len(spec.HealthChecks) > 0 || l.containsTiers(g.tier):
		g.add.check(lacking)
	default:
		wait := true
		g.add.Wait = &wait
	}
}

// containsTiers is true where wait: true would also wait for Kustomizations.
func (l *look) containsTiers(tier flux.Ref) bool {
	n := l.Graph.Node(tier)
	if n == nil {
		return false
	}
	for _, c := range n.Contains {
		if isKustomization(c.Ref) {
			return true
		}
	}
	return false
}

// none is true where there is nothing to add.
func (g gate) none() bool {
	return g.add.Wait == nil && len(g.add.HealthChecks) == 0 && len(g.add.HealthCheckExprs) == 0 && len(g.releases) == 0
}

// text writes the gate out: whose manifest, and what to add there.
func (g gate) text(l *look) string {
	var parts []string
	if g.add.Wait != nil || len(g.add.HealthChecks) > 0 || len(g.add.HealthCheckExprs) > 0 {
		parts = append(parts, addTo(l, g.tier, g.add))
	}
	for _, r := range g.releases {
		parts = append(parts, addTo(l, r, specYAML{HealthCheckExprs: g.exprs[r]}))
	}
	if g.unwaits {
		parts = append(parts, fmt.Sprintf("(%s ignores healthChecks while wait is true: list there also what its wait was for.)", l.name(g.tier)))
	}
	return strings.Join(parts, "\n")
}

// addTo is a fix: to whose manifest, and what. Where a list is there already,
// it says that entries are added to it: a list that is written twice is no YAML,
// and one that is written anew loses what it had.
func addTo(l *look, object flux.Ref, spec specYAML) string {
	var lists []string
	have := l.lists(object)
	for _, list := range []struct {
		name string
		adds int
	}{{"dependsOn", len(spec.DependsOn)}, {"healthChecks", len(spec.HealthChecks)}, {"healthCheckExprs", len(spec.HealthCheckExprs)}} {
		if list.adds > 0 && have[list.name] {
			lists = append(lists, "spec."+list.name)
		}
	}
	how := ""
	if len(lists) > 0 {
		how = ", add to " + finding.And(lists)
	}
	return writeTo(l, object, how, spec)
}

// writeTo is addTo with words of its own.
func writeTo(l *look, object flux.Ref, how string, spec specYAML) string {
	where := object.String()
	if p := l.position(object, object); p.File != "" {
		where = fmt.Sprintf("%s (%s:%d)", object, p.File, p.Line)
	}
	return where + how + ":\n" + spec.text()
}

// lists are the lists in the spec of a Kustomization or a HelmRelease that have
// entries.
func (l *look) lists(object flux.Ref) map[string]bool {
	var manifest *unstructured.Unstructured
	if f := l.followed(object); f != nil && isKustomization(object) {
		manifest = f.Kustomization
	}
	for i := range l.World.Tiers {
		if !isRelease(object) {
			break
		}
		for _, o := range releases(&l.World.Tiers[i]) {
			if same(o.Ref(), object) {
				manifest = o.Unstructured
			}
		}
	}
	have := map[string]bool{}
	if manifest == nil {
		return have
	}
	for _, name := range []string{"dependsOn", "healthChecks", "healthCheckExprs"} {
		entries, _, _ := unstructured.NestedSlice(manifest.Object, "spec", name)
		have[name] = len(entries) > 0
	}
	return have
}

// readyOf is the expression that proves a trigger reconciled, nil for none
// known.
func readyOf(p coldstart.Provider) *knowledge.Ready {
	if p.How != coldstart.ByTrigger || p.Relation == nil {
		return nil
	}
	for _, t := range p.Relation.Triggers {
		if t.GroupKind() == groupKind(p.Object) {
			return t.Ready
		}
	}
	return nil
}

func exprOf(gk schema.GroupKind, r *knowledge.Ready) exprYAML {
	return exprYAML{APIVersion: r.APIVersion, Kind: gk.Kind, InProgress: r.InProgress, Failed: r.Failed, Current: r.Current}
}

// definition is the name of the CRD by which a provider brings a kind.
func (l *look) definition(p coldstart.Provider, gvk schema.GroupVersionKind) string {
	for _, o := range l.built(p) {
		if o.GetKind() == crdKind && crdOf(o, gvk.GroupKind()) {
			return o.GetName()
		}
	}
	if p.Relation != nil {
		kinds := p.Relation.Creates
		for _, o := range l.built(p) {
			if same(refOf(o), p.Object) {
				kinds, _ = p.Relation.Derived(o)
			}
		}
		for _, k := range kinds {
			if k.GroupKind() == gvk.GroupKind() && k.Plural != "" {
				return k.CRD()
			}
		}
	}
	plural, _ := meta.UnsafeGuessKindToResource(gvk)
	return plural.Resource + "." + gvk.Group
}

func crdOf(o *unstructured.Unstructured, gk schema.GroupKind) bool {
	return knowledge.DefinitionOf(o).Kind == gk
}

// built are the objects among which that of the provider is.
func (l *look) built(p coldstart.Provider) []*unstructured.Unstructured {
	var all []*unstructured.Unstructured
	for _, o := range l.objects(l.followed(p.Tier)) {
		all = append(all, o.Unstructured)
	}
	if isRelease(p.About()) {
		chart := l.World.Charts[coldstart.Key(p.About())]
		all = slices.Concat(all, chart.Definitions, chart.PreInstall, chart.Objects, chart.PostInstall)
	}
	return all
}
