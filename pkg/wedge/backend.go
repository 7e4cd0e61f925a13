// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

// backendState is what can be expected of a Service.
type backendState int

// The states, from the best to the worst.
const (
	backendAlive backendState = iota
	backendUnknown
	backendComing // it exists, and something is there that wants to answer
	backendRevived
	backendEmpty // it exists, and nothing is behind it
	backendGone
)

// backend is the state of a Service, and one sentence about it.
func (w *World) backend(name types.NamespacedName) (backendState, string) {
	b := w.Backends[name]
	ref := serviceRef(name)
	switch {
	case b == nil:
		return backendUnknown, fmt.Sprintf("%s was not looked at", ref)
	case b.Unknown != "":
		return backendUnknown, fmt.Sprintf("%s could not be looked at: %s", ref, b.Unknown)
	case b.External:
		return backendAlive, fmt.Sprintf("%s points to another host by name", ref)
	case !b.Exists:
		if op := w.reviver(name.Namespace); op != nil {
			return backendRevived, fmt.Sprintf("%s does not exist; %s, which makes it, is there with %d of %d replicas available",
				ref, op.Ref, op.Available, op.Wanted)
		}
		if w.Unread[PartWorkloads] != "" {
			return backendUnknown, fmt.Sprintf("%s does not exist, and whether an operator is about to make it cannot be said: %s",
				ref, w.Unread[PartWorkloads])
		}
		if w.terminating(name.Namespace) != nil {
			return backendGone, fmt.Sprintf("%s does not exist, and its Namespace is being deleted", ref)
		}
		return backendGone, fmt.Sprintf("%s does not exist", ref)
	case b.Ready > 0:
		return backendAlive, fmt.Sprintf("%s has %d ready endpoints", ref, b.Ready)
	}
	if why := w.behind(b); why != "" {
		return backendComing, fmt.Sprintf("%s exists and has no ready endpoint yet: %s", ref, why)
	}
	if w.Unread[PartWorkloads] != "" {
		return backendUnknown, fmt.Sprintf("%s has no ready endpoint, and what is behind it could not be read: %s", ref, w.Unread[PartWorkloads])
	}
	return backendEmpty, fmt.Sprintf("%s exists, but no Pod and no Deployment that wants one is behind it%s", ref, w.scaledDown(b))
}

// behind says what is there to become a ready endpoint, empty for nothing.
func (w *World) behind(b *Backend) string {
	var parts []string
	for _, d := range w.workloadsOf(b) {
		if d.Wanted > 0 {
			parts = append(parts, fmt.Sprintf("%s has %d of %d replicas available", d.Ref, d.Available, d.Wanted))
		}
	}
	if len(b.Selector) > 0 {
		parts = append(parts, w.podsOf(b.Service.Namespace, b.Selector)...)
	}
	if len(parts) == 0 && b.NotReady > 0 {
		parts = append(parts, fmt.Sprintf("%d endpoints are not ready", b.NotReady))
	}
	return strings.Join(parts, "; ")
}

// podsOf are the Pods that are not Ready and match, each with its reason.
func (w *World) podsOf(namespace string, selector map[string]string) []string {
	var out []string
	for _, p := range w.Pods {
		if p.Ref.Namespace == namespace && labels.SelectorFromSet(selector).Matches(labels.Set(p.Labels)) {
			out = append(out, fmt.Sprintf("%s is not Ready: %s", p.Ref, p.Why))
		}
	}
	return out
}

func (w *World) scaledDown(b *Backend) string {
	for _, d := range w.workloadsOf(b) {
		return fmt.Sprintf(" (%s is scaled to zero)", d.Ref)
	}
	return ""
}

func (w *World) workloadsOf(b *Backend) []*Workload {
	var out []*Workload
	for _, d := range w.Workloads {
		if len(b.Selector) > 0 && d.Ref.Namespace == b.Service.Namespace && d.Deleted.IsZero() &&
			labels.SelectorFromSet(b.Selector).Matches(labels.Set(d.PodLabels)) {
			out = append(out, d)
		}
	}
	return out
}

// reviver is an operator in the namespace that is there, or about to be, and
// makes the Services of its system; nil when there is none.
func (w *World) reviver(namespace string) *Workload {
	for _, t := range w.Triggers {
		if t.Relation == nil || !t.Deleted.IsZero() {
			continue // of a resource that is being deleted nothing is made anew
		}
		if op := w.operator(t.Relation); op != nil && op.Ref.Namespace == namespace && op.Wanted > 0 {
			return op
		}
	}
	return nil
}

func (w *World) terminating(namespace string) *TerminatingNamespace {
	for _, n := range w.Terminating {
		if n.Ref.Name == namespace {
			return n
		}
	}
	return nil
}

func serviceRef(n types.NamespacedName) flux.Ref {
	return flux.Ref{APIVersion: "v1", Kind: "Service", Namespace: n.Namespace, Name: n.Name}
}

// evidenceBackend adds what was seen of a Service and of what is behind it.
func (w *World) evidenceBackend(v *Verdict, name types.NamespacedName) {
	b := w.Backends[name]
	ref := serviceRef(name)
	switch {
	case b == nil:
	case b.Unknown != "":
		v.evidence(ref, "", "not readable: "+b.Unknown)
	case !b.Exists:
		v.evidence(ref, "", "does not exist")
	default:
		v.evidence(ref, "endpoints", fmt.Sprintf("%d ready, %d not ready", b.Ready, b.NotReady))
		for _, d := range w.workloadsOf(b) {
			v.evidence(d.Ref, "status.availableReplicas", fmt.Sprintf("%d of %d", d.Available, d.Wanted))
		}
		for _, p := range w.Pods {
			if len(b.Selector) > 0 && p.Ref.Namespace == name.Namespace && labels.SelectorFromSet(b.Selector).Matches(labels.Set(p.Labels)) {
				v.evidence(p.Ref, "Ready", p.Why)
			}
		}
	}
	if n := w.terminating(name.Namespace); n != nil {
		v.evidence(n.Ref, "metadata.deletionTimestamp", n.Deleted.UTC().Format(timeFormat))
	}
}

// timeFormat is how times are told.
const timeFormat = "2006-01-02T15:04:05Z07:00"
