// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package e2e

import (
	"context"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// untilHook waits until the hook's Job is there, which never ends by itself.
func (s *releaseScene) untilHook(t *testing.T) types.UID {
	t.Helper()
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "web-hook"}}
	if err := s.c.Until(t.Context(), job, func() bool { return true }); err != nil {
		t.Fatal(err)
	}
	return job.UID
}

// endHooks lets the Pod of each hook's Job succeed, but for the Job that is
// named: the test writes what a kubelet would. The Job itself is ended by the
// real controller.
func (s *releaseScene) endHooks(t *testing.T, but types.UID) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	pods, err := s.c.Client().Watch(ctx, &corev1.PodList{}, client.InNamespace(s.ns), client.HasLabels{batchv1.JobNameLabel})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range pods.ResultChan() {
			pod, ok := event.Object.(*corev1.Pod)
			if !ok || event.Type == watch.Deleted || pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodPending ||
				pod.Labels[batchv1.ControllerUidLabel] == string(but) {
				continue
			}
			patch := []byte(`{"status":{"phase":"Succeeded"}}`)
			if err := s.c.Client().Status().Patch(ctx, pod, client.RawPatch(types.MergePatchType, patch)); client.IgnoreNotFound(err) != nil && ctx.Err() == nil {
				t.Error(err)
			}
		}
	}()
	return func() {
		cancel()
		pods.Stop()
		<-done
	}
}
