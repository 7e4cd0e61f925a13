// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package coldstart

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// wirePod enters what the API server wants to be there before it admits a Pod,
// in a dry run too: its ServiceAccount and its classes (kubernetes
// plugin/pkg/admission serviceaccount, priority, runtimeclass). Whoever makes
// Pods of a template tries again by himself.
func (m *model) wirePod(t *tier, o build.Object) {
	if o.GetAPIVersion() != "v1" || o.GetKind() != "Pod" {
		return
	}
	var pod corev1.Pod
	decode(o.Unstructured, &pod)
	account := cmp.Or(pod.Spec.ServiceAccountName, pod.Spec.DeprecatedServiceAccount, accountOfAll)
	if account != accountOfAll {
		m.needAccount(t, o, flux.Ref{APIVersion: "v1", Kind: "ServiceAccount", Namespace: o.GetNamespace(), Name: account})
	}
	if name := pod.Spec.PriorityClassName; name != "" {
		m.needObject(t, o.Stage, flux.Ref{APIVersion: "scheduling.k8s.io/v1", Kind: "PriorityClass", Name: name}, o)
	}
	if name := pod.Spec.RuntimeClassName; name != nil {
		m.needObject(t, o.Stage, flux.Ref{APIVersion: "node.k8s.io/v1", Kind: "RuntimeClass", Name: *name}, o)
	}
}

// accountOfAll is the ServiceAccount that every namespace has.
const accountOfAll = "default"

// needAccount: one that nothing makes is taken to be there, but not in a
// namespace that a tier makes.
func (m *model) needAccount(t *tier, o build.Object, ref flux.Ref) {
	key := idOfRef(ref)
	space := id{"", "Namespace", "", ref.Namespace}
	if _, made := m.exists[key]; made || m.there[key] || m.standing(ref.Namespace) || len(m.objects[space]) == 0 {
		m.needObject(t, o.Stage, ref, o)
		return
	}
	m.addNeed(t, need{stage: o.Stage, needed: needed{object: ref}, fact: m.anyOf(m.unknown)}, o)
}
