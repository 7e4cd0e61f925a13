// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

// Package cluster runs a real Kubernetes control plane and real Flux on
// loopback: etcd, kube-apiserver, kube-controller-manager, source-, kustomize-
// and helm-controller, cdi-operator and a git server, each an ordinary process.
// Clusters are isolated from each other and from the machine: free ports, a
// directory of their own, a minimal environment, and nothing that the API
// server dials leaves loopback. Whatever way the calling process ends, the
// kernel ends what it started.
//
//	func TestTiers(t *testing.T) {
//		c := cluster.New(t, cluster.Options{})
//		revision, err := c.Push(t.Context(), "fleet", cluster.Files{"root/cm.yaml": …}, "first")
//		…
//		err = c.InstallRoot(t.Context(), cluster.Root{Repo: "fleet", Path: "root"})
//		…
//		mark := c.Mark()
//		// run what is tested with KUBECONFIG=c.Kubeconfig()
//		events, err := c.Since(t.Context(), mark)
//		if len(events.By("kubectl-tiers/").Mutating()) != 0 { … }
//	}
//
// What is missing is a kubelet: no container runs. Where a workload would have
// to run, a test writes its status (MarkAvailable, or Options.Kubelet for all
// pods at once) and never what a controller would write.
//
// Nothing here waits for a time to pass. Methods return when what they name is
// true, or with an error when ctx ends; a ctx without a deadline gets five minutes,
// five for the start of a component.
package cluster
