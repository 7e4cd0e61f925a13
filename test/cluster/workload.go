// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package cluster

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// MarkAvailable takes a Deployment to available, once it is there, as if its
// containers ran: its Pods are given to a node, and what the kubelet of that
// node writes of them is written; all else is left to the controller manager.
// Pods that the Deployment gets later run as well. In a cluster without a
// controller manager there are no Pods, and the status of the Deployment itself
// is written.
func (c *Cluster) MarkAvailable(ctx context.Context, namespace, name string) error {
	ctx, cancel := withDeadline(ctx, waitDeadline)
	defer cancel()
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if err := c.Until(ctx, deployment, always); err != nil {
		return err
	}
	if !c.makesPods() {
		return c.writeAvailable(ctx, deployment)
	}
	selector, err := metav1.LabelSelectorAsSelector(deployment.Spec.Selector)
	if err != nil {
		return err
	}
	k, err := c.startKubelet(ctx)
	if err != nil {
		return err
	}
	if err := k.runPods(ctx, namespace, selector); err != nil {
		return err
	}
	return c.Until(ctx, deployment, func() bool { return available(deployment) })
}

// makesPods tells whether Deployments get Pods in this cluster.
func (c *Cluster) makesPods() bool {
	return c.Running(ControllerManager) || slices.Contains(c.options.Components, ControllerManager)
}

// untilEndpoint waits until a Service has a pod that is ready behind it.
func (c *Cluster) untilEndpoint(ctx context.Context, namespace, service string) error {
	ctx, cancel := withDeadline(ctx, waitDeadline)
	defer cancel()
	// A watch from no version begins with what is there.
	w, err := c.client.Watch(ctx, &discoveryv1.EndpointSliceList{},
		client.InNamespace(namespace), client.MatchingLabels{discoveryv1.LabelServiceName: service})
	if err != nil {
		return err
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		slice, ok := event.Object.(*discoveryv1.EndpointSlice)
		if !ok {
			break
		}
		for _, e := range slice.Endpoints {
			if ready := e.Conditions.Ready; ready != nil && *ready {
				return nil
			}
		}
	}
	return fmt.Errorf("service %s/%s has no endpoint: %w", namespace, service, context.Cause(ctx))
}

func available(d *appsv1.Deployment) bool {
	if d.Status.ObservedGeneration < d.Generation || d.Status.UpdatedReplicas < d.Status.Replicas {
		return false
	}
	for _, condition := range d.Status.Conditions {
		if condition.Type == appsv1.DeploymentAvailable {
			return condition.Status == corev1.ConditionTrue && d.Status.AvailableReplicas == d.Status.Replicas
		}
	}
	return false
}

// writeRunning writes the status that a kubelet writes once a pod's containers
// run, or have ended well when they are not to be started again.
func (c *Cluster) writeRunning(ctx context.Context, pod *corev1.Pod) error {
	before := pod.DeepCopy()
	now := metav1.Now()
	runs := pod.Spec.RestartPolicy == corev1.RestartPolicyAlways
	pod.Status.Phase = corev1.PodSucceeded
	if runs {
		pod.Status.Phase = corev1.PodRunning
	}
	pod.Status.StartTime = &now
	pod.Status.PodIP = podIP(pod)
	pod.Status.PodIPs = []corev1.PodIP{{IP: pod.Status.PodIP}}
	pod.Status.Conditions = nil
	for _, condition := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		status := corev1.ConditionTrue
		if !runs && (condition == corev1.ContainersReady || condition == corev1.PodReady) {
			status = corev1.ConditionFalse
		}
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: condition, Status: status, LastTransitionTime: now})
	}
	pod.Status.ContainerStatuses = nil
	for _, container := range pod.Spec.Containers {
		status := corev1.ContainerStatus{Name: container.Name, Image: container.Image, Ready: runs, Started: &runs}
		if runs {
			status.State.Running = &corev1.ContainerStateRunning{StartedAt: now}
		} else {
			status.State.Terminated = &corev1.ContainerStateTerminated{Reason: "Completed", StartedAt: now, FinishedAt: now}
		}
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, status)
	}
	return c.client.Status().Patch(ctx, pod, client.MergeFrom(before), client.FieldOwner("kubelet"))
}

// podIP is an address that is a pod's own and leads nowhere: of 198.18.0.0/15,
// which is set aside for tests.
func podIP(pod *corev1.Pod) string {
	uid := []byte(pod.UID)
	var sum uint32
	for _, b := range uid {
		sum = sum*31 + uint32(b)
	}
	return fmt.Sprintf("198.%d.%d.%d", 18+sum>>16&1, sum>>8&0xff, 1+sum%254)
}

// writeAvailable writes what the deployment controller would.
func (c *Cluster) writeAvailable(ctx context.Context, d *appsv1.Deployment) error {
	before := d.DeepCopy()
	replicas := int32(1)
	if d.Spec.Replicas != nil {
		replicas = *d.Spec.Replicas
	}
	now := metav1.Now()
	d.Status = appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation,
		Replicas:           replicas, UpdatedReplicas: replicas, ReadyReplicas: replicas, AvailableReplicas: replicas,
		Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, Reason: "MinimumReplicasAvailable", LastUpdateTime: now, LastTransitionTime: now},
			{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable", LastUpdateTime: now, LastTransitionTime: now},
		},
	}
	return c.client.Status().Patch(ctx, d, client.MergeFrom(before))
}
