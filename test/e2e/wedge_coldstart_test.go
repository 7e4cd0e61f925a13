// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package e2e

import (
	"strings"
	"testing"

	"github.com/kubestandup/kubestandup/pkg/wedge"
	"github.com/kubestandup/kubestandup/test/cluster"
)

// bringerHeldBack: one tier has a HelmRelease and a resource of a kind that its
// chart would bring. It is the one root cause of what waits for it.
func bringerHeldBack(t *testing.T, s *fluxScene) {
	files := folders(s.ns, "infra", "apps")
	files["controllers/hr.yaml"] = s.helmRelease("obs-operator", "")
	files["controllers/widget.yaml"] = "apiVersion: crd01.example.com/v1\nkind: Widget\nmetadata: {name: main, namespace: crd01}\n"
	s.commit(t, files, s.hourly("controllers"), s.manifest("infra", needs("controllers")), s.manifest("apps", needs("infra")))
	s.untilFailed(t, "controllers", `no matches for kind "Widget" in version "crd01.example.com/v1"`)
	s.untilFailed(t, "apps", "dependency 'crd01/infra' is not ready")
	v := s.refrains(t, wedge.ColdStart, "perhaps-deadlock")
	if v.Object.Name != "controllers" {
		t.Errorf("the verdict is on %s", v.Object)
	}
	tells(t, v, "move what uses Widget to a tier of its own that depends on controllers, with wait: true there",
		"no: kept back with the rest of the stage", "crd01.example.com/v1 Widget is not served")
	if exists(t, s.c, thing("helm.toolkit.fluxcd.io/v2", "HelmRelease", s.ns, "obs-operator")) {
		t.Error("the HelmRelease was applied: this is no deadlock")
	}
	// What it says helps.
	files["widgets/widget.yaml"] = files["controllers/widget.yaml"]
	delete(files, "controllers/widget.yaml")
	revision := s.push(t, files)
	s.untilReady(t, "apps", revision)
	s.healthy(t)
}

// asleepTier: the kind is there by now, and without a retryInterval Flux looks
// again in an hour. It is asked to, and nothing else.
func asleepTier(t *testing.T, s *fluxScene) {
	const group = "crd05.example.com"
	s.commit(t, cluster.Files{"store/w.yaml": "apiVersion: " + group + "/v1\nkind: Widget\nmetadata: {name: w, namespace: crd05}\n"}, s.hourly("store"))
	s.untilFailed(t, "store", "no matches for kind")
	apply(t, s.c, definition(group, "Widget", "Namespaced", "", version("v1", true, true)))
	v, _ := s.verdict(t, 0, wedge.Asleep, "asleep")
	if v.ResolvesItself != wedge.Itself || !strings.HasPrefix(v.ResolvesWhen, "at ") {
		t.Errorf("it ends %s, %s: that is no deadlock", v.ResolvesItself, v.ResolvesWhen)
	}
	plans(t, v, "nudge Kustomization/crd05/store")
	tells(t, v, "lacked a kind that exists now; Flux will look again at ", "1h0m0s (what Flux resolves)", "a smaller spec.retryInterval")
	mark := s.c.Mark()
	s.verdict(t, 0, wedge.Asleep, "asleep", "--apply")
	s.did(t, mark, s.here(), "patch kustomizations/store")
	s.untilReady(t, "store", "")
	s.healthy(t)
}

// triggerHeldBack: CDI's resource and a StorageProfile in one tier. Its
// operator is not there, so that the trigger alone does not end it: that is
// said, past the deadline. (With the real operator: see TestIncident2.)
func triggerHeldBack(t *testing.T, s *fluxScene) {
	if err := s.c.InstallCDI(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.commit(t, cluster.Files{"virt/cdi.yaml": cdiText + "\n---\napiVersion: cdi.kubevirt.io/v1beta1\nkind: StorageProfile\nmetadata: {name: local}\n"}, s.hourly("virt"))
	s.untilFailed(t, "virt", `no matches for kind "StorageProfile"`)
	v, _ := s.verdict(t, 0, wedge.ColdStart, "deadlock")
	plans(t, v, "apply CDI/cdi")
	tells(t, v, "Kustomization/crd06/virt is never applied", "kept back in stage 4, and not on the cluster", "cdi.kubevirt.io/v1beta1 StorageProfile is not served",
		"Nothing is deleted", "to a tier of their own that depends on virt", "Deployment/cdi/cdi-operator")
	if exists(t, s.c, cdiObject()) {
		t.Fatal("a dry run has applied the trigger")
	}
	mark := s.c.Mark()
	v, out := s.verdict(t, 4, wedge.ColdStart, "deadlock", "--apply", "--timeout", "3s")
	if v.Actions[0].Result != wedge.Failed {
		t.Errorf("%+v", v.Actions[0])
	}
	out.holds(t, out.stderr, "StorageProfile", "cdi-operator")
	for _, e := range sent(t, s.c, mark, "kubectl-unwedge").Mutating() {
		if e.Group == "cdi.kubevirt.io" && (e.Verb != "patch" || e.Resource != "cdis") || e.Namespace == "cdi" {
			t.Errorf("sent %s", e)
		}
	}
	if !exists(t, s.c, cdiObject()) {
		t.Error("the trigger was not applied")
	}
	// From here on it is the operator's turn, not that of another repair.
	if plan, o := s.unwedge(t, 0); len(plan.Verdicts) > 0 && plan.Verdicts[0].Cause == wedge.ColdStart {
		t.Errorf("%s\nit is no deadlock any more", o)
	}
}

// otherVersion: the CRD is there and serves only an older version. It is
// brought forward, and never deleted.
func otherVersion(t *testing.T, s *fluxScene) {
	const group = "crd12.example.com"
	crd := definition(group, "Widget", "Namespaced", "", version("v1beta1", true, true))
	// It is marked as Helm's own, for a HelmRelease that is not answered.
	apply(t, s.c, strings.Replace(crd, "metadata: {name: widgets."+group+"}",
		"metadata: {name: widgets."+group+", annotations: {meta.helm.sh/release-name: widgets, meta.helm.sh/release-namespace: crd12}}", 1))
	apply(t, s.c, "{apiVersion: "+group+"/v1beta1, kind: Widget, metadata: {name: kept, namespace: crd12}}")
	s.commit(t, cluster.Files{"tier/w.yaml": "apiVersion: " + group + "/v1\nkind: Widget\nmetadata: {name: w, namespace: crd12}\n"},
		s.hourly("tier"), s.helmRelease("widgets", ""))
	s.untilFailed(t, "tier", `no matches for kind "Widget" in version "crd12.example.com/v1"`)
	v := s.refrains(t, wedge.VersionNotServed, "version-not-served")
	tells(t, v, "needs Widget.crd12.example.com in version v1; the CRD exists and serves v1beta1",
		"set spec.upgrade.crds: CreateReplace on HelmRelease/crd12/widgets", "creates new CRDs and leaves those that exist as they are", "The CRD is not deleted", "standup crds")
	apply(t, s.c, definition(group, "Widget", "Namespaced", "", version("v1beta1", true, false), version("v1", true, true)))
	if err := s.c.Nudge(t.Context(), tierOf(s.ns, "tier")); err != nil {
		t.Fatal(err)
	}
	s.untilReady(t, "tier", "")
	if !exists(t, s.c, thing(group+"/v1", "Widget", "crd12", "kept")) {
		t.Error("an object is gone")
	}
	s.healthy(t)
}

// deadConversion: nothing converts between two versions of a kind. That is told
// with what is behind the Service; the CRD is left alone.
func deadConversion(t *testing.T, s *fluxScene) {
	const group = "crd14.example.com"
	// The API server takes a caBundle only if it is one.
	conversion := "conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {service: {namespace: crd14, name: webhook-service, path: /convert}}}}"
	apply(t, s.c, definition(group, "Widget", "Namespaced", conversion, version("v1alpha1", true, false), version("v1beta1", true, true)))
	apply(t, s.c, "{apiVersion: "+group+"/v1beta1, kind: Widget, metadata: {name: w, namespace: crd14}}")
	p := newPatient(t, s.c, "crd/widgets."+group)
	o := s.patient.sh.run(t, "get", "widgets.v1alpha1."+group, "-n", s.ns)
	o.holds(t, o.stderr, "conversion webhook for "+group+"/v1beta1, Kind=Widget failed", `service "webhook-service" not found`)
	mark := s.c.Mark()
	v, _ := p.verdict(t, 0, wedge.ConversionFails, "no-service", "--confirm-destructive")
	plans(t, v)
	tells(t, v, "Widget."+group+" cannot be read in any version but v1beta1: Service/crd14/webhook-service does not exist", "install again the operator that converts",
		"the garbage collector and the deletion of Namespaces stall", "deleting it deletes every object of the kind")

	apply(t, s.c, deploymentText(s.ns, "webhook", 1), serviceText(s.ns, "webhook-service", "webhook"))
	v, _ = p.verdict(t, 0, wedge.ConversionFails, "waiting", "--confirm-destructive")
	plans(t, v)
	tells(t, v, "Deployment/crd14/webhook has 0 of 1 replicas available", "as soon as an endpoint of Service/crd14/webhook-service is ready")

	// Ready Pods, and nobody has written whom to trust.
	if err := s.c.MarkAvailable(t.Context(), s.ns, "webhook"); err != nil {
		t.Fatal(err)
	}
	s.untilEndpoint(t, "webhook-service")
	v, _ = p.verdict(t, 0, wedge.ConversionFails, "no-ca-bundle", "--confirm-destructive")
	plans(t, v)
	tells(t, v, "its conversion webhook has no caBundle", "cert-manager's cainjector")

	// Variant 2 is a bug of a webhook that answers. The test writes what
	// kustomize-controller says of it, on a tier that it does not look at.
	apply(t, s.c, s.manifest("wrong", "suspend: true"))
	merge(t, s.c, tierOf(s.ns, "wrong"), "kustomize-controller", `{"status":{"observedGeneration":1,"conditions":[{"type":"Ready","status":"False","reason":"ReconciliationFailed",
		"message":"failed to prune fields: failed add back owned items: failed to convert pruned object at version other.example.com/v1: conversion webhook for other.example.com/v1beta1, Kind=Gadget returned invalid metadata: invalid metadata of type <nil> in input object",
		"observedGeneration":1,"lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`, "status")
	v, _ = s.verdict(t, 0, wedge.ConversionFails, "wrong-answer", "--confirm-destructive")
	plans(t, v)
	tells(t, v, "A restart does not help", "this is a bug of the webhook", "Gadget.other.example.com")
	s.did(t, mark, ofGroup(group))
	s.did(t, mark, s.here())
}
