// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package cluster

import (
	"context"
	"fmt"
	"runtime"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// nodeName is the one node that a cluster has while a pod runs.
const nodeName = "node-1"

// makeNode registers the node, as a kubelet does. The controllers leave a pod
// without a node out of its Services.
func (c *Cluster) makeNode(ctx context.Context) error {
	version, err := c.serverVersion()
	if err != nil {
		return err
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: nodeName,
		Labels: map[string]string{
			corev1.LabelHostname:   nodeName,
			corev1.LabelOSStable:   runtime.GOOS,
			corev1.LabelArchStable: runtime.GOARCH,
		},
	}}
	if err := c.client.Create(ctx, node); err != nil {
		return fmt.Errorf("node: %w", err)
	}
	now := metav1.Now()
	before := node.DeepCopy()
	resources := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("4"),
		corev1.ResourceMemory: resource.MustParse("16Gi"),
		corev1.ResourcePods:   resource.MustParse("500"),
	}
	node.Status = corev1.NodeStatus{
		Capacity:    resources,
		Allocatable: resources,
		Conditions: []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady",
			Message: "stands in for a kubelet", LastHeartbeatTime: now, LastTransitionTime: now,
		}},
		// Of the range that is set aside for documentation: it leads nowhere.
		Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.1"}, {Type: corev1.NodeHostName, Address: nodeName}},
		NodeInfo: corev1.NodeSystemInfo{
			MachineID: nodeName, SystemUUID: nodeName, BootID: nodeName,
			KernelVersion: "6.12.0", OSImage: "none", ContainerRuntimeVersion: "none://0",
			KubeletVersion: version, OperatingSystem: runtime.GOOS, Architecture: runtime.GOARCH,
		},
	}
	if err := c.client.Status().Patch(ctx, node, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("node: %w", err)
	}
	return nil
}

func (c *Cluster) serverVersion() (string, error) {
	d, err := discovery.NewDiscoveryClientForConfig(c.Config())
	if err != nil {
		return "", err
	}
	version, err := d.ServerVersion()
	if err != nil {
		return "", err
	}
	return version.GitVersion, nil
}

// heartbeat renews the node's lease until ctx ends. Without it the controller
// manager would find the node dead after 50 seconds, and evict its pods.
func (k *kubelet) heartbeat(ctx context.Context) {
	beat := time.NewTicker(10 * time.Second)
	defer beat.Stop()
	holder, seconds := nodeName, int32(40)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: nodeName}}
	for {
		before := lease.DeepCopy()
		now := metav1.NowMicro()
		lease.Spec = coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &now}
		// An error is an API server that is away: the next beat will do.
		if lease.UID == "" {
			_ = k.cluster.client.Create(ctx, lease)
		} else {
			_ = k.cluster.client.Patch(ctx, lease, client.MergeFrom(before))
		}
		select {
		case <-ctx.Done():
			return
		case <-beat.C:
		}
	}
}
