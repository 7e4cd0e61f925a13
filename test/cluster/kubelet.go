// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package cluster

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// kubelet stands in for the node of a cluster, its kubelet and the scheduler
// that gives it pods. Every image starts at once, and those of cdi-operator and
// cdi-apiserver as real processes. Pods that it was not told to run stay
// pending.
type kubelet struct {
	cluster *Cluster
	cancel  context.CancelFunc
	work    sync.WaitGroup

	mu   sync.Mutex
	runs []podRule

	// components has, by pod, the component that runs because of it. It is used
	// by watch alone.
	components map[types.UID]podComponent
}

// podRule names pods that run.
type podRule struct {
	namespace string // "" is every one
	selector  labels.Selector
}

type podComponent struct {
	component Component
	cancel    context.CancelFunc
}

// realComponent is what a pod runs as a real process, or "".
func realComponent(pod *corev1.Pod) Component {
	switch {
	case pod.Namespace != cdiNamespace:
	case pod.Labels["name"] == string(CDIOperator):
		return CDIOperator
	case pod.Labels["cdi.kubevirt.io"] == string(CDIAPIServer):
		return CDIAPIServer
	}
	return ""
}

// startKubelet makes the node, once, and returns when it is ready.
func (c *Cluster) startKubelet(ctx context.Context) (*kubelet, error) {
	c.kubeletMu.Lock()
	defer c.kubeletMu.Unlock()
	if c.kubelet != nil {
		return c.kubelet, nil
	}
	if err := c.makeNode(ctx); err != nil {
		return nil, err
	}
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	k := &kubelet{cluster: c, cancel: cancel, components: map[types.UID]podComponent{}}
	k.work.Go(func() { k.heartbeat(own) })
	k.work.Go(func() { k.run(own) })
	c.kubelet = k
	return k, nil
}

// runPods lets pods run, those there are and those to come.
func (k *kubelet) runPods(ctx context.Context, namespace string, selector labels.Selector) error {
	rule := podRule{namespace, selector}
	k.mu.Lock()
	k.runs = append(k.runs, rule)
	k.mu.Unlock()
	var pods corev1.PodList
	if err := k.cluster.client.List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return err
	}
	for i := range pods.Items {
		if pods.Items[i].Spec.NodeName == "" {
			k.bind(ctx, &pods.Items[i])
		}
	}
	return nil
}

func (k *kubelet) stop() {
	k.cancel()
	k.work.Wait()
}

// run watches all pods until ctx ends, through restarts of the API server.
func (k *kubelet) run(ctx context.Context) {
	retry := time.NewTicker(100 * time.Millisecond)
	defer retry.Stop()
	for ctx.Err() == nil {
		k.watch(ctx)
		select {
		case <-ctx.Done():
		case <-retry.C:
		}
	}
}

func (k *kubelet) watch(ctx context.Context) {
	var pods corev1.PodList
	if err := k.cluster.client.List(ctx, &pods); err != nil {
		return // the API server is away: again
	}
	seen := map[types.UID]bool{}
	for i := range pods.Items {
		seen[pods.Items[i].UID] = true
		k.present(ctx, &pods.Items[i])
	}
	for uid := range k.components {
		if !seen[uid] {
			k.endComponent(uid)
		}
	}
	w, err := k.cluster.client.Watch(ctx, &corev1.PodList{}, fromVersion(pods.ResourceVersion))
	if err != nil {
		return
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		pod, ok := event.Object.(*corev1.Pod)
		if !ok {
			return // an error: list again
		}
		if event.Type == watch.Deleted {
			k.endComponent(pod.UID)
		} else {
			k.present(ctx, pod)
		}
	}
}

// present does what is next for a pod.
func (k *kubelet) present(ctx context.Context, pod *corev1.Pod) {
	switch {
	case pod.Spec.NodeName == "":
		if pod.DeletionTimestamp == nil && k.isToRun(pod) {
			k.bind(ctx, pod)
		}
	case pod.Spec.NodeName != nodeName:
	case pod.DeletionTimestamp != nil:
		k.endComponent(pod.UID)
		err := k.cluster.client.Delete(ctx, pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID})
		k.note(ctx, "end", pod, err)
	case pod.Status.Phase != corev1.PodPending:
	default:
		comp := realComponent(pod)
		if comp == "" {
			k.note(ctx, "run", pod, k.cluster.writeRunning(ctx, pod))
			return
		}
		if _, known := k.components[pod.UID]; known {
			return
		}
		ctx, cancel := context.WithCancel(ctx)
		k.components[pod.UID] = podComponent{comp, cancel}
		// It may wait for other clusters, or for its certificate.
		k.work.Go(func() { k.runComponent(ctx, comp, pod) })
	}
}

func (k *kubelet) isToRun(pod *corev1.Pod) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.ContainsFunc(k.runs, func(r podRule) bool {
		return (r.namespace == "" || r.namespace == pod.Namespace) && r.selector.Matches(labels.Set(pod.Labels))
	})
}

// bind gives a pod to the node, which is what a scheduler does.
func (k *kubelet) bind(ctx context.Context, pod *corev1.Pod) {
	err := k.cluster.client.SubResource("binding").Create(ctx, pod, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: nodeName},
	})
	k.note(ctx, "bind", pod, err)
}

// runComponent starts a component, over and over if it ends at once, as a
// kubelet does with a container.
func (k *kubelet) runComponent(ctx context.Context, comp Component, pod *corev1.Pod) {
	backoff := time.NewTicker(time.Second)
	defer backoff.Stop()
	for {
		err := k.cluster.Start(ctx, comp)
		if err == nil {
			k.note(ctx, "run", pod, k.cluster.writeRunning(ctx, pod.DeepCopy()))
			return
		}
		k.note(ctx, "start", pod, err)
		select {
		case <-ctx.Done():
			return
		case <-backoff.C:
		}
	}
}

// endComponent ends a component with the last pod that it runs for.
func (k *kubelet) endComponent(uid types.UID) {
	ended, ran := k.components[uid]
	if !ran {
		return
	}
	ended.cancel()
	delete(k.components, uid)
	for _, other := range k.components {
		if other.component == ended.component {
			return
		}
	}
	k.cluster.Kill(ended.component)
}

// note keeps errors in a log beside those of the components. What an error left
// undone is done when the pod changes, or when the watch begins anew.
func (k *kubelet) note(ctx context.Context, what string, pod *corev1.Pod, err error) {
	if client.IgnoreNotFound(err) == nil || ctx.Err() != nil {
		return
	}
	f, openErr := os.OpenFile(k.cluster.LogFile("kubelet"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if openErr == nil {
		fmt.Fprintf(f, "%s %s: %v\n", what, client.ObjectKeyFromObject(pod), err)
		_ = f.Close() // a log of last resort
	}
}
