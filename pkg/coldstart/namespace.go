// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package coldstart

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// needNamespace enters the need of a namespace that is not there from the
// beginning.
func (m *model) needNamespace(t *tier, o build.Object, name string) {
	if !m.standing(name) {
		ref := flux.Ref{APIVersion: "v1", Kind: "Namespace", Name: name}
		m.addNeed(t, need{stage: o.Stage, needed: needed{object: ref}, fact: m.namespace(name), sources: m.namespaceSources(name)}, o)
	}
}

// standing namespaces are Kubernetes' own, those of what is installed before
// Flux, and those that Flux itself needs before it can begin: of the roots.
func (m *model) standing(name string) bool {
	switch name {
	case corev1.NamespaceDefault, "kube-system", "kube-public", "kube-node-lease":
		return true
	}
	return m.madeNamespace(name) || m.there[id{"", "Namespace", "", name}] ||
		slices.ContainsFunc(m.tiers, func(t *tier) bool { return len(t.Parents) == 0 && t.Tier.Namespace == name })
}

// namespace is when the namespace exists.
func (m *model) namespace(name string) fact {
	key := id{"", "Namespace", "", name}
	if f, ok := m.spaces[name]; ok {
		return f
	}
	f := m.add()
	m.spaces[name] = f
	for _, i := range m.objects[key] {
		m.way(f, i.created)
	}
	for _, r := range m.releases {
		if r.makesNamespace(name) {
			m.way(f, r.mapped)
		}
	}
	m.doubtIn(doubtful{namespace: name}, f)
	if len(m.nodes[f].any) == 0 {
		m.way(f, m.anyOf(m.unknown))
	}
	return f
}

func (m *model) namespaceSources(name string) []*source {
	all := m.objectSources(id{"", "Namespace", "", name})
	for _, r := range m.releases {
		if r.makesNamespace(name) {
			all = append(all, r.brings(ByChart, r.mapped))
		}
	}
	return all
}

// makesNamespace: helm-controller passes install.createNamespace on only where
// spec.targetNamespace is set (internal/action/install.go newInstall, v1.6.4).
func (r *release) makesNamespace(name string) bool {
	return r.spec.TargetNamespace == name && r.spec.Install != nil && r.spec.Install.CreateNamespace && r.spec.KubeConfig == nil
}
