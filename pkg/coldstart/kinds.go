// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package coldstart

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubestandup/kubestandup/pkg/knowledge"
)

// kind finds what is known of a kind, and makes the fact that it is served.
func (m *model) kind(gvk schema.GroupVersionKind) *kind {
	if k, ok := m.kinds[gvk]; ok {
		return k
	}
	k := &kind{gvk: gvk, served: m.add()}
	m.kinds[gvk] = k
	gk := gvk.GroupKind()
	for _, s := range slices.Concat(m.sources[gk], m.groups[gk.Group]) {
		if len(s.versions) > 0 && !slices.Contains(s.versions, gvk.Version) {
			k.others = append(k.others, s.versions...)
			continue
		}
		k.sources = append(k.sources, s)
		m.way(k.served, s.done)
	}
	slices.Sort(k.others)
	k.others = slices.Compact(k.others)
	k.before = m.standingBefore(gk)
	if i := slices.IndexFunc(k.sources, func(s *source) bool { return s.by != "" }); i >= 0 && k.before == "" {
		k.before = k.sources[i].by
	}
	switch {
	case k.before != "" && len(k.others) == 0:
		// A tier that applies it too adds nothing.
		k.sources = nil
		m.nodes[k.served].any = nil
	case len(k.sources) > 0:
		m.doubtIn(doubtful{kind: gvk}, k.served)
	case len(k.others) > 0:
		m.forbid(k.served)
	default:
		m.way(k.served, m.anyOf(m.unknown))
	}
	return k
}

// standingBefore says what serves the kind before Flux reconciles anything.
func (m *model) standingBefore(gk schema.GroupKind) string {
	switch {
	case knowledge.BuiltinKind(gk):
		return "Kubernetes"
	case knowledge.FluxKind(gk):
		return "Flux"
	case gk.Group == operatorGroup && m.instance():
		return "Flux Operator"
	}
	return cmp.Or(m.book.Before(gk), m.bootstrapped(gk))
}

// namespaced is true for objects of which it is known that they live in a
// namespace.
func (m *model) namespaced(o *unstructured.Unstructured) bool {
	gk := o.GroupVersionKind().GroupKind()
	if namespaced, known := knowledge.NamespacedKind(gk); known {
		return namespaced
	}
	return m.scopes[gk]
}

// definition is when the CRD of that name is served.
func (m *model) definition(name string) (fact, bool) {
	gk, known := m.definitions[name]
	if !known {
		return 0, false
	}
	f := m.add()
	for _, s := range m.sources[gk] {
		m.way(f, s.done)
	}
	return f, true
}

// operatorGroup is that of Flux Operator, which installs Flux where there is a
// FluxInstance.
const operatorGroup = "fluxcd.controlplane.io"

func (m *model) instance() bool {
	return slices.ContainsFunc(m.items, func(i *item) bool {
		return i.GetKind() == "FluxInstance" && i.GroupVersionKind().Group == operatorGroup
	})
}
