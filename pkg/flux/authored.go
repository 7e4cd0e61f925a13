// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package flux

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Authored reads a Kustomization or a HelmRelease as git has it: without a
// status, its durations and namespaces resolved as Flux would. The source of a
// HelmRelease is known only where it has a chartRef: the HelmChart of the others
// is made by helm-controller.
func Authored(o *unstructured.Unstructured) (Tier, error) {
	gvk := o.GroupVersionKind()
	r := Resource{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind}
	tier := gvk.Kind == KustomizationKind && gvk.Group == KustomizeGroup ||
		gvk.Kind == HelmReleaseKind && gvk.Group == HelmGroup
	if !tier {
		return Tier{}, fmt.Errorf("%s/%s: it is a %s, neither a %s of %s nor a %s of %s", o.GetKind(), o.GetName(),
			gvk.GroupKind(), KustomizationKind, KustomizeGroup, HelmReleaseKind, HelmGroup)
	}
	raw, err := json.Marshal(o.Object)
	if err != nil {
		return Tier{}, fmt.Errorf("%s/%s: %w", o.GetKind(), o.GetName(), err)
	}
	var it item
	if err := json.Unmarshal(raw, &it); err != nil {
		return Tier{}, fmt.Errorf("%s/%s: %w", o.GetKind(), o.GetName(), err)
	}
	it.Status = status{}
	if gvk.Kind == KustomizationKind {
		return it.kustomization(r), nil
	}
	return it.helmRelease(r), nil
}
