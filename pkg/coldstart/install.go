// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package coldstart

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// source is what the release has its chart from; the zero Ref where it does not
// say.
func (r *release) source() flux.Ref {
	source := flux.Ref{APIVersion: flux.SourceGroup + "/v1"}
	switch {
	case r.spec.ChartRef != nil:
		source.Kind, source.Namespace, source.Name = r.spec.ChartRef.Kind, r.spec.ChartRef.Namespace, r.spec.ChartRef.Name
	case r.spec.Chart != nil:
		ref := r.spec.Chart.Spec.SourceRef
		source.Kind, source.Namespace, source.Name = ref.Kind, ref.Namespace, ref.Name
	}
	source.Namespace = cmp.Or(source.Namespace, r.ref.Namespace)
	return source
}

// rootSource is true of the source of a root: who applies the one applies the
// other.
func (m *model) rootSource(source flux.Ref) bool {
	return slices.ContainsFunc(m.tiers, func(t *tier) bool {
		return len(t.Parents) == 0 && t.Kustomization != nil && Key(build.SourceOf(t.Kustomization)) == Key(source)
	})
}

// wireRelease is helm-controller's install: crds/, then every template is
// mapped to a kind, then the namespace, then the objects
// (internal/action/install.go, v1.6.4; helm pkg/action/install.go, v4.2.4).
func (m *model) wireRelease(r *release) {
	if r.spec.Suspend {
		m.forbid(r.start)
	}
	for _, d := range r.spec.DependsOn {
		m.need(r.start, m.releaseDependency(r, d.Namespace, d.Name))
	}
	for _, from := range r.spec.ValuesFrom {
		key := id{"", from.Kind, r.ref.Namespace, from.Name}
		if f, made := m.exists[key]; made && !from.Optional && !m.there[key] {
			m.need(r.start, f)
		}
	}
	if f, made := m.exists[idOfRef(r.source())]; made && !m.rootSource(r.source()) {
		m.need(r.crds, f) // there is no chart without it
	}
	if r.chart.Basis == Failed {
		m.forbid(r.mapped)
	}
	if r.spec.KubeConfig != nil || r.chart.Basis != Rendered {
		return
	}
	for _, o := range r.chart.Gated {
		m.kind(o.GroupVersionKind())
	}
	for _, i := range r.items {
		if f, counts := m.starts[i]; counts && !r.disablesWait() {
			m.need(r.healthy, f)
		}
		// As in a Kustomization, CEL is all that waits for a trigger.
		if hasExpression(r.spec.HealthCheckExprs, i.GroupVersionKind().GroupKind()) {
			if f, known := m.reconciledAll(i); known {
				m.need(r.healthy, f)
			}
		}
	}
	m.wireObjects(r, r.mapped, r.created, r.chart.Objects)
	m.wireObjects(r, r.created, r.created, r.chart.PreInstall)
	m.wireObjects(r, r.installed, r.installed, r.chart.PostInstall)
}

// wireObjects enters what the objects of a chart need: their kinds before they
// are mapped, their namespaces before they are created.
func (m *model) wireObjects(r *release, mapped, created fact, objects []*unstructured.Unstructured) {
	seen := map[string]bool{}
	for _, o := range objects {
		m.need(mapped, m.kind(o.GroupVersionKind()).served)
		space := o.GetNamespace()
		if space == "" || seen[space] || !m.namespaced(o) || m.standing(space) {
			continue
		}
		seen[space] = true
		if !m.ownNamespace(r, space) {
			m.need(created, m.namespace(space))
		}
	}
}

// ownNamespace is true where the release makes the namespace itself.
func (m *model) ownNamespace(r *release, name string) bool {
	return r.makesNamespace(name) || slices.ContainsFunc(r.chart.Objects, func(o *unstructured.Unstructured) bool {
		return o.GetKind() == "Namespace" && o.GetName() == name
	})
}

func (m *model) releaseDependency(r *release, namespace, name string) fact {
	if namespace == "" {
		namespace = r.ref.Namespace
	}
	if d := m.byObject[id{flux.HelmGroup, flux.HelmReleaseKind, namespace, name}]; d != nil {
		return d.healthy
	}
	if m.hidden() {
		return m.add()
	}
	return m.impossible()
}

// disablesWait is true where the release is Ready before its workloads are
// (helm-controller internal/action/install.go newInstall, v1.6.4).
func (r *release) disablesWait() bool { return r.spec.Install != nil && r.spec.Install.DisableWait }
