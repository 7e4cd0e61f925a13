// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package flux

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// nudger owns the annotation of a nudge. It does not start with "kubectl":
// kustomize-controller drops what such managers own when it applies the
// parent, and a nudge must outlive that until it is answered.
const nudger = "standup"

// Nudge asks the controller of a tier to reconcile it now, and returns the
// token that the controller will report as lastHandledReconcileAt. It is a
// merge patch of one annotation, never a read-modify-update. The error is the
// API server's, wrapped.
func Nudge(ctx context.Context, client dynamic.Interface, served []Resource, tier Ref) (string, error) {
	res, ok := ResourceOf(served, tier.Kind)
	if !ok {
		return "", fmt.Errorf("nudge %s: the cluster does not serve its kind", tier)
	}
	token := time.Now().UTC().Format(time.RFC3339Nano)
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"annotations": map[string]string{RequestedAtAnnotation: token},
	}})
	if err != nil {
		return "", err
	}
	_, err = client.Resource(res.GroupVersionResource()).Namespace(tier.Namespace).
		Patch(ctx, tier.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: nudger})
	if err != nil {
		return "", fmt.Errorf("nudge %s: %w", tier, err)
	}
	return token, nil
}
