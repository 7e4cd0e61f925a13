// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package e2e

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubestandup/kubestandup/pkg/wedge"
	"github.com/kubestandup/kubestandup/test/cluster"
)

const (
	cdiText  = "{apiVersion: cdi.kubevirt.io/v1beta1, kind: CDI, metadata: {name: cdi}, spec: {}}"
	cdiError = "cdi-error"
)

// operatorWedges is the life of one real CDI, and then of a KubeVirt: both
// guard the same data, so they come one after the other.
func operatorWedges(t *testing.T, c *cluster.Cluster) {
	o := &operators{c: c, p: newPatient(t, c, "--only", cdiError)}
	for _, step := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"CRD08 C there is no CDI resource", o.withoutResource},
		{"CRD08 B the Pods do not start", o.withPendingPods},
		{"CRD08 A the Deployments are not there", o.withoutDeployments},
		{"CRD07 the lock is another's", o.withForeignLock},
		{"CRD07 the lock is being deleted", o.withLockGoing},
		{"CRD07 the lock is gone", o.withoutLock},
		{"CRD09 CDI's namespace was deleted", o.withoutNamespace},
		{"CRD10 the operator cannot come back", o.withNamespaceGoing},
		{"CRD09 virt-operator is gone", o.withoutVirtOperator},
	} {
		if !t.Run(step.name, step.run) {
			return // what follows stands on it
		}
	}
}

type operators struct {
	c *cluster.Cluster
	p *patient
}

func cdiObject() *unstructured.Unstructured {
	return thing("cdi.kubevirt.io/v1beta1", "CDI", "", "cdi")
}

func (o *operators) untilPhase(t *testing.T, phase string) {
	t.Helper()
	cdi := cdiObject()
	until(t, o.c, cdi, func() bool {
		got, _, _ := unstructured.NestedString(cdi.Object, "status", "phase")
		return got == phase
	})
}

func (o *operators) start(t *testing.T, components ...cluster.Component) {
	t.Helper()
	if err := o.c.Start(t.Context(), components...); err != nil {
		t.Fatal(err)
	}
}

func (o *operators) stop(t *testing.T, components ...cluster.Component) {
	t.Helper()
	if err := o.c.Stop(t.Context(), components...); err != nil {
		t.Fatal(err)
	}
}

func (o *operators) available(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := o.c.MarkAvailable(t.Context(), "cdi", name); err != nil {
			t.Fatal(err)
		}
	}
}

func deployment(ns, name string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
}

// ofCDI are the requests about CDI, its kinds and its namespace.
func ofCDI(e cluster.Event) bool {
	return e.Namespace == "cdi" || e.Group == "cdi.kubevirt.io" || strings.HasPrefix(e.Name, "cdi-") || strings.HasSuffix(e.Name, "cdi.kubevirt.io") ||
		e.Resource == "namespaces" && e.Name == "cdi"
}

// withoutResource: the operator runs, and complains of a ConfigMap that only
// its resource brings.
func (o *operators) withoutResource(t *testing.T) {
	if err := o.c.InstallCDI(t.Context()); err != nil {
		t.Fatal(err)
	}
	o.available(t, "cdi-operator") // which runs the real one
	v, _ := o.p.verdict(t, 0, cdiError, "no-resource")
	plans(t, v)
	tells(t, v, "no CDI resource", "apply the CDI resource", "cdi-apiserver-signer-bundle is not to be made by hand")
}

func (o *operators) withPendingPods(t *testing.T) {
	apply(t, o.c, cdiText)
	o.untilPhase(t, "Deploying")
	for _, name := range []string{"cdi-apiserver", "cdi-deployment"} {
		d := deployment("cdi", name)
		until(t, o.c, d, func() bool { return d.Status.UnavailableReplicas > 0 })
	}
	v, _ := o.p.verdict(t, 0, cdiError, "Deploying")
	plans(t, v)
	tells(t, v, "Deployment/cdi/cdi-apiserver has none of 1 replicas available", "Pod/cdi/cdi-apiserver", "nodeSelector or architecture", "not to be made by hand")
}

// withoutDeployments: the operator is stopped where it has made nothing yet.
func (o *operators) withoutDeployments(t *testing.T) {
	o.stop(t, cluster.CDIOperator)
	for _, name := range []string{"cdi-apiserver", "cdi-deployment"} {
		remove(t, o.c, deployment("cdi", name))
	}
	v, _ := o.p.verdict(t, 0, cdiError, "Deploying")
	plans(t, v)
	tells(t, v, "has not made cdi-apiserver and cdi-deployment", "look at the conditions and the events of the CDI resource", "not to be made by hand")
	o.start(t, cluster.CDIOperator)
	o.available(t, "cdi-apiserver", "cdi-deployment", "cdi-uploadproxy")
	o.untilPhase(t, "Deployed")
	o.p.healthy(t)
}

// withLockGoing: today's operator waits for a lock that is being deleted;
// releases before the fix end in phase Error, and stay there. The test writes
// that phase while the operator's process rests, which is what those do.
func (o *operators) withLockGoing(t *testing.T) {
	o.stop(t, cluster.CDIOperator)
	lock := thing("v1", "ConfigMap", "cdi", "cdi-config")
	merge(t, o.c, lock, "test", `{"metadata":{"finalizers":["example.org/hold"]}}`)
	remove(t, o.c, lock)
	merge(t, o.c, cdiObject(), "cdi-operator", `{"status":{"phase":"Error"}}`)

	mark := o.c.Mark()
	v, _ := o.p.verdict(t, 0, cdiError, "Error")
	plans(t, v, "restart Deployment/cdi/cdi-operator")
	tells(t, v, "ConfigMap/cdi/cdi-config is being deleted", "(1) upgrade the operator; (2) restart it; (3)",
		"CRD datavolumes.cdi.kubevirt.io is never deleted", "status.operatorVersion")
	o.p.did(t, mark, ofCDI)
	v, _ = o.p.verdict(t, 0, cdiError, "Error", "--apply")
	allDone(t, v)
	o.p.did(t, mark, ofCDI, "patch deployments/cdi-operator")
	o.untilPhase(t, "Deployed") // the real one, in a Pod of its own, leaves it
	o.p.healthy(t)

	// An older one has not, though it is newer than the lock's end: what comes
	// next deletes, and is not done unasked.
	o.stop(t, cluster.CDIOperator)
	merge(t, o.c, cdiObject(), "cdi-operator", `{"status":{"phase":"Error"}}`)
	v, _ = o.p.verdict(t, 6, cdiError, "Error", "--apply")
	plans(t, v, "delete! CDI/cdi", "wait CDI/cdi")
	tells(t, v, "a restart does not help here")
	o.p.did(t, mark, ofCDI, "patch deployments/cdi-operator")
	merge(t, o.c, lock, "test", `{"metadata":{"finalizers":null}}`)
	untilGone(t, o.c, lock)
}

// withForeignLock: the real operator takes one resource only. Of a second one
// the lock is another's, and which of the two is wanted no program can tell.
func (o *operators) withForeignLock(t *testing.T) {
	apply(t, o.c, strings.Replace(cdiText, "name: cdi", "name: second", 1))
	second := thing("cdi.kubevirt.io/v1beta1", "CDI", "", "second")
	until(t, o.c, second, func() bool {
		phase, _, _ := unstructured.NestedString(second.Object, "status", "phase")
		return phase == "Error"
	})
	mark := o.c.Mark()
	v, _ := o.p.verdict(t, 0, cdiError, "Error", "--confirm-destructive")
	plans(t, v)
	if v.Object.Name != "second" {
		t.Errorf("the verdict is on %s", v.Object)
	}
	tells(t, v, "its lock ConfigMap/cdi/cdi-config belongs to CDI/cdi, and only one CDI resource may exist", "metadata.ownerReferences uid", string(second.GetUID()),
		"delete the CDI resource that is not wanted", "CRD datavolumes.cdi.kubevirt.io is never deleted")
	o.p.did(t, mark, ofCDI)
	remove(t, o.c, second)
	untilGone(t, o.c, second)
	o.p.healthy(t)
}

// withoutLock: the real operator, whose resource has a phase and whose lock is
// gone, reconciles to phase Error and stays there. The resource is recreated,
// but not while data is being imported.
func (o *operators) withoutLock(t *testing.T) {
	merge(t, o.c, cdiObject(), "cdi-operator", `{"status":{"phase":"Deployed"}}`)
	o.start(t, cluster.CDIOperator)
	o.untilPhase(t, "Error")
	apply(t, o.c, namespaceText("disks"))
	volume := o.importing(t)

	mark := o.c.Mark()
	v, out := o.p.verdict(t, 6, cdiError, "Error", "--confirm-destructive")
	plans(t, v)
	out.holds(t, out.stderr, "would break off the imports into DataVolume/disks/golden: wait until they are done")
	v, _ = o.p.verdict(t, 6, cdiError, "Error", "--confirm-destructive", "--allow", "datavolume/disks/golden")
	plans(t, v) // nobody can allow that
	merge(t, o.c, volume, "cdi-controller", `{"status":{"phase":"Succeeded"}}`, "status")
	_, out = o.p.verdict(t, 6, cdiError, "Error", "--confirm-destructive")
	out.holds(t, out.stderr, "--allow datavolume/disks/golden")
	o.p.did(t, mark, ofCDI)
	remove(t, o.c, volume)
	untilGone(t, o.c, volume)

	v, out = o.p.verdict(t, 0, cdiError, "Error", "--confirm-destructive")
	plans(t, v, "delete! CDI/cdi", "wait CDI/cdi")
	tells(t, v, "its lock ConfigMap/cdi/cdi-config does not exist", "CustomResourceDefinition/datavolumes.cdi.kubevirt.io")
	allDone(t, v)
	o.p.did(t, mark, ofCDI, "delete cdis/cdi")
	o.restore(t, out)
	o.untilPhase(t, "Deployed")
	o.p.healthy(t)
}

// importing is a DataVolume that cdi-controller, which does not run here, is
// importing: the test writes its phase.
func (o *operators) importing(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	apply(t, o.c, `apiVersion: cdi.kubevirt.io/v1beta1
kind: DataVolume
metadata: {name: golden, namespace: disks}
spec:
  source: {http: {url: "http://images.example.org/golden.img"}}
  storage: {resources: {requests: {storage: 1Gi}}}
`)
	volume := thing("cdi.kubevirt.io/v1beta1", "DataVolume", "disks", "golden")
	merge(t, o.c, volume, "cdi-controller", `{"status":{"phase":"ImportInProgress"}}`, "status")
	return volume
}

// restore types the command that is printed, with the real kubectl.
func (o *operators) restore(t *testing.T, out outcome) {
	t.Helper()
	_, command, found := strings.Cut(out.stderr, "To put back what was backed up (the objects, not the data that they held): kubectl ")
	if !found {
		t.Fatalf("%s\nsays nothing of how to put it back", out)
	}
	command, _, _ = strings.Cut(command, "\n")
	shellFor(t, o.c).want(t, 0, strings.Fields(command)...)
}

// withoutNamespace: somebody deletes the operator's namespace, and then its
// resource. What is of the cluster stays: the resource with its finalizer,
// webhooks that refuse every DataVolume, and an aggregated API that keeps the
// namespace itself from going (CRD-13).
func (o *operators) withoutNamespace(t *testing.T) {
	o.importing(t)
	o.stop(t, cluster.CDIAPIServer, cluster.CDIOperator)
	ns := thing("v1", "Namespace", "", "cdi")
	remove(t, o.c, ns)
	until(t, o.c, ns, func() bool { return strings.HasPrefix(conditionText(ns, "NamespaceDeletionDiscoveryFailure"), "True") })
	// What is in a Namespace goes in no order: as long as the operator's
	// Deployment is still there, it could make the Service anew.
	untilGone(t, o.c, thing("v1", "Service", "cdi", "cdi-api"))
	untilGone(t, o.c, thing("apps/v1", "Deployment", "cdi", "cdi-operator"))
	p := newPatient(t, o.c, "--only", "api-unavailable,webhook-without-backend,finalizer-held")

	// What nobody answers for guards data: none of it goes before that is named.
	mark := o.c.Mark()
	plan, out := p.unwedge(t, 6, "--confirm-destructive")
	out.holds(t, out.stderr, "--allow datavolume/disks/golden")
	hooks := 0
	for i := range plan.Verdicts {
		if v := &plan.Verdicts[i]; v.Cause == wedge.WebhookWithoutEnd {
			hooks++
			if v.Refused == "" || v.State != "no-service" {
				t.Errorf("%s is not refused", v.Object)
			}
		}
	}
	if hooks < 2 {
		t.Errorf("%s\nCDI has more webhooks that refuse", out)
	}
	// What serves uploads holds none, and its registration goes.
	o.p.did(t, mark, ofCDI, "delete apiservices/v1beta1.upload.cdi.kubevirt.io")
	untilGone(t, o.c, ns)

	// The resource is being deleted: it takes with it what it owns.
	remove(t, o.c, cdiObject())
	mark = o.c.Mark()
	plan, _ = p.unwedge(t, 6, "--confirm-destructive")
	held := &plan.Verdicts[len(plan.Verdicts)-1]
	if held.Object.Name != "cdi" || !strings.Contains(held.Refused, "--allow datavolume/disks/golden") {
		t.Errorf("%+v", held)
	}
	o.p.did(t, mark, ofCDI)
	plan, _ = p.unwedge(t, 0, "--confirm-destructive", "--allow", "datavolume/disks/golden")
	for i := range plan.Verdicts {
		if v := &plan.Verdicts[i]; v.Cause == wedge.WebhookWithoutEnd && v.State != "owner-goes" {
			t.Errorf("%s goes by itself with CDI, and is %s", v.Object, v.State)
		}
	}
	held = &plan.Verdicts[len(plan.Verdicts)-1]
	plans(t, held, "remove-finalizer! CDI/cdi", "wait CDI/cdi")
	tells(t, held, "no operator of KubeVirt CDI was seen", "first choice: put the operator back", "the cleanup that it stands for is skipped",
		"the garbage collector then deletes what it owns, a CRD with every object of its kind: ", "CustomResourceDefinition/datavolumes.cdi.kubevirt.io")
	allDone(t, held)
	o.p.did(t, mark, ofCDI, "patch cdis/cdi")
	// CDI owned it, so its DataVolume, which was named, goes with it.
	untilGone(t, o.c, crdObject("datavolumes.cdi.kubevirt.io"))
}

// withNamespaceGoing: CDI's namespace is being deleted and cannot go, so that
// the operator cannot come back to take its finalizer off.
func (o *operators) withNamespaceGoing(t *testing.T) {
	// A CRD that no owner reference ties to CDI is not collected with it.
	apply(t, o.c, definition("cdi.kubevirt.io", "DataVolume", "Namespaced", "", version("v1beta1", true, true)))
	apply(t, o.c, namespaceText("cdi"), "{apiVersion: v1, kind: ConfigMap, metadata: {name: held, namespace: cdi, finalizers: [example.org/hold]}}")
	cdi, ns := cdiObject(), thing("v1", "Namespace", "", "cdi")
	cdi.SetFinalizers([]string{"operator.cdi.kubevirt.io"})
	cdi.Object["spec"] = map[string]any{}
	create(t, o.c, cdi, "cdi-operator")
	remove(t, o.c, ns)
	remove(t, o.c, cdi)
	until(t, o.c, ns, func() bool { return strings.HasPrefix(conditionText(ns, "NamespaceFinalizersRemaining"), "True") })
	if err := o.c.Client().Create(t.Context(), thing("v1", "ConfigMap", "cdi", "new")); !apierrors.IsForbidden(err) {
		t.Fatalf("the namespace takes new objects: %v", err)
	}
	p := newPatient(t, o.c, "cdi/cdi", "namespace/cdi")
	mark := o.c.Mark()
	plan, _ := p.judged(t, 0, []string{"finalizer-held cdi deleting", "namespace-terminating cdi deleting"})
	held := &plan.Verdicts[0]
	plans(t, held, "remove-finalizer! CDI/cdi", "wait CDI/cdi")
	tells(t, held, "the operator cannot come back: nothing new can be made in Namespace/cdi", "never that of the Namespace", "the cleanup that it stands for is skipped",
		"left behind: CustomResourceDefinition/datavolumes.cdi.kubevirt.io")
	plans(t, &plan.Verdicts[1])
	tells(t, &plan.Verdicts[1], "ConfigMap/cdi/held by example.org/hold", "finalize call is never used")
	p.judged(t, 0, []string{"finalizer-held cdi deleting"}, "--confirm-destructive", "--only", "finalizer-held")
	p.did(t, mark, ofCDI, "patch cdis/cdi")
	untilGone(t, o.c, cdi)
	if !exists(t, o.c, crdObject("datavolumes.cdi.kubevirt.io")) {
		t.Error("the CRD datavolumes is gone")
	}
	merge(t, o.c, thing("v1", "ConfigMap", "cdi", "held"), "test", `{"metadata":{"finalizers":null}}`)
	untilGone(t, o.c, ns)
}

// withoutVirtOperator is the same of KubeVirt. Its own CRDs are not to be had
// here: these have its group and kinds.
func (o *operators) withoutVirtOperator(t *testing.T) {
	const ns = "kubevirt"
	apply(t, o.c, namespaceText(ns), namespaceText("vms"),
		definition("kubevirt.io", "KubeVirt", "Namespaced", "", version("v1", true, true)),
		definition("kubevirt.io", "VirtualMachineInstance", "Namespaced", "", version("v1", true, true)),
		"{apiVersion: kubevirt.io/v1, kind: VirtualMachineInstance, metadata: {name: db, namespace: vms}}")
	kv := thing("kubevirt.io/v1", "KubeVirt", ns, "kubevirt")
	kv.SetFinalizers([]string{"foregroundDeleteKubeVirt"})
	create(t, o.c, kv, "virt-operator")
	merge(t, o.c, kv, "virt-operator", `{"status":{"phase":"Deployed"}}`, "status")
	apply(t, o.c, fmt.Sprintf(`apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: virt-operator-validator}
webhooks:
- name: kubevirt-validator.kubevirt.io
  failurePolicy: Fail
  sideEffects: None
  admissionReviewVersions: [v1]
  clientConfig: {service: {namespace: %s, name: kubevirt-operator-webhook, path: /kubevirt-validate-delete}}
  rules: [{apiGroups: [kubevirt.io], apiVersions: ["*"], resources: [kubevirts], operations: [DELETE, UPDATE]}]
`, ns))
	// Which one the API server has, it asks a moment later.
	blocked := func() bool {
		err := o.c.Client().Delete(t.Context(), thing("kubevirt.io/v1", "KubeVirt", ns, "kubevirt"), client.DryRunAll)
		return err != nil && strings.Contains(err.Error(), `failed calling webhook "kubevirt-validator.kubevirt.io"`)
	}
	for !blocked() && t.Context().Err() == nil {
		merge(t, o.c, thing("v1", "Namespace", "", ns), "test", `{}`)
	}
	if err := o.c.Client().Patch(t.Context(), thing("kubevirt.io/v1", "KubeVirt", ns, "kubevirt"), client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))); err == nil {
		t.Fatal("the finalizer can be taken off before the webhook")
	}

	p := newPatient(t, o.c, "--only", "webhook-without-backend,finalizer-held")
	mark := o.c.Mark()
	want := []string{"webhook-without-backend virt-operator-validator no-service", "finalizer-held kubevirt operator-gone"}
	_, out := p.judged(t, 6, want, "--confirm-destructive")
	out.holds(t, out.stderr, "--allow virtualmachineinstance/vms/db")
	about := func(e cluster.Event) bool { return e.Group == "kubevirt.io" || e.Name == "virt-operator-validator" }
	p.did(t, mark, about)

	remove(t, o.c, thing("kubevirt.io/v1", "VirtualMachineInstance", "vms", "db"))
	plan, _ := p.judged(t, 0, want, "--confirm-destructive")
	plans(t, &plan.Verdicts[0], "wait Service/kubevirt/kubevirt-operator-webhook", "delete! ValidatingWebhookConfiguration/virt-operator-validator")
	plans(t, &plan.Verdicts[1], "delete! KubeVirt/kubevirt/kubevirt", "remove-finalizer! KubeVirt/kubevirt/kubevirt", "wait KubeVirt/kubevirt/kubevirt")
	tells(t, &plan.Verdicts[1], "first choice: put the operator back", "foregroundDeleteKubeVirt")
	allDone(t, &plan.Verdicts[0])
	allDone(t, &plan.Verdicts[1])
	p.did(t, mark, about, "delete validatingwebhookconfigurations/virt-operator-validator", "delete kubevirts/kubevirt", "patch kubevirts/kubevirt")
	if exists(t, o.c, kv) || !exists(t, o.c, crdObject("kubevirts.kubevirt.io")) {
		t.Error("the resource should be gone, and its CRD not")
	}
	p.healthy(t)
}
