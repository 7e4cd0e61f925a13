// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package knowledge_test

import (
	"context"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/fluxcd/pkg/runtime/cel"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubestandup/kubestandup/pkg/knowledge"
)

// evaluator is what kustomize-controller makes of an entry of healthCheckExprs.
func evaluator(t *testing.T, ready knowledge.Ready) *cel.StatusEvaluator {
	t.Helper()
	e, err := cel.NewStatusEvaluator(&kustomize.HealthCheckExpressions{
		Current: ready.Current, InProgress: ready.InProgress, Failed: ready.Failed,
	})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// current is whether the controller takes the object for healthy. It waits on
// after an error, of a field that is not there yet
// (cli-utils statusreaders/common.go errResourceToResourceStatus).
func current(e *cel.StatusEvaluator, o *unstructured.Unstructured) (bool, error) {
	result, err := e.Evaluate(context.Background(), o)
	return err == nil && result.Status == status.CurrentStatus, err
}

func conditions(status string, types ...string) string {
	all := ""
	for _, c := range types {
		all += "{type: " + c + ", status: '" + status + "'}, "
	}
	return "{status: {conditions: [" + all + "{type: Other, status: 'True'}]}}"
}

// TestReady: what people are told to paste is evaluated by Flux's own code, over
// the states that a trigger goes through.
func TestReady(t *testing.T) {
	// done is by relation, each as its controller's source says it; waiting is a
	// state of a controller that has begun and is not done.
	done := map[string]string{
		"cdi":                      "{status: {phase: Deployed}}",
		"cdi-upload":               "{status: {phase: Deployed}}",
		"kubevirt":                 "{status: {phase: Deployed}}",
		"hco":                      conditions("True", "Available"),
		"cnao":                     conditions("True", "Available"),
		"flux-operator":            conditions("True", "Ready"),
		"tigera-apiserver":         "{status: {state: Ready}}",
		"gatekeeper":               "{status: {created: true}}",
		"crossplane-xrd":           conditions("True", "Established"),
		"crossplane-provider":      conditions("True", "Installed", "Healthy"),
		"crossplane-configuration": conditions("True", "Installed", "Healthy"),
		"kro":                      "{status: {state: Active}}",
		"kratix":                   conditions("True", "Available"),
		"kratix-release":           conditions("True", "Installed"),
		"capi-core":                conditions("True", "Ready"),
		"capi-providers":           conditions("True", "Ready"),
		"olm-v0":                   "{status: {state: AtLatestKnown}}",
		"olm-v1":                   conditions("True", "Installed"),
		"ocm-hub":                  conditions("True", "Applied"),
		"ocm-klusterlet":           conditions("True", "Applied"),
		"config-connector":         "{status: {healthy: true}}",
		"knative-serving":          conditions("True", "Ready"),
		"knative-eventing":         conditions("True", "Ready"),
		"tekton":                   conditions("True", "Ready"),
	}
	waiting := []string{
		"{}", "{status: {}}", "{status: {conditions: []}}", "{status: {phase: Deploying, state: Inactive, created: false, healthy: false}}",
		conditions("False", "Available", "Ready", "Established", "Installed", "Healthy", "Applied"),
		conditions("Unknown", "Available", "Ready", "Established", "Installed", "Healthy", "Applied"),
		conditions("True"),
	}
	seen := map[string]bool{}
	for _, r := range builtin(t).Relations() {
		for _, trigger := range r.Triggers {
			if trigger.Ready == nil {
				continue
			}
			seen[r.ID] = true
			e := evaluator(t, *trigger.Ready)
			for _, state := range waiting {
				if now, _ := current(e, object(t, "{spec: {}}", state)); now {
					t.Errorf("%s: %s is healthy with %s", r.ID, trigger.Kind, state)
				}
			}
			now, err := current(e, object(t, "{spec: {}}", done[r.ID]))
			if !now {
				t.Errorf("%s: %s is not healthy with %s: %v", r.ID, trigger.Kind, done[r.ID], err)
			}
			// Stale: what the controller said of an earlier generation.
			if now, _ := current(e, object(t, "{metadata: {generation: 2}, status: {observedGeneration: 1}}", done[r.ID])); now {
				t.Errorf("%s: %s is healthy by what was said of an earlier generation", r.ID, trigger.Kind)
			}
		}
	}
	for id := range done {
		if !seen[id] {
			t.Errorf("%s has no expression", id)
		}
	}
	// The one that depends on the spec.
	claim := evaluator(t, *trigger(t, "crossplane-xrd").Ready)
	claimed := "{spec: {claimNames: {kind: A}}}"
	for state, want := range map[string]bool{
		conditions("True", "Established"):            false,
		conditions("True", "Established", "Offered"): true,
		conditions("True", "Offered"):                false,
	} {
		if now, err := current(claim, object(t, claimed, state)); now != want {
			t.Errorf("an XRD with a claim is healthy: %t with %s: %v", now, state, err)
		}
	}
}

func trigger(t *testing.T, id string) knowledge.Trigger {
	t.Helper()
	r, known := builtin(t).Relation(id)
	if !known || len(r.Triggers) == 0 {
		t.Fatalf("%s: %+v", id, r)
	}
	return r.Triggers[0]
}

// TestEffectOfStorageProfile: CDI creates a StorageProfile for each storage
// class, and copies into the status what git says once it has looked.
func TestEffectOfStorageProfile(t *testing.T) {
	effect := builtin(t).Effect(schema.GroupKind{Group: "cdi.kubevirt.io", Kind: "StorageProfile"})
	if effect == nil || effect.Why == "" {
		t.Fatal(effect)
	}
	e := evaluator(t, effect.Ready)
	const spec = "{spec: {claimPropertySets: [{accessModes: [ReadWriteMany], volumeMode: Block}]}}"
	for _, tt := range []struct {
		name, spec, status string
		want               bool
	}{
		{"just applied", spec, "{}", false},
		{"nothing said", spec, "{status: {}}", false},
		{"made for the class before git's", spec, "{status: {storageClass: a, provisioner: p, claimPropertySets: [{accessModes: [ReadWriteOnce], volumeMode: Filesystem}]}}", false},
		{"of a class that CDI does not know", spec, "{status: {storageClass: a, provisioner: p}}", false},
		{"copied", spec, "{status: {storageClass: a, provisioner: p, claimPropertySets: [{accessModes: [ReadWriteMany], volumeMode: Block}]}}", true},
		{"only in part", spec, "{status: {storageClass: a, claimPropertySets: [{accessModes: [ReadWriteMany, ReadWriteOnce], volumeMode: Block}]}}", false},
		{"nothing to copy, nothing said", "{spec: {}}", "{status: {}}", false},
		{"nothing to copy", "{spec: {}}", "{status: {storageClass: a}}", true},
	} {
		if now, err := current(e, object(t, tt.spec, tt.status)); now != tt.want {
			t.Errorf("%s: healthy: %t, want %t (%v)", tt.name, now, tt.want, err)
		}
	}
	for _, gk := range []schema.GroupKind{{Group: "cdi.kubevirt.io", Kind: "CDI"}, {Group: "example.com", Kind: "StorageProfile"}} {
		if builtin(t).Effect(gk) != nil {
			t.Errorf("%s has an effect", gk)
		}
	}
}
