// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

// Result is what one tier applies.
type Result struct {
	Tier flux.Ref
	// Source is what the tier is built from.
	Source flux.Ref
	// Objects are in the order in which they are applied: by stage, and inside
	// of a stage as fluxcd/pkg/ssa sorts.
	Objects []Object
	// Rejected is why the controller applies none of the objects although
	// they build. Nil when it goes on to apply them.
	Rejected error
	// Unknown names the variables whose values only the cluster knows, because
	// the tree holds them encrypted: Secret/namespace/name: VARIABLE.
	Unknown []string
	// Absent are the ConfigMaps and Secrets of substituteFrom that are nowhere,
	// and that the controller fails without (Builder.UnknownVariables).
	Absent []flux.Ref

	// Bases are the remote bases that were left out (Builder.UnknownBases).
	Bases []string

	tree *Tree
	// manifests are the files that objects may be written in.
	manifests []string
	vars      *varReader

	indexed sync.Once
	// written is what the manifests hold, once somebody asked.
	written map[groupKind][]written
}

// Object is one object of a tier, with Flux's owner labels.
type Object struct {
	*unstructured.Unstructured
	// Stage is 1 to 4.
	Stage int
	// Encrypted is true when the object holds values that SOPS encrypted. They
	// are never decrypted here. A Secret that kustomize generates from an
	// encrypted file has another suffix on its name than Flux will give it:
	// kustomize makes it of the content.
	Encrypted bool
	// Ignored is true when the controller is told not to apply the object
	// (kustomize.toolkit.fluxcd.io/ssa: Ignore, or /reconcile: disabled). It
	// is then not dry-run either, so an unknown kind does no harm.
	Ignored bool
}

// Ref names the object.
func (o Object) Ref() flux.Ref {
	return flux.Ref{APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName()}
}

// String names the object and never shows what it holds: it may be a Secret.
func (o Object) String() string { return o.Ref().String() }

// GoString is String.
func (o Object) GoString() string { return o.String() }

// String says how much was built, of what.
func (r *Result) String() string {
	return fmt.Sprintf("kustomization %s: %d objects", r.Tier.Key(), len(r.Objects))
}

// Children are the Kustomizations among the objects: the tiers that this one
// contains.
func (r *Result) Children() []Object {
	var children []Object
	for _, o := range r.Objects {
		if gk := o.GroupVersionKind().GroupKind(); gk.Group == flux.KustomizeGroup && gk.Kind == flux.KustomizationKind {
			children = append(children, o)
		}
	}
	return children
}

// SourceOf is the source that a Kustomization names, its namespace resolved.
func SourceOf(tier *unstructured.Unstructured) flux.Ref {
	ref, _, _ := unstructured.NestedStringMap(tier.Object, "spec", "sourceRef")
	source := flux.Ref{APIVersion: ref["apiVersion"], Kind: ref["kind"], Namespace: ref["namespace"], Name: ref["name"]}
	if source.Namespace == "" {
		source.Namespace = tier.GetNamespace()
	}
	return source
}

func refOf(o *unstructured.Unstructured) flux.Ref { return Object{Unstructured: o}.Ref() }

// Redact takes the values of the Secrets that the tier was substituted with
// out of an error: an API server quotes what it does not accept. An error that
// holds none is returned as it is.
func (r *Result) Redact(err error) error {
	if err == nil || r.vars == nil {
		return err
	}
	return r.vars.redact(err)
}
