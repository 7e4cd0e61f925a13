// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubestandup/kubestandup/pkg/wedge"
)

// deletedCases are HelmReleases that are being deleted, and cannot be. None of
// them is ever suspended: its finalizer would let go, and orphan what it owns.
func deletedCases() []releaseCase {
	return []releaseCase{
		{"HELM10 its hook fails", func(t *testing.T, s *releaseScene) {
			s.release(t, failsToUninstall, values("hook", "pre-delete"))
			s.leaveDeleted(t)
		}, mendFailingHook},
		{"uninstalling with its HelmRelease, a webhook refuses", leaveRefused, mendRefused},
		{"uninstalling with its HelmRelease, a kind is not served any more", func(t *testing.T, s *releaseScene) {
			s.apply(t, widgetDefinition(s.ns))
			s.release(t, failsToUninstall, values("extra", widget(s.ns)))
			s.dropDefinition(t)
			s.leaveDeleted(t)
		}, mendDeletedUnserved},
		{"uninstalling with its HelmRelease: finish", func(t *testing.T, s *releaseScene) {
			s.release(t, failsToUninstall, values("hook", "pre-delete"))
			s.leaveDeleted(t)
		}, mendDeletedFinish},
		{"HELM23 its account has no rights any more", leaveForbidden, mendForbidden},
	}
}

// leaveDeleted deletes the HelmRelease and waits until that has failed.
func (s *releaseScene) leaveDeleted(t *testing.T) {
	t.Helper()
	s.remember(t)
	s.delete(t, s.hr())
	s.untilSays(t, "Released", "False", "UninstallFailed", "")
}

// again runs it, and runs it again where it says so: helm-controller goes on
// trying, and each time it writes the record.
func (s *releaseScene) again(t *testing.T, args ...string) outcome {
	t.Helper()
	const tries = 10
	args = slices.Concat([]string{"unwedge", waitsAtMost, "--backup-dir", s.backups}, s.named, args)
	for try := 1; ; try++ {
		o := s.sh.run(t, args...)
		if o.code == 1 && try < tries && strings.Contains(o.stderr, "was changed since the plan: run again") {
			continue
		}
		if o.code != 0 {
			t.Fatalf("%s\nwant exit code 0", o)
		}
		return o
	}
}

// gone: the HelmRelease and all that it owned are, but for what the chart keeps.
func (s *releaseScene) gone(t *testing.T) {
	t.Helper()
	if err := s.c.UntilGone(t.Context(), s.hr()); err != nil {
		t.Fatal(err)
	}
	s.finished(t)
}

func mendFailingHook(t *testing.T, s *releaseScene) {
	mark := s.c.Mark()
	v, _ := s.judged(t, 6, wedge.ReleaseUninstalling, s.tier(), "--apply")
	wantSteps(t, v, "skip-hooks! web, nudge web, wait web")
	mentions(t, v, "hook Job/web-hook", "pre-delete", "look at the hook first")
	v, _ = s.judged(t, 6, wedge.ReleaseUninstalling, s.tier(), "--uninstalling=keep", "--confirm-destructive")
	mentions(t, v, "a release whose HelmRelease goes cannot be kept")
	s.did(t, mark)
	s.again(t, s.tier(), "--confirm-destructive")
	s.did(t, mark, "patch helmreleases/web", "patch helmreleases/web")
	s.gone(t)
}

// leaveRefused: the deletion of ConfigMaps is refused by a webhook that nothing
// answers.
func leaveRefused(t *testing.T, s *releaseScene) {
	s.release(t, failsToUninstall)
	s.apply(t, fmt.Sprintf(`apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: %[1]s}
webhooks:
- name: guard.%[1]s.example.com
  clientConfig: {url: "https://127.0.0.1:1/"}
  failurePolicy: Fail
  sideEffects: None
  admissionReviewVersions: [v1]
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [DELETE], resources: [configmaps]}]
`, s.ns))
	s.leaveDeleted(t)
}

func mendRefused(t *testing.T, s *releaseScene) {
	mark := s.c.Mark()
	v, _ := s.judged(t, 0, wedge.ReleaseUninstalling, s.tier(), "--confirm-destructive")
	wantSteps(t, v, "")
	mentions(t, v, "a webhook without an end", "ConfigMap", "still there")
	s.did(t, mark)
	// The webhook refuses us too: it is said, and the record stays.
	v, o := s.judged(t, 1, wedge.ReleaseUninstalling, s.tier(), "--uninstalling=finish", "--confirm-destructive")
	o.holds(t, o.stderr, "failed calling webhook")
	for _, a := range v.Actions {
		if a.Object.Kind == "Secret" && a.Result != wedge.Skipped {
			t.Errorf("%s %s: %s", a.Verb, a.Object, a.Result)
		}
	}
	if got := s.records(t); got != "v1 uninstalling" {
		t.Error(got)
	}
	s.delete(t, &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: s.ns}})
	s.nudge(t)
	s.gone(t)
}

func mendDeletedUnserved(t *testing.T, s *releaseScene) {
	mark := s.c.Mark()
	v, _ := s.judged(t, 6, wedge.ReleaseUninstalling, s.tier(), "--apply")
	wantSteps(t, v, "drop-documents! v1, nudge web, wait web")
	mentions(t, v, "Widget/"+s.ns+"/one", "put their CustomResourceDefinitions back")
	s.did(t, mark)
	s.kept(t)
	s.again(t, s.tier(), "--confirm-destructive")
	s.did(t, mark, "patch secrets/v1", "patch helmreleases/web")
	s.gone(t)
}

func mendDeletedFinish(t *testing.T, s *releaseScene) {
	mark := s.c.Mark()
	v, _ := s.judged(t, 6, wedge.ReleaseUninstalling, s.tier(), "--uninstalling=finish")
	wantSteps(t, v, "delete! web, delete! web, delete! web, wait web, delete! v1, nudge web")
	s.again(t, s.tier(), "--uninstalling=finish", "--confirm-destructive")
	s.did(t, mark, "delete services/web", "delete configmaps/web", "delete serviceaccounts/web", "delete secrets/v1", "patch helmreleases/web")
	s.gone(t)
}

// leaveForbidden: the account is there, and its rights went first, as in a
// Namespace that is being deleted.
func leaveForbidden(t *testing.T, s *releaseScene) {
	s.apply(t, fmt.Sprintf(`apiVersion: v1
kind: ServiceAccount
metadata: {name: deployer, namespace: %[1]s}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: deployer, namespace: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: deployer, namespace: %[1]s}]
`, s.ns))
	s.release(t, "serviceAccountName: deployer")
	s.remember(t)
	s.delete(t, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "deployer"}})
	s.delete(t, s.hr())
	hr := s.hr()
	if err := s.c.Until(t.Context(), hr, func() bool {
		for _, c := range hr.Status.Conditions {
			if c.Status == metav1.ConditionFalse && strings.Contains(c.Message, "forbidden") {
				return true
			}
		}
		return false
	}); err != nil {
		t.Fatal(err)
	}
}

func mendForbidden(t *testing.T, s *releaseScene) {
	mark := s.c.Mark()
	v, _ := s.judged(t, 0, wedge.ReleaseHeld, s.tier(), "--confirm-destructive")
	wantSteps(t, v, "")
	mentions(t, v, "is forbidden", "give ServiceAccount deployer its RoleBinding back", "--allow hr/"+s.ns+"/web removes the finalizer")
	s.did(t, mark)
	s.judged(t, 6, wedge.ReleaseHeld, s.tier(), "--allow", s.tier(), "--apply")
	s.did(t, mark)
	v, _ = s.judged(t, 0, wedge.ReleaseHeld, s.tier(), "--allow", s.tier(), "--confirm-destructive")
	wantSteps(t, v, "remove-finalizer! web")
	mentions(t, v, "what the release owns stays")
	s.did(t, mark, "patch helmreleases/web")
	if err := s.c.UntilGone(t.Context(), s.hr()); err != nil {
		t.Fatal(err)
	}
	s.kept(t)
}
