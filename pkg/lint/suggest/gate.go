// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package suggest

import (
	"fmt"
	"slices"

	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/fluxcd/pkg/apis/meta"
	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/coldstart"
	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/knowledge"
)

// brought is one kind that a provider brings.
type brought struct {
	coldstart.Provider
	kind schema.GroupVersionKind
}

// gate is what a tier lacks so that its Ready proves its providers done.
type gate struct {
	exprs []*yaml.Node
	// checks are entries of healthChecks.
	checks []*yaml.Node
	wait   bool
	// releases are HelmReleases whose own Ready has to prove that a trigger of
	// their chart is reconciled.
	releases []releaseGate
	// proves says what, for people; sources are the objects that it is about.
	proves  []string
	sources []flux.Ref
}

type releaseGate struct {
	ref   flux.Ref
	exprs []*yaml.Node
}

func (g gate) empty() bool {
	return len(g.exprs) == 0 && len(g.checks) == 0 && !g.wait && len(g.releases) == 0
}

// Gate writes what the Ready of a tier lacks: the patch for HG001. It is a
// *Refusal where nothing can be written that is safe.
func (d *Draft) Gate(cluster int, tier flux.Ref) error {
	c := d.clusters[cluster]
	var all []brought
	if c.Prediction != nil {
		for _, o := range c.Prediction.Outcomes {
			for _, n := range o.Needs {
				i := slices.IndexFunc(n.Providers, func(p coldstart.Provider) bool {
					return p.Reach == coldstart.Hollow && same(p.GateTier(), tier)
				})
				if n.When == coldstart.Late && i >= 0 {
					all = append(all, brought{n.Providers[i], n.Kind})
				}
			}
		}
	}
	if len(all) == 0 {
		return refuse("the gate of %s is not hollow", tier.Name)
	}
	g, err := c.gateFor(tier, all)
	switch {
	case err != nil:
	case !g.empty():
		err = d.step(func() error { return d.writeGate(c, tier, g) })
	case !d.tree.changed():
		err = refuse("everything that %s can wait for is waited for already", tier.Name)
	}
	return byHand(err, "give %s healthCheckExprs, or healthChecks, that prove it", tier.Name)
}

// prove lets the Ready of a tier prove its providers done. Quietly, it says
// nothing where that does so already.
func (d *Draft) prove(c *cluster, tier flux.Ref, all []brought, quiet bool) error {
	g, err := c.gateFor(tier, all)
	switch {
	case err != nil:
		return err
	case g.empty():
		if !quiet {
			d.add(note{d.in(c) + fmt.Sprintf("Gate: the Ready of %s proves already that what is needed is there.", tier.Name), c, tier.Key()})
		}
		return nil
	}
	return d.step(func() error { return d.writeGate(c, tier, g) })
}

// gateFor finds what a tier lacks, nothing where its Ready proves it all.
func (c *cluster) gateFor(tier flux.Ref, all []brought) (gate, error) {
	followed := c.followed(tier)
	if followed == nil {
		return gate{}, refuse("%s is not a Kustomization of this cluster", tier)
	}
	return c.gateOn(tier, c.specs[tier.Key()], harmless(*followed), all)
}

// gateOn is gateFor for a spec. harmless is true where wait: true would wait for
// nothing that may not come.
func (c *cluster) gateOn(tier flux.Ref, spec kustomizationSpec, harmless bool, all []brought) (gate, error) {
	g := gate{}
	var watch []flux.Ref // what has to be healthy
	definitions := false
	for _, b := range all {
		expr := exprOf(b)
		var err error
		switch {
		case !same(b.Tier, tier):
			if c.comesAfter(moment{b.Tier.Key(), true}, moment{tier.Key(), true}) {
				err = refuse("%s itself waits for %s", b.Tier.Name, tier.Name)
			}
			watch = append(watch, b.Tier)
		case b.How == coldstart.ByGit && b.Release == nil:
			continue // Ready comes after the last stage
		case b.How == coldstart.ByChart || b.How == coldstart.ByGit:
			watch = append(watch, b.About())
		case expr != nil && b.Release != nil:
			watch = append(watch, *b.Release)
			if !c.expects(b.Tier, *b.Release, expr) {
				g.expectRelease(*b.Release, expr)
			}
		case expr != nil:
			watch = append(watch, b.Object)
			g.expect(spec.HealthCheckExprs, expr)
		default:
			var definition string
			definition, err = c.definition(b)
			definitions = true
			watch = append(watch, flux.Ref{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: definition})
		}
		if err != nil {
			return gate{}, err
		}
		source := b.Object
		switch {
		case !same(b.Tier, tier):
			source = b.Tier
		case b.Release != nil:
			source = *b.Release
		}
		g.sources = append(g.sources, source)
		if text := proof(b); !slices.Contains(g.proves, text) {
			g.proves = append(g.proves, text)
		}
	}
	var missing []flux.Ref
	for _, ref := range watch {
		listed := slices.ContainsFunc(spec.HealthChecks, func(h meta.NamespacedObjectKindReference) bool {
			return h.Kind == ref.Kind && h.Name == ref.Name && (h.Namespace == ref.Namespace || ref.Namespace == "")
		})
		if !spec.Wait && !listed && !slices.Contains(missing, ref) {
			missing = append(missing, ref)
		}
	}
	switch {
	case spec.Wait && definitions:
		refusal := refuse("no health check expression is known that proves %s reconciled, and %s ignores healthChecks while it has wait: true", triggers(all), tier.Name)
		refusal.ByHand = fmt.Sprintf("set wait: false in %s, and list in its healthChecks %s and whatever its wait was for", tier.Name, finding.Some(names(watch)))
		return gate{}, refusal
	case len(missing) == 0:
	case !definitions && harmless:
		g.wait = true
	default:
		for _, ref := range missing {
			g.checks = append(g.checks, mapping("apiVersion", ref.APIVersion, "kind", ref.Kind, "name", ref.Name, "namespace", ref.Namespace))
		}
	}
	return g, nil
}

// harmless is true where wait: true would wait for nothing that may not come.
func harmless(t build.Followed) bool {
	spec, _ := t.Kustomization.Object["spec"].(map[string]any)
	if _, said := spec["wait"]; said || spec["healthChecks"] != nil || t.Result == nil {
		return false
	}
	return !slices.ContainsFunc(t.Result.Objects, func(o build.Object) bool {
		switch gk := o.GroupVersionKind().GroupKind(); gk.Kind {
		case flux.KustomizationKind, "PersistentVolumeClaim", "Job", "Pod":
			return true
		}
		return false
	})
}

// exprOf is the expression that proves the trigger reconciled, nil where none
// is known.
func exprOf(b brought) *yaml.Node {
	if b.How != coldstart.ByTrigger || b.Relation == nil {
		return nil
	}
	gk := b.Object.GroupVersionKind().GroupKind()
	i := slices.IndexFunc(b.Relation.Triggers, func(t knowledge.Trigger) bool { return t.GroupKind() == gk && t.Ready != nil })
	if i < 0 {
		return nil
	}
	ready := b.Relation.Triggers[i].Ready
	return mapping("apiVersion", ready.APIVersion, "kind", gk.Kind, "inProgress", ready.InProgress, "failed", ready.Failed, "current", ready.Current)
}

func (g *gate) expect(have []kustomize.CustomHealthCheck, expr *yaml.Node) {
	group := func(apiVersion string) string { return schema.FromAPIVersionAndKind(apiVersion, "").Group }
	kind, of := scalar(field(expr, "kind")), group(scalar(field(expr, "apiVersion")))
	known := slices.ContainsFunc(have, func(h kustomize.CustomHealthCheck) bool {
		return group(h.APIVersion) == of && (h.Kind == kind || h.Kind == "")
	})
	if !known {
		g.exprs = added(g.exprs, expr)
	}
}

// expects is true where the HelmRelease has an expression of that kind.
func (c *cluster) expects(tier, release flux.Ref, expr *yaml.Node) bool {
	followed := c.followed(tier)
	kind := scalar(field(expr, "kind"))
	if slices.ContainsFunc(c.expected[release.Key()], func(e *yaml.Node) bool { return scalar(field(e, "kind")) == kind }) {
		return true
	}
	if followed == nil || followed.Result == nil {
		return false
	}
	return slices.ContainsFunc(followed.Result.Objects, func(o build.Object) bool {
		if !same(o.Ref(), release) {
			return false
		}
		exprs, _, _ := unstructured.NestedSlice(o.Object, "spec", "healthCheckExprs")
		return slices.ContainsFunc(exprs, func(e any) bool {
			fields, _ := e.(map[string]any)
			return fields["kind"] == kind
		})
	})
}

func (g *gate) expectRelease(ref flux.Ref, expr *yaml.Node) {
	i := slices.IndexFunc(g.releases, func(r releaseGate) bool { return r.ref == ref })
	if i < 0 {
		i = len(g.releases)
		g.releases = append(g.releases, releaseGate{ref: ref})
	}
	g.releases[i].exprs = added(g.releases[i].exprs, expr)
}

// added adds an expression of a kind that has none yet.
func added(all []*yaml.Node, expr *yaml.Node) []*yaml.Node {
	for _, e := range all {
		if scalar(field(e, "kind")) == scalar(field(expr, "kind")) && scalar(field(e, "apiVersion")) == scalar(field(expr, "apiVersion")) {
			return all
		}
	}
	return append(all, expr)
}

// definition is the name of the CRD that the provider makes. A guess would keep
// the tier from ever being Ready.
func (c *cluster) definition(b brought) (string, error) {
	if b.Relation != nil {
		kinds := b.Relation.Creates
		if t := c.followed(b.Tier); t != nil && t.Result != nil {
			for _, o := range t.Result.Objects {
				if same(o.Ref(), b.Object) {
					kinds, _ = b.Relation.Derived(o.Unstructured)
				}
			}
		}
		for _, k := range kinds {
			if k.GroupKind() == b.kind.GroupKind() && k.Plural != "" {
				return k.CRD(), nil
			}
		}
	}
	return "", refuse("it is not known what the CRD of %s is called", b.kind.GroupKind())
}

func proof(b brought) string {
	switch b.How {
	case coldstart.ByTrigger:
		return fmt.Sprintf("%s is reconciled", b.Object)
	case coldstart.ByStart:
		return fmt.Sprintf("%s has registered %s", b.Relation.System, b.kind.Kind)
	}
	return fmt.Sprintf("%s is installed", b.About())
}

func triggers(all []brought) string {
	var objects []string
	for _, b := range all {
		if text := b.Object.String(); exprOf(b) == nil && !slices.Contains(objects, text) {
			objects = append(objects, text)
		}
	}
	return finding.Some(objects)
}
