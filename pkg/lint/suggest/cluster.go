// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package suggest

import (
	"cmp"
	"maps"
	"slices"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/coldstart"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// cluster is one cluster as it will be. Keys are those of flux.Ref.Key. What
// its maps hold is replaced, and never changed in place: a step is undone by
// putting the maps back.
type cluster struct {
	Cluster
	edges   map[string][]string // dependsOn
	parents map[string][]string // the tiers that contain one
	specs   map[string]kustomizationSpec
	// made are the tiers that were added.
	made map[string]*made
	// homes are the tiers that objects have moved to, by their tier and name.
	homes map[home]flux.Ref
	// releases are the HelmReleases, by namespace/name; expected are the
	// expressions that were added to them.
	releases map[string]release
	expected map[string][]*yaml.Node
	// namespaces are those that were added, by the tier that creates them.
	namespaces map[string]flux.Ref
}

// kustomizationSpec is what gates are made of.
type kustomizationSpec = kustomizev1.KustomizationSpec

type made struct {
	ref  flux.Ref
	file string
	at   address
	defs []def
}

type home struct {
	tier   string
	object flux.Ref // without a version
}

type release struct {
	tier      string
	dependsOn []string
}

func newCluster(of Cluster) *cluster {
	c := &cluster{
		Cluster: of, edges: map[string][]string{}, parents: map[string][]string{}, specs: map[string]kustomizationSpec{},
		made: map[string]*made{}, homes: map[home]flux.Ref{}, releases: map[string]release{}, expected: map[string][]*yaml.Node{}, namespaces: map[string]flux.Ref{},
	}
	for _, t := range of.World.Tiers {
		key := t.Tier.Key()
		spec := specOf(t)
		c.specs[key] = spec
		for _, d := range spec.DependsOn {
			c.edges[key] = append(c.edges[key], dependency(t.Tier, d).Key())
		}
		for _, p := range t.Parents {
			c.parents[key] = append(c.parents[key], p.Key())
		}
		if t.Result == nil {
			continue
		}
		for _, o := range t.Result.Objects {
			if ref := o.Ref(); ref.Kind == flux.HelmReleaseKind && ref.Group() == flux.HelmGroup {
				c.releases[ref.Key()] = release{key, releaseEdges(o)}
			}
		}
	}
	return c
}

func releaseEdges(o build.Object) []string {
	var all []string
	edges, _, _ := unstructured.NestedSlice(o.Object, "spec", "dependsOn")
	for _, e := range edges {
		fields, _ := e.(map[string]any)
		name, _ := fields["name"].(string)
		namespace, _ := fields["namespace"].(string)
		all = append(all, cmp.Or(namespace, o.GetNamespace())+"/"+name)
	}
	return all
}

func (c *cluster) clone() cluster {
	copied := *c
	copied.edges, copied.parents, copied.specs = maps.Clone(c.edges), maps.Clone(c.parents), maps.Clone(c.specs)
	copied.made, copied.homes, copied.expected = maps.Clone(c.made), maps.Clone(c.homes), maps.Clone(c.expected)
	copied.namespaces = maps.Clone(c.namespaces)
	return copied
}

func (c *cluster) link(key, on string) { c.edges[key] = append(slices.Clip(c.edges[key]), on) }

func (c *cluster) followed(tier flux.Ref) *build.Followed { return c.byKey(tier.Key()) }

func (c *cluster) byKey(key string) *build.Followed {
	i := slices.IndexFunc(c.World.Tiers, func(f build.Followed) bool { return f.Tier.Key() == key })
	if i < 0 {
		return nil
	}
	return &c.World.Tiers[i]
}

func (c *cluster) has(key string) bool { return c.byKey(key) != nil || c.made[key] != nil }

func (c *cluster) outcome(tier flux.Ref) *coldstart.Outcome {
	if c.Prediction == nil {
		return nil
	}
	i := slices.IndexFunc(c.Prediction.Outcomes, func(o coldstart.Outcome) bool { return same(o.Tier, tier) })
	if i < 0 {
		return nil
	}
	return &c.Prediction.Outcomes[i]
}

// applies is true where the tier applies the object, as it will be.
func (c *cluster) applies(tier string, object flux.Ref) bool {
	f := c.byKey(tier)
	return f != nil && f.Result != nil && c.homes[home{tier, coldstart.Key(object)}].Name == "" &&
		slices.ContainsFunc(f.Result.Objects, func(o build.Object) bool { return same(o.Ref(), object) })
}

// tiers are the keys of all tiers, in the order of the cluster, new ones last.
func (c *cluster) tiers() []string {
	var all []string
	for _, t := range c.World.Tiers {
		all = append(all, t.Tier.Key())
	}
	return append(all, slices.Sorted(maps.Keys(c.made))...)
}

// ref is the tier of a key.
func (c *cluster) ref(key string) flux.Ref {
	if m := c.made[key]; m != nil {
		return m.ref
	}
	if f := c.byKey(key); f != nil {
		return f.Tier
	}
	return flux.Ref{}
}

// moment is a tier that starts, or that is Ready.
type moment struct {
	tier  string
	ready bool
}

// comesAfter is true where one moment cannot come before the other.
func (c *cluster) comesAfter(one, other moment) bool {
	seen := map[moment]bool{}
	for todo := []moment{one}; len(todo) > 0; todo = todo[1:] {
		m := todo[0]
		if seen[m] {
			continue
		}
		if seen[m] = true; m == other && m != one {
			return true
		}
		todo = append(todo, c.before(m)...)
	}
	return false
}

// before are the moments that have to come before one.
func (c *cluster) before(m moment) []moment {
	var all []moment
	if !m.ready {
		for _, on := range c.edges[m.tier] {
			all = append(all, moment{on, true})
		}
		for _, parent := range c.parents[m.tier] {
			if parent != m.tier {
				all = append(all, moment{parent, false})
			}
		}
		return all
	}
	all = append(all, moment{m.tier, false})
	spec := c.specs[m.tier]
	waits := func(kind, key string) bool {
		return spec.Wait || slices.ContainsFunc(spec.HealthChecks, func(h meta.NamespacedObjectKindReference) bool {
			return h.Kind == kind && h.Namespace+"/"+h.Name == key
		})
	}
	for _, child := range c.tiers() {
		if child != m.tier && slices.Contains(c.parents[child], m.tier) && waits(flux.KustomizationKind, child) {
			all = append(all, moment{child, true})
		}
	}
	for key, r := range c.releases {
		if r.tier == m.tier && waits(flux.HelmReleaseKind, key) {
			all = c.releaseBefore(all, r, map[string]bool{key: true})
		}
	}
	return all
}

// releaseBefore adds the tiers whose HelmReleases come before one.
func (c *cluster) releaseBefore(all []moment, of release, seen map[string]bool) []moment {
	for _, on := range of.dependsOn {
		if r, known := c.releases[on]; known && !seen[on] {
			seen[on] = true
			all = c.releaseBefore(append(all, moment{r.tier, false}), r, seen)
		}
	}
	return all
}

// waits is true where a tier does not start before the other one is Ready.
func (c *cluster) waits(tier, on string) bool {
	return c.comesAfter(moment{tier, false}, moment{on, true})
}

// closes is true where an edge from one tier to the other would close a loop.
func (c *cluster) closes(tier, on string) bool {
	return tier == on || c.comesAfter(moment{on, true}, moment{tier, false})
}

// holds counts the tiers that wait for the tier to be Ready, directly or not,
// and those that they contain.
func (c *cluster) holds(tier string) int {
	held := map[string]bool{}
	for grown := true; grown; {
		grown = false
		for _, next := range []map[string][]string{c.edges, c.parents} {
			for key, of := range next {
				reached := slices.ContainsFunc(of, func(k string) bool { return held[k] })
				// What the tier itself contains waits for its apply, not its Ready.
				if gated := slices.Contains(c.edges[key], tier); !held[key] && key != tier && (reached || gated) {
					held[key], grown = true, true
				}
			}
		}
	}
	return len(held)
}

// same compares references as Flux does: without their version.
func same(a, b flux.Ref) bool {
	return a.Kind == b.Kind && a.Namespace == b.Namespace && a.Name == b.Name && a.Group() == b.Group()
}

func specOf(t build.Followed) kustomizationSpec {
	var k kustomizev1.Kustomization
	if t.Kustomization != nil {
		// What does not decode stays empty: the build has said so.
		_ = runtime.DefaultUnstructuredConverter.FromUnstructured(t.Kustomization.Object, &k)
	}
	return k.Spec
}

func dependency(of flux.Ref, d kustomizev1.DependencyReference) flux.Ref {
	return flux.Ref{APIVersion: of.APIVersion, Kind: of.Kind, Namespace: cmp.Or(d.Namespace, of.Namespace), Name: d.Name}
}
