// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package coldstart

import (
	"maps"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// admitted is an object that a tier applies, as webhooks look at it.
type admitted struct {
	kind       schema.GroupVersionKind
	resource   string
	namespaced bool
	namespace  string
	labels     labels.Set
}

func (m *model) admitted(t *tier, o build.Object) *admitted {
	a := &admitted{kind: o.GroupVersionKind(), namespaced: m.namespaced(o.Unstructured), namespace: o.GetNamespace()}
	a.resource = m.resource(a.kind)
	// As the controller labels it (fluxcd/pkg/ssa owner.go SetOwnerLabels).
	a.labels = labels.Set{flux.KustomizeGroup + "/name": t.Tier.Name, flux.KustomizeGroup + "/namespace": t.Tier.Namespace}
	maps.Copy(a.labels, o.GetLabels())
	return a
}

// resource is the plural of the kind.
func (m *model) resource(kind schema.GroupVersionKind) string {
	for name, gk := range m.definitions {
		if gk == kind.GroupKind() {
			plural, _, _ := strings.Cut(name, ".")
			return plural
		}
	}
	plural, _ := meta.UnsafeGuessKindToResource(kind)
	return plural.Resource
}

// asked says which objects the API server asks the webhook about (kubernetes
// staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook generic/webhook.go
// ShouldCallHook). Where that is not to be told, it answers no.
func (m *model) asked(spec *admissionregistrationv1.ValidatingWebhook) func(*admitted) bool {
	object, space := selector(spec.ObjectSelector), selector(spec.NamespaceSelector)
	equivalent := spec.MatchPolicy == nil || *spec.MatchPolicy == admissionregistrationv1.Equivalent
	return func(a *admitted) bool {
		if a.kind.Group == admissionregistrationv1.GroupName || !object.Matches(a.labels) ||
			!slices.ContainsFunc(spec.Rules, func(r admissionregistrationv1.RuleWithOperations) bool { return ruled(&r, a, equivalent) }) {
			return false
		}
		if space.Empty() {
			return true
		}
		in := a.namespace
		if a.kind.Group == "" && a.kind.Kind == "Namespace" {
			return space.Matches(a.labels)
		}
		if !a.namespaced {
			return true
		}
		has, known := m.namespaceLabels(in)
		return space.Matches(has) && (known || onlyName(space))
	}
}

// onlyName is true of a selector that asks for no label but the one that every
// namespace has.
func onlyName(s labels.Selector) bool {
	requirements, _ := s.Requirements()
	return !slices.ContainsFunc(requirements, func(r labels.Requirement) bool { return r.Key() != "kubernetes.io/metadata.name" })
}

// selector matches nothing where it is not valid: the API server refuses it.
func selector(of *metav1.LabelSelector) labels.Selector {
	if of == nil {
		return labels.Everything()
	}
	s, err := metav1.LabelSelectorAsSelector(of)
	if err != nil {
		return labels.Nothing()
	}
	return s
}

// ruled is Matches of apiserver's pkg/admission/plugin/webhook/predicates/rules,
// for an object that is created.
func ruled(r *admissionregistrationv1.RuleWithOperations, a *admitted, equivalent bool) bool {
	has := func(list []string, value string) bool {
		return slices.Contains(list, "*") || slices.Contains(list, value)
	}
	scoped := r.Scope == nil || *r.Scope == admissionregistrationv1.AllScopes || (*r.Scope == admissionregistrationv1.NamespacedScope) == a.namespaced
	created := slices.Contains(r.Operations, admissionregistrationv1.Create) || slices.Contains(r.Operations, admissionregistrationv1.OperationAll)
	return scoped && created && has(r.APIGroups, a.kind.Group) && (equivalent || has(r.APIVersions, a.kind.Version)) &&
		slices.ContainsFunc(r.Resources, func(resource string) bool {
			plural, sub, isSub := strings.Cut(resource, "/")
			return (plural == "*" || plural == a.resource) && (!isSub || sub == "*")
		})
}
