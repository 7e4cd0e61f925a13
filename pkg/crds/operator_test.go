// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package crds

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

func TestWhatAnOperatorIsDoing(t *testing.T) {
	deployment := flux.Ref{Kind: "Deployment", Namespace: "cdi", Name: "cdi-operator"}
	tests := map[string]struct {
		operator Operator
		want     []string
	}{
		"missing": {Operator{System: "KubeVirt CDI"}, []string{"no operator of KubeVirt CDI was seen"}},
		"well":    {Operator{System: "KubeVirt CDI", Deployment: deployment, Wanted: 1, Available: 1}, []string{"1 of 1 replicas available"}},
		"scaled to zero": {
			Operator{System: "KubeVirt CDI", Deployment: deployment}, []string{"0 of 0", "scaled to zero"},
		},
		"slow": {
			Operator{System: "KubeVirt CDI", Deployment: deployment, Wanted: 1, Pods: []string{"Pod x is not Ready: ImagePullBackOff"}, Warnings: []string{"Pod/x Failed: no such image"}},
			[]string{"0 of 1 replicas", "ImagePullBackOff", "no such image"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			for _, want := range tc.want {
				if got := tc.operator.Sentence(); !strings.Contains(got, want) {
					t.Errorf("%q does not hold %q", got, want)
				}
			}
		})
	}
}

func TestWhyAPodIsNotReady(t *testing.T) {
	pod := func(s corev1.PodStatus) *corev1.Pod { return &corev1.Pod{Status: s} }
	ready := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue}
	tests := map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"ready":         {pod(corev1.PodStatus{Conditions: []corev1.PodCondition{ready}}), ""},
		"never started": {pod(corev1.PodStatus{}), "no kubelet has reported it yet"},
		"waiting": {pod(corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off 5m"}},
		}}}), "CrashLoopBackOff: back-off 5m"},
		"ended": {pod(corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{{
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}},
		}}}), "OOMKilled"},
		"an init container that succeeded": {pod(corev1.PodStatus{
			Conditions:            []corev1.PodCondition{ready},
			InitContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed"}}}},
		}), ""},
		"unschedulable": {pod(corev1.PodStatus{Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/3 nodes"},
		}}), "Unschedulable: 0/3 nodes"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := notReady(tc.pod); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestEstablished(t *testing.T) {
	crd := func(conditions ...any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
			"metadata": map[string]any{"name": "widgets.obs.example.com"},
			"status":   map[string]any{"conditions": conditions},
		}}
	}
	condition := func(kind, status, reason string) map[string]any {
		return map[string]any{"type": kind, "status": status, "reason": reason, "message": reason}
	}
	if done, err := established(crd()); done || err != nil {
		t.Errorf("no conditions yet: %t, %v", done, err)
	}
	if done, err := established(crd(condition("NamesAccepted", "True", ""), condition("Established", "True", ""))); !done || err != nil {
		t.Errorf("established: %t, %v", done, err)
	}
	// BIG-07: a clash of names is never resolved by waiting.
	var bad *definitionError
	if _, err := established(crd(condition("NamesAccepted", "False", "ListKindConflict"))); !errors.As(err, &bad) || !strings.Contains(err.Error(), "ListKindConflict") {
		t.Errorf("names not accepted: %v", err)
	}
}
