// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestStage(t *testing.T) {
	custom := map[schema.GroupKind]struct{}{
		{Group: "rbac.authorization.k8s.io", Kind: "Role"}:         {},
		{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}:  {},
		{Group: "gateway.networking.k8s.io", Kind: "GatewayClass"}: {},
	}
	tests := []struct {
		apiVersion, kind string
		want             int
	}{
		{"apiextensions.k8s.io/v1", "CustomResourceDefinition", 1},
		{"apiextensions.k8s.io/v1beta1", "CustomResourceDefinition", 1},
		{"v1", "Namespace", 1},
		{"rbac.authorization.k8s.io/v1", "ClusterRole", 1}, // the first match wins
		{"example.com/v1", "Namespace", 4},
		{"example.com/v1", "CustomResourceDefinition", 4},
		{"rbac.authorization.k8s.io/v1", "ClusterRoleBinding", 4},
		{"storage.k8s.io/v1", "StorageClass", 2},
		{"gateway.networking.k8s.io/v1", "GatewayClass", 2},
		{"any.example.com/v1", "VirtualMachineClass", 2},
		{"any.example.com/v1", "Subclass", 4},
		{"rbac.authorization.k8s.io/v1", "Role", 3},
		{"apps/v1", "Deployment", 4},
		{"cdi.kubevirt.io/v1beta1", "CDI", 4},
		{"kustomize.toolkit.fluxcd.io/v1", "Kustomization", 4},
	}
	for _, tt := range tests {
		o := &unstructured.Unstructured{}
		o.SetAPIVersion(tt.apiVersion)
		o.SetKind(tt.kind)
		if got := Stage(o, custom); got != tt.want {
			t.Errorf("%s %s: stage %d, want %d", tt.apiVersion, tt.kind, got, tt.want)
		}
	}
	role := &unstructured.Unstructured{}
	role.SetAPIVersion("rbac.authorization.k8s.io/v1")
	role.SetKind("Role")
	if got := Stage(role, nil); got != StageRest {
		t.Errorf("a Role without the flag: stage %d, want %d", got, StageRest)
	}
}
