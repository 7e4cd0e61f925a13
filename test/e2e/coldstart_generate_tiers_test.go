// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// write renders the tiers, each where its parent finds it.
func (g *generator) write() {
	g.files[gotkSync] = `apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: flux-system, namespace: flux-system}
spec: {interval: 1h, url: https://git.example.com/test, ref: {branch: main}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: flux-system, namespace: flux-system}
spec:
  interval: 1h
  retryInterval: 5s
  path: ./clusters/test
  prune: true
  sourceRef: {kind: GitRepository, name: flux-system}
`
	for i, tier := range g.tiers {
		file := "clusters/test/" + tier.name + ".yaml"
		if tier.parent >= 0 {
			file = g.tiers[tier.parent].folder + "/" + tier.name + "-tier.yaml"
		}
		g.files[file] = g.kustomization(i)
	}
	for _, tier := range g.tiers {
		for i, doc := range tier.docs {
			g.files[fmt.Sprintf("%s/%d.yaml", tier.folder, i)] = doc
		}
	}
	if g.broken { // a file that nobody wrote
		tier := g.tiers[len(g.tiers)-1]
		g.files[tier.folder+"/kustomization.yaml"] = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [0.yaml, gone.yaml]\n"
	}
}

func (g *generator) kustomization(i int) string {
	tier := g.tiers[i]
	spec := []string{
		"interval: 1h", "retryInterval: 5s", "timeout: 30s", "path: ./" + tier.folder, "prune: true",
		"sourceRef: {kind: GitRepository, name: flux-system}",
	}
	if deps := g.dependencies(i); len(deps) > 0 {
		spec = append(spec, "dependsOn: ["+strings.Join(deps, ", ")+"]")
	}
	wait := g.chance(30)
	if wait {
		spec = append(spec, "wait: true")
	}
	if checks := g.checks(tier); len(checks) > 0 && (!wait && g.chance(35) || g.chance(6)) {
		spec = append(spec, "healthChecks: ["+strings.Join(checks, ", ")+"]")
	}
	if g.chance(2) {
		spec = append(spec, "suspend: true")
	}
	if g.chance(12) {
		spec = append(spec, g.variables(i))
	}
	return fmt.Sprintf("apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: %s, namespace: flux-system}\nspec:\n  %s\n",
		tier.name, strings.Join(spec, "\n  "))
}

// dependencies are on tiers before this one, rarely on one behind it, on itself
// or on one that there is not, and then there is a cycle, perhaps.
func (g *generator) dependencies(i int) []string {
	var deps []string
	for j := range i {
		if g.chance(16) {
			deps = append(deps, "{name: "+g.tiers[j].name+"}")
		}
	}
	if g.chance(2) {
		deps = append(deps, "{name: "+g.tiers[g.any()].name+"}")
	}
	if g.chance(1) {
		deps = append(deps, "{name: nobody}")
	}
	slices.Sort(deps)
	return slices.Compact(deps)
}

// checks are what the tier can wait for: its releases, and a kind.
func (g *generator) checks(tier *genTier) []string {
	checks := slices.Clone(tier.releases)
	if g.chance(20) {
		k := g.kinds[g.IntN(len(g.kinds))]
		checks = append(checks, "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, name: "+k.plural+"."+k.group+"}")
	}
	return checks
}

// variables let the tier take some from a ConfigMap that another one makes.
func (g *generator) variables(i int) string {
	name := g.tiers[i].name + "-vars"
	optional := ""
	if g.chance(20) {
		optional = ", optional: true"
	}
	g.put(g.any(), object("v1", "ConfigMap", "flux-system", name, "data: {WORD: hello}\n"))
	g.put(i, object("v1", "ConfigMap", "flux-system", g.tiers[i].name+"-says", "data: {word: \"${WORD:=none}\"}\n"))
	return "postBuild: {substituteFrom: [{kind: ConfigMap, name: " + name + optional + "}]}"
}

// coldSeeds are the generated repositories.
func coldSeeds(t *testing.T, url func(id string) string) []*coldRepo {
	t.Helper()
	if someFixtures() {
		return nil
	}
	var repos []*coldRepo
	for seed := uint64(2); seed < 2+coldGenerated; seed++ {
		id := fmt.Sprintf("g%02d", seed)
		repos = append(repos, newColdRepo(id, fmt.Sprintf("seed %d", seed), url(id), generate(seed)))
	}
	return repos
}
