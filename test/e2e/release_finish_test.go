// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package e2e

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubestandup/kubestandup/pkg/wedge"
)

// finishCases are uninstallations that nobody but a person will go on with.
func finishCases() []releaseCase {
	uninstalling := func(t *testing.T, s *releaseScene, extra string) {
		s.helm(t, 4, "install", "web", s.chart(), "--set", "hook=pre-delete", s.valuesFile(t, "extra", extra))
		s.remember(t)
		s.killed(t, 4, 1, "uninstalling", "uninstall", "web")
	}
	return []releaseCase{
		{"uninstalling, finish would lose data", func(t *testing.T, s *releaseScene) {
			inner := "apiVersion: v1\nkind: Namespace\nmetadata: {name: " + s.ns + "-inner}\n"
			uninstalling(t, s, strings.Join([]string{dataClaim, widgetDefinition(s.ns), inner}, "---\n"))
			s.apply(t, widget(s.ns), configMap(s.ns+"-inner", "somebody-elses"))
		}, mendData},
		{"uninstalling, a kind is not served any more: finish", func(t *testing.T, s *releaseScene) {
			s.apply(t, widgetDefinition(s.ns))
			uninstalling(t, s, widget(s.ns))
			s.dropDefinition(t)
		}, mendFinishedUnserved},
		{"uninstalling, a kind is served in another version, and owns a claim: finish", func(t *testing.T, s *releaseScene) {
			s.apply(t, widgetDefinition(s.ns))
			uninstalling(t, s, widget(s.ns))
			served := strings.Replace(widgetDefinition(s.ns), "served: true", "served: false", 1)
			s.apply(t, served+"  - {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}\n")
			s.untilServed(t)
		}, mendOtherVersion},
		{"uninstalling, the HelmRelease is gone: finish with its hooks", leaveLetGo, mendWithHooks},
	}
}

// mendData: what holds data is named one by one, and goes only when each was.
func mendData(t *testing.T, s *releaseScene) {
	mark := s.c.Mark()
	args := []string{s.record(1), old, "--uninstalling=finish", "--confirm-destructive"}
	v, o := s.judged(t, 6, wedge.ReleaseUninstalling, args...)
	wantSteps(t, v, "")
	o.holds(t, v.Refused, "PersistentVolumeClaim/"+s.ns+"/data holds data",
		"CustomResourceDefinition/widgets."+widgetGroup(s.ns)+" takes with it Widget/"+s.ns+"/one",
		"Namespace/"+s.ns+"-inner takes with it ConfigMap/"+s.ns+"-inner/somebody-elses")
	s.did(t, mark)
	allow := regexp.MustCompile(`--allow [^;\s]+`).FindAllString(v.Refused, -1)
	if len(allow) != 3 {
		t.Fatalf("%q", allow)
	}
	// Two of three are not enough.
	for i, name := range allow {
		if i > 0 {
			s.judged(t, 6, wedge.ReleaseUninstalling, args...)
		}
		args = append(args, strings.Fields(name)...)
	}
	s.did(t, mark)
	s.judged(t, 0, wedge.ReleaseUninstalling, args...)
	if err := s.c.UntilGone(t.Context(), &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "data"}}); err != nil {
		t.Error(err)
	}
	if err := s.c.UntilGone(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.ns + "-inner"}}); err != nil {
		t.Error(err)
	}
	if err := s.c.UntilGone(t.Context(), &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "widgets." + widgetGroup(s.ns)}}); err != nil {
		t.Error(err)
	}
	s.finished(t)
}

// finished: nothing is there but what the chart keeps.
func (s *releaseScene) finished(t *testing.T) {
	t.Helper()
	if got := s.records(t); got != "" {
		t.Error(got)
	}
	if live := s.live(t); len(live) != 1 || live["kept"] != s.uids["kept"] {
		t.Errorf("there are %v", live)
	}
}

func mendFinishedUnserved(t *testing.T, s *releaseScene) {
	// Somebody else has taken an object over since.
	s.merge(t, s.objects()["ServiceAccount"], `{"metadata":{"annotations":{"meta.helm.sh/release-name":"other"}}}`)
	v, _ := s.judged(t, 0, wedge.ReleaseUninstalling, s.record(1), old, "--uninstalling=finish", "--confirm-destructive")
	mentions(t, v, "Widget/", "its kind is not served")
	wantSteps(t, v, "delete! web, delete! web, wait v1, delete! v1")
	if got := s.records(t); got != "" {
		t.Error(got)
	}
	if live := s.live(t); len(live) != 2 || live["kept"] != s.uids["kept"] || live["ServiceAccount"] != s.uids["ServiceAccount"] {
		t.Errorf("there are %v", live)
	}
	s.helm(t, 4, "install", "again", s.chart())
}

// movedWidget is reached in the version that the manifest does not have.
func (s *releaseScene) movedWidget() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(widgetGroup(s.ns) + "/v2")
	u.SetKind("Widget")
	u.SetNamespace(s.ns)
	u.SetName("one")
	return u
}

// untilServed waits until the other version is served, and this one no longer.
func (s *releaseScene) untilServed(t *testing.T) {
	t.Helper()
	if err := s.c.Until(t.Context(), s.movedWidget(), func() bool { return true }); err != nil {
		t.Fatal(err)
	}
}

// mendOtherVersion: an object that the manifest names in a version which is no longer
// served is there all the same, and goes; a claim that would go with it is data.
func mendOtherVersion(t *testing.T, s *releaseScene) {
	widget := s.movedWidget()
	if err := s.c.Client().Get(t.Context(), client.ObjectKeyFromObject(widget), widget); err != nil {
		t.Fatal(err)
	}
	s.apply(t, fmt.Sprintf(`apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: of-widget
  namespace: %s
  ownerReferences: [{apiVersion: %s/v2, kind: Widget, name: one, uid: %s}]
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`, s.ns, widgetGroup(s.ns), widget.GetUID()))
	mark := s.c.Mark()
	args := []string{s.record(1), old, "--uninstalling=finish", "--confirm-destructive"}
	v, o := s.judged(t, 6, wedge.ReleaseUninstalling, args...)
	o.holds(t, v.Refused, "Widget/"+s.ns+"/one takes with it PersistentVolumeClaim/"+s.ns+"/of-widget: --allow widget/"+s.ns+"/one")
	s.did(t, mark)
	s.judged(t, 0, wedge.ReleaseUninstalling, append(args, "--allow", "widget/"+s.ns+"/one")...)
	if err := s.c.UntilGone(t.Context(), s.movedWidget()); err != nil {
		t.Error(err)
	}
	s.finished(t)
}

// lettingGo is a HelmRelease that a person suspends and deletes: it lets go of
// what it owns.
const lettingGo = "letting-go"

func leaveLetGo(t *testing.T, s *releaseScene) {
	s.apply(t, helmRelease(s.ns, lettingGo, "releaseName: web", values("hook", "pre-delete,post-delete")))
	hr := s.hr()
	hr.Name = lettingGo
	s.untilReady(t, hr)
	s.remember(t)
	s.killed(t, 3, 1, "uninstalling", "uninstall", "web")
	s.merge(t, hr, `{"spec":{"suspend":true}}`)
	s.delete(t, hr)
	if err := s.c.UntilGone(t.Context(), hr); err != nil {
		t.Fatal(err)
	}
	s.kept(t)
}

// mendWithHooks: they are run by choice only.
func mendWithHooks(t *testing.T, s *releaseScene) {
	args := []string{s.record(1), old, "--uninstalling=finish"}
	v, _ := s.judged(t, 6, wedge.ReleaseUninstalling, args...)
	wantSteps(t, v, "delete! web, delete! web, delete! web, wait v1, delete! v1")
	mark := s.c.Mark()
	stop := s.endHooks(t, s.untilHook(t))
	v, _ = s.judged(t, 0, wedge.ReleaseUninstalling, append(args, "--run-hooks", "--confirm-destructive")...)
	stop()
	wantSteps(t, v, "run-hook! web-hook, delete! web, delete! web, delete! web, wait v1, run-hook! web-hook, delete! v1")
	// The Job that the killed Helm has left makes room for the new one.
	s.did(t, mark, "delete jobs/web-hook", "create jobs/", "delete services/web", "delete configmaps/web", "delete serviceaccounts/web",
		"delete jobs/web-hook", "create jobs/", "delete secrets/v1")
	s.finished(t)
}
