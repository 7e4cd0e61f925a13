// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"cmp"
	"slices"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// What stands here is in fluxcd/pkg/ssa too. Its import brings kubectl's factory
// into each plugin, a tenth of the time that a plugin takes to start. A test
// holds this against that.

// setOwnerLabels marks the objects as those of a tier (fluxcd/pkg/ssa
// manager.go SetOwnerLabels, v0.78.0).
func setOwnerLabels(objects []*unstructured.Unstructured, name, namespace string) {
	for _, o := range objects {
		labels := o.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[kustomizev1.GroupVersion.Group+"/name"] = name
		labels[kustomizev1.GroupVersion.Group+"/namespace"] = namespace
		o.SetLabels(labels)
	}
}

// sortToApply sorts by stage, and within one as ApplyAll does.
func sortToApply(objects []Object) {
	slices.SortStableFunc(objects, func(a, b Object) int {
		ka, kb := a.GroupVersionKind(), b.GroupVersionKind()
		return cmp.Or(
			cmp.Compare(a.Stage, b.Stage),
			cmp.Compare(kindRank(ka.Kind), kindRank(kb.Kind)),
			cmp.Compare(ka.Group, kb.Group),
			cmp.Compare(ka.Kind, kb.Kind),
			cmp.Compare(a.GetNamespace(), b.GetNamespace()),
			cmp.Compare(a.GetName(), b.GetName()),
		)
	})
}

// kindRank is where a kind stands in the order of an apply, whatever its group
// is (fluxcd/pkg/ssa sort.go ReconcileOrder, v0.78.0).
func kindRank(kind string) int {
	first := []string{
		"CustomResourceDefinition", "Namespace", "ClusterRole", "ClusterClass", "RuntimeClass", "PriorityClass", "StorageClass",
		"VolumeSnapshotClass", "IngressClass", "GatewayClass", "ClusterRoleBinding", "ResourceQuota", "ServiceAccount", "Role",
		"RoleBinding", "ConfigMap", "Secret", "Service", "LimitRange", "Deployment", "StatefulSet", "CronJob", "PodDisruptionBudget",
	}
	if i := slices.Index(first, kind); i >= 0 {
		return i - len(first)
	}
	return 1 + slices.Index([]string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"}, kind)
}
