// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/tiers"
)

// keeper is the field manager that makes a suspension last. Flux takes nothing
// over from it, since its name does not begin with kubectl.
const keeper = "standup"

// undone is true for a suspended tier that the next apply of what contains it
// would resume: kustomize-controller takes over what kubectl has set, and drops
// what git does not say (internal/controller kustomization_controller.go apply,
// v1.9.6; fluxcd/pkg/ssa patch.go, v0.78.0).
func undone(n *tiers.Node, s stay) bool {
	return s.rule != "" && n.Suspended && n.Deleted.IsZero() && n.ContainedBy != nil &&
		(strings.HasPrefix(n.SuspendedBy, "kubectl") || n.SuspendedBy == "before-first-apply")
}

// keepAll makes what stays stay, before anything is resumed that would undo it.
func (r *resumer) keepAll(ctx context.Context, client dynamic.Interface) error {
	for _, n := range r.last.Tiers() {
		if s := r.stays[n.Ref]; undone(n, s) {
			if err := r.keep(ctx, client, n); err != nil {
				return err
			}
		}
	}
	return nil
}

// keep sets what is set already, in our name. A tier that was resumed meanwhile
// is somebody's decision and stays so.
func (r *resumer) keep(ctx context.Context, client dynamic.Interface, n *tiers.Node) error {
	res, ok := flux.ResourceOf(r.look.snapshot.Served, n.Ref.Kind)
	if !ok {
		return fmt.Errorf("keep %s suspended: the cluster does not serve its kind", n.Ref)
	}
	api := client.Resource(res.GroupVersionResource()).Namespace(n.Ref.Namespace)
	live, err := api.Get(ctx, n.Ref.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("get %s: %w", n.Ref, err)
	}
	suspend, _, _ := unstructured.NestedBool(live.Object, "spec", "suspend")
	if !suspend || live.GetDeletionTimestamp() != nil || slices.ContainsFunc(live.GetManagedFields(), keepsSuspended) {
		return nil
	}
	kept := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"suspend": true}}}
	kept.SetAPIVersion(live.GetAPIVersion())
	kept.SetKind(live.GetKind())
	kept.SetNamespace(live.GetNamespace())
	kept.SetName(live.GetName())
	kept.SetUID(live.GetUID())
	kept.SetResourceVersion(live.GetResourceVersion())
	if _, err := api.Apply(ctx, n.Ref.Name, kept, metav1.ApplyOptions{FieldManager: keeper}); err != nil {
		return fmt.Errorf("keep %s suspended, which the next apply of %s would undo; nothing was resumed: %w", n.Ref, n.ContainedBy.Ref, err)
	}
	r.env.say(fmt.Sprintf("%s is kept suspended (field manager %s): the next apply of %s would undo what kubectl has set", n.Ref, keeper, n.ContainedBy.Ref))
	return nil
}

func keepsSuspended(f metav1.ManagedFieldsEntry) bool {
	return f.Manager == keeper && f.Subresource == "" && f.FieldsV1 != nil && strings.Contains(f.FieldsV1.GetRawString(), `"f:suspend"`)
}
