// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubestandup/kubestandup/pkg/crds"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// TestCRD12 is a kind that is served in another version than the manifest has.
func TestCRD12(t *testing.T) {
	wanted := schema.GroupVersionKind{Group: "obs.example.com", Version: "v1", Kind: "Widget"}
	old := crd("obs.example.com", "Widget", "widgets", Version{"v1beta1", true, true})
	text := `Widget/obs/a dry-run failed: no matches for kind "Widget" in version "obs.example.com/v1"`
	failing := kustomization("apps", isNot("Ready", "ReconciliationFailed", text))
	serves := func(failed ...schema.GroupVersion) func(*World) {
		return func(w *World) {
			w.Served = discovered(t, []schema.GroupVersionKind{{Group: "obs.example.com", Version: "v1beta1", Kind: "Widget"}}, failed...)
		}
	}
	diagnosed := func(others ...string) func(*World) {
		return func(w *World) {
			w.Diagnoses = []*crds.Diagnosis{{Tier: failing.Ref, Missing: []crds.Missing{{
				Kind: wanted, OtherVersions: others,
				Objects: []flux.Ref{{APIVersion: "obs.example.com/v1", Kind: "Widget", Namespace: "obs", Name: "a"}},
			}}}}
		}
	}
	for what, world := range map[string][]func(*World){
		"by its message":    {defines(old), fluxHas(failing), serves()},
		"by its diagnosis":  {defines(old), diagnosed("v1beta1")},
		"by both":           {defines(old), fluxHas(failing), serves(), diagnosed("v1beta1")},
		"a HelmRelease too": {defines(old), fluxHas(helmRelease("db", isNot("Released", "UpgradeFailed", text))), serves()},
	} {
		t.Run(what, func(t *testing.T) {
			v := one(t, versionsNotServed(apiWorld(world...)))
			does(t, v, Never)
			mentions(t, v, "in version v1; the CRD exists and serves v1beta1", "The CRD is not deleted", "widgets.obs.example.com")
		})
	}
	t.Run("a HelmRelease owns the CRD", func(t *testing.T) {
		owned := *old
		owned.Owner.Release = "apps/obs"
		v := one(t, versionsNotServed(apiWorld(defines(&owned), fluxHas(failing, helmRelease("obs", isSo("Ready", "x", ""))), serves())))
		does(t, v, Never)
		mentions(t, v, "leaves those that exist as they are", "spec.upgrade.crds: CreateReplace on HelmRelease/apps/obs")

		v = one(t, versionsNotServed(apiWorld(defines(&owned), fluxHas(failing, helmRelease("obs", isNot("Ready", "x", ""))), serves())))
		does(t, v, When)
	})
	t.Run("a Kustomization owns the CRD", func(t *testing.T) {
		owned := *old
		owned.Owner.Tier = kustomization("infra").Ref
		mentions(t, one(t, versionsNotServed(apiWorld(defines(&owned), fluxHas(failing), serves()))), "bring the CRD that Kustomization/flux-system/infra applies")
	})
	for what, world := range map[string][]func(*World){
		"its discovery failed": {defines(old), fluxHas(failing), serves(schema.GroupVersion{Group: "obs.example.com", Version: "v1"})},
		"no version is served": {fluxHas(failing), func(w *World) {
			w.Served = discovered(t, []schema.GroupVersionKind{{Version: "v1", Group: "apps", Kind: "Deployment"}})
		}},
		"it is served by now":    {fluxHas(failing), func(w *World) { w.Served = discovered(t, []schema.GroupVersionKind{wanted}) }},
		"missing altogether":     {diagnosed()},
		"discovery was not read": {fluxHas(failing)},
	} {
		t.Run(what, func(t *testing.T) { none(t, versionsNotServed(apiWorld(world...))) })
	}
}
