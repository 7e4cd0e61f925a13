// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kubestandup/kubestandup/pkg/crds"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// FluxState is what was looked up about Flux beyond its own objects.
type FluxState struct {
	// Deployments are the metadata of the controllers' Deployments, by the
	// names of World.Controllers.
	Deployments map[string]Observed
	// Operators are those behind the triggers of the diagnoses, by the ID of
	// their relation.
	Operators map[string]crds.Operator
}

const (
	sourceController    = "source-controller"
	kustomizeController = "kustomize-controller"

	// fluxInstances selects the controllers of Flux, however it was installed
	// (flux2 manifests and the Flux Operator set it).
	fluxInstances  = "app.kubernetes.io/part-of=flux"
	componentLabel = "app.kubernetes.io/component"
)

// observeFlux looks at Flux's controllers, and builds the tiers that lack a
// kind. Without Flux there is nothing to look at.
func (c *Cluster) observeFlux(ctx context.Context, w *World) []Gap {
	if w.Flux == nil {
		return nil
	}
	gaps := c.observeControllers(ctx, w)
	if c.crds == nil {
		return gaps
	}
	return append(gaps, c.observeDiagnoses(ctx, w)...)
}

// observeControllers takes one LIST of Deployments, and one of Pods for each
// namespace that holds a controller. The Pods are told apart by the
// Deployments' selectors: Flux before 2.6 did not put its labels on Pods.
func (c *Cluster) observeControllers(ctx context.Context, w *World) []Gap {
	var deployments []appsv1.Deployment
	for page := (metav1.ListOptions{LabelSelector: fluxInstances, Limit: pageSize}); ; {
		list, err := c.apps.Deployments(metav1.NamespaceAll).List(ctx, page)
		if err != nil {
			return []Gap{{What: "Flux's controllers", Why: fmt.Sprintf("list deployments in all namespaces: %v", err)}}
		}
		deployments = append(deployments, list.Items...)
		if page.Continue = list.Continue; page.Continue == "" {
			break
		}
	}
	var gaps []Gap
	pods, unread := map[string][]corev1.Pod{}, map[string]bool{}
	for i := range deployments {
		namespace := deployments[i].Namespace
		if _, done := pods[namespace]; done {
			continue
		}
		var err error
		if pods[namespace], err = c.pods(ctx, namespace); err != nil {
			unread[namespace] = true
			gaps = append(gaps, Gap{What: "the Pods of Flux's controllers", Why: err.Error()})
		}
	}
	// What is named after its component comes before the shards of it.
	slices.SortStableFunc(deployments, func(a, b appsv1.Deployment) int { return isShard(&a) - isShard(&b) })
	w.Controllers, w.Deployments = map[string]*Controller{}, map[string]Observed{}
	families := map[string]string{}
	for i := range deployments {
		d := &deployments[i]
		name := controllerName(d, w.Controllers)
		families[name] = family(d)
		w.Controllers[name] = controllerOf(d, pods[d.Namespace])
		w.Deployments[name] = Observed{
			Ref: w.Controllers[name].Deployment, UID: d.UID, ResourceVersion: d.ResourceVersion,
			Generation: d.Generation, Created: d.CreationTimestamp.Time,
		}
	}
	w.startTogether(families, unread)
	return gaps
}

// startTogether gives the Deployments that run one controller the oldest start
// among them: which of the shards works on an object is not looked at. Where
// the Pods of one could not be listed, nothing is known of any.
func (w *World) startTogether(families map[string]string, unread map[string]bool) {
	oldest, unknown := map[string]time.Time{}, map[string]bool{}
	for name, c := range w.Controllers {
		f := families[name]
		unknown[f] = unknown[f] || unread[c.Deployment.Namespace]
		if at := oldest[f]; at.IsZero() || !c.Started.IsZero() && c.Started.Before(at) {
			oldest[f] = c.Started
		}
	}
	for name, c := range w.Controllers {
		if c.Started = oldest[families[name]]; unknown[families[name]] {
			c.Started = time.Time{}
		}
	}
}

// family is the controller that a Deployment runs, as a shard of it or alone.
// Shards are named after it, whatever component their labels say.
func family(d *appsv1.Deployment) string {
	for _, name := range []string{sourceController, kustomizeController, helmController} {
		for _, own := range []string{d.Labels[componentLabel], d.Name} {
			if own == name || strings.HasPrefix(own, name+"-") {
				return name
			}
		}
	}
	if component := d.Labels[componentLabel]; component != "" {
		return component
	}
	return d.Name
}

func (c *Cluster) pods(ctx context.Context, namespace string) ([]corev1.Pod, error) {
	var pods []corev1.Pod
	for page := (metav1.ListOptions{Limit: pageSize}); ; {
		list, err := c.core.Pods(namespace).List(ctx, page)
		if err != nil {
			return nil, fmt.Errorf("list pods in namespace %s: %w", namespace, err)
		}
		pods = append(pods, list.Items...)
		if page.Continue = list.Continue; page.Continue == "" {
			return pods, nil
		}
	}
}

func isShard(d *appsv1.Deployment) int {
	if d.Labels[componentLabel] == d.Name {
		return 0
	}
	return 1
}

// controllerName is the component that a Deployment runs. Of several shards of
// one component the first has its name; the others go by their own.
func controllerName(d *appsv1.Deployment, taken map[string]*Controller) string {
	name := d.Labels[componentLabel]
	if name == "" || taken[name] != nil {
		return d.Name
	}
	return name
}

// controllerOf reads a controller from its Deployment and its Pods.
func controllerOf(d *appsv1.Deployment, pods []corev1.Pod) *Controller {
	c := &Controller{
		Deployment: flux.Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: d.Namespace, Name: d.Name},
		Wanted:     1, Ready: d.Status.ReadyReplicas,
	}
	if d.Spec.Replicas != nil {
		c.Wanted = *d.Spec.Replicas
	}
	if containers := d.Spec.Template.Spec.Containers; len(containers) > 0 {
		// A service mesh puts its own container first.
		at := max(0, slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == "manager" }))
		c.Version, c.Args = imageVersion(containers[at].Image), containers[at].Args
		if limit, set := containers[at].Resources.Limits[corev1.ResourceMemory]; set {
			c.MemoryLimit = limit.String()
		}
	}
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil {
		return c // the API server takes none that does not parse
	}
	for i := range pods {
		if selector.Matches(labels.Set(pods[i].Labels)) {
			c.addPod(&pods[i])
		}
	}
	return c
}

func (c *Controller) addPod(p *corev1.Pod) {
	ended := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	if at := p.Status.StartTime; at != nil && !ended {
		if c.Started.IsZero() || at.Time.Before(c.Started) {
			c.Started = at.Time
		}
		if p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil && at.After(c.Youngest) {
			c.Youngest = at.Time
		}
	}
	for _, s := range p.Status.ContainerStatuses {
		c.Restarts = max(c.Restarts, s.RestartCount)
		if last := s.LastTerminationState.Terminated; last != nil && !last.FinishedAt.Time.Before(c.LastTerminatedAt) {
			c.LastTermination, c.LastTerminatedAt = last.Reason, last.FinishedAt.Time
		}
	}
}

// imageVersion is the tag of an image, empty where it has none.
func imageVersion(image string) string {
	image, _, _ = strings.Cut(image, "@")
	if at := strings.LastIndex(image, ":"); at > strings.LastIndex(image, "/") {
		return image[at+1:]
	}
	return ""
}

// observeDiagnoses builds each tier that may lack a kind, and looks at the
// operators which would create it.
func (c *Cluster) observeDiagnoses(ctx context.Context, w *World) []Gap {
	var gaps []Gap
	w.Operators = map[string]crds.Operator{}
	for _, n := range w.Graph.Tiers() {
		if !n.MayMissKind() || !w.asked.build(n.Tier) {
			continue
		}
		d, err := c.crds.Diagnose(ctx, w.Flux, n.Ref)
		if err != nil {
			gaps = append(gaps, Gap{What: fmt.Sprintf("which kinds %s lacks", n.Ref), Why: err.Error(), Object: &n.Ref})
			continue
		}
		w.Diagnoses = append(w.Diagnoses, d)
		for _, t := range d.Triggers {
			id := t.Relation.ID
			if _, seen := w.Operators[id]; seen {
				continue
			}
			if w.Operators[id], err = c.crds.Operator(ctx, t.Relation); err != nil {
				gaps = append(gaps, Gap{What: fmt.Sprintf("the operator of %s, which %s waits for", t.Relation.System, n.Ref), Why: err.Error(), Object: &n.Ref})
			}
		}
	}
	return gaps
}
