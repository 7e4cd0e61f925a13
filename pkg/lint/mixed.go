// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// mixed takes the tiers that do not build from the working tree for such of
// unknown content where the artifact of their source holds more than that: other
// repositories (spec.include) or submodules.
func (s *shelf) mixed(all []build.Followed) {
	for i := range all {
		t := &all[i]
		if t.Err == nil || t.Kustomization == nil {
			continue
		}
		var k kustomizev1.Kustomization
		_ = runtime.DefaultUnstructuredConverter.FromUnstructured(t.Kustomization.Object, &k) // it was decoded before
		ref := flux.Ref{Kind: k.Spec.SourceRef.Kind, Namespace: k.Spec.SourceRef.Namespace, Name: k.Spec.SourceRef.Name}
		if ref.Namespace == "" {
			ref.Namespace = t.Tier.Namespace
		}
		if o := s.source(ref); o != nil && (nested(o, "include") != nil || nested(o, "recurseSubmodules") == true) {
			t.Err, t.Result, t.Outside = nil, nil, &ref
		}
	}
}
