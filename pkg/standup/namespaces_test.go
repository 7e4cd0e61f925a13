// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kubestandup/kubestandup/pkg/crds"
)

// TestNamespacesThatAreNotThere is CRD-15.
func TestNamespacesThatAreNotThere(t *testing.T) {
	const (
		object    = "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: media}}"
		namespace = "{apiVersion: v1, kind: Namespace, metadata: {name: media}}"
		inside    = "{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {name: p, namespace: media}, spec: {install: {createNamespace: true}}}"
		outside   = "{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {name: p, namespace: apps}, spec: {targetNamespace: media, install: {createNamespace: true}}}"
	)
	for name, tt := range map[string]struct {
		maker, spec string
		makes, uses []string
		rules, says string
	}{
		"nobody makes it":               {"{}", "{}", nil, []string{object}, "[namespace-missing]", "ConfigMap/media/c of Kustomization/flux-system/user is in it"},
		"the tier itself":               {"{}", "{}", nil, []string{object, namespace}, "[]", ""},
		"an earlier tier":               {"{}", "{dependsOn: [{name: maker}]}", []string{namespace}, []string{object}, "[]", ""},
		"another tier":                  {"{}", "{}", []string{namespace}, []string{object}, "[namespace-race]", "add dependsOn: [{name: maker, namespace: flux-system}]"},
		"a later tier":                  {"{dependsOn: [{name: user}]}", "{}", []string{namespace}, []string{object}, "[namespace-race]", "comes with Kustomization/flux-system/maker"},
		"createNamespace does not help": {"{}", "{}", nil, []string{inside}, "[namespace-missing]", "only once it is in it itself"},
		"a release that comes first":    {"{}", "{dependsOn: [{name: maker}]}", []string{outside}, []string{object}, "[]", ""},
		"a chart may make it":           {"{}", "{dependsOn: [{name: maker}]}", []string{strings.Replace(outside, "createNamespace: true", "", 1)}, []string{object}, "[namespace-missing]", "a chart that is installed before may make it: HelmRelease/apps/p"},
		"a release beside it":           {"{}", "{}", nil, []string{outside, object}, "[namespace-missing]", "HelmRelease/apps/p of Kustomization/flux-system/user creates it"},
		"it exists":                     {"{}", "{}", nil, []string{strings.ReplaceAll(object, "media", "apps")}, "[]", ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := lacking(lookingAtBuilds(builtTier(t, "maker", tt.maker, tt.makes...), builtTier(t, "user", tt.spec, tt.uses...)),
				func(d *crds.Diagnosis) { d.Missing = nil })
			c, err := p.kinds(t.Context())
			if err != nil || fmt.Sprint(rules(c)) != tt.rules {
				t.Fatalf("got %+v, %v", c.Findings, err)
			}
			if tt.says != "" && !strings.Contains(text(c.Findings[0]), tt.says) {
				t.Errorf("got %+v", c.Findings[0])
			}
		})
	}
}
