// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"github.com/kubestandup/kubestandup/pkg/crds"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// Named is what became of a name that a person has typed.
type Named struct {
	// Kind is empty where the server has no such type.
	Kind string
	// Found are the objects that are called so.
	Found []flux.Ref
}

// named looks for the objects that a person has named. One that is being
// deleted is judged wherever it is: of others only those are looked at that
// keep a CRD or a Namespace from going.
func (r *apiReader) named(ctx context.Context) {
	for _, name := range r.world.Choices.Names {
		kind, found := kindOf(r.world.Served, name)
		if !found {
			continue
		}
		n := Named{Kind: kind.Kind.Kind}
		gvr := kind.Kind.GroupVersion().WithResource(kind.Plural)
		objects, err := all(ctx, r.lister, query{path: pathOf(gvr, ""), metadata: true}, func(i *struct {
			Metadata fields `json:"metadata"`
		},
		) (*Held, bool) {
			h := i.Metadata.held(gvr.GroupVersion().String(), kind.Kind.Kind, gvr.Resource)
			return &h, Matches(name, h.Ref)
		})
		if err != nil {
			r.gap(n.Kind+" in all namespaces", err)
			continue
		}
		r.mu.Lock()
		for _, h := range objects {
			n.Found = append(n.Found, h.Ref)
			h.Relation, h.Named = r.relationOf(h.Ref.GroupVersionKind().GroupKind()), true
			known := slices.ContainsFunc(r.world.Held, func(o *Held) bool { return o.Ref == h.Ref })
			if !known && !h.Deleted.IsZero() && len(h.Finalizers) > 0 {
				r.world.Held = append(r.world.Held, h)
			}
		}
		r.world.Named[name] = n
		r.mu.Unlock()
	}
}

// kindOf is the kind that TYPE in TYPE/NAME means, in the version that the
// server prefers by its name.
func kindOf(served *crds.Served, name string) (crds.ServedKind, bool) {
	kind, _, _ := strings.Cut(name, "/")
	kind, group, qualified := strings.Cut(strings.ToLower(kind), ".")
	var best crds.ServedKind
	found := false
	for _, k := range served.Kinds() {
		own := strings.ToLower(k.Kind.Kind)
		if !k.Listable || qualified && group != k.Kind.Group || kind != own && kind != k.Plural && kind != plural(own) && kind != short(own) {
			continue
		}
		if !found || preferred(k.Kind, best.Kind) {
			best, found = k, true
		}
	}
	return best, found
}

// preferred is true for a kind that is more likely meant than another: the
// core group's, then the group that comes first, in its newest version.
func preferred(a, b schema.GroupVersionKind) bool {
	if a.Group != b.Group {
		return a.Group < b.Group
	}
	return a.GroupKind() == b.GroupKind() && version.CompareKubeAwareVersionStrings(a.Version, b.Version) > 0
}
