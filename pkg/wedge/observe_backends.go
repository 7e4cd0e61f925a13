// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"context"
	"path"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

// backends looks at the Services that the API server has to reach: the
// EndpointSlices of their namespaces, and the Services that have none ready.
func (r *apiReader) backends(ctx context.Context) {
	byNamespace := map[string][]*Backend{}
	for _, name := range r.world.API.services() {
		b := &Backend{Service: name}
		r.world.Backends[name] = b
		byNamespace[name.Namespace] = append(byNamespace[name.Namespace], b)
	}
	var parts []func(context.Context)
	for namespace, of := range byNamespace {
		parts = append(parts, func(ctx context.Context) { r.endpoints(ctx, namespace, of) })
	}
	r.together(ctx, parts...)
}

// services are those that anything names, each once.
func (a *API) services() []types.NamespacedName {
	seen := map[types.NamespacedName]bool{}
	for _, s := range a.APIServices {
		seen[s.Service] = true
	}
	for _, c := range a.Webhooks {
		for _, h := range c.Webhooks {
			seen[h.Service] = true
		}
	}
	for _, d := range a.Definitions {
		if d.Conversion != nil {
			seen[d.Conversion.Service] = true
		}
	}
	delete(seen, types.NamespacedName{}) // by URL
	var out []types.NamespacedName
	for s := range seen {
		out = append(out, s)
	}
	return out
}

func (r *apiReader) endpoints(ctx context.Context, namespace string, of []*Backend) {
	type slice struct {
		Metadata  fields `json:"metadata"`
		Endpoints []struct {
			Conditions struct {
				Ready *bool `json:"ready"`
			} `json:"conditions"`
		} `json:"endpoints"`
	}
	type count struct {
		service    string
		ready, not int
	}
	counts, err := all(ctx, r.lister, query{path: []string{"/apis/discovery.k8s.io/v1/namespaces", namespace, "endpointslices"}},
		func(s *slice) (count, bool) {
			c := count{service: s.Metadata.Labels["kubernetes.io/service-name"]}
			for _, e := range s.Endpoints {
				if e.Conditions.Ready == nil || *e.Conditions.Ready { // k8s.io/api discovery/v1: nil is ready
					c.ready++
				} else {
					c.not++
				}
			}
			return c, true
		})
	if err != nil {
		r.gap("EndpointSlices in namespace "+namespace, err)
	}
	for _, b := range of {
		if err != nil {
			b.Unknown = reason(err)
			continue
		}
		for _, c := range counts {
			if c.service == b.Service.Name {
				b.Ready += c.ready
				b.NotReady += c.not
			}
		}
		if b.Exists = b.Ready > 0; !b.Exists {
			r.service(ctx, b)
		}
	}
}

func (r *apiReader) service(ctx context.Context, b *Backend) {
	type service struct {
		Spec struct {
			Type     string            `json:"type"`
			Selector map[string]string `json:"selector"`
		} `json:"spec"`
	}
	s, found, err := object[service](ctx, r.lister, "/api/v1/namespaces", b.Service.Namespace, "services", b.Service.Name)
	switch {
	case err != nil:
		b.Unknown = reason(err)
		r.gap(serviceRef(b.Service).String(), err)
	case found:
		b.Exists, b.External, b.Selector = true, s.Spec.Type == string(corev1.ServiceTypeExternalName), s.Spec.Selector
	}
}

// workload is what runs Pods without an end, as the API server has it.
type workload struct {
	Metadata fields `json:"metadata"`
	Spec     struct {
		Replicas *int32 `json:"replicas"`
		Template struct {
			Metadata struct {
				Labels      map[string]string `json:"labels"`
				Annotations struct {
					RestartedAt string `json:"kubectl.kubernetes.io/restartedAt"`
				} `json:"annotations"`
			} `json:"metadata"`
			Spec struct {
				Containers []struct {
					Name    string   `json:"name"`
					Image   string   `json:"image"`
					Command []string `json:"command"`
				} `json:"containers"`
			} `json:"spec"`
		} `json:"template"`
	} `json:"spec"`
	Status struct {
		AvailableReplicas      int32 `json:"availableReplicas"`
		DesiredNumberScheduled int32 `json:"desiredNumberScheduled"` // a DaemonSet's
		NumberAvailable        int32 `json:"numberAvailable"`
	} `json:"status"`
}

// workloads reads all three kinds, since a controller may be any of them.
func (r *apiReader) workloads(ctx context.Context) {
	for _, k := range []struct{ plural, kind string }{{"deployments", "Deployment"}, {"statefulsets", "StatefulSet"}, {"daemonsets", "DaemonSet"}} {
		found, err := all(ctx, r.lister, query{path: []string{"/apis/apps/v1", k.plural}}, func(i *workload) (*Workload, bool) {
			return i.observed(k.kind), true
		})
		r.world.Workloads = append(r.world.Workloads, found...)
		if err != nil {
			r.unread(PartWorkloads, err)
			return
		}
	}
}

func (i *workload) observed(kind string) *Workload {
	d := &Workload{
		Observed: i.Metadata.observed("apps/v1", kind), Labels: i.Metadata.Labels, PodLabels: i.Spec.Template.Metadata.Labels,
		Wanted: 1, Available: i.Status.AvailableReplicas, Names: []string{i.Metadata.Name},
	}
	switch {
	case kind == "DaemonSet":
		d.Wanted, d.Available = i.Status.DesiredNumberScheduled, i.Status.NumberAvailable
	case i.Spec.Replicas != nil:
		d.Wanted = *i.Spec.Replicas
	}
	d.RestartedAt, _ = time.Parse(time.RFC3339, i.Spec.Template.Metadata.Annotations.RestartedAt)
	for _, c := range i.Spec.Template.Spec.Containers {
		image, _, _ := strings.Cut(path.Base(c.Image), "@")
		image, _, _ = strings.Cut(image, ":")
		d.Names = append(d.Names, c.Name, image)
		if len(c.Command) > 0 {
			d.Names = append(d.Names, path.Base(c.Command[0]))
		}
		if d.Image == "" {
			d.Image = c.Image
		}
	}
	return d
}

// pods reads those that are not Ready in the namespaces where one is needed.
func (r *apiReader) pods(ctx context.Context) {
	var namespaces []string
	need := func(ns string) {
		if ns != "" && !slices.Contains(namespaces, ns) {
			namespaces = append(namespaces, ns)
		}
	}
	for _, b := range r.world.Backends {
		if b.Unknown == "" && b.Exists && !b.External && b.Ready == 0 {
			need(b.Service.Namespace)
		}
	}
	for _, t := range r.world.Triggers {
		if d := r.world.operator(t.Relation); d != nil && (!t.Deleted.IsZero() || t.Phase != phaseDeployed) {
			need(d.Ref.Namespace)
		}
	}
	var parts []func(context.Context)
	for _, ns := range namespaces {
		parts = append(parts, func(ctx context.Context) { r.podsIn(ctx, ns) })
	}
	r.together(ctx, parts...)
}

func (r *apiReader) podsIn(ctx context.Context, namespace string) {
	type item struct {
		Metadata fields           `json:"metadata"`
		Status   corev1.PodStatus `json:"status"`
	}
	found, err := all(ctx, r.lister, query{path: []string{"/api/v1/namespaces", namespace, "pods"}}, func(i *item) (Pod, bool) {
		why := podWhy(&i.Status)
		return Pod{flux.Ref{APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: i.Metadata.Name}, i.Metadata.Labels, why}, why != "" && i.Metadata.DeletionTimestamp.IsZero()
	})
	if err != nil {
		r.gap("Pods in namespace "+namespace, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.world.Pods = append(r.world.Pods, found...)
}

// podWhy is why a Pod is not Ready, empty for one that is or that has ended. A
// container that waits or ended says more than the Pod's own condition.
func podWhy(s *corev1.PodStatus) string {
	if s.Phase == corev1.PodSucceeded || s.Phase == corev1.PodFailed {
		return ""
	}
	for _, c := range slices.Concat(s.InitContainerStatuses, s.ContainerStatuses) {
		switch {
		case c.State.Waiting != nil:
			return because(c.State.Waiting.Reason, c.State.Waiting.Message)
		case c.State.Terminated != nil && c.State.Terminated.ExitCode != 0:
			return because(c.State.Terminated.Reason, c.State.Terminated.Message)
		}
	}
	for _, kind := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodReady} {
		for _, c := range s.Conditions {
			if c.Type == kind && c.Status != corev1.ConditionTrue {
				return because(c.Reason, c.Message)
			}
		}
	}
	if len(s.Conditions) == 0 {
		return "no kubelet has reported it yet"
	}
	return ""
}

func because(reason, message string) string {
	switch {
	case reason == "" && message == "":
		return "no reason given"
	case message == "":
		return reason
	case reason == "":
		return message
	}
	return reason + ": " + message
}
