// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import "testing"

func converted(ca bool) *Definition {
	d := crd("obs.example.com", "Widget", "widgets", Version{"v1alpha1", true, false}, Version{"v1beta1", true, true})
	d.Conversion = &Conversion{svcName("obs", "webhook-service"), ca}
	return d
}

// TestCRD14 is a conversion that fails: because nothing answers, or because
// the answer is wrong. Neither is ever mended by deleting the CRD.
func TestCRD14(t *testing.T) {
	labels := map[string]string{"app": "obs"}
	name := svcName("obs", "webhook-service")
	wrong := `Widget/obs/a dry-run failed: failed to prune fields: failed add back owned items: failed to convert pruned object at version ` +
		`obs.example.com/v1beta1: conversion webhook for obs.example.com/v1alpha1, Kind=Widget returned invalid metadata: invalid metadata of type <nil> in input object`
	for what, c := range map[string]struct {
		world    []func(*World)
		state    string
		resolves Resolves
		says     []string
	}{
		"the Service does not exist": {
			[]func(*World){defines(converted(true)), service(Backend{Service: name})},
			"no-service", Never,
			[]string{"does not exist", "garbage collector", "cannot be read in any version but v1beta1"},
		},
		"its Deployment is coming up": {
			[]func(*World){
				defines(converted(true)), service(Backend{Service: name, Exists: true, Selector: labels}),
				has(deployment("obs", "obs", 1, 0, labels)),
			}, "waiting", When, []string{"0 of 1"},
		},
		"nothing is behind it": {
			[]func(*World){defines(converted(true)), service(Backend{Service: name, Exists: true, Selector: labels})}, "no-workload", Never, nil,
		},
		"no caBundle": {
			[]func(*World){defines(converted(false)), service(Backend{Service: name, Ready: 1})}, "no-ca-bundle", When, []string{"cainjector"},
		},
		"the answer is wrong": {
			[]func(*World){
				defines(converted(true)), service(Backend{Service: name, Ready: 1}),
				fluxHas(kustomization("apps", isNot("Ready", "ReconciliationFailed", wrong)), kustomization("infra", isNot("Ready", "ReconciliationFailed", wrong))),
			}, "wrong-answer", Never, []string{"restart does not help", "bug of the webhook", "infra"},
		},
	} {
		t.Run(what, func(t *testing.T) {
			v := one(t, conversions(apiWorld(c.world...)))
			does(t, v, c.resolves)
			mentions(t, v, append(c.says, "widgets.obs.example.com", "The CRD is left alone")...)
			if v.State != c.state {
				t.Errorf("state %s", v.State)
			}
		})
	}
}

func TestConversionThatIsFine(t *testing.T) {
	name := svcName("obs", "webhook-service")
	single := crd("obs.example.com", "Widget", "widgets")
	single.Conversion = &Conversion{name, true}
	byURL := converted(true)
	byURL.Conversion.Service = svcName("", "")
	for what, c := range map[string][]func(*World){
		"it answers":                {defines(converted(true)), service(Backend{Service: name, Ready: 1})},
		"one version only":          {defines(single), service(Backend{Service: name})},
		"by URL":                    {defines(byURL)},
		"no conversion":             {defines(crd("obs.example.com", "Widget", "widgets"))},
		"the Service is unreadable": {defines(converted(true)), service(Backend{Service: name, Unknown: "forbidden"})},
		"another failure": {
			defines(converted(true)), service(Backend{Service: name, Ready: 1}),
			fluxHas(kustomization("apps", isNot("Ready", "x", `no matches for kind "Widget" in version "obs.example.com/v2"`))),
		},
	} {
		t.Run(what, func(t *testing.T) { none(t, conversions(apiWorld(c...))) })
	}
}

// One version that is served, while objects are stored in another, has to be
// converted.
func TestConversionOfWhatIsStored(t *testing.T) {
	d := crd("obs.example.com", "Widget", "widgets", Version{"v1alpha1", false, false}, Version{"v1", true, true})
	d.Conversion = &Conversion{svcName("obs", "webhook-service"), true}
	none(t, conversions(apiWorld(defines(d), service(Backend{Service: svcName("obs", "webhook-service")}))))
	d.StoredVersions = []string{"v1alpha1", "v1"}
	one(t, conversions(apiWorld(defines(d), service(Backend{Service: svcName("obs", "webhook-service")}))))
}
