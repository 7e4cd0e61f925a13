// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package knowledge

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Definition is what a CustomResourceDefinition defines.
type Definition struct {
	Kind schema.GroupKind
	// Versions are those that are served.
	Versions []string
	Scope    Scope
}

// DefinitionOf reads a CustomResourceDefinition. What it does not say is empty.
func DefinitionOf(crd *unstructured.Unstructured) Definition {
	var d Definition
	d.Kind.Group, _, _ = unstructured.NestedString(crd.Object, "spec", "group")
	d.Kind.Kind, _, _ = unstructured.NestedString(crd.Object, "spec", "names", "kind")
	scope, _, _ := unstructured.NestedString(crd.Object, "spec", "scope")
	d.Scope = Scope(scope)
	list, _, _ := unstructured.NestedFieldNoCopy(crd.Object, "spec", "versions")
	versions, _ := list.([]any)
	for _, v := range versions {
		version, _ := v.(map[string]any)
		name, _ := version["name"].(string)
		if served, _ := version["served"].(bool); served {
			d.Versions = append(d.Versions, name)
		}
	}
	return d
}

// Kinds are the kinds that are served, one for each version.
func (d Definition) Kinds() []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	for _, version := range d.Versions {
		kinds = append(kinds, d.Kind.WithVersion(version))
	}
	return kinds
}
