// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package e2e

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubestandup/kubestandup/test/cluster"
)

// releaseCase is a state that a release can be left in, and its repair.
type releaseCase struct {
	name  string
	leave func(*testing.T, *releaseScene)
	mend  func(*testing.T, *releaseScene)
}

// releaseWorld is the cluster of all release cases.
type releaseWorld struct {
	c     *cluster.Cluster
	sh    *shell
	named []string
	// charts is the folder that the Helms take their charts from.
	charts string
}

// Of the release cases, atOnce are worked on at a time, since each of them mostly
// waits for others; inBatch are mended while the next are being left.
const (
	atOnce  = 8
	inBatch = 10
)

// TestHELM leaves releases in every state that a cluster can hold, and lets
// unwedge judge and mend them. Between the two, helm-controller gets a new Pod:
// what ran before it then counts as abandoned, without waiting for timeouts.
func TestHELM(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, cluster.Options{
		Components:      []cluster.Component{cluster.ControllerManager, cluster.SourceController, cluster.KustomizeController, cluster.HelmController},
		FluxDeployments: true,
		// A worker is busy as long as a hook that never ends may take.
		Args: map[cluster.Component][]string{cluster.HelmController: {"--concurrent=20", "--kube-api-qps=500", "--kube-api-burst=1000"}},
	})
	w := &releaseWorld{c, shellFor(t, c), expect(t, c), t.TempDir()}
	charts := releaseCharts()
	if err := os.CopyFS(w.charts, charts); err != nil {
		t.Fatal(err)
	}
	newScene(t, c, chartsNamespace, charts)
	never := w.watchDeleted(t)
	if !t.Run("HELM02 the operation is running", w.running) && !c.Running(cluster.HelmController) {
		return
	}
	cases := slices.Concat(pendingCases(), suspendedCases(), uninstallingCases(), finishCases(), deletedCases(),
		stalledCases(), namedCases(), keptCases(), unreadableCases(), killedCases())
	scenes := make([]*releaseScene, len(cases))
	left := make([]bool, len(cases))
	leave := func(i int) {
		left[i] = t.Run(cases[i].name+", left", func(t *testing.T) {
			scenes[i] = w.scene(t, fmt.Sprintf("case-%02d", i))
			cases[i].leave(t, scenes[i])
		})
	}
	mend := func(i int) {
		t.Run(cases[i].name, func(t *testing.T) {
			if !left[i] || scenes[i] == nil {
				t.Fatal("it was not left as it should")
			}
			cases[i].mend(t, scenes[i])
		})
	}
	// To leave a state mostly takes waiting, and to mend one mostly takes work.
	for from := 0; from < len(cases)+inBatch; from += inBatch {
		var work []func()
		for i := max(0, from-inBatch); i < min(from+inBatch, len(cases)); i++ {
			if i < from {
				work = append(work, func() { mend(i) })
			} else {
				work = append(work, func() { leave(i) })
			}
		}
		all(work)
		if from < len(cases) {
			w.newPod(t)
		}
	}
	never()
}

// all does work, several pieces at a time.
func all(work []func()) {
	var group errgroup.Group
	group.SetLimit(atOnce)
	for _, piece := range work {
		group.Go(func() error { piece(); return nil })
	}
	_ = group.Wait() // none returns one
}

// watchDeleted watches every HelmRelease of the cluster, since one that is
// suspended while it is being deleted lets go of what it owns.
func (w *releaseWorld) watchDeleted(t *testing.T) (never func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	seen, err := w.c.Client().Watch(ctx, &helmv2.HelmReleaseList{})
	if err != nil {
		t.Fatal(err)
	}
	suspended := make(chan []string)
	go func() {
		var bad []string
		deleted := 0
		for event := range seen.ResultChan() {
			hr, ok := event.Object.(*helmv2.HelmRelease)
			if !ok || hr.DeletionTimestamp == nil || event.Type == watch.Deleted {
				continue
			}
			deleted++
			// The one case in which a person does it.
			if hr.Spec.Suspend && hr.Name != lettingGo {
				bad = append(bad, hr.Namespace+"/"+hr.Name)
			}
		}
		if deleted == 0 {
			bad = append(bad, "nothing was seen of any deletion")
		}
		suspended <- bad
	}()
	return func() {
		cancel()
		seen.Stop()
		if bad := <-suspended; len(bad) > 0 {
			t.Errorf("suspended while being deleted: %v", bad)
		}
	}
}

// newPod gives helm-controller a Pod that is newer than all that has happened.
// There is no kubelet: its status is written as one would. The process that does
// the work goes on, so that nothing but the Pod's age changes.
func (w *releaseWorld) newPod(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	now := time.Now()
	pods, err := w.c.Client().Watch(ctx, &corev1.PodList{},
		client.InNamespace(cluster.FluxNamespace), client.MatchingLabels{"app": "helm-controller"})
	if err != nil {
		t.Fatal(err)
	}
	defer pods.Stop()
	for event := range pods.ResultChan() {
		pod, ok := event.Object.(*corev1.Pod)
		if !ok || event.Type == watch.Deleted || pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodRunning {
			continue
		}
		// The time of a Pod has whole seconds.
		if pod.Status.StartTime.After(now) {
			deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.FluxNamespace, Name: "helm-controller"}}
			if err := w.c.Until(ctx, deployment, func() bool { return deployment.Status.ReadyReplicas == 1 }); err != nil {
				t.Fatal(err)
			}
			return
		}
		err := client.IgnoreNotFound(w.c.Client().Delete(ctx, pod, client.GracePeriodSeconds(0)))
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Fatal("helm-controller has got no newer Pod")
}
