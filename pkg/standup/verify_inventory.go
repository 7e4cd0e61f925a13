// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/fluxcd/cli-utils/pkg/object"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"

	"github.com/kubestandup/kubestandup/pkg/crds"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/tiers"
)

// piece is one object of the inventories.
type piece struct {
	ref flux.Ref
	// tiers are those that have it in their inventory: more than one fight over
	// it.
	tiers []*tiers.Node
	proof
}

// entry is one line of an inventory.
type entry struct{ id, version string }

// inventory is what a Kustomization or a HelmRelease says it has applied; false
// for one that says nothing, as a HelmRelease of helm-controller before 1.5.
func inventory(tier *unstructured.Unstructured) ([]entry, bool) {
	list, found, _ := unstructured.NestedSlice(tier.Object, "status", "inventory", "entries")
	var entries []entry
	for _, item := range list {
		m, _ := item.(map[string]any)
		id, _ := m["id"].(string)
		v, _ := m["v"].(string)
		entries = append(entries, entry{id, v})
	}
	return entries, found
}

// ref is the object, written as Flux writes it: namespace_name_group_Kind,
// with __ for the colons that names of RBAC may have (fluxcd/cli-utils
// pkg/object/objmetadata.go, v1.3.0).
func (e entry) ref() (flux.Ref, error) {
	meta, err := object.ParseObjMetadata(e.id)
	if err != nil || meta.GroupKind.Kind == "" || meta.Name == "" {
		return flux.Ref{}, fmt.Errorf("%q of its inventory names no object", e.id)
	}
	gv := schema.GroupVersion{Group: meta.GroupKind.Group, Version: e.version}
	return flux.Ref{APIVersion: gv.String(), Kind: meta.GroupKind.Kind, Namespace: meta.Namespace, Name: meta.Name}, nil
}

// unseen are the tiers whose objects cannot be looked at.
type unseen struct {
	// remote apply to another cluster.
	remote []flux.Ref
	// silent have no inventory, although they have installed something.
	silent []flux.Ref
	// garbled are the lines that name nothing, with the tier.
	garbled []string
}

// collect reads the inventories of all tiers that are meant to run. A tier in
// another's inventory is not among the pieces: the check of the tiers knows
// more about it than its conditions say.
func (v *verify) collect(ctx context.Context, served *crds.Served) (*unseen, error) {
	u := &unseen{}
	for _, kind := range []string{flux.KustomizationKind, flux.HelmReleaseKind} {
		raw, err := v.objects(ctx, kind)
		if err != nil {
			return nil, err
		}
		for _, o := range raw {
			n := v.graph.Node(flux.Ref{Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName()})
			if n == nil || v.aside[n.Ref] != "" {
				continue // made since the graph was, or not meant to run
			}
			entries, found := inventory(o)
			switch {
			case n.Remote && len(entries) > 0:
				u.remote = append(u.remote, n.Ref)
				v.counts.Unproved += len(entries)
				continue
			case !found && n.Helm != nil && len(n.Helm.History) > 0:
				u.silent = append(u.silent, n.Ref)
			}
			for _, e := range entries {
				v.add(n, e, served, u)
			}
		}
	}
	return u, nil
}

func (v *verify) add(n *tiers.Node, e entry, served *crds.Served, u *unseen) {
	ref, err := e.ref()
	if err != nil {
		u.garbled = append(u.garbled, fmt.Sprintf("%s: %v", n.Ref, err))
		v.counts.Unproved++
		return
	}
	if isTier(ref) && v.graph.Node(ref) != nil {
		return
	}
	ref = placed(ref, n, served)
	p := v.pieces[identityOf(ref)]
	if p == nil {
		p = &piece{ref: ref}
		v.pieces[identityOf(ref)] = p
	}
	if !slices.Contains(p.tiers, n) {
		p.tiers = append(p.tiers, n)
	}
}

// placed is the object where it is: helm-controller writes the namespace that the
// manifest has, also of what is in none, or none where it could not learn the
// scope (internal/inventory setNamespaces, v1.6.4).
func placed(ref flux.Ref, n *tiers.Node, served *crds.Served) flux.Ref {
	if served == nil {
		return ref
	}
	versions := served.Versions(ref.GroupVersionKind().GroupKind())
	if len(versions) == 0 {
		return ref
	}
	res, _ := served.Resource(ref.GroupVersionKind().GroupKind().WithVersion(versions[0]))
	switch {
	case !res.Namespaced:
		ref.Namespace = ""
	case ref.Namespace == "" && n.Helm != nil:
		ref.Namespace = cmp.Or(n.Helm.TargetNamespace, n.Ref.Namespace)
	}
	return ref
}

func isTier(r flux.Ref) bool {
	return r.Kind == flux.KustomizationKind && r.Group() == flux.KustomizeGroup ||
		r.Kind == flux.HelmReleaseKind && r.Group() == flux.HelmGroup
}

// kindPieces are the pieces of one kind.
type kindPieces struct {
	schema.GroupKind
	pieces map[types.NamespacedName]*piece
	// versions are those that the inventories have.
	versions []string
}

// kinds sorts the pieces by kind.
func (v *verify) kinds() []*kindPieces {
	at := map[schema.GroupKind]*kindPieces{}
	var all []*kindPieces
	for _, p := range v.pieces {
		gvk := p.ref.GroupVersionKind()
		k := at[gvk.GroupKind()]
		if k == nil {
			k = &kindPieces{GroupKind: gvk.GroupKind(), pieces: map[types.NamespacedName]*piece{}}
			at[k.GroupKind], all = k, append(all, k)
		}
		k.pieces[types.NamespacedName{Namespace: p.ref.Namespace, Name: p.ref.Name}] = p
		if !slices.Contains(k.versions, gvk.Version) {
			k.versions = append(k.versions, gvk.Version)
		}
	}
	for _, k := range all {
		slices.Sort(k.versions)
	}
	slices.SortFunc(all, func(a, b *kindPieces) int {
		return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Kind, b.Kind))
	})
	return all
}

// resource is where the objects of the kind are listed: in the version that the
// checks are written for, else the one that was applied, else the newest.
func (k *kindPieces) resource(served *crds.Served, wanted []string) (schema.GroupVersionResource, bool) {
	versions := served.Versions(k.GroupKind)
	if len(versions) == 0 {
		return schema.GroupVersionResource{}, false
	}
	chosen := slices.MaxFunc(versions, version.CompareKubeAwareVersionStrings)
	for _, v := range slices.Concat(wanted, k.versions) {
		if slices.Contains(versions, v) {
			chosen = v
			break
		}
	}
	gvk := k.WithVersion(chosen)
	res, _ := served.Resource(gvk)
	return gvk.GroupVersion().WithResource(res.Plural), res.Listable
}
