// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package coldstart

import (
	"errors"
	"slices"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// wire enters what the steps of a tier wait for: the order is that of
// kustomize-controller's reconcile (internal/controller
// kustomization_controller.go, v1.9.6) and of ApplyAllStaged (fluxcd/pkg/ssa
// manager_apply.go, v0.76.2).
func (m *model) wire(t *tier) {
	for _, parent := range t.Parents {
		if p := m.byKey[parent.Key()]; p != nil {
			m.way(t.exists, p.stages[build.StageRest])
		}
	}
	m.need(t.attempt, t.exists)
	if t.spec.Suspend {
		m.forbid(t.attempt)
	}
	for _, d := range t.spec.DependsOn {
		m.need(t.attempt, m.dependency(t, d.Namespace, d.Name))
	}
	if source, made := m.builtFrom(t); made {
		m.need(t.attempt, source)
	}
	if t.broken {
		m.forbid(t.built)
	}
	if !t.known {
		return
	}
	m.wireVariables(t)
	m.wireStages(t)
	m.wireHealth(t)
}

// builtFrom is when the source of the tier is there; false where no tier applies
// it, and for that of a root.
func (m *model) builtFrom(t *tier) (fact, bool) {
	if t.Kustomization == nil {
		return 0, false
	}
	source := build.SourceOf(t.Kustomization)
	f, made := m.exists[idOfSource(source)]
	return f, made && !m.rootSource(source)
}

// dependency is when a tier that another one depends on is Ready. A readyExpr
// is taken to ask for no less.
func (m *model) dependency(t *tier, namespace, name string) fact {
	if namespace == "" {
		namespace = t.Tier.Namespace
	}
	if d := m.byKey[flux.Ref{Namespace: namespace, Name: name}.Key()]; d != nil {
		return d.ready
	}
	return m.anyOf(m.unknownTiers())
}

// hidden is true where tiers may exist that are not known.
func (m *model) hidden() bool {
	return slices.ContainsFunc(m.tiers, func(t *tier) bool { return !t.Whole() })
}

// wireVariables: a ConfigMap or Secret that is not there fails the build,
// whether a variable of it is used or not (fluxcd/pkg/kustomize
// kustomize_varsub.go LoadVariables). One that nothing in the repository makes
// is taken to be there.
func (m *model) wireVariables(t *tier) {
	if t.spec.PostBuild == nil {
		return
	}
	for _, from := range t.spec.PostBuild.SubstituteFrom {
		if from.Optional {
			continue
		}
		ref := flux.Ref{APIVersion: "v1", Kind: from.Kind, Namespace: t.Tier.Namespace, Name: from.Name}
		m.needObject(t, 0, ref)
	}
}

func (m *model) wireStages(t *tier) {
	for _, o := range t.Result.Objects {
		if o.Ignored {
			m.wireIgnored(t, o)
			continue
		}
		k := m.kind(o.GroupVersionKind())
		m.addNeed(t, need{stage: o.Stage, needed: needed{kind: k}, fact: k.served}, o)
		if space := o.GetNamespace(); space != "" && m.namespaced(o.Unstructured) {
			m.needNamespace(t, o, space)
		}
		m.wirePod(t, o)
		m.wireSideEffects(t, o)
	}
}

// wireIgnored: what the controller leaves alone it waits for all the same, in the
// stages that are waited for (fluxcd/pkg/ssa manager_apply.go ApplyAllStaged,
// WaitForSet, v0.78.0; seen). Who makes it may be somebody outside, but not
// where its kind itself comes from the repository: then nobody can have.
func (m *model) wireIgnored(t *tier, o build.Object) {
	if o.Stage > build.StageClasses {
		return
	}
	f, made := m.exists[idOf(o.Unstructured)]
	if !made {
		k := m.kind(o.GroupVersionKind())
		if k.before != "" || len(k.sources) == 0 {
			return
		}
		f = m.impossible()
	}
	m.addNeed(t, need{stage: o.Stage, needed: needed{object: o.Ref()}, fact: f, sources: m.objectSources(idOf(o.Unstructured))}, o)
}

func isRemoteBase(err error) bool {
	var remote *build.RemoteBaseError
	return errors.As(err, &remote)
}
