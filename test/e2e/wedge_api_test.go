// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package e2e

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubestandup/kubestandup/pkg/wedge"
	"github.com/kubestandup/kubestandup/test/cluster"
)

// TestWedgeAPI is what the API itself can be wedged in: kinds, operators and
// webhooks. Flux's kinds are there and none of its controllers.
func TestWedgeAPI(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, cluster.Options{Components: []cluster.Component{cluster.ControllerManager}, FluxCRDs: true})
	mark := c.Mark()
	cases := []struct {
		name string
		run  func(*testing.T, *cluster.Cluster)
	}{
		{"operators", operatorWedges},
		{"HelmReleases", func(t *testing.T, c *cluster.Cluster) {
			t.Run("CTX03 every printed command leads to the cluster", func(t *testing.T) { printedCommands(t, c) })
			t.Run("BIG06 their CRD is being deleted", func(t *testing.T) { helmDefinitionHeld(t, c) })
		}},
		{"BIG06 a CRD is being deleted and its objects are held", definitionHeld},
		{"BIG07 a name is taken", namesTaken},
		{"BIG03 managedFields of another schema", staleManagedFields},
		{"CTX01 the current context is not the one meant", noExpectation},
		{"CTX03 the environment moves in mid-run", movedInMidRun},
		{"CTX04 in a Pod without a kubeconfig", inCluster},
	}
	together(t, "at once", len(cases), func(i int) (string, func(*testing.T)) {
		return cases[i].name, func(t *testing.T) { cases[i].run(t, c) }
	})
	t.Run("DISC01 kubectl's own stale cache", func(t *testing.T) { staleCaches(t, c) }) // while no kinds come and go
	t.Run("CRD13 a dead aggregated API", func(t *testing.T) { deadAPI(t, c) })
	neverDone(t, c, mark)
}

// definitionHeld: a CRD waits for the finalizers of its objects. While whoever
// set them can be started, that is the repair; else they are taken off, one by
// one, and the CRD's own never.
func definitionHeld(t *testing.T, c *cluster.Cluster) {
	const group = "big06.example.com"
	crd := crdObject("widgets." + group)
	p := newPatient(t, c, "crd/widgets."+group)
	apply(t, c, namespaceText("big06"), deploymentText("big06", "widget-operator", 0),
		definition(group, "Widget", "Namespaced", "", version("v1", true, true)))
	one, two := thing(group+"/v1", "Widget", "big06", "one"), thing(group+"/v1", "Widget", "big06", "two")
	for _, w := range []*unstructured.Unstructured{one, two} {
		w.SetFinalizers([]string{group + "/cleanup"})
		create(t, c, w, "widget-operator")
	}
	remove(t, c, crd)
	until(t, c, one, func() bool { return one.GetDeletionTimestamp() != nil })
	until(t, c, two, func() bool { return two.GetDeletionTimestamp() != nil })
	three := thing(group+"/v1", "Widget", "big06", "three")
	if err := c.Client().Create(t.Context(), three); err == nil || !strings.Contains(err.Error(), "create not allowed while custom resource definition is terminating") {
		t.Fatalf("a third: %v", err)
	}

	// The controller is there, and asleep.
	v, _ := p.verdict(t, 0, wedge.DefinitionHeld, "deleting")
	plans(t, v)
	tells(t, v, "held by the finalizers of 2 objects", "Deployment/big06/widget-operator is scaled to zero", "first choice: run the controller",
		"customresourcecleanup.apiextensions.k8s.io is never taken off", "InstanceDeletionInProgress")

	// The controller is gone.
	remove(t, c, thing("apps/v1", "Deployment", "big06", "widget-operator"))
	mark := c.Mark()
	v, out := p.verdict(t, 6, wedge.DefinitionHeld, "deleting", "--confirm-destructive")
	plans(t, v)
	out.holds(t, out.stderr, "only guessed", "--allow crd/widgets."+group+" for all of its kind")
	p.scope = append(p.scope, "--allow", "crd/widgets."+group)
	v, _ = p.verdict(t, 6, wedge.DefinitionHeld, "deleting", "--apply")
	plans(t, v, "remove-finalizer! Widget/big06/one", "wait Widget/big06/one", "remove-finalizer! Widget/big06/two", "wait Widget/big06/two")
	tells(t, v, "widget-operator wrote the finalizer, and no workload of that name was seen", "the cleanup that it stands for is skipped")
	p.did(t, mark, ofGroup(group))
	v, _ = p.verdict(t, 0, wedge.DefinitionHeld, "deleting", "--confirm-destructive")
	allDone(t, v)
	p.did(t, mark, ofGroup(group), "patch widgets/one", "patch widgets/two")
	untilGone(t, c, crd)
}

// helmDefinitionHeld: without its finalizer a HelmRelease goes and its release
// stays, which is said.
func helmDefinitionHeld(t *testing.T, c *cluster.Cluster) {
	const name = "helmreleases.helm.toolkit.fluxcd.io"
	p := newPatient(t, c, "crd/"+name)
	hr := thing("helm.toolkit.fluxcd.io/v2", "HelmRelease", "default", "db")
	hr.SetFinalizers([]string{"finalizers.fluxcd.io"})
	hr.Object["spec"] = map[string]any{"interval": "1h", "chartRef": map[string]any{"kind": "OCIRepository", "name": "db"}}
	create(t, c, hr, "helm-controller")
	remove(t, c, crdObject(name))
	until(t, c, hr, func() bool { return hr.GetDeletionTimestamp() != nil })
	mark := c.Mark()
	v, _ := p.verdict(t, 0, wedge.DefinitionHeld, "deleting")
	plans(t, v, "remove-finalizer! HelmRelease/default/db", "wait HelmRelease/default/db")
	tells(t, v, "no Deployment of helm-controller was seen", "skips the uninstall", "its workloads and its records stay", "first choice: run the controller")
	v, _ = p.verdict(t, 0, wedge.DefinitionHeld, "deleting", "--confirm-destructive")
	allDone(t, v)
	p.did(t, mark, func(e cluster.Event) bool { return e.Group == "helm.toolkit.fluxcd.io" }, "patch helmreleases/db")
	untilGone(t, c, crdObject(name))
}

// namesTaken: a CRD whose kind another one has is never served. No wait helps.
func namesTaken(t *testing.T, c *cluster.Cluster) {
	const group = "big07.example.com"
	apply(t, c, definition(group, "Widget", "Namespaced", "", version("v1", true, true)))
	second := thing("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "gadgets."+group)
	second.Object["spec"] = map[string]any{
		"group": group, "scope": "Namespaced",
		"names":    map[string]any{"plural": "gadgets", "singular": "gadget", "kind": "Widget", "listKind": "GadgetList"},
		"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}}}},
	}
	create(t, c, second, "test")
	until(t, c, second, func() bool { return strings.Contains(conditionText(second, "NamesAccepted"), "False") })
	v, _ := newPatient(t, c, "crd/gadgets."+group).verdict(t, 0, wedge.NamesRefused, "KindConflict")
	plans(t, v)
	tells(t, v, "CustomResourceDefinition/widgets."+group+" has one of its names", `"Widget" is already in use`, "waiting does not change that")
}

// staleManagedFields: this API server drops what managedFields name and the
// schema does not, so the test writes the status that kustomize-controller has
// where an older one does not.
func staleManagedFields(t *testing.T, c *cluster.Cluster) {
	const ns = "big03"
	const said = `Widget/big03/w dry-run failed: failed to create manager for existing fields: failed to convert new object (big03/w; big03.example.com/v1, Kind=Widget) to smd typed: .spec.old: field not declared in schema`
	apply(t, c, namespaceText(ns), "{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {name: source, namespace: big03}, spec: {interval: 1h, url: 'https://git.example.org/x'}}",
		"{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: tier, namespace: big03}, spec: {interval: 1h, prune: true, path: ./, sourceRef: {kind: GitRepository, name: source}}}")
	merge(t, c, thing("source.toolkit.fluxcd.io/v1", "GitRepository", ns, "source"), "source-controller", `{"status":{"observedGeneration":1,"artifact":{
		"path":"x.tar.gz","url":"http://source-controller.flux-system.svc.cluster.local./x.tar.gz","revision":"main@sha1:2134497e9a78fa4326d2b6be25f1f77929c01f04",
		"digest":"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855","lastUpdateTime":"2026-01-01T00:00:00Z"}}}`, "status")
	merge(t, c, tierOf(ns, "tier"), "kustomize-controller", `{"status":{"observedGeneration":1,"lastAttemptedRevision":"main@sha1:2134497e9a78fa4326d2b6be25f1f77929c01f04","conditions":[
		{"type":"Ready","status":"False","reason":"ReconciliationFailed","message":"`+said+`","observedGeneration":1,"lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`, "status")
	p := newPatient(t, c, "-n", ns)
	mark := c.Mark()
	v, _ := p.verdict(t, 0, wedge.ManagedFields, "apply-refused", "--confirm-destructive")
	plans(t, v)
	tells(t, v, "managedFields of Widget/big03/w are of an older version", "this is no missing CRD", "--feature-gates=MigrateAPIVersion=true")
	p.did(t, mark, inNamespace(ns))
}

// conditionText is "True: message" of a condition of any object.
func conditionText(u *unstructured.Unstructured, kind string) string {
	list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, item := range list {
		if m, _ := item.(map[string]any); m["type"] == kind {
			status, _ := m["status"].(string)
			message, _ := m["message"].(string)
			return status + ": " + message
		}
	}
	return ""
}

// deadAPI: an aggregated API whose Service is gone is unregistered when that
// is confirmed; one whose Pods are only not ready never is. Until then a
// Namespace hangs, and we go on with what discovery tells.
func deadAPI(t *testing.T, c *cluster.Cluster) {
	service := func(version, name string) string {
		return "{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: " + version + ".crd13.example.com}, spec: {group: crd13.example.com, version: " + version +
			", groupPriorityMinimum: 100, versionPriority: 10, insecureSkipTLSVerify: true, service: {namespace: crd13, name: " + name + "}}}"
	}
	apply(t, c, namespaceText("crd13"), namespaceText("crd13-going"), deploymentText("crd13", "metrics", 1), serviceText("crd13", "metrics", "metrics"),
		service("v1", "gone"), service("v1beta1", "metrics"))
	for _, name := range []string{"v1.crd13.example.com", "v1beta1.crd13.example.com"} {
		a := thing("apiregistration.k8s.io/v1", "APIService", "", name)
		until(t, c, a, func() bool { return strings.HasPrefix(conditionText(a, "Available"), "False") })
	}
	going := thing("v1", "Namespace", "", "crd13-going")
	remove(t, c, going)
	until(t, c, going, func() bool {
		return strings.HasPrefix(conditionText(going, "NamespaceDeletionDiscoveryFailure"), "True") &&
			strings.Contains(conditionText(going, "NamespaceDeletionDiscoveryFailure"), "crd13.example.com/v1:")
	})
	p := newPatient(t, c, "apiservice/v1.crd13.example.com", "apiservice/v1beta1.crd13.example.com", "namespace/crd13-going")
	mark := c.Mark()
	plan, o := p.judged(t, 0, []string{
		"api-unavailable v1.crd13.example.com no-service", "api-unavailable v1beta1.crd13.example.com waiting", "namespace-terminating crd13-going deleting",
	})
	if len(plan.Gaps) > 0 {
		t.Errorf("%s\nour own run goes on with partial discovery", o)
	}
	gone, waits, ns := &plan.Verdicts[0], &plan.Verdicts[1], &plan.Verdicts[2]
	plans(t, gone, "wait Service/crd13/gone", "delete! APIService/v1.crd13.example.com")
	tells(t, gone, "ServiceNotFound", "unknown, which is not the same as absent", "Namespace/crd13-going cannot be deleted because of it", "NamespaceDeletionDiscoveryFailure")
	plans(t, waits)
	tells(t, waits, "MissingEndpoints", "Deployment/crd13/metrics has 0 of 1 replicas available", "do not delete APIService/v1beta1.crd13.example.com")
	plans(t, ns)
	tells(t, ns, "discovery of crd13.example.com/v1 fails", "APIService/v1.crd13.example.com: see api-unavailable", "finalize call is never used")

	p.unwedge(t, 6, "--apply")
	p.did(t, mark, ofGroup("crd13.example.com"))
	p.unwedge(t, 0, "--confirm-destructive")
	p.did(t, mark, ofGroup("crd13.example.com"), "delete apiservices/v1.crd13.example.com")
	newPatient(t, c, "apiservice/v1beta1.crd13.example.com", "namespace/crd13-going").judged(t, 0,
		[]string{"api-unavailable v1beta1.crd13.example.com waiting", "namespace-terminating crd13-going deleting"})

	// Pods that get Ready end the rest; here the test takes it away, as the
	// uninstallation of what served it does.
	remove(t, c, thing("apiregistration.k8s.io/v1", "APIService", "", "v1beta1.crd13.example.com"))
	untilGone(t, c, going)
}
