// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"strings"
	"testing"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

func TestWouldUninstall(t *testing.T) {
	installed := func(change func(*flux.Helm)) *flux.Tier {
		h := &flux.Helm{Storage: "apps", ChartName: "demo", History: []flux.HelmSnapshot{{Name: "web", Namespace: "apps", ChartName: "demo", Version: 1}}}
		change(h)
		return &flux.Tier{Ref: flux.Ref{Kind: flux.HelmReleaseKind, Namespace: "apps", Name: "web"}, Suspended: true, Helm: h}
	}
	for name, tc := range map[string]struct {
		tier *flux.Tier
		says string
	}{
		"as it was":         {installed(func(*flux.Helm) {}), ""},
		"another name":      {installed(func(h *flux.Helm) { h.ReleaseName = "another" }), "its release name is web, and the spec now says another"},
		"another namespace": {installed(func(h *flux.Helm) { h.TargetNamespace = "prod" }), "its target namespace is apps, and the spec now says prod"},
		"another storage":   {installed(func(h *flux.Helm) { h.StorageNamespace = "prod" }), "its storage namespace is apps, and the spec now says prod"},
		"another chart":     {installed(func(h *flux.Helm) { h.ChartName = "pg" }), "its chart is demo, and the spec now says pg"},
		"never installed":   {installed(func(h *flux.Helm) { h.Storage, h.History, h.ReleaseName = "", nil, "another" }), ""},
		"no HelmRelease":    {&flux.Tier{Ref: flux.Ref{Kind: flux.KustomizationKind, Name: "a"}}, ""},
	} {
		if got := WouldUninstall(tc.tier); (got == "") != (tc.says == "") || !strings.HasPrefix(got, tc.says) {
			t.Errorf("%s: %q", name, got)
		}
	}
}
