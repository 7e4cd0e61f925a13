// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

func givenUp(t flux.Tier, reason string, generation int64) flux.Tier {
	t.Conditions = []metav1.Condition{
		{Type: "Ready", Status: metav1.ConditionFalse, Reason: reason, Message: "it will not do", ObservedGeneration: generation},
		{Type: "Stalled", Status: metav1.ConditionTrue, Reason: reason, Message: "it will not do", ObservedGeneration: generation},
	}
	t.ObservedGeneration = generation
	return t
}

func TestDEP09StalledTier(t *testing.T) {
	broken := givenUp(fluxKS("app"), "InvalidCELExpression", 1)
	broken.Generation = 1
	v := fluxOne(t, stalledTiers(fluxWorld(broken, fluxKS("other"))))
	if v.State != "InvalidCELExpression" || v.ResolvesItself != Never || len(v.Actions) > 0 {
		t.Errorf("%+v", v)
	}
	fluxHolds(t, v, "has given up on it: it will not do", "correct Kustomization/flux-system/app in git")

	mended := givenUp(fluxKS("app"), "InvalidCELExpression", 1)
	mended.Generation = 2 // its controller has not looked at this spec yet
	fluxNone(t, stalledTiers(fluxWorld(mended)))

	release := givenUp(fluxHR("db"), "RetriesExceeded", 1)
	release.Generation = 1
	fluxNone(t, stalledTiers(fluxWorld(release))) // see release-exhausted
	fluxNone(t, stalledTiers(&World{}))
}

// A backup is applied to a cluster that has forgotten the object: what a
// controller said of the former one is not true of the new one.
func TestRestorableHasNoStatus(t *testing.T) {
	live := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "CDI",
		"metadata": map[string]any{"name": "cdi", "uid": "u", "resourceVersion": "1", "labels": map[string]any{"a": "b"}},
		"spec":     map[string]any{"x": "y"}, "status": map[string]any{"phase": "Error"},
	}}
	got := restorable(live)
	if got.Object["status"] != nil || got.GetUID() != "" || got.GetLabels()["a"] != "b" || got.Object["spec"] == nil {
		t.Errorf("%v", got.Object)
	}
	if live.Object["status"] == nil {
		t.Error("the live object was changed")
	}
}
