// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/kubestandup/kubestandup/pkg/crds"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// manager is the field manager of what must stay until it is answered:
// kustomize-controller drops what managers named kubectl… own when it applies
// the parent.
const manager = "standup"

// attempts is how often a write is tried on an object whose status its
// controller keeps changing.
const attempts = 5

// client reaches the resource of an object.
func (x *execution) client(ref flux.Ref) (dynamic.ResourceInterface, error) {
	return x.cluster.client(x.world.Served, ref)
}

func (c *Cluster) client(served *crds.Served, ref flux.Ref) (dynamic.ResourceInterface, error) {
	gvk := ref.GroupVersionKind()
	res, ok := served.Resource(gvk)
	if !ok {
		return nil, fmt.Errorf("%s: its kind is not served as %s", ref, ref.APIVersion)
	}
	client := c.dynamic.Resource(gvk.GroupVersion().WithResource(res.Plural))
	if !res.Namespaced {
		return client, nil
	}
	return client.Namespace(ref.Namespace), nil
}

// get reads an object, nil when there is none.
func (x *execution) get(ctx context.Context, ref flux.Ref) (*unstructured.Unstructured, error) {
	client, err := x.client(ref)
	if err != nil {
		return nil, err
	}
	u, err := client.Get(ctx, ref.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", ref, err)
	}
	return u, nil
}

// write reads the object, compares it with the plan, backs it up where the
// action is destructive, and sends what body makes, pinned to what was read.
func (x *execution) write(ctx context.Context, a *Action, kind types.PatchType, subresource, manager string, body func(live *unstructured.Unstructured) any) error {
	client, err := x.client(a.Object)
	if err != nil {
		return err
	}
	var subresources []string
	if subresource != "" {
		subresources = append(subresources, subresource)
	}
	for try := 1; ; try++ {
		live, err := x.get(ctx, a.Object)
		if err != nil {
			return err
		}
		if live == nil {
			return &skip{fmt.Sprintf("%s is gone", a.Object)}
		}
		if err := x.verify(a, live); err != nil {
			return err
		}
		if err := x.backup(a, live); err != nil {
			return err
		}
		raw, err := json.Marshal(body(live))
		if err != nil {
			return err
		}
		written, err := client.Patch(ctx, a.Object.Name, kind, raw, metav1.PatchOptions{FieldManager: manager}, subresources...)
		switch {
		case err == nil:
			x.wrote(a.Object, written)
			return nil
		case apierrors.IsNotFound(err):
			return &skip{fmt.Sprintf("%s is gone", a.Object)}
		case apierrors.IsConflict(err) && try < attempts:
			continue // its status moved; whether its spec did is seen above
		case apierrors.IsConflict(err):
			return &skip{fmt.Sprintf("%s was changed since the plan: run again to see it as it is now", a.Object)}
		case apierrors.IsInvalid(err) && try < attempts && x.moved(ctx, a.Object, live):
			continue // a test of the patch met another object than the one that was read
		default:
			return fmt.Errorf("%s %s: %w", a.Verb, a.Object, err)
		}
	}
}

// moved is true when an object is no longer what was read of it.
func (x *execution) moved(ctx context.Context, ref flux.Ref, was *unstructured.Unstructured) bool {
	now, err := x.get(ctx, ref)
	return err == nil && now != nil && now.GetResourceVersion() != was.GetResourceVersion()
}

func (s mergeStep) run(ctx context.Context, x *execution, a *Action) error {
	token := ""
	err := x.write(ctx, a, types.MergePatchType, s.subresource, s.manager, func(live *unstructured.Unstructured) any {
		patch := runtimeCopy(s.patch)
		metadata, _ := patch["metadata"].(map[string]any)
		if metadata == nil {
			metadata = map[string]any{}
			patch["metadata"] = metadata
		}
		metadata["uid"], metadata["resourceVersion"] = live.GetUID(), live.GetResourceVersion()
		if len(s.ask) > 0 {
			token = newToken()
			annotations, _ := metadata["annotations"].(map[string]any)
			if annotations == nil {
				annotations = map[string]any{}
				metadata["annotations"] = annotations
			}
			for _, name := range s.ask {
				annotations[name] = token
			}
		}
		return patch
	})
	if err == nil && token != "" {
		x.tokens[a.Object] = token
	}
	return err
}

// runtimeCopy copies a patch so deep as the executor writes into it.
func runtimeCopy(patch map[string]any) map[string]any {
	out := maps.Clone(patch)
	if out == nil {
		out = map[string]any{}
	}
	if m, ok := out["metadata"].(map[string]any); ok {
		m = maps.Clone(m)
		if a, ok := m["annotations"].(map[string]any); ok {
			m["annotations"] = maps.Clone(a)
		}
		out["metadata"] = m
	}
	return out
}

// newToken is a value for requestedAt that was never used before.
func newToken() string { return time.Now().UTC().Format(time.RFC3339Nano) }

func (s askStep) run(ctx context.Context, x *execution, a *Action) error {
	return mergeStep{manager: manager, ask: append([]string{flux.RequestedAtAnnotation}, s.also...)}.run(ctx, x, a)
}

func (s patchStep) run(ctx context.Context, x *execution, a *Action) error {
	return x.write(ctx, a, types.JSONPatchType, s.subresource, s.manager, func(live *unstructured.Unstructured) any {
		// Replaced, not tested: the API server then answers with a conflict.
		return append([]op{{"replace", "/metadata/resourceVersion", live.GetResourceVersion()}}, s.ops...)
	})
}

func (s deleteStep) run(ctx context.Context, x *execution, a *Action) error {
	client, err := x.client(a.Object)
	if err != nil {
		return err
	}
	propagation := metav1.DeletePropagationBackground
	if s.foreground {
		propagation = metav1.DeletePropagationForeground
	}
	for try := 1; ; try++ {
		live, err := x.get(ctx, a.Object)
		switch {
		case err != nil:
			return err
		case live == nil:
			a.Message = "gone already"
			return nil
		}
		if err := x.verify(a, live); err != nil {
			return err
		}
		if live.GetDeletionTimestamp() != nil {
			x.deleted[a.Object] = live.GetUID()
			a.Message = "is being deleted already"
			return nil
		}
		if err := x.backup(a, live); err != nil {
			return err
		}
		uid, version := live.GetUID(), live.GetResourceVersion()
		err = client.Delete(ctx, a.Object.Name, metav1.DeleteOptions{
			Preconditions:     &metav1.Preconditions{UID: &uid, ResourceVersion: &version},
			PropagationPolicy: &propagation,
		})
		switch {
		case err == nil, apierrors.IsNotFound(err):
			x.deleted[a.Object] = uid
			return nil
		case apierrors.IsConflict(err) && try < attempts:
		case apierrors.IsConflict(err):
			return &skip{fmt.Sprintf("%s was changed since the plan: run again to see it as it is now", a.Object)}
		default:
			return fmt.Errorf("delete %s: %w", a.Object, err)
		}
	}
}

func (s breakStep) run(ctx context.Context, x *execution, a *Action) error {
	return x.cluster.crds.Break(ctx, s.diagnosis, crds.Break{Timeout: x.Timeout, Say: a.said})
}
