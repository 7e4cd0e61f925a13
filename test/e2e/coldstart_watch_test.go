// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// coldWatch records, from the beginning, every attempt of every tier. All its
// times are resource versions: the one clock that its four watches share.
type coldWatch struct {
	mu       sync.Mutex
	repos    []*coldRepo
	tiers    map[types.NamespacedName]*coldTier
	releases map[types.NamespacedName]*helmv2.HelmRelease
	defined  map[string]int // CRDs, by the number of versions that they serve
	spaces   map[string]bool
	// progress is when something last came to be in a repository that may let
	// another tier go on.
	progress map[string]int64
	// ended are the outcomes of the repositories that are done with.
	ended map[string]map[string]coldOutcome
	// ticks are when the clock was tried.
	ticks   []int64
	now     int64 // the newest version of all
	lost    error
	changed chan struct{}
}

// coldTier is one Kustomization.
type coldTier struct {
	newest   *kustomizev1.Kustomization
	started  int64 // the attempt that runs, or ran last
	starts   []int64
	failures []coldFailure
	// applied is true once everything was applied, failedFirst when an attempt
	// had failed before.
	applied, failedFirst bool
}

// coldFailure is an attempt that did not get as far as a health check.
type coldFailure struct {
	started         int64
	reason, message string
}

// watchCold begins to record.
func watchCold(ctx context.Context, t *testing.T, c client.WithWatch, repos []*coldRepo) *coldWatch {
	t.Helper()
	w := &coldWatch{
		repos: repos, tiers: map[types.NamespacedName]*coldTier{}, releases: map[types.NamespacedName]*helmv2.HelmRelease{},
		defined: map[string]int{}, spaces: map[string]bool{}, progress: map[string]int64{}, ended: map[string]map[string]coldOutcome{}, changed: make(chan struct{}, 1),
	}
	ctx, cancel := context.WithCancel(ctx)
	var work sync.WaitGroup
	for _, list := range []client.ObjectList{
		&kustomizev1.KustomizationList{}, &helmv2.HelmReleaseList{}, &apiextensionsv1.CustomResourceDefinitionList{}, &corev1.NamespaceList{},
	} {
		if err := c.List(ctx, list); err != nil {
			t.Fatal(err)
		}
		items, err := meta.ExtractList(list)
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range items {
			w.see(item.(client.Object))
		}
		events, err := c.Watch(ctx, list, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}})
		if err != nil {
			t.Fatal(err)
		}
		work.Go(func() { w.follow(ctx, events) })
		context.AfterFunc(ctx, events.Stop)
	}
	t.Cleanup(func() { cancel(); work.Wait() })
	return w
}

func (w *coldWatch) follow(ctx context.Context, events watch.Interface) {
	for e := range events.ResultChan() {
		switch o := e.Object.(type) {
		case client.Object:
			w.see(o)
		default:
			w.lose(fmt.Errorf("a watch ended: %v", e.Object))
		}
	}
	if ctx.Err() == nil {
		w.lose(fmt.Errorf("a watch ended: what was tried is not known any more"))
	}
}

func (w *coldWatch) lose(err error) {
	w.mu.Lock()
	w.lost = err
	w.mu.Unlock()
	w.notify()
}

func (w *coldWatch) notify() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

func (w *coldWatch) see(o client.Object) {
	w.mu.Lock()
	now, err := strconv.ParseInt(o.GetResourceVersion(), 10, 64)
	if err != nil {
		w.lost = err
	}
	w.now = max(now, w.now)
	switch o := o.(type) {
	case *kustomizev1.Kustomization:
		w.seeTier(o, now)
	case *helmv2.HelmRelease:
		key := client.ObjectKeyFromObject(o)
		old := w.releases[key]
		w.releases[key] = o
		if old == nil || old.Generation != o.Generation || releaseReady(o) && !releaseReady(old) {
			w.went(o.Namespace, now)
		}
	case *apiextensionsv1.CustomResourceDefinition:
		if n := servedVersions(o); n > w.defined[o.Name] {
			w.defined[o.Name] = n
			for _, r := range w.repos {
				// A group that is not of ours is everybody's.
				if strings.HasSuffix(o.Spec.Group, "."+r.id+".example.com") || !strings.HasSuffix(o.Spec.Group, ".example.com") {
					w.progress[r.id] = max(now, w.progress[r.id])
				}
			}
		}
	case *corev1.Namespace:
		if !w.spaces[o.Name] {
			w.spaces[o.Name] = true
			w.went(o.Name, now)
		}
	}
	w.mu.Unlock()
	w.notify()
}

// add watches further repositories, of which nothing exists yet.
func (w *coldWatch) add(repos ...*coldRepo) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.repos = append(w.repos, repos...)
}

// restart lets everything count from now: somebody comes who may bring more.
func (w *coldWatch) restart() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.repos {
		w.progress[r.id] = w.now
	}
}

// went notes that the repository which a namespace belongs to got further.
func (w *coldWatch) went(namespace string, now int64) {
	for _, r := range w.repos {
		if r.owns(namespace) {
			w.progress[r.id] = max(now, w.progress[r.id])
		}
	}
}

func servedVersions(crd *apiextensionsv1.CustomResourceDefinition) int {
	if !slices.ContainsFunc(crd.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
	}) {
		return 0
	}
	n := 0
	for _, v := range crd.Spec.Versions {
		if v.Served {
			n++
		}
	}
	return n
}

func releaseReady(hr *helmv2.HelmRelease) bool {
	return hr.Status.ObservedGeneration == hr.Generation && meta.IsStatusConditionTrue(hr.Status.Conditions, "Ready")
}

func tierReady(k *kustomizev1.Kustomization) bool {
	return k.Status.ObservedGeneration == k.Generation && coldCondition(k).Status == metav1.ConditionTrue
}

func coldCondition(k *kustomizev1.Kustomization) metav1.Condition {
	if c := meta.FindStatusCondition(k.Status.Conditions, "Ready"); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// seeTier follows what kustomize-controller's status tells of an attempt: Ready
// is Unknown from its begin (internal/controller reconcile) to its end.
func (w *coldWatch) seeTier(k *kustomizev1.Kustomization, now int64) {
	key := client.ObjectKeyFromObject(k)
	tier := w.tiers[key]
	if tier == nil {
		tier = &coldTier{newest: &kustomizev1.Kustomization{}}
		w.tiers[key] = tier
	}
	before, is := coldCondition(tier.newest), coldCondition(k)
	further := k.Generation != tier.newest.Generation || tierReady(k) && !tierReady(tier.newest)
	if is.Status == metav1.ConditionUnknown && before.Status != metav1.ConditionUnknown {
		tier.started = now
		tier.starts = append(tier.starts, now)
		if key.Namespace == clockRepo {
			w.ticks = append(w.ticks, now)
		}
	}
	if is.Status == metav1.ConditionFalse && failedItself(is.Reason) && !webhookAway(is.Message) &&
		(before.Status == metav1.ConditionUnknown || terminal(is.Reason) && before.Reason != is.Reason) {
		tier.failures = append(tier.failures, coldFailure{tier.started, is.Reason, is.Message})
	}
	if !tier.applied && (k.Status.Inventory != nil || tierReady(k)) {
		tier.applied, tier.failedFirst, further = true, len(tier.failures) > 0, true
	}
	if further {
		w.went(k.Namespace, now)
	}
	tier.newest = k
}

// webhookAway is true of what an attempt says that came between a CRD and the
// server of its webhooks, a matter of seconds that no prediction knows of: CDI
// registers both at once, and its server has yet to start. The webhooks of
// fixtures are known.
func webhookAway(message string) bool {
	return strings.Contains(message, "failed calling webhook") && !strings.Contains(message, "example.com")
}

// failedItself is true of the reasons with which an attempt ends before
// everything is applied.
func failedItself(reason string) bool {
	return slices.Contains([]string{"ArtifactFailed", "BuildFailed", "ReconciliationFailed", "PruneFailed"}, reason) || terminal(reason)
}

// terminal is true of those after which there is no further attempt.
func terminal(reason string) bool {
	return reason == "InvalidCELExpression" || reason == "AccessDenied"
}

// await returns when ok is true, which is asked after each change.
func (w *coldWatch) await(ctx context.Context, ok func() (bool, string)) error {
	for {
		w.mu.Lock()
		done, why := ok()
		lost := w.lost
		w.mu.Unlock()
		if lost != nil {
			return lost
		}
		if done {
			return nil
		}
		select {
		case <-w.changed:
		case <-ctx.Done():
			return fmt.Errorf("%w, and it is not at a standstill:\n%s", context.Cause(ctx), why)
		}
	}
}
