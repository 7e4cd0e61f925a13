// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"testing"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

func TestMatches(t *testing.T) {
	hr := flux.Ref{APIVersion: "helm.toolkit.fluxcd.io/v2", Kind: "HelmRelease", Namespace: "apps", Name: "db"}
	crd := flux.Ref{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: "widgets.example.org"}
	policy := flux.Ref{APIVersion: "x/v1", Kind: "Policy", Name: "p"}
	record := flux.Ref{APIVersion: "v1", Kind: "Secret", Namespace: "apps", Name: "sh.helm.release.v1.a.v2.v13"}
	for _, tt := range []struct {
		arg  string
		ref  flux.Ref
		want bool
	}{
		{"hr/db", hr, true},
		{"HelmRelease/apps/db", hr, true},
		{"helmreleases/apps/db", hr, true},
		{"helmrelease.helm.toolkit.fluxcd.io/apps/db", hr, true},
		{"helmrelease.other.group/apps/db", hr, false},
		{"hr/other/db", hr, false},
		{"hr/d", hr, false},
		{"ks/db", hr, false},
		{"db", hr, false},
		{"hr/", hr, false},
		{"crd/widgets.example.org", crd, true},
		{"policies/p", policy, true},
		{"release/apps/a.v2", record, true},
		{"release/a.v2", record, true},
		{"release/a", record, false},
		{"secret/apps/sh.helm.release.v1.a.v2.v13", record, true},
		{"release/db", hr, false},
	} {
		if got := Matches(tt.arg, tt.ref); got != tt.want {
			t.Errorf("Matches(%q, %s) = %v", tt.arg, tt.ref, got)
		}
		if tt.want && !Matches(Arg(tt.ref), tt.ref) {
			t.Errorf("%s does not name %s", Arg(tt.ref), tt.ref)
		}
	}
}

// TestAllowed: what --allow names may be lost, so that it names one object.
func TestAllowed(t *testing.T) {
	hr := flux.Ref{APIVersion: "helm.toolkit.fluxcd.io/v2", Kind: "HelmRelease", Namespace: "apps", Name: "db"}
	pvc := flux.Ref{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: "apps", Name: "data"}
	foreign := flux.Ref{APIVersion: "example.com/v1", Kind: "PersistentVolumeClaim", Namespace: "apps", Name: "data"}
	service := flux.Ref{APIVersion: "serving.knative.dev/v1", Kind: "Service", Namespace: "apps", Name: "web"}
	widget := flux.Ref{APIVersion: "example.com/v1", Kind: "Widget", Namespace: "apps", Name: "x"}
	crd := flux.Ref{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: "widgets.example.org"}
	record := flux.Ref{APIVersion: "v1", Kind: "Secret", Namespace: "apps", Name: "sh.helm.release.v1.a.v13"}
	for _, tt := range []struct {
		arg  string
		ref  flux.Ref
		want bool
	}{
		{"hr/apps/db", hr, true},
		{"hr/db", hr, false},
		{"hr/other/db", hr, false},
		{"pvc/apps/data", pvc, true},
		{"PersistentVolumeClaims/apps/data", pvc, true},
		{"pvc/data", pvc, false},
		{"pvc/apps/data", foreign, false},
		{"persistentvolumeclaim/apps/data", foreign, false},
		{"persistentvolumeclaim.example.com/apps/data", foreign, true},
		{"service/apps/web", service, false},
		{"services.serving.knative.dev/apps/web", service, true},
		{"widget/apps/x", widget, true},
		{"widget/x", widget, false},
		{"crd/widgets.example.org", crd, true},
		{"release/apps/a", record, true},
		{"release/a", record, false},
		{"secret/apps/sh.helm.release.v1.a.v13", record, true},
		{"secret/sh.helm.release.v1.a.v13", record, false},
		{"db", hr, false},
	} {
		w := &World{Choices: Choices{Allow: []string{tt.arg}}}
		if got := w.allows(tt.ref); got != tt.want {
			t.Errorf("--allow %s, %s: %v", tt.arg, tt.ref, got)
		}
		if w.Choices.Allow = []string{Arg(tt.ref)}; !w.allows(tt.ref) || !Matches(Arg(tt.ref), tt.ref) {
			t.Errorf("%s does not name %s", Arg(tt.ref), tt.ref)
		}
	}
}
