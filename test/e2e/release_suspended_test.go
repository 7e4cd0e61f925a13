// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package e2e

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubestandup/kubestandup/pkg/wedge"
	"github.com/kubestandup/kubestandup/test/cluster"
)

// suspendedCases are pending releases that helm-controller does not look at.
func suspendedCases() []releaseCase {
	pending := func(t *testing.T, s *releaseScene, edit string) {
		s.release(t)
		s.killed(t, 4, 2, "pending-upgrade", "upgrade", "web", s.chart(), "--set", "hook=pre-upgrade")
		s.remember(t)
		s.patch(t, edit)
	}
	return []releaseCase{
		{"HELM03 suspended by a person", func(t *testing.T, s *releaseScene) {
			pending(t, s, `{"spec":{"suspend":true}}`)
		}, mendSuspended},
		{"HELM03 suspended in git", leaveSuspendedInGit, mendSuspendedInGit},
		{"HELM03 held", func(t *testing.T, s *releaseScene) {
			pending(t, s, `{"spec":{"suspend":true},"metadata":{"annotations":{"kubestandup.dev/hold":"until the migration is done"}}}`)
		}, mendHeld},
		{"HELM03 a resume would uninstall", func(t *testing.T, s *releaseScene) {
			pending(t, s, `{"spec":{"suspend":true,"releaseName":"another"}}`)
		}, mendMoved},
		{"HELM11 what is left of the former release is Terminating", leaveTerminating, mendTerminating},
	}
}

func mendSuspended(t *testing.T, s *releaseScene) {
	mark := s.c.Mark()
	// Asking does not help while it is suspended.
	s.nudge(t)
	v, _ := s.judged(t, 0, wedge.ReleasePending, s.tier())
	wantSteps(t, v, "resume web, wait web")
	mentions(t, v, "true, by kubectl-edit since ", "chart 0.1.0")
	s.judged(t, 0, wedge.ReleasePending, s.tier(), "--apply")
	s.did(t, mark, "patch helmreleases/web")
	s.kept(t)
	s.untilReady(t, s.hr())
	if got := s.records(t); got != "v1 superseded, v2 failed, v3 deployed" {
		t.Error(got)
	}
	s.healthy(t, s.tier())
}

// leaveSuspendedInGit has the HelmRelease from the real kustomize-controller.
func leaveSuspendedInGit(t *testing.T, s *releaseScene) {
	repo := &scene{s.c, s.ns, s.sh}
	revision, err := s.c.Push(t.Context(), s.ns, cluster.Files{"apps/hr.yaml": helmRelease(s.ns, "web", "suspend: true")}, "suspended")
	if err != nil {
		t.Fatal(err)
	}
	s.apply(t, fmt.Sprintf("{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {name: source, namespace: %s}, spec: {interval: 1h, url: %q, ref: {branch: main}}}\n",
		s.ns, s.c.RepoURL(s.ns)))
	repo.untilFetched(t, revision)
	repo.add(t, repo.manifest("apps"))
	if err := s.c.Until(t.Context(), s.hr(), func() bool { return true }); err != nil {
		t.Fatal(err)
	}
	s.killed(t, 4, 1, "pending-install", "install", "web", s.chart(), "--set", "hook=post-install")
	s.remember(t)
}

func mendSuspendedInGit(t *testing.T, s *releaseScene) {
	s.left(t, "its manifest in git says suspend: true")
}

func mendHeld(t *testing.T, s *releaseScene) {
	s.left(t, "annotation kubestandup.dev/hold says until the migration is done")
}

// left: nothing is done about it, whatever is confirmed.
func (s *releaseScene) left(t *testing.T, why string) {
	t.Helper()
	mark := s.c.Mark()
	v, _ := s.judged(t, 0, wedge.ReleasePending, s.tier(), "--confirm-destructive")
	wantSteps(t, v, "")
	mentions(t, v, "it is kept suspended on purpose: "+why)
	s.did(t, mark)
	s.kept(t)
}

func mendMoved(t *testing.T, s *releaseScene) {
	mark := s.c.Mark()
	v, _ := s.judged(t, 6, wedge.ReleasePending, s.tier(), "--confirm-destructive")
	wantSteps(t, v, "")
	mentions(t, v, "resuming it would uninstall the release: its release name is web, and the spec now says another")
	s.did(t, mark)
	s.kept(t)
}

// leaveTerminating: a ConfigMap of the release before is held by a finalizer,
// and the next install was killed.
func leaveTerminating(t *testing.T, s *releaseScene) {
	s.apply(t, helmRelease(s.ns, "web", "suspend: true"))
	s.helm(t, 3, "install", "web", s.chart())
	s.merge(t, s.objects()["ConfigMap"], `{"metadata":{"finalizers":["example.com/slow"]}}`)
	s.helm(t, 3, "uninstall", "web")
	s.killed(t, 3, 1, "pending-install", "install", "web", s.chart(), "--set", "hook=pre-install")
}

func mendTerminating(t *testing.T, s *releaseScene) {
	mark := s.c.Mark()
	v, _ := s.judged(t, 0, wedge.ReleasePending, s.tier(), "--confirm-destructive")
	wantSteps(t, v, "")
	mentions(t, v, "ConfigMap/"+s.ns+"/web, held by finalizer example.com/slow", "an install that races them loses data")
	s.did(t, mark)
	slow := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "web"}}
	s.merge(t, slow, `{"metadata":{"finalizers":null}}`)
	if err := s.c.UntilGone(t.Context(), slow); err != nil {
		t.Fatal(err)
	}
	v, _ = s.judged(t, 0, wedge.ReleasePending, s.tier(), "--apply")
	wantSteps(t, v, "resume web, wait web")
	s.untilReady(t, s.hr())
	s.healthy(t, s.tier())
}
