// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"context"
	"fmt"
	"slices"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/fluxcd/pkg/runtime/statusreaders"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

// class is how well an object is, as far as it can be proved.
type class int

// The classes, best first. What says that an object is well is its status or a
// check; an applied one is of a kind that has no status, so being there is all.
const (
	unjudged class = iota
	wellSaid
	wellApplied
	// mute is an object of which nothing says whether it is well.
	mute
	// unasked is one that could not be looked at.
	unasked
	late
	broken
	// refuted is one of which a check of standup.yaml says that it is not well.
	refuted
	goingAway
	absent
	unservedKind
)

// proof is what is known of one object.
type proof struct {
	class class
	why   string
	// example is an expression that is true of a mute object now.
	example string
}

// statusless are the built-in kinds that have no status by design: nothing
// acts on them that could report.
func statusless(gk schema.GroupKind) bool {
	kinds := map[string][]string{
		"":                          {"ConfigMap", "Secret", "ServiceAccount", "LimitRange", "Endpoints", "PodTemplate"},
		"rbac.authorization.k8s.io": {"Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"},
		"networking.k8s.io":         {"NetworkPolicy", "IngressClass"},
		"storage.k8s.io":            {"StorageClass", "CSIDriver", "CSINode", "CSIStorageCapacity", "VolumeAttributesClass"},
		"scheduling.k8s.io":         {"PriorityClass"},
		"node.k8s.io":               {"RuntimeClass"},
		"coordination.k8s.io":       {"Lease"},
		"discovery.k8s.io":          {"EndpointSlice"},
		"resource.k8s.io":           {"DeviceClass", "ResourceClaimTemplate"},
		"admissionregistration.k8s.io": {
			"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration",
			"ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding",
		},
	}
	return slices.Contains(kinds[gk.Group], gk.Kind)
}

// judge says how well an object is. Checks replace kstatus, as in Flux; all of
// them have to be true.
func judge(ctx context.Context, u *unstructured.Unstructured, checks []objectCheck) proof {
	if at := u.GetDeletionTimestamp(); at != nil {
		why := fmt.Sprintf("is being deleted since %s", at.UTC().Format("2006-01-02T15:04:05Z"))
		if held := u.GetFinalizers(); len(held) > 0 {
			why += fmt.Sprintf(", held by finalizers %v", held)
		}
		return proof{class: goingAway, why: why}
	}
	for i := range checks {
		if p := checks[i].judge(ctx, u); p.class != wellSaid {
			return p
		}
	}
	if len(checks) > 0 {
		return proof{class: wellSaid}
	}
	return judgeStatus(u)
}

// judgeStatus is kstatus, and after it what kstatus takes on trust.
func judgeStatus(u *unstructured.Unstructured) proof {
	gk := u.GroupVersionKind().GroupKind()
	if statusless(gk) {
		return proof{class: wellApplied}
	}
	result, err := status.Compute(u)
	if err != nil {
		return proof{class: mute, why: "its status is of a form that nothing here can read", example: "true"}
	}
	if gk == (schema.GroupKind{Group: "batch", Kind: "Job"}) {
		// To kstatus a Job is well once it runs, to Flux once it is complete.
		job := statusreaders.ComputeJobStatus(u)
		result = &job
	}
	switch result.Status {
	case status.InProgressStatus:
		return proof{class: late, why: result.Message}
	case status.CurrentStatus:
	default:
		return proof{class: broken, why: result.Message}
	}
	switch gk.String() {
	case "Service":
		return judgeService(u)
	case "Namespace":
		return judgePhase(u, "Active")
	case "PersistentVolume":
		return judgePhase(u, "Bound", "Available", "Released")
	case "Ingress.networking.k8s.io":
		if hasAddress(u) {
			return proof{class: wellSaid}
		}
		return proof{class: mute, example: "has(status.loadBalancer.ingress)"}
	case "CronJob.batch":
		return proof{class: wellApplied} // each Job is another matter
	}
	if isStaticFlux(u) {
		return proof{class: wellApplied}
	}
	if replicas, set, _ := unstructured.NestedInt64(u.Object, "spec", "replicas"); set && replicas == 0 && gk.Group == "apps" {
		return proof{class: mute, why: "it is scaled to zero, so nothing of it runs"}
	}
	if status.GetLegacyConditionsFn(u) != nil {
		return proof{class: wellSaid}
	}
	return judgeConditions(u)
}

// isStaticFlux is true for the objects of Flux that no controller reconciles, so
// that they never get a status: a HelmRepository of type oci
// (source-controller internal/controller helmrepository_controller.go, v1.9.6),
// and since notification v1beta3 an Alert and a Provider
// (notification-controller api/v1beta3, v1.9.6).
func isStaticFlux(u *unstructured.Unstructured) bool {
	if conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions"); len(conditions) > 0 {
		return false
	}
	switch u.GroupVersionKind().GroupKind().String() {
	case "HelmRepository." + flux.SourceGroup:
		kind, _, _ := unstructured.NestedString(u.Object, "spec", "type")
		return kind == "oci"
	case "Alert.notification.toolkit.fluxcd.io", "Provider.notification.toolkit.fluxcd.io":
		return true
	}
	return false
}

// judgeService: kstatus calls a load balancer ready that has no address. Helm
// does not (pkg/kube/ready.go serviceReady).
func judgeService(u *unstructured.Unstructured) proof {
	kind, _, _ := unstructured.NestedString(u.Object, "spec", "type")
	switch {
	case kind != "LoadBalancer":
		return proof{class: wellApplied}
	case hasAddress(u):
		return proof{class: wellSaid}
	}
	if external, _, _ := unstructured.NestedSlice(u.Object, "spec", "externalIPs"); len(external) > 0 {
		return proof{class: wellApplied}
	}
	return proof{class: late, why: "its load balancer has no address"}
}

func hasAddress(u *unstructured.Unstructured) bool {
	addresses, _, _ := unstructured.NestedSlice(u.Object, "status", "loadBalancer", "ingress")
	return len(addresses) > 0
}

func judgePhase(u *unstructured.Unstructured, good ...string) proof {
	phase, _, _ := unstructured.NestedString(u.Object, "status", "phase")
	if slices.Contains(good, phase) {
		return proof{class: wellSaid}
	}
	return proof{class: late, why: fmt.Sprintf("its phase is %q", phase)}
}

// judgeConditions is for what kstatus calls Current because it found nothing
// that says otherwise. It knows no conditions but Ready, Reconciling and
// Stalled; here those count as well whose meaning is the same everywhere.
func judgeConditions(u *unstructured.Unstructured) proof {
	all, err := status.GetObjectWithConditions(u.Object)
	if err != nil {
		return proof{class: mute, example: example(u)}
	}
	good := false
	for _, c := range all.Status.Conditions {
		switch c.Type {
		case "Ready", "Available", "Healthy", "Established", "Accepted", "Programmed", "Synced":
			if c.Status != "True" {
				return proof{class: late, why: conditionWords(c)}
			}
			good = true
		case "Degraded", "Failed", "Failure":
			if c.Status == "True" {
				return proof{class: broken, why: conditionWords(c)}
			}
		}
	}
	// kstatus has compared it with the generation of the spec: its controller
	// has seen what was applied, and does not complain.
	if _, observed, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration"); good || observed {
		return proof{class: wellSaid}
	}
	return proof{class: mute, example: example(u)}
}

func conditionWords(c status.BasicCondition) string {
	text := fmt.Sprintf("its condition %s is %s", c.Type, c.Status)
	if c.Message != "" {
		return text + ": " + firstLine(c.Message)
	}
	if c.Reason != "" {
		return text + ": " + c.Reason
	}
	return text
}
