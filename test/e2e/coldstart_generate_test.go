// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package e2e

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/kubestandup/kubestandup/test/cluster"
)

// generator makes a repository of a seed: a graph of tiers, and over it, at
// random, CRDs, charts, resources and everything that makes a cold start fail.
type generator struct {
	*rand.Rand
	tiers    []*genTier
	kinds    []genKind
	releases []string
	spaces   []string
	files    cluster.Files
	// broken repositories hold a tier that does not build. What it would apply
	// is then not known, so that in them nothing else may be in want.
	broken bool
}

type genTier struct {
	name   string
	parent int // -1 for the root
	folder string
	docs   []string
	// releases are HelmReleases among the docs, as entries of healthChecks.
	releases []string
}

type genKind struct {
	group, kind, plural string
	namespaced          bool
	// from is the first tier that brings it, and 0 where none does.
	from int
}

// generate makes the repository of a seed.
func generate(seed uint64) cluster.Files {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 5)), files: cluster.Files{}}
	g.broken = g.chance(15)
	n := 4 + g.IntN(3)
	for i := range n {
		tier := &genTier{name: fmt.Sprintf("t%d", i), parent: -1, folder: fmt.Sprintf("tiers/t%d", i)}
		if i > 0 && g.chance(25) {
			tier.parent = g.IntN(i)
		}
		tier.docs = append(tier.docs, object("v1", "ConfigMap", "flux-system", tier.name))
		g.tiers = append(g.tiers, tier)
	}
	g.makeNamespaces()
	g.makeKinds()
	g.makeReleases()
	g.makeResources()
	g.write()
	return g.files
}

// chance is true so many times of a hundred.
func (g *generator) chance(percent int) bool { return g.IntN(100) < percent }

func (g *generator) any() int { return g.IntN(len(g.tiers)) }

// early is one of the first tiers, later one behind another, as people order
// them, most times.
func (g *generator) early() int { return g.IntN((len(g.tiers) + 1) / 2) }

func (g *generator) later(than int) int {
	switch {
	case g.chance(6):
		return g.any()
	case g.chance(5) || than == len(g.tiers)-1:
		return than
	}
	return than + 1 + g.IntN(len(g.tiers)-than-1)
}

func (g *generator) put(tier int, doc string) {
	g.tiers[tier].docs = append(g.tiers[tier].docs, doc)
}

func object(apiVersion, kind, namespace, name string, more ...string) string {
	meta := "name: " + name
	if namespace != "" {
		meta += ", namespace: " + namespace
	}
	return fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {%s}\n%s", apiVersion, kind, meta, strings.Join(more, ""))
}

func (g *generator) makeNamespaces() {
	g.spaces = []string{"flux-system", "flux-system", "flux-system"}
	for _, ns := range []string{"x-a", "x-b"} {
		g.spaces = append(g.spaces, ns)
		switch {
		case g.chance(45) || g.broken:
			g.put(0, object("v1", "Namespace", "", ns))
		case g.chance(90):
			g.put(g.early(), object("v1", "Namespace", "", ns))
		}
	}
}

func (g *generator) space() string { return g.spaces[g.IntN(len(g.spaces))] }

// makeKinds decides who registers which kind: a tier, the crds/ folder of a
// chart, a chart's template, several, nobody, or somebody in another version.
func (g *generator) makeKinds() {
	for i := range 2 + g.IntN(3) {
		k := genKind{group: fmt.Sprintf("g%d.example.com", i), kind: fmt.Sprintf("Thing%d", i), namespaced: g.chance(60)}
		if g.chance(20) {
			k.kind += "Class"
		}
		k.plural = strings.ToLower(k.kind) + "s"
		if strings.HasSuffix(k.kind, "Class") {
			k.plural = strings.ToLower(k.kind) + "es"
		}
		version := "v1"
		if g.chance(4) && !g.broken {
			version = "v1beta1"
		}
		if g.broken || !g.chance(4) {
			k.from = g.early()
			g.register(k, k.from, version)
			if g.chance(10) {
				g.register(k, g.any(), version)
			}
		}
		g.kinds = append(g.kinds, k)
	}
}

func (g *generator) register(k genKind, tier int, version string) {
	definition := k.definition(version)
	if g.chance(40) {
		g.put(tier, definition)
		return
	}
	folder := "crds"
	if g.chance(30) {
		folder = "templates"
	}
	chart := g.release(tier)
	g.files["charts/"+chart+"/"+folder+"/"+k.plural+".yaml"] = definition
	if g.chance(8) && !g.broken { // and a resource of its own kind, which templates/ forbids
		g.files["charts/"+chart+"/templates/own.yaml"] = k.resource("own", "{{ .Release.Namespace }}", version)
	}
}

func (k genKind) definition(version string) string {
	scope := "Cluster"
	if k.namespaced {
		scope = "Namespaced"
	}
	return object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", k.plural+"."+k.group, fmt.Sprintf(`spec:
  group: %s
  scope: %s
  names: {kind: %s, plural: %s}
  versions:
  - name: %s
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`, k.group, scope, k.kind, k.plural, version))
}

func (k genKind) resource(name, namespace, version string) string {
	if !k.namespaced {
		namespace = ""
		name = strings.ReplaceAll(name, "/", "-")
	}
	return object(k.group+"/"+version, k.kind, namespace, name)
}

// release makes a HelmRelease in a tier, with a chart that has a ConfigMap.
func (g *generator) release(tier int) string {
	name := fmt.Sprintf("r%d", len(g.releases))
	ns := "flux-system"
	if g.chance(25) {
		ns = g.space()
	}
	spec := fmt.Sprintf("spec:\n  interval: 1h\n  chart: {spec: {chart: charts/%s, sourceRef: {kind: GitRepository, name: flux-system, namespace: flux-system}}}\n", name)
	if g.chance(6) && !g.broken {
		spec += "  install: {crds: Skip}\n"
	}
	if len(g.releases) > 0 && g.chance(35) {
		of := strings.Split(g.releases[g.IntN(len(g.releases))], "/")
		spec += fmt.Sprintf("  dependsOn: [{name: %s, namespace: %s}]\n", of[1], of[0])
	} else if g.chance(2) && !g.broken {
		spec += "  dependsOn: [{name: nobody}]\n"
	}
	if g.chance(12) {
		spec += fmt.Sprintf("  valuesFrom: [{kind: ConfigMap, name: %s-values}]\n", name)
		values := object("v1", "ConfigMap", ns, name+"-values", "data: {values.yaml: 'a: b'}\n")
		if g.chance(80) || ns != "flux-system" {
			g.put(g.any(), values)
		} else {
			g.files[byHand] = values // what no tier makes is taken to be there
		}
	}
	g.put(tier, object("helm.toolkit.fluxcd.io/v2", "HelmRelease", ns, name, spec))
	g.tiers[tier].releases = append(g.tiers[tier].releases, fmt.Sprintf("{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, name: %s, namespace: %s}", name, ns))
	g.releases = append(g.releases, ns+"/"+name)
	g.files["charts/"+name+"/Chart.yaml"] = "apiVersion: v2\nname: " + name + "\nversion: 0.1.0\n"
	g.files["charts/"+name+"/templates/cm.yaml"] = object("v1", "ConfigMap", "{{ .Release.Namespace }}", name)
	return name
}

// makeReleases adds charts that need a kind, and such that need none.
func (g *generator) makeReleases() {
	for range g.IntN(3) {
		k := g.kinds[g.IntN(len(g.kinds))]
		name := g.release(g.later(k.from))
		if g.chance(60) {
			g.files["charts/"+name+"/templates/uses.yaml"] = k.resource(name, "{{ .Release.Namespace }}", "v1")
		}
	}
}

// makeResources places what needs the kinds and the namespaces.
func (g *generator) makeResources() {
	for _, k := range g.kinds {
		for i := range 1 + g.IntN(2) {
			tier := g.later(k.from)
			text := k.resource(fmt.Sprintf("%s-%d", g.tiers[tier].name, i), g.space(), "v1")
			if g.chance(8) {
				text = g.leftAlone(k, text)
			}
			g.put(tier, text)
		}
	}
	for range g.IntN(3) {
		g.put(g.any(), object("v1", "ConfigMap", g.space(), "extra"))
	}
}

// leftAlone tells Flux not to apply the object. Not one of a class: it is waited
// for all the same, as is all of its stage (fluxcd/pkg/ssa manager_apply.go
// ApplyAllStaged), which predictions do not know.
func (g *generator) leftAlone(k genKind, text string) string {
	by := []string{"ssa: Ignore", "reconcile: disabled"}[g.IntN(2)]
	if strings.HasSuffix(k.kind, "Class") {
		return text
	}
	return strings.Replace(text, "metadata: {", "metadata: {annotations: {kustomize.toolkit.fluxcd.io/"+by+"}, ", 1)
}
