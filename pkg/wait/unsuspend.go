// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wait

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/tiers"
)

// resumer is who resumes. Nothing of it stays on the tier: a field that is
// removed has no manager, and where git says nothing of spec.suspend there is
// then nothing that kustomize-controller could take over or put back. That is
// why it is removed, where `flux resume` sets it to false.
const resumer = "kubectl-standup"

// writeTimeout bounds one write. It is not cut off when the wait ends: what was
// sent may have been done, and the report has to know.
const writeTimeout = 10 * time.Second

// op is one operation of a JSON patch.
type op struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// unsuspend is pinned to what was judged: the object and its spec. Its status,
// and with it the resourceVersion, may move at any time.
func unsuspend(n *tiers.Node) ([]byte, error) {
	return json.Marshal([]op{
		{"test", "/metadata/uid", n.UID},
		{"test", "/metadata/generation", n.Generation},
		{"test", "/spec/suspend", true},
		{Op: "remove", Path: "/spec/suspend"},
	})
}

// act is how an attempt ended.
type act struct {
	node   *tiers.Node
	object *unstructured.Unstructured
	stays  string
	moved  bool
	// sent is true when the write was sent.
	sent bool
	err  error
}

func (w *waiter) attempt(ctx context.Context, n *tiers.Node) act {
	a := act{node: n}
	if w.resumption.Judge != nil {
		if a.stays, a.err = w.resumption.Judge(ctx, n); a.stays != "" || a.err != nil {
			return a
		}
	}
	if a.err = ctx.Err(); a.err != nil {
		return a
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	return w.write(ctx, a)
}

// write removes spec.suspend.
func (w *waiter) write(ctx context.Context, a act) act {
	n := a.node
	client, err := w.tier(n.Ref)
	if err != nil {
		a.err = err
		return a
	}
	patch, err := unsuspend(n)
	if err != nil {
		a.err = err
		return a
	}
	a.sent = true
	a.object, a.err = client.Patch(ctx, n.Ref.Name, types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: resumer})
	switch {
	case apierrors.IsNotFound(a.err):
		a.stays, a.moved, a.err = "it was deleted", true, nil
	case apierrors.IsInvalid(a.err): // one of the tests failed
		live, err := client.Get(ctx, n.Ref.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			a.stays, a.moved, a.err = "it was deleted", true, nil
		case err != nil:
			a.err = fmt.Errorf("get %s: %w", n.Ref, err)
		case live.GetUID() != n.UID || live.GetGeneration() != n.Generation:
			a.stays, a.moved, a.err = "it was changed in the moment in which it was to be resumed", true, nil
		default:
			a.err = fmt.Errorf("resume %s: %w", n.Ref, a.err)
		}
	case a.err != nil:
		a.err = fmt.Errorf("resume %s: %w", n.Ref, a.err)
	}
	return a
}

func (w *waiter) tier(ref flux.Ref) (dynamic.ResourceInterface, error) {
	res, ok := flux.ResourceOf(w.served, ref.Kind)
	if !ok {
		return nil, fmt.Errorf("resume %s: the cluster does not serve its kind", ref)
	}
	return w.client.Resource(res.GroupVersionResource()).Namespace(ref.Namespace), nil
}
