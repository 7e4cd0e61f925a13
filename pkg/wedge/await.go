// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

// until watches one object until done says so; it is given nil once the object
// is gone. Past the timeout it returns a *late with what outstanding says.
func (x *execution) until(ctx context.Context, ref flux.Ref, outstanding func() string, done func(*unstructured.Unstructured) (bool, error)) error {
	client, err := x.client(ref)
	if err != nil {
		return err
	}
	return until(ctx, client, ref.Name, x.Timeout, outstanding, done)
}

func until(ctx context.Context, client dynamic.ResourceInterface, name string, timeout time.Duration, outstanding func() string, done func(*unstructured.Unstructured) (bool, error)) error {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	only := "metadata.name=" + name
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = only
			list, err := client.List(ctx, o)
			if apierrors.IsNotFound(err) {
				return &unstructured.UnstructuredList{}, nil // the kind went, and the object with it
			}
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = only
			return client.Watch(ctx, o)
		},
	}
	absent := func(store cache.Store) (bool, error) {
		if len(store.List()) > 0 {
			return false, nil
		}
		return done(nil)
	}
	_, err := watchtools.UntilWithSync(limited, lw, &unstructured.Unstructured{}, absent, func(e watch.Event) (bool, error) {
		u, ok := e.Object.(*unstructured.Unstructured)
		switch {
		case !ok:
			return false, nil
		case e.Type == watch.Deleted:
			return done(nil)
		}
		return done(u)
	})
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil && limited.Err() != nil && !errors.As(err, new(*skip)) {
		return &late{fmt.Sprintf("after %s, %s", timeout, outstanding())}
	}
	return err
}

func (s goneStep) run(ctx context.Context, x *execution, a *Action) error {
	for _, ref := range s.objects {
		why := ref.String() + " is still there"
		err := x.until(ctx, ref, func() string { return why }, func(u *unstructured.Unstructured) (bool, error) {
			if u == nil {
				return true, nil
			}
			if uid, ours := x.deleted[ref]; ours && u.GetUID() != uid {
				return true, nil // somebody made a new one
			}
			if f := u.GetFinalizers(); len(f) > 0 {
				why = fmt.Sprintf("%s is still there, held by finalizer %s", ref, strings.Join(f, ", "))
			}
			x.Waits(a, why)
			return false, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// run waits for the answer to the last request. Ready=True is what was wanted;
// Ready=False once the request was handled is the controller's own verdict.
func (outcomeStep) run(ctx context.Context, x *execution, a *Action) error {
	token, why := x.tokens[a.Object], "the controller has not answered"
	return x.until(ctx, a.Object, func() string { return fmt.Sprintf("%s: %s", a.Object, why) }, func(u *unstructured.Unstructured) (bool, error) {
		if u == nil {
			a.Message = "gone"
			return true, nil
		}
		ready := conditionOf(u, "Ready")
		if ready == nil {
			return false, nil
		}
		why = firstLine(withoutValues(ready.Message))
		x.Waits(a, why)
		handled, _, _ := unstructured.NestedString(u.Object, "status", "lastHandledReconcileAt")
		if handled != token || ready.ObservedGeneration < u.GetGeneration() {
			return false, nil
		}
		switch ready.Status {
		case metav1.ConditionTrue:
			a.Message = why
			return true, nil
		case metav1.ConditionFalse:
			if notYet(ready.Reason) {
				return false, nil
			}
			return false, errors.New(why)
		}
		return false, nil
	})
}

// notYet is true for a reason with which helm-controller answers a request that
// it will come back to: what it waits for wakes it (v1.6.4
// internal/controller/helmrelease_controller.go). A HelmRelease that was
// suspended from its first day has no HelmChart yet when it is resumed.
func notYet(reason string) bool {
	switch reason {
	case "SourceNotReady", "DependencyNotReady", "PendingRelease": // the last one in the middle of it: it has just unlocked the release
		return true
	}
	return false
}

// conditionOf reads one condition of an object, nil when it has none.
func conditionOf(u *unstructured.Unstructured, kind string) *metav1.Condition {
	list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, item := range list {
		m, _ := item.(map[string]any)
		if m["type"] != kind {
			continue
		}
		var c metav1.Condition
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(m, &c); err != nil {
			return nil
		}
		return &c
	}
	return nil
}

func isTrue(conditions []metav1.Condition, kind string) bool {
	return meta.IsStatusConditionTrue(conditions, kind)
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return strings.TrimSpace(line)
}
