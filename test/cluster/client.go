// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

func newClient(config *rest.Config) (client.WithWatch, error) {
	// Its clients complain, with a stack trace, when nobody ever set this.
	log.SetLogger(logr.Discard())
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme,
		sourcev1.AddToScheme, kustomizev1.AddToScheme, helmv2.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return client.NewWithWatch(config, client.Options{Scheme: scheme})
}

// Apply applies YAML documents server-side as the field manager "test", in
// their order. A kind that the same text defines waits for its CRD.
func (c *Cluster) Apply(ctx context.Context, text string) error {
	return c.applyAs(ctx, userAgent, []byte(text))
}

func (c *Cluster) applyAs(ctx context.Context, manager string, text []byte) error {
	ctx, cancel := withDeadline(ctx, waitDeadline)
	defer cancel()
	objects, err := decodeYAML(text)
	if err != nil {
		return err
	}
	for _, o := range objects {
		if err := c.applyObject(ctx, manager, o); err != nil {
			return err
		}
		if o.GetKind() == "CustomResourceDefinition" {
			if err := c.untilEstablished(ctx, o.GetName()); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *Cluster) applyObject(ctx context.Context, manager string, o *unstructured.Unstructured) error {
	err := c.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(o), client.FieldOwner(manager), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("apply %s %s: %w", o.GetKind(), client.ObjectKeyFromObject(o), err)
	}
	return nil
}

func decodeYAML(text []byte) ([]*unstructured.Unstructured, error) {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	var objects []*unstructured.Unstructured
	for {
		o := &unstructured.Unstructured{}
		if err := decoder.Decode(&o.Object); errors.Is(err, io.EOF) {
			return objects, nil
		} else if err != nil {
			return nil, err
		}
		if len(o.Object) > 0 {
			objects = append(objects, o)
		}
	}
}

// Until watches an object, named by obj, and returns when it exists and ok is
// true. obj holds its newest state whenever ok is called, and afterwards. An API
// server that restarts meanwhile, or a kind that is not served yet, is no
// error. When ctx ends, the error has the object's last status.
func (c *Cluster) Until(ctx context.Context, obj client.Object, ok func() bool) error {
	return c.watchUntil(ctx, obj, func(exists bool) bool { return exists && ok() })
}

// UntilGone watches an object, named by obj, until it does not exist.
func (c *Cluster) UntilGone(ctx context.Context, obj client.Object) error {
	return c.watchUntil(ctx, obj, func(exists bool) bool { return !exists })
}

func (c *Cluster) watchUntil(ctx context.Context, obj client.Object, done func(exists bool) bool) error {
	ctx, cancel := withDeadline(ctx, waitDeadline)
	defer cancel()
	gvk, err := apiutil.GVKForObject(obj, c.client.Scheme())
	if err != nil {
		return err
	}
	name := client.ObjectKeyFromObject(obj)
	retry := time.NewTicker(50 * time.Millisecond)
	defer retry.Stop()
	for {
		finished, err := c.watchOnce(ctx, obj, done)
		if finished {
			return nil
		}
		select {
		case <-ctx.Done():
			state := describe(obj)
			if err != nil && !errors.Is(err, context.Cause(ctx)) && !errors.Is(err, context.DeadlineExceeded) {
				state = err.Error()
			}
			return fmt.Errorf("%s %s not as expected: %w; last seen: %s", gvk.Kind, name, context.Cause(ctx), state)
		case <-retry.C:
		}
	}
}

// watchOnce lists and watches until done, or until the watch ends.
func (c *Cluster) watchOnce(ctx context.Context, obj client.Object, done func(bool) bool) (bool, error) {
	gvk, err := apiutil.GVKForObject(obj, c.client.Scheme())
	if err != nil {
		return false, err
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	name := obj.GetName()
	only := []client.ListOption{
		client.InNamespace(obj.GetNamespace()),
		client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", name)},
	}
	if err := c.client.List(ctx, list, only...); err != nil {
		return false, err
	}
	if len(list.Items) == 0 {
		if done(false) {
			return true, nil
		}
	} else if err := assign(obj, &list.Items[0]); err != nil {
		return false, err
	} else if done(true) {
		return true, nil
	}
	from := list.GetResourceVersion()
	w, err := c.client.Watch(ctx, list, append(only, fromVersion(from))...)
	if err != nil {
		return false, err
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		switch event.Type {
		case watch.Added, watch.Modified:
			if err := assign(obj, event.Object.(*unstructured.Unstructured)); err != nil {
				return false, err
			}
			if done(true) {
				return true, nil
			}
		case watch.Deleted:
			if done(false) {
				return true, nil
			}
		case watch.Error:
			return false, nil // the version is too old: list again
		}
	}
	return false, nil
}

// fromVersion starts a watch where a list ended.
type fromVersion string

func (v fromVersion) ApplyToList(o *client.ListOptions) {
	if o.Raw == nil {
		o.Raw = &metav1.ListOptions{}
	}
	o.Raw.ResourceVersion = string(v)
}

// assign makes obj what from is. A typed object is emptied first: fields that
// went away must not linger.
func assign(obj client.Object, from *unstructured.Unstructured) error {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		from.DeepCopyInto(u)
		return nil
	}
	value := reflect.ValueOf(obj).Elem()
	value.SetZero()
	return runtime.DefaultUnstructuredConverter.FromUnstructured(from.Object, obj)
}

// describe is an object's status, short enough for an error.
func describe(obj client.Object) string {
	if obj.GetUID() == "" {
		return "absent"
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return err.Error()
	}
	status, found := content["status"]
	if conditions, ok, _ := unstructured.NestedSlice(content, "status", "conditions"); ok {
		status = conditions
	}
	if !found {
		return "no status"
	}
	text, err := json.Marshal(status)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
