// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package cluster

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const deploymentYAML = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web}]}
`

func TestWorkloads(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c := New(t, Options{Components: []Component{ControllerManager}})
	if err := c.Apply(ctx, deploymentYAML); err != nil {
		t.Fatal(err)
	}
	web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	if err := c.Until(ctx, web, func() bool { return web.Status.UnavailableReplicas == 2 }); err != nil {
		t.Fatal(err)
	}
	if err := c.MarkAvailable(ctx, "default", "web"); err != nil {
		t.Fatal(err)
	}
	if err := c.Until(ctx, web, func() bool { return web.Status.AvailableReplicas == 2 }); err != nil {
		t.Fatal(err)
	}
	var pods corev1.PodList
	if err := c.Client().List(ctx, &pods, client.InNamespace("default")); err != nil {
		t.Fatal(err)
	}
	if len(pods.Items) != 2 || pods.Items[0].Status.PodIP == pods.Items[1].Status.PodIP {
		t.Errorf("want two pods with an address each: %v", pods.Items)
	}

	t.Run("kubelet", func(t *testing.T) {
		// On the same cluster, to spare the start of another one.
		k, err := c.startKubelet(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := k.runPods(ctx, "", labels.Everything()); err != nil {
			t.Fatal(err)
		}
		err = c.Apply(ctx, strings.ReplaceAll(deploymentYAML, "web", "other")+`---
apiVersion: batch/v1
kind: Job
metadata: {name: once, namespace: default}
spec:
  template:
    spec: {restartPolicy: Never, containers: [{name: once, image: once}]}
`)
		if err != nil {
			t.Fatal(err)
		}
		other := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "other"}}
		if err := c.Until(ctx, other, func() bool { return available(other) }); err != nil {
			t.Fatal(err)
		}
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "once"}}
		if err := c.Until(ctx, job, func() bool { return job.Status.Succeeded == 1 && job.Status.CompletionTime != nil }); err != nil {
			t.Fatal(err)
		}
		// A pod on a node goes only when its kubelet says so.
		if err := c.Client().Delete(ctx, other); err != nil {
			t.Fatal(err)
		}
		for _, p := range pods.Items {
			if err := c.Client().Delete(ctx, &p); err != nil {
				t.Fatal(err)
			}
			if err := c.UntilGone(ctx, &p); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.Until(ctx, web, func() bool { return available(web) }); err != nil {
			t.Errorf("new pods do not run: %v", err)
		}
	})
}

const cdiYAML = `
apiVersion: cdi.kubevirt.io/v1beta1
kind: CDI
metadata: {name: cdi}
spec: {}
`

const dataVolumeYAML = `
apiVersion: cdi.kubevirt.io/v1beta1
kind: DataVolume
metadata: {name: disk, namespace: default}
spec:
  source: {blank: {}}
  storage: {storageClassName: longhorn-vm, resources: {requests: {storage: 1Gi}}}
`

// TestCDI installs CDI as a person does; its operator and its API server run for
// real when their pods are there.
func TestCDI(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c := New(t, Options{Components: []Component{ControllerManager}, Kubelet: true})
	if err := c.InstallCDI(ctx); err != nil {
		t.Fatal(err)
	}
	operator := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "cdi", Name: "cdi-operator"}}
	if err := c.Until(ctx, operator, func() bool { return available(operator) }); err != nil {
		t.Fatal(err)
	}
	crd := &unstructured.Unstructured{}
	crd.SetAPIVersion("apiextensions.k8s.io/v1")
	crd.SetKind("CustomResourceDefinition")
	if err := c.Client().Get(ctx, client.ObjectKey{Name: "storageprofiles.cdi.kubevirt.io"}, crd); !apierrors.IsNotFound(err) {
		t.Fatalf("a second-order CRD before its trigger: %v", err)
	}
	if err := c.Apply(ctx, cdiYAML); err != nil {
		t.Fatal(err)
	}
	if err := c.untilEstablished(ctx, "storageprofiles.cdi.kubevirt.io"); err != nil {
		t.Fatal(err)
	}
	cdi := &unstructured.Unstructured{}
	cdi.SetAPIVersion("cdi.kubevirt.io/v1beta1")
	cdi.SetKind("CDI")
	cdi.SetName("cdi")
	phase := func() string { p, _, _ := unstructured.NestedString(cdi.Object, "status", "phase"); return p }
	if err := c.Until(ctx, cdi, func() bool { return phase() == "Deployed" }); err != nil {
		t.Fatal(err)
	}
	// Both go through webhooks with failurePolicy Fail.
	if err := c.Apply(ctx, dataVolumeYAML); err != nil {
		t.Error(err)
	}
	err := c.Apply(ctx, strings.NewReplacer("name: disk", "name: two", "blank: {}", "blank: {}, http: {url: http://localhost}").Replace(dataVolumeYAML))
	if err == nil || !strings.Contains(err.Error(), "cdi.kubevirt.io\" denied the request") {
		t.Errorf("a DataVolume with two sources: %v, want CDI's webhook to refuse it", err)
	}

	t.Run("restart of the operator", func(t *testing.T) {
		if err := c.Restart(ctx, CDIOperator); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("no pod, no process", func(t *testing.T) {
		if err := c.Client().Delete(ctx, operator); err != nil {
			t.Fatal(err)
		}
		select {
		case <-c.process(CDIOperator).exited:
		case <-ctx.Done():
			t.Fatal(ctx.Err())
		}
	})
}
