// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package coldstart

import (
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/knowledge"
)

// webhook is asked by the API server before it accepts objects, in a dry run
// too: while nobody answers, it accepts none of them.
type webhook struct {
	name   string
	config flux.Ref
	// inForce is when its configuration is on the cluster, answers when the
	// workload behind its Service has begun.
	inForce, answers fact
	// servers are the workloads, services what brings the Service.
	servers, services []*source
	asks              func(*admitted) bool
	// refused is true of one that the API server does not take.
	refused bool
}

// findWebhooks finds the webhooks whose workloads the tiers themselves bring.
// Those of others are taken to answer.
func (m *model) findWebhooks() {
	for _, i := range m.items {
		for _, w := range webhooksOf(i.Unstructured) {
			if h := m.webhook(i, &w); h != nil {
				m.hooks = append(m.hooks, h)
			}
		}
	}
	for _, r := range m.releases {
		if len(r.chart.Webhooks) == 0 || r.spec.KubeConfig != nil || r.by != "" {
			continue
		}
		s := r.brings(ByChart, r.healthy)
		m.hooks = append(m.hooks, &webhook{
			name: r.chart.Name, config: r.ref, inForce: r.created, answers: r.healthy, servers: []*source{s}, services: []*source{s},
			asks: func(o *admitted) bool { return slices.Contains(r.chart.Webhooks, o.kind.Group) },
		})
	}
}

// webhooksOf are those of a configuration, as far as its two kinds have them in
// common; none of any other object.
func webhooksOf(o *unstructured.Unstructured) []admissionregistrationv1.ValidatingWebhook {
	gk := o.GroupVersionKind().GroupKind()
	if gk.Group != admissionregistrationv1.GroupName || gk.Kind != "ValidatingWebhookConfiguration" && gk.Kind != "MutatingWebhookConfiguration" {
		return nil
	}
	var config admissionregistrationv1.ValidatingWebhookConfiguration
	decode(o, &config)
	return config.Webhooks
}

// webhook is nil for one that lets pass what nobody answers for, and for one of
// which the tiers do not bring what answers.
func (m *model) webhook(i *item, spec *admissionregistrationv1.ValidatingWebhook) *webhook {
	service := spec.ClientConfig.Service
	if service == nil || spec.FailurePolicy != nil && *spec.FailurePolicy == admissionregistrationv1.Ignore || len(spec.MatchConditions) > 0 {
		// CEL may exempt any object.
		return nil
	}
	key := id{"", "Service", service.Namespace, service.Name}
	services := m.objects[key]
	if len(services) == 0 {
		return nil
	}
	h := &webhook{name: spec.Name, config: i.ref(), inForce: i.created, services: m.objectSources(key)}
	begun := m.add()
	for _, w := range m.items {
		if !serves(services[0].Unstructured, w.Unstructured) {
			continue
		}
		s := m.sourceOf(w, m.start(w))
		h.servers = append(h.servers, s)
		m.way(begun, s.done)
	}
	if len(h.servers) == 0 {
		return nil
	}
	h.answers = m.add(m.exists[key], begun)
	h.asks = m.asked(spec)
	return h
}

// serves is true where the pods of the workload are behind the Service.
func serves(service, workload *unstructured.Unstructured) bool {
	pod := knowledge.PodOf(workload)
	if pod == nil || service.GetNamespace() != workload.GetNamespace() {
		return false
	}
	selector, _, _ := unstructured.NestedStringMap(service.Object, "spec", "selector")
	has, _, _ := unstructured.NestedStringMap(pod, "metadata", "labels")
	return len(selector) > 0 && labels.SelectorFromSet(selector).Matches(labels.Set(has))
}

// wireWebhooks lets stages wait for the webhooks that they are asked about. It
// needs to know what is necessarily before what, and answers true where that may
// now be otherwise. A webhook is asked about nothing that is applied before it.
func (m *model) wireWebhooks() bool {
	wired := false
	for _, t := range m.tiers {
		if !t.known || t.broken {
			continue
		}
		for _, o := range t.Result.Objects {
			if o.Ignored || len(m.hooks) == 0 {
				continue
			}
			a := m.admitted(t, o)
			for _, h := range m.hooks {
				stage := t.stages[o.Stage]
				if !m.held[h.inForce] || m.before(h.inForce, stage) || !h.asks(a) {
					continue
				}
				n := need{stage: o.Stage, needed: needed{object: h.config, hook: h}, fact: h.answers, sources: h.servers}
				n.certain = m.before(t.stages[o.Stage-1], h.inForce)
				if len(h.servers) > 0 && !slices.ContainsFunc(h.servers, func(s *source) bool { return !m.held[s.done] }) && !m.held[h.answers] {
					n.sources = h.services // it is the Service that does not come
				}
				m.addNeed(t, n, o)
				wired = wired || n.certain
			}
		}
	}
	return wired
}

// wireSideEffects: the API server takes no webhook that may have side effects in
// a dry run, and one without a word about it neither (kubernetes
// pkg/apis/admissionregistration/validation, v1.37.2).
func (m *model) wireSideEffects(t *tier, o build.Object) {
	for _, w := range webhooksOf(o.Unstructured) {
		var effects admissionregistrationv1.SideEffectClass
		if w.SideEffects != nil {
			effects = *w.SideEffects
		}
		if effects != admissionregistrationv1.SideEffectClassNone && effects != admissionregistrationv1.SideEffectClassNoneOnDryRun {
			h := &webhook{name: w.Name, config: o.Ref(), refused: true}
			m.addNeed(t, need{stage: o.Stage, needed: needed{object: o.Ref(), hook: h}, fact: m.impossible(), certain: true}, o)
			return
		}
	}
}

// namespaceLabels are those that git gives a namespace, and the one that every
// namespace has.
func (m *model) namespaceLabels(name string) (set labels.Set, known bool) {
	set = labels.Set{corev1.LabelMetadataName: name}
	for _, i := range m.objects[id{"", "Namespace", "", name}] {
		known = true
		for key, value := range i.GetLabels() {
			set[key] = value
		}
	}
	return set, known
}
