// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubestandup/kubestandup/pkg/crds"
	"github.com/kubestandup/kubestandup/pkg/knowledge"
)

// definitions are the CRDs that tiers build.
func (b *builds) definitions() map[schema.GroupVersionKind][]built {
	all := map[schema.GroupVersionKind][]built{}
	for at, objects := range b.objects {
		if at.kind != "CustomResourceDefinition" || at.group != "apiextensions.k8s.io" {
			continue
		}
		for _, o := range objects {
			if o.Ignored {
				continue
			}
			group, _, _ := unstructured.NestedString(o.Unstructured.Object, "spec", "group")
			kind, _, _ := unstructured.NestedString(o.Unstructured.Object, "spec", "names", "kind")
			versions, _, _ := unstructured.NestedSlice(o.Unstructured.Object, "spec", "versions")
			for _, v := range versions {
				m, _ := v.(map[string]any)
				name, _ := m["name"].(string)
				if served, _ := m["served"].(bool); served {
					gvk := schema.GroupVersionKind{Group: group, Version: name, Kind: kind}
					all[gvk] = append(all[gvk], o)
				}
			}
		}
	}
	for _, list := range all {
		slices.SortFunc(list, func(a, b built) int { return a.tier.Tier.Compare(b.tier.Tier) })
	}
	return all
}

// triggers are what tiers build and what creates the kind.
func (k *kindsLook) triggers(m *crds.Missing) (all []built) {
	for _, r := range m.CreatedBy {
		for _, t := range r.Triggers {
			for at, objects := range k.b.objects {
				if at.group != t.Group || at.kind != t.Kind {
					continue
				}
				for _, o := range objects {
					if creates(r, o.Unstructured, m.Kind.GroupKind()) && !o.Ignored {
						all = append(all, o)
					}
				}
			}
		}
	}
	slices.SortFunc(all, func(a, b built) int { return a.Ref().Compare(b.Ref()) })
	return all
}

func creates(r knowledge.Relation, trigger *unstructured.Unstructured, gk schema.GroupKind) bool {
	kinds, err := r.Derived(trigger)
	return err == nil && slices.ContainsFunc(kinds, func(k knowledge.Kind) bool { return k.GroupKind() == gk })
}

func withTrigger(o built) string {
	return fmt.Sprintf(", once the operator has reconciled its %s", o.Ref())
}

// installer is the system whose install registers the kind, empty where none is
// known to.
func installer(gk schema.GroupKind) string {
	base, err := knowledge.Builtin()
	if err != nil {
		return ""
	}
	for _, r := range base.Relations() {
		if r.HasTrigger(gk) || slices.ContainsFunc(r.Registers, func(k knowledge.Kind) bool { return k.GroupKind() == gk }) {
			return r.System
		}
	}
	return ""
}
