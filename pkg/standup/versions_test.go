// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/wedge"
)

func controllersAt(source, kustomize, helm string) []controller {
	var all []controller
	for _, c := range []controller{{name: "source-controller", version: source}, {name: "kustomize-controller", version: kustomize}, {name: "helm-controller", version: helm}} {
		if c.version != "" {
			c.deployment = &appsv1.Deployment{}
			c.deployment.Name = c.name
		}
		all = append(all, c)
	}
	return all
}

func TestFluxRelease(t *testing.T) {
	for _, tt := range []struct {
		source, kustomize, helm, server string
		release                         string
		rules                           string
	}{
		{"v1.9.6", "v1.9.6", "v1.6.4", "1.33.0", "2.9", "[]"},
		{"v1.8.0", "v1.9.0", "v1.6.0", "1.34.1", "2.8 to 2.9", "[]"}, // one apart, as in the middle of an update
		{"v1.7.0", "v1.9.0", "v1.6.0", "1.34.1", "2.7 to 2.9", "[flux-release-mixed]"},
		{"v1.9.0", "v1.9.0", "v1.0.1", "1.34.1", "2.3 to 2.9", "[flux-release-mixed]"},
		{"v1.0.1", "v1.0.1", "v0.35.0", "1.27.0", "2.0", "[]"},
		{"v1.2.0", "v1.2.0", "v0.37.4", "1.27.0", "2.2", "[]"},
		{"v1.9.6", "v1.9.6", "v1.6.4", "1.32.9", "2.9", "[kubernetes-too-old]"},
		{"latest", "v0.35.1", "", "1.34.1", "", "[]"}, // nothing is known of those
		{"", "v1.9.0", "", "1.34.1", "2.9", "[]"},
	} {
		release, found := fluxRelease(controllersAt(tt.source, tt.kustomize, tt.helm), version.MustParseGeneric(tt.server))
		if got := fmt.Sprint(rules(Check{Findings: found})); release != tt.release || got != tt.rules {
			t.Errorf("%+v: got %s, %s", tt, release, got)
		}
		for _, f := range found {
			if f.Severity != finding.Warning || f.Blocks || f.Fix == "" {
				t.Errorf("%+v: %+v", tt, f)
			}
		}
	}
}

func TestKubeletSkew(t *testing.T) {
	for kubelet, fits := range map[string]bool{
		"v1.33.1": true, "v1.30.9-eks-1": true, "v1.29.9": false, "v1.34.0": false, "v2.33.0": false, "unknown": true,
	} {
		faults := kubeletSkew([]corev1.Node{node("a", "True", "", kubelet, "")}, version.MustParseGeneric("1.33.0"))
		if (len(faults) == 0) != fits {
			t.Errorf("%s: %+v", kubelet, faults)
		}
	}
}

// TestControllersOlderThanTheirCRDs is the rest of CRD-16.
func TestControllersOlderThanTheirCRDs(t *testing.T) {
	definition := func(name string, stored ...string) *wedge.Definition {
		d := &wedge.Definition{StoredVersions: stored}
		d.Ref = flux.Ref{Kind: "CustomResourceDefinition", Name: name}
		return d
	}
	definitions := []*wedge.Definition{
		definition("helmreleases.helm.toolkit.fluxcd.io", "v2beta2", "v2"),
		definition("ocirepositories.source.toolkit.fluxcd.io", "v1beta2"),
		definition("buckets.source.toolkit.fluxcd.io", "v1"),
	}
	for _, tt := range []struct {
		source, helm string
		want         int
	}{
		{"v1.9.6", "v1.6.4", 0},
		{"v1.9.6", "v0.37.4", 1},
		{"v1.3.0", "v0.37.4", 2},
		{"v1.4.0", "v1.0.0-rc.1", 0}, // OCIRepositories are still stored in v1beta2
		{"latest", "", 0},
	} {
		found := tooOld(controllersAt(tt.source, "v1.9.6", tt.helm), definitions)
		if len(found) != tt.want {
			t.Errorf("%+v: %+v", tt, found)
		}
		for _, f := range found {
			if f.Rule != "flux-controller-too-old" || f.Severity != finding.Error || len(f.Causes) != 1 || f.Object == nil {
				t.Errorf("%+v: %+v", tt, f)
			}
		}
	}
}
