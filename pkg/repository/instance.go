// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// instanceChart is the chart that makes a FluxInstance of its values.
const instanceChart = "flux-instance"

// instanceEntries are the entry points that flux-operator makes: of each
// FluxInstance with a sync, and of each HelmRelease of the chart that makes one.
func (s *survey) instanceEntries() []*entry {
	var all []*entry
	for _, m := range s.instances {
		spec, _, _ := unstructured.NestedMap(m.object.Object, "spec")
		all = append(all, instanceEntry(m, m.object.GetNamespace(), spec)...)
	}
	for _, m := range s.releases {
		if !s.isInstanceChart(m) {
			continue
		}
		namespace := cmp.Or(m.text("spec", "targetNamespace"), m.object.GetNamespace())
		instance, found, _ := unstructured.NestedMap(m.object.Object, "spec", "values", "instance")
		if sync, _ := instance["sync"].(map[string]any); !found || sync == nil {
			instance = s.instanceValues(m)
		}
		all = append(all, instanceEntry(m, namespace, instance)...)
	}
	return all
}

func (s *survey) isInstanceChart(release *manifest) bool { return s.chartOf(release) == instanceChart }

// instanceValues are the values that stand in a file beside the HelmRelease,
// where it reads them from a ConfigMap that is generated of that file.
func (s *survey) instanceValues(release *manifest) map[string]any {
	var only map[string]any
	for file, values := range s.values {
		if !inside(folderOf(release.File), file) {
			continue
		}
		if only != nil {
			return nil // which of them it is nobody can tell
		}
		only, _ = values["instance"].(map[string]any)
	}
	return only
}

// instanceEntry is what flux-operator makes of a FluxInstance's spec
// (internal/controller/fluxinstance_controller.go build and
// internal/builder/templates.go syncTmpl): a source and a Kustomization, with
// the patches of the instance applied to both.
func instanceEntry(m *manifest, namespace string, spec map[string]any) []*entry {
	sync, _ := spec["sync"].(map[string]any)
	text := func(field string) string { value, _ := sync[field].(string); return value }
	kind, folder := text("kind"), text("path")
	if kind == "" || folder == "" || strings.Contains(folder, "$") {
		return nil
	}
	namespace = cmp.Or(namespace, "flux-system")
	name := cmp.Or(text("name"), namespace)
	source := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": flux.SourceGroup + "/v1", "kind": kind,
		"metadata": map[string]any{"name": name, "namespace": namespace},
		"spec":     map[string]any{"interval": cmp.Or(text("interval"), "1m"), "url": text("url")},
	}}
	tier := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": flux.KustomizeGroup + "/v1", "kind": flux.KustomizationKind,
		"metadata": map[string]any{"name": name, "namespace": namespace},
		"spec": map[string]any{
			"interval": "10m0s", "path": folder, "prune": true,
			"sourceRef": map[string]any{"kind": kind, "name": name},
		},
	}}
	e := &entry{
		name: build.InTree(folder), file: m.File, operated: true,
		roots:   []*manifest{{Position: m.Position, object: tier}},
		sources: []*manifest{{Position: m.Position, object: source}},
	}
	patches, _, _ := unstructured.NestedSlice(spec, "kustomize", "patches")
	version, _, _ := unstructured.NestedString(spec, "distribution", "version")
	e.loose = looseController(append([]string{"Flux Version: v" + version}, patchTexts(patches)...))
	patched, err := build.Patch([]*unstructured.Unstructured{source, tier}, relevant(patches))
	if err != nil {
		e.failure = fmt.Errorf("%s: spec.kustomize.patches of %s: %w", m.File, m.ref(), err)
		return []*entry{e}
	}
	for _, o := range patched {
		if o.GetKind() == flux.KustomizationKind {
			e.roots[0].object = o
		} else {
			e.sources[0].object = o
		}
	}
	return []*entry{e}
}

// relevant are the patches that may touch a source or a Kustomization; the
// others are for the controllers, which are not built here.
func relevant(patches []any) []any {
	var all []any
	for _, patch := range patches {
		fields, _ := patch.(map[string]any)
		target, selects := fields["target"].(map[string]any)
		kind, _ := target["kind"].(string)
		text, _ := fields["patch"].(string)
		switch kind {
		case flux.KustomizationKind, "GitRepository", "OCIRepository", "Bucket", "":
			if selects || strings.Contains(text, "kind: "+flux.KustomizationKind) {
				all = append(all, patch)
			}
		}
	}
	return all
}

func patchTexts(patches []any) []string {
	var all []string
	for _, patch := range patches {
		fields, _ := patch.(map[string]any)
		text, _ := fields["patch"].(string)
		all = append(all, text)
	}
	return all
}
