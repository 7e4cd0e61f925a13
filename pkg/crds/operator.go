// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package crds

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/knowledge"
)

// Operator is what the controller behind a trigger is doing, as its
// Deployment, its Pods and its events tell.
type Operator struct {
	System string
	// Deployment is the zero Ref when none was seen.
	Deployment flux.Ref
	// Wanted and Available are numbers of replicas.
	Wanted, Available int32
	// Pods are those that are not Ready, each with its reason.
	Pods []string
	// Warnings are the newest warning events, newest first.
	Warnings []string
}

// lastWarnings is how many warning events are worth a person's attention.
const lastWarnings = 3

// Found is true when a Deployment of the operator was seen.
func (o Operator) Found() bool { return o.Deployment.Name != "" }

// Sentence says what the operator is doing.
func (o Operator) Sentence() string {
	if !o.Found() {
		return "no operator of " + o.System + " was seen on this cluster"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "the operator of %s, %s, has %d of %d replicas available", o.System, o.Deployment, o.Available, o.Wanted)
	if o.Wanted == 0 {
		b.WriteString(": it is scaled to zero")
	}
	for _, p := range o.Pods {
		b.WriteString("; " + p)
	}
	for _, w := range o.Warnings {
		b.WriteString("; warning: " + w)
	}
	return b.String()
}

// Operator looks at the operator of a relation. It takes one request when no
// Deployment is seen, three when one is.
func (c *Cluster) Operator(ctx context.Context, r knowledge.Relation) (Operator, error) {
	o := Operator{System: r.System}
	if r.Operator == nil || len(r.Operator.Labels) == 0 { // no labels select every Deployment
		return o, nil
	}
	deployments, err := c.apps.Deployments(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		LabelSelector: labels.SelectorFromSet(r.Operator.Labels).String(), Limit: 500,
	})
	if err != nil {
		return o, fmt.Errorf("list deployments in all namespaces: %w", err)
	}
	if len(deployments.Items) == 0 {
		return o, nil
	}
	d := &deployments.Items[0]
	o.Deployment = flux.Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: d.Namespace, Name: d.Name}
	o.Wanted, o.Available = 1, d.Status.AvailableReplicas
	if d.Spec.Replicas != nil {
		o.Wanted = *d.Spec.Replicas
	}
	if err := c.readPods(ctx, &o, d); err != nil {
		return o, err
	}
	err = c.readWarnings(ctx, &o)
	return o, err
}

func (c *Cluster) readPods(ctx context.Context, o *Operator, d *appsv1.Deployment) error {
	pods, err := c.core.Pods(d.Namespace).List(ctx, metav1.ListOptions{
		LabelSelector: metav1.FormatLabelSelector(d.Spec.Selector), Limit: 500,
	})
	if err != nil {
		return fmt.Errorf("list pods in namespace %s: %w", d.Namespace, err)
	}
	for i := range pods.Items {
		if why := notReady(&pods.Items[i]); why != "" {
			o.Pods = append(o.Pods, fmt.Sprintf("Pod %s is not Ready: %s", pods.Items[i].Name, why))
		}
	}
	return nil
}

// notReady is why a Pod is not Ready, empty for one that is. A container that
// waits or ended says more than the Pod's own condition.
func notReady(p *corev1.Pod) string {
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		switch {
		case s.State.Waiting != nil:
			return joinReason(s.State.Waiting.Reason, s.State.Waiting.Message)
		case s.State.Terminated != nil && s.State.Terminated.ExitCode != 0:
			return joinReason(s.State.Terminated.Reason, s.State.Terminated.Message)
		}
	}
	for _, kind := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodReady} {
		for _, c := range p.Status.Conditions {
			if c.Type == kind && c.Status != corev1.ConditionTrue {
				return joinReason(c.Reason, c.Message)
			}
		}
	}
	if len(p.Status.Conditions) == 0 {
		return "no kubelet has reported it yet"
	}
	return ""
}

func joinReason(reason, message string) string {
	switch {
	case reason == "":
		return cmp.Or(message, "no reason given")
	case message == "":
		return reason
	}
	return reason + ": " + message
}

func (c *Cluster) readWarnings(ctx context.Context, o *Operator) error {
	events, err := c.core.Events(o.Deployment.Namespace).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("type", corev1.EventTypeWarning).String(), Limit: 500,
	})
	if err != nil {
		return fmt.Errorf("list events in namespace %s: %w", o.Deployment.Namespace, err)
	}
	slices.SortFunc(events.Items, func(a, b corev1.Event) int { return when(b).Compare(when(a).Time) })
	for _, e := range events.Items {
		if !strings.HasPrefix(e.InvolvedObject.Name, o.Deployment.Name) {
			continue
		}
		o.Warnings = append(o.Warnings, fmt.Sprintf("%s/%s %s: %s", e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Reason, e.Message))
		if len(o.Warnings) == lastWarnings {
			break
		}
	}
	return nil
}

func when(e corev1.Event) *metav1.Time {
	if !e.LastTimestamp.IsZero() {
		return &e.LastTimestamp
	}
	t := metav1.NewTime(e.EventTime.Time)
	return &t
}
