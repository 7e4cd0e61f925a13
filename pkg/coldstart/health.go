// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package coldstart

import (
	"slices"
	"strings"

	"github.com/fluxcd/pkg/apis/kustomize"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

// wireHealth is checkHealth of kustomize-controller: with wait, all objects;
// else the health checks; else nothing.
func (m *model) wireHealth(t *tier) {
	if t.spec.Wait {
		for _, i := range t.items {
			if i.GetAPIVersion() == "v1" && i.GetKind() == "PersistentVolumeClaim" {
				m.wireClaim(t, i)
			}
			m.healthy(t, i)
		}
		return
	}
	for _, check := range t.spec.HealthChecks {
		ref := flux.Ref{APIVersion: check.APIVersion, Kind: check.Kind, Namespace: check.Namespace, Name: check.Name}
		if f, known := m.checked(t, ref); known {
			m.health(t, ref, f)
		}
	}
}

func (m *model) health(t *tier, ref flux.Ref, f fact) {
	m.need(t.ready, f)
	m.waits[t] = append(m.waits[t], waited{ref, f})
}

type waited struct {
	ref  flux.Ref
	fact fact
}

// healthy enters what the object must be before the tier is Ready. What
// kstatus calls current as soon as it is applied is not entered.
func (m *model) healthy(t *tier, i *item) {
	if f, proved := m.proof(t, i); proved {
		m.health(t, i.ref(), f)
	}
}

// proof is what an object's health proves beyond its being there.
func (m *model) proof(t *tier, i *item) (fact, bool) {
	gk := i.GroupVersionKind().GroupKind()
	switch {
	case isRelease(i):
		if r := m.byObject[idOf(i.Unstructured)]; r != nil {
			// Of a suspended one helm-controller notes that it has seen it, and
			// kstatus asks for no more (internal/controller
			// helmrelease_controller.go Reconcile, v1.6.4; seen).
			return r.healthy, !r.spec.Suspend
		}
	case gk.Group == flux.KustomizeGroup && gk.Kind == flux.KustomizationKind:
		child := m.byKey[flux.Ref{Namespace: i.GetNamespace(), Name: i.GetName()}.Key()]
		if child != nil && child != t { // a tier never waits for itself
			return child.ready, true
		}
	case hasExpression(t.spec.HealthCheckExprs, gk):
		return m.reconciledAll(i)
	}
	// The readiness of a workload is taken to prove that it has begun.
	f, counts := m.starts[i]
	return f, counts
}

// reconciledAll is when every controller of the trigger has done its work.
func (m *model) reconciledAll(i *item) (fact, bool) {
	relations := m.book.ByTrigger(i.GroupVersionKind().GroupKind())
	if len(relations) == 0 {
		return 0, false
	}
	f := m.add()
	for _, r := range relations {
		m.need(f, m.reconciled(i, r))
	}
	return f, true
}

// start is when a workload has begun its work.
func (m *model) start(i *item) fact {
	f, known := m.starts[i]
	if !known {
		f = m.add(i.created)
		m.starts[i] = f
	}
	return f
}

// hasExpression is true where CEL says when objects of the kind are healthy. An
// expression that is always true says nothing (fluxcd/pkg/runtime/cel status_evaluator.go).
func hasExpression(exprs []kustomize.CustomHealthCheck, gk schema.GroupKind) bool {
	return slices.ContainsFunc(exprs, func(e kustomize.CustomHealthCheck) bool {
		group := schema.FromAPIVersionAndKind(e.APIVersion, e.Kind).Group
		return group == gk.Group && (e.Kind == "" || e.Kind == gk.Kind) && strings.TrimSpace(e.Current) != "true"
	})
}

// checked is what a health check of the tier proves. It answers false for an
// object of which nothing is known.
func (m *model) checked(t *tier, ref flux.Ref) (fact, bool) {
	key := idOfRef(ref)
	if key.group == crdGroup && key.kind == crdKind {
		return m.definition(ref.Name)
	}
	if items := m.objects[key]; len(items) > 0 {
		f := m.add(m.exists[key])
		if proof, ok := m.proof(t, items[0]); ok {
			m.need(f, proof)
		}
		return f, true
	}
	if child := m.byKey[ref.Key()]; child != nil && key.group == flux.KustomizeGroup {
		return child.ready, true
	}
	return 0, false
}
