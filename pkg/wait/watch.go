// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wait

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilwait "k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

// signals is how the watches speak to the loop. No channel is ever full: a
// change that nobody has looked at yet stands for all that follow it.
type signals struct {
	changed chan struct{}
	synced  chan flux.Resource
	// fatal carries the errors that no retry will mend; trouble the others.
	fatal   chan error
	trouble chan error
}

func newSignals(kinds int) signals {
	return signals{
		changed: make(chan struct{}, 1),
		synced:  make(chan flux.Resource, kinds),
		fatal:   make(chan error, 1),
		trouble: make(chan error, 1),
	}
}

func offer[T any](c chan T, v T) {
	select {
	case c <- v:
	default:
	}
}

// follow keeps one kind of the cache up to date until ctx ends. It outlives
// restarts of the API server: what was missed comes with the next list.
func follow(ctx context.Context, client dynamic.Interface, res flux.Resource, c *flux.Cache, s signals) {
	api := client.Resource(res.GroupVersionResource())
	store := &kindStore{res: res, cache: c, signals: s}
	observe := func(what string, err error) {
		switch {
		case err == nil || ctx.Err() != nil:
		// An API server that comes up forbids everything until it has read its
		// RBAC: what was allowed once is asked again.
		case apierrors.IsForbidden(err) && !store.listed, apierrors.IsUnauthorized(err):
			offer(s.fatal, fmt.Errorf("%s %s in all namespaces: %w", what, res.Plural, err))
		default:
			offer(s.trouble, fmt.Errorf("%s %s: %w", what, res.Plural, err))
		}
	}
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list, err := api.List(ctx, o)
			observe("list", err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w, err := api.Watch(ctx, o)
			observe("watch", err)
			return w, err
		},
	}
	quiet := logr.Discard()
	cache.NewReflectorWithOptions(lw, &unstructured.Unstructured{}, store, cache.ReflectorOptions{
		Name:   res.Plural,
		Logger: &quiet,
		// Quicker than client-go's own: a person is watching, and there are a
		// handful of watches, not thousands of clients.
		Backoff: &utilwait.Backoff{Duration: 250 * time.Millisecond, Factor: 1.5, Jitter: 0.5, Steps: 20, Cap: 5 * time.Second},
	}).RunWithContext(ctx)
}

// kindStore is the reflector's view of one kind of the cache.
type kindStore struct {
	res     flux.Resource
	cache   *flux.Cache
	signals signals
	listed  bool
}

func (k *kindStore) upsert(obj any) error {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return fmt.Errorf("%s: the watch delivered a %T", k.res.Plural, obj)
	}
	if err := k.cache.Upsert(k.res, u); err != nil {
		return err
	}
	offer(k.signals.changed, struct{}{})
	return nil
}

// Add, Update, Delete, Replace and Resync are cache.ReflectorStore.

func (k *kindStore) Add(obj any) error    { return k.upsert(obj) }
func (k *kindStore) Update(obj any) error { return k.upsert(obj) }
func (k *kindStore) Resync() error        { return nil }

func (k *kindStore) Delete(obj any) error {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		k.cache.Delete(k.res, u)
		offer(k.signals.changed, struct{}{})
	}
	return nil
}

func (k *kindStore) Replace(objs []any, _ string) error {
	list := make([]*unstructured.Unstructured, 0, len(objs))
	for _, obj := range objs {
		u, ok := obj.(*unstructured.Unstructured)
		if !ok {
			return fmt.Errorf("%s: the list delivered a %T", k.res.Plural, obj)
		}
		list = append(list, u)
	}
	if err := k.cache.Replace(k.res, list); err != nil {
		return err
	}
	if !k.listed {
		k.listed = true
		k.signals.synced <- k.res
	}
	offer(k.signals.changed, struct{}{})
	return nil
}
