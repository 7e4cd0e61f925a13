// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/tiers"
)

// unbuilt reports a tier that will not build, unless its own status, or the
// check of the variables, says that already.
func (k *kindsLook) unbuilt(f *build.Followed) {
	if n := k.graph.Node(f.Tier); n != nil && n.State == tiers.Retrying || k.b.lacksVariables(f) {
		return
	}
	found := finding.Finding{
		Rule: "tier-unbuilt", Severity: finding.Error, Object: &f.Tier, Tier: &f.Tier,
		Message: fmt.Sprintf("%s will not build: %s", f.Tier, firstLine(f.Err.Error())),
		Fix:     "mend it in git, before it is resumed",
	}
	var remote *build.RemoteBaseError
	if errors.As(f.Err, &remote) {
		found.Severity = finding.Warning
		found.Message = fmt.Sprintf("which kinds %s needs could not be looked at: %s", f.Tier, firstLine(f.Err.Error()))
		found.Fix = "a base that is fetched over the network is not looked at here; keep it in the repository"
	}
	k.findings = append(k.findings, found)
}

// lacksVariables is true for a tier one of whose references leads nowhere.
func (b *builds) lacksVariables(f *build.Followed) bool {
	post, _, _ := unstructured.NestedMap(f.Kustomization.Object, "spec", "postBuild")
	refs, _, _ := unstructured.NestedSlice(post, "substituteFrom")
	for _, entry := range refs {
		m, _ := entry.(map[string]any)
		name, _ := m["name"].(string)
		if name != "" && strings.Contains(f.Err.Error(), "substitute from '") && strings.Contains(f.Err.Error(), "/"+name+"'") {
			return true
		}
	}
	return false
}
