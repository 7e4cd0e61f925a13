// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

// ownedByCDI is a CRD that the CDI resource owns: the garbage collector takes
// it away with the resource.
func ownedByCDI(kind, plural string) *Definition {
	d := crd("cdi.kubevirt.io", kind, plural)
	d.Owner = Owner{Controller: flux.Ref{APIVersion: "cdi.kubevirt.io/v1beta1", Kind: "CDI", Name: "cdi"}, ControllerUID: "uid-cdi"}
	return d
}

// TestCRD09 is an operator that is gone, with its resource and its webhook: the
// webhook first, then the resource, then its finalizer.
func TestCRD09(t *testing.T) {
	w := apiWorld(virtKinds(), virtValidator(), virtGone(), hasTrigger(kubevirt(t)))
	plan := append(deadWebhooks(w), finalizers(w)...)
	if len(plan) != 2 || plan[0].Cause != WebhookWithoutEnd || plan[1].Cause != FinalizerHeld {
		t.Fatalf("plan: %+v", plan)
	}
	v := &plan[1]
	does(t, v, Never,
		"delete KubeVirt/kubevirt/kubevirt!", "remove-finalizer KubeVirt/kubevirt/kubevirt!", "wait KubeVirt/kubevirt/kubevirt")
	mentions(t, v, "first choice: put the operator back", "Before anything else ValidatingWebhookConfiguration/virt-operator-validator has to go",
		"CustomResourceDefinition/virtualmachineinstances.kubevirt.io", "foregroundDeleteKubeVirt")
	if v.State != "operator-gone" {
		t.Errorf("state %s", v.State)
	}
	t.Run("it is being deleted already", func(t *testing.T) {
		v := one(t, finalizers(apiWorld(virtKinds(), hasTrigger(kubevirt(t, goingAway)))))
		does(t, v, Never, "remove-finalizer KubeVirt/kubevirt/kubevirt!", "wait KubeVirt/kubevirt/kubevirt")
		want := []op{
			{"test", "/metadata/uid", "uid-kubevirt"},
			{"test", "/metadata/finalizers/0", "foregroundDeleteKubeVirt"},
			{"remove", "/metadata/finalizers/0", nil},
		}
		if got := v.Actions[0].step.(patchStep).ops; !reflect.DeepEqual(got, want) {
			t.Errorf("patch %v, want %v", got, want)
		}
	})
	t.Run("a machine exists", func(t *testing.T) {
		v := one(t, finalizers(apiWorld(virtKinds(), hasTrigger(kubevirt(t, goingAway)), holds(dataVolume("golden", "Succeeded")))))
		does(t, v, Never)
		mentions(t, v, "--allow datavolume/vms/golden")
		if v.Refused == "" {
			t.Error("it is not refused")
		}
	})
	t.Run("it is named", func(t *testing.T) {
		v := one(t, finalizers(apiWorld(virtKinds(), hasTrigger(kubevirt(t, goingAway)), holds(dataVolume("golden", "Succeeded")), allowing("datavolume/vms/golden"))))
		does(t, v, Never, "remove-finalizer KubeVirt/kubevirt/kubevirt!", "wait KubeVirt/kubevirt/kubevirt")
	})
}

// TestCRD10 is an operator that cannot come back, because its Namespace is
// being deleted: the resource's finalizer is the way out, never the Namespace's.
func TestCRD10(t *testing.T) {
	w := apiWorld(
		hasTrigger(cdi(t, phaseDeployed, goingAway)), terminates(goingNamespace("cdi")),
		defines(crd("cdi.kubevirt.io", "CDI", "cdis"), ownedByCDI("DataVolume", "datavolumes"), crd("cdi.kubevirt.io", "StorageProfile", "storageprofiles")),
		hooks("cdi-api-validate", hookOf("v", "cdi.kubevirt.io", "cdis", "cdi", "cdi-api")),
	)
	v := one(t, finalizers(w))
	does(t, v, Never, "remove-finalizer CDI/cdi!", "wait CDI/cdi")
	mentions(t, v, "the operator cannot come back", "never that of the Namespace",
		"the garbage collector then deletes what it owns, a CRD with every object of its kind: CustomResourceDefinition/datavolumes.cdi.kubevirt.io",
		"left behind: CustomResourceDefinition/storageprofiles.cdi.kubevirt.io, ValidatingWebhookConfiguration/cdi-api-validate")
	for _, a := range v.Actions {
		if a.Object.Kind == "Namespace" {
			t.Errorf("it acts on the Namespace: %+v", a)
		}
	}
	if strings.Contains(v.Repair, "put the operator back") {
		t.Errorf("it sends people to what cannot work: %s", v.Repair)
	}
}

func TestResourcesOfLiveOperators(t *testing.T) {
	operator := func(wanted, available int32) func(*World) { return has(cdiOperator(wanted, available)) }
	t.Run("it runs", func(t *testing.T) {
		none(t, finalizers(apiWorld(hasTrigger(cdi(t, phaseDeployed, goingAway)), operator(1, 1))))
	})
	t.Run("not deleted, and no webhook in the way", func(t *testing.T) {
		none(t, finalizers(apiWorld(hasTrigger(cdi(t, phaseDeployed)))))
	})
	t.Run("no finalizer", func(t *testing.T) {
		none(t, finalizers(apiWorld(hasTrigger(cdi(t, phaseDeployed, goingAway, func(s *TriggerState) { s.Finalizers = nil })))))
	})
	t.Run("it is coming up", func(t *testing.T) {
		v := one(t, finalizers(apiWorld(hasTrigger(cdi(t, phaseDeployed, goingAway)), operator(1, 0))))
		does(t, v, When)
	})
	t.Run("it is scaled to zero", func(t *testing.T) {
		v := one(t, finalizers(apiWorld(hasTrigger(cdi(t, phaseDeployed, goingAway)), operator(0, 0))))
		does(t, v, Never)
		mentions(t, v, "scale the operator up")
	})
	t.Run("it is scaled to zero in a Namespace that goes", func(t *testing.T) {
		v := one(t, finalizers(apiWorld(hasTrigger(cdi(t, phaseDeployed, goingAway)), operator(0, 0), terminates(goingNamespace("cdi")))))
		does(t, v, Never, "remove-finalizer CDI/cdi!", "wait CDI/cdi")
	})
	t.Run("its CRD goes too", func(t *testing.T) { // that verdict tells of it
		d := crd("cdi.kubevirt.io", "CDI", "cdis")
		d.Deleted = ago(time.Minute)
		none(t, finalizers(apiWorld(hasTrigger(cdi(t, phaseDeployed, goingAway)), defines(d))))
	})
}

// An object that nobody is known to keep, in a Namespace that is being deleted.
func TestHeldInNamespace(t *testing.T) {
	namespace := terminates(goingNamespace("apps"))
	h := func(edit ...func(*Held)) func(*World) {
		o := heldObject("example.com/v1", "Widget", "apps", "x", "foregroundDeletion", "example.com/keep", "example.com/last")
		o.SetBy = []string{"widget-operator"}
		for _, e := range edit {
			e(o)
		}
		return holding(o)
	}
	v := one(t, finalizers(apiWorld(namespace, h())))
	does(t, v, Never)
	if !strings.Contains(v.Refused, "only guessed") {
		t.Errorf("refused: %q", v.Refused)
	}
	v = one(t, finalizers(apiWorld(namespace, h(), allowing("widget/apps/x"))))
	does(t, v, Never, "remove-finalizer Widget/apps/x!", "wait Widget/apps/x")
	mentions(t, v, "widget-operator wrote the finalizer, and no workload of that name was seen")
	want := []op{
		{"test", "/metadata/uid", "uid-x"},
		{"test", "/metadata/finalizers/2", "example.com/last"},
		{"remove", "/metadata/finalizers/2", nil},
		{"test", "/metadata/finalizers/1", "example.com/keep"},
		{"remove", "/metadata/finalizers/1", nil},
	}
	if got := v.Actions[0].step.(patchStep).ops; !reflect.DeepEqual(got, want) {
		t.Errorf("patch %v, want %v", got, want)
	}
	for what, c := range map[string][]func(*World){
		"its controller runs": {namespace, h(), has(deployment("elsewhere", "widget-operator", 1, 1, nil))},
		"the Namespace stays": {h()},
		"it is not deleted":   {namespace, h(func(o *Held) { o.Deleted = time.Time{} })},
		"Kubernetes keeps it": {namespace, h(func(o *Held) { o.Finalizers = []string{"kubernetes.io/pvc-protection"} })},
		"it is Flux's": {namespace, h(func(o *Held) {
			o.Ref.APIVersion = "helm.toolkit.fluxcd.io/v2"
			o.Finalizers = []string{"finalizers.fluxcd.io"}
		})},
	} {
		t.Run(what, func(t *testing.T) { none(t, finalizers(apiWorld(c...))) })
	}
	t.Run("nobody known, just deleted", func(t *testing.T) {
		v := one(t, finalizers(apiWorld(namespace, h(func(o *Held) { o.SetBy = []string{"kubectl-create"}; o.Deleted = ago(settle / 2) }))))
		does(t, v, When)
		mentions(t, v, "after 5m it counts as held for ever, and 2m30s have passed")
	})
	t.Run("the workloads could not be read", func(t *testing.T) {
		v := one(t, finalizers(apiWorld(namespace, h(), func(w *World) { w.Unread[PartWorkloads] = "forbidden" })))
		mentions(t, v, "the workloads could not be read: forbidden")
		if v.Refused == "" || len(v.Actions) > 0 {
			t.Errorf("finalizers would go although nobody knows whether their controller runs: %+v", v.Actions)
		}
	})
}

func TestForeignFinalizers(t *testing.T) {
	got := foreign([]string{
		"kubernetes", "foregroundDeletion", "orphan", "kubernetes.io/pvc-protection", "batch.kubernetes.io/job-tracking", "finalizers.fluxcd.io",
		"customresourcecleanup.apiextensions.k8s.io", "operator.cdi.kubevirt.io", "example.com/x", "snapshot.storage.kubernetes.io/pvc-as-source-protection",
	})
	want := []string{"finalizers.fluxcd.io", "operator.cdi.kubevirt.io", "example.com/x", "snapshot.storage.kubernetes.io/pvc-as-source-protection"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
