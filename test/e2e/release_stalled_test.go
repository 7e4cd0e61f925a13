// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package e2e

import (
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubestandup/kubestandup/pkg/wedge"
)

const retriesOnce = "upgrade: {timeout: 3s, remediation: {retries: 1}}"

// stalledCases are releases that helm-controller has given up on, or whose next
// reconcile does harm.
func stalledCases() []releaseCase {
	return []releaseCase{
		{"HELM15 no rollback target", func(t *testing.T, s *releaseScene) {
			s.helm(t, 4, "install", "web", s.chart())
			s.remember(t)
			s.apply(t, helmRelease(s.ns, "web", retriesOnce, values("extra", slowDeployment)))
			s.untilSays(t, "Stalled", "True", "MissingRollbackTarget", "missing target release for rollback")
		}, mendNoTarget},
		{"HELM16 retries used up", func(t *testing.T, s *releaseScene) {
			s.apply(t, helmRelease(s.ns, "web", failsToInstall, values("extra", slowDeployment)))
			s.untilSays(t, "Stalled", "True", "RetriesExceeded", "")
			s.remember(t)
		}, mendExhausted},
		{"HELM19 the record is too big", func(t *testing.T, s *releaseScene) {
			s.release(t)
			s.remember(t)
			s.patch(t, `{"spec":{"chart":{"spec":{"chart":"./fat"}}}}`)
			s.untilSays(t, "Ready", "False", "UpgradeFailed", recordName("web", 2))
		}, mendTooBig},
		{"HELM20 a resume would uninstall", func(t *testing.T, s *releaseScene) {
			s.release(t)
			s.remember(t)
			s.patch(t, `{"spec":{"suspend":true,"targetNamespace":"default"}}`)
		}, mendMoves},
		{"HELM24 uninstalled with its history", func(t *testing.T, s *releaseScene) {
			s.release(t)
			s.helm(t, 4, "upgrade", "web", s.chart())
			s.helm(t, 4, "uninstall", "web", "--keep-history")
			s.nudge(t)
			s.untilSays(t, "Ready", "False", "InstallFailed", "name that is still in use")
		}, mendUninstalled},
	}
}

func mendNoTarget(t *testing.T, s *releaseScene) {
	mark := s.c.Mark()
	v, _ := s.judged(t, 0, wedge.ReleaseNoTarget, s.tier(), "--confirm-destructive")
	wantSteps(t, v, "")
	mentions(t, v, "True MissingRollbackTarget: ", "a reset alone repeats the same upgrade", "Leave the records alone", "1 entries")
	s.did(t, mark)
	// A reset, before its cause is gone, ends the same way.
	if err := s.c.MarkAvailable(t.Context(), s.ns, "slow"); err != nil {
		t.Fatal(err)
	}
	s.patch(t, `{"spec":{"values":{"message":"mended"}}}`)
	s.untilReady(t, s.hr())
	s.kept(t)
	s.healthy(t, s.tier())
}

// mendExhausted: requestedAt and resetAt have the same value, in one patch.
func mendExhausted(t *testing.T, s *releaseScene) {
	if err := s.c.MarkAvailable(t.Context(), s.ns, "slow"); err != nil {
		t.Fatal(err)
	}
	mark := s.c.Mark()
	// What a person may try first changes nothing.
	s.judgedWhileLookedAt(t)
	v, _ := s.judged(t, 0, wedge.ReleaseExhausted, s.tier())
	wantSteps(t, v, "reset web, wait web")
	mentions(t, v, "True RetriesExceeded: ", "requestedAt and resetAt, one value")
	s.did(t, mark)
	s.judged(t, 0, wedge.ReleaseExhausted, s.tier(), "--apply")
	s.did(t, mark, "patch helmreleases/web")
	hr := s.hr()
	if err := s.c.Client().Get(t.Context(), client.ObjectKeyFromObject(hr), hr); err != nil {
		t.Fatal(err)
	}
	token := hr.Annotations["reconcile.fluxcd.io/resetAt"]
	if token == "" || token != hr.Annotations["reconcile.fluxcd.io/requestedAt"] || hr.Annotations["reconcile.fluxcd.io/forceAt"] != "" || hr.Status.LastHandledResetAt != token {
		t.Errorf("annotations %v, handled %q", hr.Annotations, hr.Status.LastHandledResetAt)
	}
	s.untilReady(t, s.hr())
	s.kept(t)
	s.healthy(t, s.tier())
}

func mendTooBig(t *testing.T, s *releaseScene) {
	mark := s.c.Mark()
	v, _ := s.judged(t, 0, wedge.ReleaseTooBig, s.tier(), "--confirm-destructive")
	wantSteps(t, v, "")
	mentions(t, v, "nothing is locked", "Deleting old revisions does not help", ".helmignore")
	s.did(t, mark)
	s.kept(t)
	if got := s.records(t); got != "v1 deployed" {
		t.Error(got)
	}
}

func mendMoves(t *testing.T, s *releaseScene) {
	mark := s.c.Mark()
	v, _ := s.judged(t, 0, wedge.ReleaseMoves, s.tier(), "--confirm-destructive")
	wantSteps(t, v, "")
	mentions(t, v, "a resume would UNINSTALL release web: its target namespace is "+s.ns+", and the spec now says default")
	s.did(t, mark)
	s.kept(t)
}

// mendUninstalled: the records go only when no object is left.
func mendUninstalled(t *testing.T, s *releaseScene) {
	left := configMap(s.ns, "web")
	s.apply(t, left)
	s.merge(t, s.objects()["ConfigMap"], `{"metadata":{"annotations":{"meta.helm.sh/release-name":"web","meta.helm.sh/release-namespace":"`+s.ns+`"}}}`)
	mark := s.c.Mark()
	v, _ := s.judged(t, 6, wedge.ReleaseUninstalled, s.tier(), "--confirm-destructive")
	wantSteps(t, v, "")
	mentions(t, v, "was not uninstalled to the end: ConfigMap/"+s.ns+"/web")
	s.did(t, mark)
	s.delete(t, s.objects()["ConfigMap"])
	v, _ = s.judged(t, 0, wedge.ReleaseUninstalled, s.tier(), "--confirm-destructive")
	wantSteps(t, v, "suspend web, delete! v1, delete! v2, resume web, wait web")
	mentions(t, v, "`install.replace: true` in the HelmRelease does it too", "never roll such a release back")
	s.did(t, mark, "patch helmreleases/web", "delete secrets/v1", "delete secrets/v2", "patch helmreleases/web")
	s.untilReady(t, s.hr())
	if got := s.records(t); got != "v1 deployed" || strings.Contains(got, "v2") {
		t.Error(got)
	}
	s.notOurs(t)
	s.healthy(t, s.tier())
}
