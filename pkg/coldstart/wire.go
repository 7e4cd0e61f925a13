// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package coldstart

import (
	"errors"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/apis/kustomize"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// need is what a stage of a tier, or a release, cannot do without.
type need struct {
	stage  int
	kind   *kind // nil for an object
	object flux.Ref
	fact   fact
	// sources bring the object.
	sources []*source
	users   []build.Object
}

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

// dependency is when a tier that another one depends on is Ready. A readyExpr
// is taken to ask for no less.
func (m *model) dependency(t *tier, namespace, name string) fact {
	if namespace == "" {
		namespace = t.Tier.Namespace
	}
	if d := m.byKey[flux.Ref{Namespace: namespace, Name: name}.Key()]; d != nil {
		return d.ready
	}
	if m.hidden() {
		return m.add()
	}
	return m.impossible()
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
		m.needObject(t, 0, ref, nil)
	}
}

func (m *model) wireStages(t *tier) {
	kinds := map[schema.GroupVersionKind]*need{}
	spaces := map[string]*need{}
	for _, o := range t.Result.Objects {
		if o.Ignored {
			m.wireIgnored(t, o)
			continue
		}
		gvk := o.GroupVersionKind()
		n := kinds[gvk]
		if n == nil {
			k := m.kind(gvk)
			n = &need{stage: o.Stage, kind: k, fact: k.served}
			kinds[gvk] = n
			t.needs = append(t.needs, n)
			m.need(t.stages[o.Stage], k.served)
		}
		n.users = append(n.users, o)
		if space := o.GetNamespace(); space != "" && m.namespaced(o.Unstructured) {
			if spaces[space] == nil {
				spaces[space] = m.needNamespace(t, o.Stage, space)
			}
			if spaces[space] != nil {
				spaces[space].users = append(spaces[space].users, o)
			}
		}
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
	t.needs = append(t.needs, &need{stage: o.Stage, object: o.Ref(), fact: f, sources: m.objectSources(idOf(o.Unstructured)), users: []build.Object{o}})
	m.need(t.stages[o.Stage], f)
}

// needNamespace is nil for a namespace that is there from the beginning.
func (m *model) needNamespace(t *tier, stage int, name string) *need {
	if m.standing(name) {
		return nil
	}
	ref := flux.Ref{APIVersion: "v1", Kind: "Namespace", Name: name}
	n := &need{stage: stage, object: ref, fact: m.namespace(name)}
	n.sources = m.namespaceSources(name)
	t.needs = append(t.needs, n)
	m.need(t.stages[stage], n.fact)
	return n
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
		if len(m.unknown) == 0 {
			m.forbid(f)
		}
		for _, c := range m.unknown {
			m.way(f, c.done)
		}
	}
	return f
}

func (m *model) namespaceSources(name string) []*source {
	all := m.objectSources(id{"", "Namespace", "", name})
	for _, r := range m.releases {
		if r.makesNamespace(name) {
			all = append(all, &source{
				Provider: Provider{How: ByChart, Tier: r.tier.Tier, Object: r.ref, Stage: build.StageRest},
				tier:     r.tier, done: r.mapped, applied: r.tier.stages[build.StageRest],
			})
		}
	}
	return all
}

// makesNamespace: helm-controller passes install.createNamespace on only where
// spec.targetNamespace is set (internal/action/install.go newInstall, v1.6.4).
func (r *release) makesNamespace(name string) bool {
	return r.spec.TargetNamespace == name && r.spec.Install != nil && r.spec.Install.CreateNamespace && r.spec.KubeConfig == nil
}

func (m *model) objectSources(key id) []*source {
	var all []*source
	for _, i := range m.objects[key] {
		how := ByGit
		if i.release != nil {
			how = ByChart
		}
		all = append(all, &source{Provider: m.provider(how, i), tier: i.tier, done: i.created, applied: m.appliedBy(i)})
	}
	return all
}

// needObject enters the need of an object that some tier makes.
func (m *model) needObject(t *tier, stage int, ref flux.Ref, users []build.Object) {
	key := idOfRef(ref)
	f, made := m.exists[key]
	if !made || m.there[key] {
		return
	}
	t.needs = append(t.needs, &need{stage: stage, object: ref, fact: f, sources: m.objectSources(key), users: users})
	m.need(t.stages[stage], f)
}

// wireHealth is checkHealth of kustomize-controller: with wait, all objects;
// else the health checks; else nothing.
func (m *model) wireHealth(t *tier) {
	if t.spec.Wait {
		for _, i := range t.items {
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
	case gk.Group == flux.HelmGroup && gk.Kind == flux.HelmReleaseKind:
		if r := m.byObject[idOf(i.Unstructured)]; r != nil {
			return r.healthy, true
		}
	case gk.Group == flux.KustomizeGroup && gk.Kind == flux.KustomizationKind:
		child := m.byKey[flux.Ref{Namespace: i.GetNamespace(), Name: i.GetName()}.Key()]
		if child != nil && child != t { // a tier never waits for itself
			return child.ready, true
		}
	case hasExpression(t.spec.HealthCheckExprs, gk):
		return m.reconciledAll(i)
	}
	return m.startedBy(i)
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

// startedBy is when the controller of a workload has begun: its readiness is
// taken to prove that.
func (m *model) startedBy(i *item) (fact, bool) {
	var all []fact
	for _, operators := range m.operators {
		for _, o := range operators {
			if o.item == i {
				all = append(all, o.started)
			}
		}
	}
	if len(all) == 0 {
		return 0, false
	}
	return m.add(all...), true
}

// hasExpression is true where CEL says when objects of the kind are healthy. An expression that is always true says nothing
// (fluxcd/pkg/runtime/cel status_evaluator.go).
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
	if r.spec.KubeConfig != nil || r.chart.Basis != Rendered {
		return
	}
	for _, i := range r.items {
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

func isRemoteBase(err error) bool {
	var remote *build.RemoteBaseError
	return errors.As(err, &remote)
}
