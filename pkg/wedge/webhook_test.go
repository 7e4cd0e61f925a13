// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"reflect"
	"testing"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

func hookOf(name, group, resource, namespace, service string) Webhook {
	return Webhook{
		Name: name, FailClosed: true, Service: svcName(namespace, service),
		Rules: []Rule{{Groups: []string{group}, Resources: []string{resource}, Operations: []string{"UPDATE", "DELETE"}}},
	}
}

func hooks(name string, of ...Webhook) func(*World) {
	return func(w *World) {
		w.Webhooks = append(w.Webhooks, &WebhookConfiguration{
			Observed: Observed{
				Ref: flux.Ref{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingWebhookConfiguration", Name: name},
				UID: "uid-hooks", ResourceVersion: "4",
			},
			Webhooks: of,
		})
	}
}

func virtValidator() func(*World) {
	return hooks("virt-operator-validator", hookOf("kubevirt-validator.kubevirt.io", "kubevirt.io", "kubevirts", "kubevirt", "kubevirt-operator-webhook"))
}

func virtGone() func(*World) {
	return service(Backend{Service: svcName("kubevirt", "kubevirt-operator-webhook")})
}

func virtKinds() func(*World) {
	return defines(crd("kubevirt.io", "KubeVirt", "kubevirts"), crd("kubevirt.io", "VirtualMachineInstance", "virtualmachineinstances"))
}

// TestCRD09Webhook is a fail-closed webhook whose operator is gone.
func TestCRD09Webhook(t *testing.T) {
	running := Datum{Ref: flux.Ref{APIVersion: "kubevirt.io/v1", Kind: "VirtualMachineInstance", Namespace: "vms", Name: "db"}, Plural: "virtualmachineinstances", Phase: "Running"}
	remove := []string{"wait Service/kubevirt/kubevirt-operator-webhook", "delete ValidatingWebhookConfiguration/virt-operator-validator!"}
	labels := map[string]string{"kubevirt.io": "virt-operator"}
	for what, c := range map[string]struct {
		world    []func(*World)
		state    string
		resolves Resolves
		refused  bool
		actions  []string
		says     []string
	}{
		"its Service does not exist": {
			[]func(*World){virtGone(), hasTrigger(kubevirt(t))},
			"no-service", Never, false, remove,
			[]string{"UPDATE, DELETE of kubevirts.kubevirt.io", "put the operator back"},
		},
		"a machine runs": {
			[]func(*World){virtGone(), holds(running, dataVolume("golden", "Succeeded"))},
			"no-service", Never, true, nil,
			[]string{"--allow virtualmachineinstance/vms/db", "--allow datavolume/vms/golden"},
		},
		"one of two is named": {
			[]func(*World){virtGone(), holds(running, dataVolume("golden", "Succeeded")), allowing("virtualmachineinstance/vms/db")},
			"no-service", Never, true, nil,
			[]string{"--allow datavolume/vms/golden"},
		},
		"both are named": {
			[]func(*World){virtGone(), holds(running, dataVolume("golden", "Succeeded")), allowing("virtualmachineinstance/vms/db", "DataVolume/vms/golden")},
			"no-service", Never, false, remove, nil,
		},
		"which machines there are cannot be read": {
			[]func(*World){virtGone(), func(w *World) { w.Data.Unknown = "virtualmachineinstances is forbidden" }},
			"no-service", Never, true, nil,
			[]string{"virtualmachineinstances is forbidden"},
		},
		"its operator is there and makes the Service": {
			[]func(*World){virtGone(), hasTrigger(kubevirt(t)), has(deployment("kubevirt", "virt-operator", 2, 0, labels))},
			"waiting", When, false, nil,
			[]string{"0 of 2 replicas"},
		},
		"its Pods are coming up": {
			[]func(*World){
				service(Backend{Service: svcName("kubevirt", "kubevirt-operator-webhook"), Exists: true, NotReady: 1, Selector: labels}),
				has(deployment("kubevirt", "virt-operator", 2, 0, labels)),
			}, "waiting", When, false, nil, []string{"0 of 2"},
		},
		"the Service is there and nothing behind it": {
			[]func(*World){service(Backend{Service: svcName("kubevirt", "kubevirt-operator-webhook"), Exists: true, Selector: labels})},
			"no-workload", Never, false, nil,
			[]string{"not deleted while its Service exists"},
		},
	} {
		t.Run(what, func(t *testing.T) {
			v := one(t, deadWebhooks(apiWorld(append(c.world, virtKinds(), virtValidator())...)))
			does(t, v, c.resolves, c.actions...)
			mentions(t, v, c.says...)
			if (v.Refused != "") != c.refused || v.State != c.state {
				t.Errorf("state %s, refused %q", v.State, v.Refused)
			}
		})
	}
}

// A webhook that goes with the resource that owns it is left to that, unless it
// keeps the resource itself.
func TestCRD10Webhook(t *testing.T) {
	world := func(resource string) *World {
		w := apiWorld(
			hooks("cdi-api-validate", hookOf("v", "cdi.kubevirt.io", resource, "cdi", "cdi-api")), service(Backend{Service: svcName("cdi", "cdi-api")}),
			defines(crd("cdi.kubevirt.io", "CDI", "cdis"), crd("cdi.kubevirt.io", "DataVolume", "datavolumes")), hasTrigger(cdi(t, phaseDeployed, goingAway)),
		)
		w.Webhooks[0].Owner.ControllerUID = "uid-cdi"
		return w
	}
	does(t, one(t, deadWebhooks(world("datavolumes"))), When)
	does(t, one(t, deadWebhooks(world("cdis"))), Never, "wait Service/cdi/cdi-api", "delete ValidatingWebhookConfiguration/cdi-api-validate!")
}

// Data of virtual machines is no reason to keep the webhook of another system.
func TestWebhookOfAnotherSystem(t *testing.T) {
	v := one(t, deadWebhooks(apiWorld(
		hooks("vm-admission", hookOf("validate.vm", "operator.victoriametrics.com", "vmagents", "vm", "vm-operator")),
		service(Backend{Service: svcName("vm", "vm-operator")}), defines(crd("operator.victoriametrics.com", "VMAgent", "vmagents")),
		holds(dataVolume("golden", "Succeeded")),
	)))
	does(t, v, Never, "wait Service/vm/vm-operator", "delete ValidatingWebhookConfiguration/vm-admission!")
}

func TestWebhookBesideOneThatAnswers(t *testing.T) {
	ignore := hookOf("c", "", "pods", "old", "gone")
	ignore.FailClosed = false
	v := one(t, deadWebhooks(apiWorld(
		hooks("mixed", hookOf("a", "", "pods", "old", "gone"), hookOf("b", "", "services", "new", "alive"), ignore, hookOf("d", "apps", "*", "old", "gone")),
		service(Backend{Service: svcName("old", "gone")}), service(Backend{Service: svcName("new", "alive"), Ready: 2}),
	)))
	does(t, v, Never, "wait Service/old/gone", "patch ValidatingWebhookConfiguration/mixed!")
	want := []op{{"test", "/webhooks/3/name", "d"}, {"remove", "/webhooks/3", nil}, {"test", "/webhooks/0/name", "a"}, {"remove", "/webhooks/0", nil}}
	if got := v.Actions[1].step.(patchStep).ops; !reflect.DeepEqual(got, want) {
		t.Errorf("patch %v, want %v", got, want)
	}
	if v.Actions[1].pin.resourceVersion != "4" || v.Actions[1].pin.uid != "uid-hooks" {
		t.Errorf("pin %+v", v.Actions[1].pin)
	}
}

func TestWebhooksThatBlockNothing(t *testing.T) {
	dead := service(Backend{Service: svcName("old", "gone")})
	ignore := hookOf("ignored", "", "pods", "old", "gone")
	ignore.FailClosed = false
	byURL := hookOf("by url", "", "pods", "", "")
	noRules := hookOf("no rules", "", "pods", "old", "gone")
	noRules.Rules = nil
	for what, c := range map[string][]func(*World){
		"failurePolicy Ignore":             {dead, hooks("x", ignore)},
		"by URL":                           {dead, hooks("x", byURL)},
		"no rules":                         {dead, hooks("x", noRules)},
		"no kind of its group exists":      {dead, hooks("x", hookOf("a", "gone.example.com", "things", "old", "gone"))},
		"it answers":                       {service(Backend{Service: svcName("old", "gone"), Ready: 1}), hooks("x", hookOf("a", "", "pods", "old", "gone"))},
		"another host by name":             {service(Backend{Service: svcName("old", "gone"), Exists: true, External: true}), hooks("x", hookOf("a", "", "pods", "old", "gone"))},
		"the Service may not be looked at": {service(Backend{Service: svcName("old", "gone"), Unknown: "forbidden"}), hooks("x", hookOf("a", "", "pods", "old", "gone"))},
		"the Service was never looked at":  {hooks("x", hookOf("a", "", "pods", "old", "gone"))},
		"the workloads could not be read":  {dead, hooks("x", hookOf("a", "", "pods", "old", "gone")), func(w *World) { w.Unread[PartWorkloads] = "forbidden" }},
	} {
		t.Run(what, func(t *testing.T) { none(t, deadWebhooks(apiWorld(c...))) })
	}
}
