// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubestandup/kubestandup/pkg/wedge"
	"github.com/kubestandup/kubestandup/test/cluster"
)

func storedDefinition(name string) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// storedVersionsUpgrade: objects are stored in a version that the manifest in
// git no longer has. They are rewritten, all of them, then the version is taken
// off storedVersions, then git is applied. Where one object cannot be
// rewritten, nothing is taken off.
func storedVersionsUpgrade(t *testing.T, s *fluxScene) {
	const group, name = "big04.example.com", "widgets.big04.example.com"
	apply(t, s.c, definition(group, "Widget", "Namespaced", "", version("v1beta1", true, true)))
	const objects = 3
	for i := range objects {
		apply(t, s.c, fmt.Sprintf("{apiVersion: %s/v1beta1, kind: Widget, metadata: {name: w%d, namespace: big04}, spec: {n: %[2]d}}", group, i))
	}
	apply(t, s.c, definition(group, "Widget", "Namespaced", "", version("v1beta1", true, false), version("v1", true, true)))
	apply(t, s.c, fmt.Sprintf("{apiVersion: %s/v1, kind: Widget, metadata: {name: new, namespace: big04}}", group))
	crd := storedDefinition(name)
	until(t, s.c, crd, func() bool { return slices.Equal(crd.Status.StoredVersions, []string{"v1beta1", "v1"}) })
	s.commit(t, cluster.Files{"tier/crd.yaml": definition(group, "Widget", "Namespaced", "", version("v1", true, true))}, s.hourly("tier"))
	s.untilFailed(t, "tier", "status.storedVersions[0]: Invalid value: \"v1beta1\"")

	p := newPatient(t, s.c, "crd/"+name)
	v, _ := p.verdict(t, 0, wedge.StoredVersions, "upgrade-refused")
	plans(t, v, "rewrite CustomResourceDefinition/"+name, "patch CustomResourceDefinition/"+name, "nudge Kustomization/big04/tier")
	tells(t, v, "the new manifest has no v1beta1 any more", "rewrite every object as v1, then take v1beta1 off status.storedVersions, then apply", "The CRD is never deleted for this")

	// One of them cannot be written: a webhook that nobody answers guards it.
	apply(t, s.c, `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: big04}
webhooks:
- name: guard.big04.example.com
  sideEffects: None
  admissionReviewVersions: [v1]
  clientConfig: {service: {namespace: big04, name: none}}
  matchConditions: [{name: one, expression: "object.metadata.name == 'w1'"}]
  rules: [{apiGroups: [big04.example.com], apiVersions: ["*"], resources: [widgets], operations: [UPDATE]}]
`)
	guarded := thing(group+"/v1", "Widget", "big04", "w1")
	try := func() error {
		return s.c.Client().Patch(t.Context(), guarded, client.RawPatch("application/merge-patch+json", []byte(`{}`)), client.DryRunAll)
	}
	for try() == nil && t.Context().Err() == nil { // until the API server has seen the webhook
		merge(t, s.c, thing("v1", "Namespace", "", "big04"), "test", `{}`)
	}
	about := func(e cluster.Event) bool { return e.Group == group || e.Name == name || e.Namespace == s.ns }
	mark := s.c.Mark()
	v, out := p.verdict(t, 1, wedge.StoredVersions, "upgrade-refused", "--apply")
	if v.Actions[0].Result != wedge.Failed || v.Actions[1].Result != wedge.Skipped || v.Actions[2].Result != wedge.Skipped {
		t.Errorf("%+v", v.Actions)
	}
	out.holds(t, out.stderr, "1 object could not be rewritten, so status.storedVersions is left as it is", "widgets.big04.example.com big04/w1", "failed calling webhook")
	s.did(t, mark, about, "patch widgets/new", "patch widgets/w0", "patch widgets/w1", "patch widgets/w2")
	if exists(t, s.c, crd); !slices.Equal(crd.Status.StoredVersions, []string{"v1beta1", "v1"}) {
		t.Errorf("storedVersions are %v", crd.Status.StoredVersions)
	}

	remove(t, s.c, thing("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", "big04"))
	for try() != nil && t.Context().Err() == nil {
		merge(t, s.c, thing("v1", "Namespace", "", "big04"), "test", `{}`)
	}
	mark = s.c.Mark()
	v, _ = p.verdict(t, 0, wedge.StoredVersions, "upgrade-refused", "--apply")
	allDone(t, v)
	if v.Actions[0].Message != "4 objects rewritten" {
		t.Errorf("it says %q", v.Actions[0].Message)
	}
	s.did(t, mark, about, "patch widgets/new", "patch widgets/w0", "patch widgets/w1", "patch widgets/w2",
		"patch customresourcedefinitions/"+name+" status", "patch kustomizations/tier")
	s.untilReady(t, "tier", "")
	if exists(t, s.c, crd); len(crd.Spec.Versions) != 1 || !slices.Equal(crd.Status.StoredVersions, []string{"v1"}) {
		t.Errorf("versions %v, stored %v", crd.Spec.Versions, crd.Status.StoredVersions)
	}
	// They were rewritten: without v1beta1 they can still be read.
	list := thing(group+"/v1", "Widget", "big04", "w0")
	if !exists(t, s.c, list) || list.Object["spec"] == nil {
		t.Error("an object has not survived")
	}
	p.healthy(t)
}

// olderCRD: git has a CRD without the version that objects are stored in now.
// Nothing on the cluster is to be changed.
func olderCRD(t *testing.T, s *fluxScene) {
	const group, name = "big05.example.com", "widgets.big05.example.com"
	apply(t, s.c, definition(group, "Widget", "Namespaced", "", version("v1beta1", true, false), version("v1beta2", true, true)),
		"{apiVersion: "+group+"/v1beta2, kind: Widget, metadata: {name: w, namespace: big05}}")
	s.commit(t, cluster.Files{"tier/crd.yaml": definition(group, "Widget", "Namespaced", "", version("v1beta1", true, true))}, s.hourly("tier"))
	s.untilFailed(t, "tier", "Invalid value: \"v1beta2\"")
	p := newPatient(t, s.c, "crd/"+name)
	mark := s.c.Mark()
	v, _ := p.verdict(t, 0, wedge.StoredVersions, "git-is-older", "--confirm-destructive")
	plans(t, v)
	tells(t, v, "git is older than the cluster", "Kustomization/big05/tier applies a CustomResourceDefinition/"+name+" without v1beta2",
		"neither uninstalling Flux nor deleting the CRD is a way back")
	s.did(t, mark, func(e cluster.Event) bool { return e.Group == group || e.Name == name || e.Namespace == s.ns })
	s.healthy(t) // the CRD's verdict tells all of it
}

// untilEndpoint waits until a Service has an endpoint that is ready.
func (s *fluxScene) untilEndpoint(t *testing.T, service string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	w, err := s.c.Client().Watch(ctx, &discoveryv1.EndpointSliceList{}, client.InNamespace(s.ns), client.MatchingLabels{discoveryv1.LabelServiceName: service})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		slice, ok := event.Object.(*discoveryv1.EndpointSlice)
		if ok && slices.ContainsFunc(slice.Endpoints, func(e discoveryv1.Endpoint) bool { return e.Conditions.Ready != nil && *e.Conditions.Ready }) {
			return
		}
	}
	t.Fatalf("service %s/%s has no endpoint", s.ns, service)
}
