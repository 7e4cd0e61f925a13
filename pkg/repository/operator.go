// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"path"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubestandup/kubestandup/pkg/build"
)

// operatorChart is the chart of flux-operator.
const operatorChart = "flux-operator"

// operator says where a FluxInstance is, where Flux is there because
// flux-operator made it: no FluxInstance makes the Flux that applies it. What
// `flux bootstrap` began may be given to flux-operator later, and is not.
func (c *Cluster) operator() *build.Position {
	if c.entry.operated {
		return &build.Position{File: c.entry.file}
	}
	if path.Base(c.entry.file) == "gotk-sync.yaml" {
		return nil
	}
	if instances := c.instances(); len(instances) > 0 {
		return &instances[0].Position
	}
	return nil
}

// looseInstance is true where a FluxInstance installs a kustomize-controller
// that makes variables empty that are not set.
func looseInstance(instances []*manifest) bool {
	return slices.ContainsFunc(instances, func(m *manifest) bool {
		version := m.text("spec", "distribution", "version")
		patches, _, _ := unstructured.NestedSlice(m.object.Object, "spec", "kustomize", "patches")
		return looseController(append([]string{"Flux Version: v" + version}, patchTexts(patches)...))
	})
}

// instances are the FluxInstances among the files that the tiers are built
// from, whether or not they build.
func (c *Cluster) instances() []*manifest {
	if len(c.repository.survey.instances) == 0 {
		return nil
	}
	read := map[string]bool{}
	for i := range c.Tiers {
		t := &c.Tiers[i]
		if t.Outside != nil {
			continue
		}
		text, _, _ := unstructured.NestedString(t.Kustomization.Object, "spec", "path")
		files, _ := c.repository.survey.tree.Reads(path.Join(c.base(t), build.InTree(text)))
		for _, file := range files {
			read[file] = true
		}
	}
	var all []*manifest
	for _, m := range c.repository.survey.instances {
		if read[m.File] {
			all = append(all, m)
		}
	}
	return all
}
