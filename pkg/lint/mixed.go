// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package lint

import "github.com/kubestandup/kubestandup/pkg/build"

// mixed takes the tiers that do not build from the working tree for such of
// unknown content where the artifact of their source holds more than that: other
// repositories (spec.include) or submodules.
func (s *shelf) mixed(all []build.Followed) {
	for i := range all {
		t := &all[i]
		if t.Err == nil || t.Kustomization == nil {
			continue
		}
		ref := build.SourceOf(t.Kustomization)
		if o := s.source(ref); o != nil && (nested(o, "include") != nil || nested(o, "recurseSubmodules") == true) {
			t.Err, t.Result, t.Outside = nil, nil, &ref
		}
	}
}
