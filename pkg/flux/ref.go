// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package flux

import (
	"cmp"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kinds of the objects that the project reasons about.
const (
	KustomizationKind = "Kustomization"
	HelmReleaseKind   = "HelmRelease"
)

// API groups of Flux. The version is discovered, never assumed.
const (
	KustomizeGroup = "kustomize.toolkit.fluxcd.io"
	HelmGroup      = "helm.toolkit.fluxcd.io"
	SourceGroup    = "source.toolkit.fluxcd.io"
)

// Ref names one object of a cluster. It is comparable, so it can key a map,
// and it is the `object` of every report.
type Ref struct {
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
}

// Group is the API group of the object, empty for the core group.
func (r Ref) Group() string { return r.GroupVersionKind().Group }

// GroupVersionKind is the parsed form of APIVersion and Kind.
func (r Ref) GroupVersionKind() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(r.APIVersion, r.Kind)
}

// String is how the object is named in a sentence: Kind/namespace/name.
func (r Ref) String() string {
	if r.Namespace == "" {
		return r.Kind + "/" + r.Name
	}
	return r.Kind + "/" + r.Namespace + "/" + r.Name
}

// Key is namespace/name, as Flux names a dependency in its messages.
func (r Ref) Key() string {
	if r.Namespace == "" {
		return r.Name
	}
	return r.Namespace + "/" + r.Name
}

// Compare orders refs by namespace, name, kind and API version.
func (r Ref) Compare(o Ref) int {
	return cmp.Or(
		strings.Compare(r.Namespace, o.Namespace),
		strings.Compare(r.Name, o.Name),
		strings.Compare(r.Kind, o.Kind),
		strings.Compare(r.APIVersion, o.APIVersion),
	)
}
