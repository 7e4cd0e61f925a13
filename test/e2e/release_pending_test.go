// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package e2e

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubestandup/kubestandup/pkg/wedge"
	"github.com/kubestandup/kubestandup/test/cluster"
)

// old is said of each operation of plain Helm here: their Helms were killed.
const old = "--older-than=1s"

func pendingCases() []releaseCase {
	cases := []releaseCase{
		{"HELM05b a kind of the pending revision is not served", leaveUnserved, mendUnserved},
		{"HELM17 the label was edited", leaveLabelled, mendLabelled},
	}
	for _, major := range []int{3, 4} {
		by := fmt.Sprintf(", Helm %d", major)
		cases = append(cases,
			releaseCase{"HELM05b pending-install of plain Helm" + by, func(t *testing.T, s *releaseScene) {
				s.killed(t, major, 1, "pending-install", "install", "web", s.chart(), "--set", "hook=post-install")
				s.remember(t)
			}, func(t *testing.T, s *releaseScene) { mendPlainInstall(t, s, major) }},
			releaseCase{"HELM06 pending-upgrade of plain Helm, rolled back" + by, func(t *testing.T, s *releaseScene) {
				s.helm(t, major, "install", "web", s.chart())
				s.killed(t, major, 2, "pending-upgrade", "upgrade", "web", s.chart(), "--set", "hook=pre-upgrade")
				s.remember(t)
			}, func(t *testing.T, s *releaseScene) { mendPlainUpgrade(t, s, major) }},
			releaseCase{"HELM05b several pending revisions of plain Helm" + by, func(t *testing.T, s *releaseScene) {
				s.helm(t, major, "install", "web", s.chart(), "--set", "hook=pre-rollback")
				s.leaveSeveral(t, major)
			}, func(t *testing.T, s *releaseScene) { mendPlainSeveral(t, s, major) }},
			releaseCase{"HELM01 pending-upgrade" + by, func(t *testing.T, s *releaseScene) {
				s.release(t)
				s.killed(t, major, 2, "pending-upgrade", "upgrade", "web", s.chart(), "--set", "hook=pre-upgrade")
				s.remember(t)
			}, func(t *testing.T, s *releaseScene) { mendNudged(t, s, "v1 superseded, v2 failed, v3 deployed") }},
			releaseCase{"HELM01 several pending revisions" + by, func(t *testing.T, s *releaseScene) {
				s.release(t, values("hook", "pre-rollback"))
				s.leaveSeveral(t, major)
			}, func(t *testing.T, s *releaseScene) {
				mendNudged(t, s, "v1 superseded, v2 pending-upgrade, v3 failed, v4 deployed")
			}},
			releaseCase{"HELM05a pending-install" + by, func(t *testing.T, s *releaseScene) {
				s.release(t)
				s.helm(t, major, "uninstall", "web")
				s.killed(t, major, 1, "pending-install", "install", "web", s.chart(), "--set", "hook=post-install")
				s.remember(t)
			}, func(t *testing.T, s *releaseScene) { mendNudged(t, s, "v1 superseded, v2 deployed") }},
		)
	}
	return cases
}

// leaveSeveral kills an upgrade and then the rollback that was to mend it.
func (s *releaseScene) leaveSeveral(t *testing.T, major int) {
	t.Helper()
	s.killed(t, major, 2, "pending-upgrade", "upgrade", "web", s.chart(), "--set", "hook=pre-upgrade")
	s.killed(t, major, 3, "pending-rollback", "rollback", "web", "1")
	s.remember(t)
}

func mendPlainInstall(t *testing.T, s *releaseScene, major int) {
	mark := s.c.Mark()
	v, _ := s.judged(t, 6, wedge.ReleasePending, s.record(1), "--confirm-destructive")
	mentions(t, v, "nothing on the cluster tells. If you know that it is dead, say with --older-than")
	s.did(t, mark)
	v, _ = s.judged(t, 0, wedge.ReleasePending, s.record(1), old)
	wantSteps(t, v, "delete! v1")
	mentions(t, v, "it is adopted, not deleted", "no object of the release is deleted")
	// Without a confirmation it is listed, and left.
	s.judged(t, 6, wedge.ReleasePending, s.record(1), old, "--apply")
	s.did(t, mark)
	v, _ = s.judged(t, 0, wedge.ReleasePending, s.record(1), old, "--confirm-destructive")
	s.did(t, mark, "delete secrets/v1")
	s.kept(t)
	s.paste(t, major, v.Commands[0])
	s.kept(t)
	if got := s.records(t); got != "v1 deployed" {
		t.Error(got)
	}
	s.healthy(t, s.record(1))
}

func mendPlainUpgrade(t *testing.T, s *releaseScene, major int) {
	mark := s.c.Mark()
	v, _ := s.judged(t, 0, wedge.ReleasePending, s.record(2), old, "--confirm-destructive")
	wantSteps(t, v, "")
	if len(v.Commands) != 1 || !strings.HasPrefix(v.Commands[0], "helm rollback web 1 -n "+s.ns+" --kube") {
		t.Fatalf("%q", v.Commands)
	}
	s.did(t, mark)
	s.paste(t, major, v.Commands[0])
	s.kept(t)
	// The pending revision stays below the deployed one for good: HELM-06.
	if got := s.records(t); got != "v1 superseded, v2 pending-upgrade, v3 deployed" {
		t.Error(got)
	}
	s.healthy(t, s.record(2))
	s.healthy(t, s.record(3))
	s.helm(t, major, "upgrade", "web", s.chart())
}

// mendPlainSeveral: never revision minus one, and where a rollback cannot be,
// all pending records go.
func mendPlainSeveral(t *testing.T, s *releaseScene, major int) {
	mark := s.c.Mark()
	v, _ := s.judged(t, 0, wedge.ReleasePending, s.record(3), old)
	wantSteps(t, v, "")
	mentions(t, v, "helm rollback web 1 -n "+s.ns, "--allow release/"+s.ns+"/web")
	v, _ = s.judged(t, 0, wedge.ReleasePending, s.record(3), old, "--allow", "release/"+s.ns+"/web", "--confirm-destructive")
	wantSteps(t, v, "delete! v2, delete! v3")
	s.did(t, mark, "delete secrets/v2", "delete secrets/v3")
	s.kept(t)
	s.helm(t, major, "upgrade", "web", s.chart())
	if got := s.records(t); got != "v1 superseded, v2 deployed" {
		t.Error(got)
	}
	s.kept(t)
}

func leaveUnserved(t *testing.T, s *releaseScene) {
	s.apply(t, widgetDefinition(s.ns))
	s.helm(t, 3, "install", "web", s.chart())
	s.killed(t, 3, 2, "pending-upgrade", "upgrade", "web", s.chart(), "--set", "hook=pre-upgrade", s.valuesFile(t, "extra", widget(s.ns)))
	s.remember(t)
	s.dropDefinition(t)
}

// dropDefinition deletes the scene's CRD, and waits until its kind is not served.
func (s *releaseScene) dropDefinition(t *testing.T) {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "widgets." + widgetGroup(s.ns)}}
	s.delete(t, crd)
	if err := s.c.UntilGone(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
}

func mendUnserved(t *testing.T, s *releaseScene) {
	mark := s.c.Mark()
	v, _ := s.judged(t, 0, wedge.ReleasePending, s.record(2), old, "--confirm-destructive")
	wantSteps(t, v, "delete! v2")
	mentions(t, v, "kinds that are not served: Widget/")
	s.did(t, mark, "delete secrets/v2")
	s.kept(t)
	s.helm(t, 3, "upgrade", "web", s.chart())
	s.kept(t)
}

// leaveLabelled does as people on the net advise, to no avail.
func leaveLabelled(t *testing.T, s *releaseScene) {
	s.helm(t, 4, "install", "web", s.chart())
	s.killed(t, 4, 2, "pending-upgrade", "upgrade", "web", s.chart(), "--set", "hook=pre-upgrade")
	s.remember(t)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: recordName("web", 2)}}
	s.merge(t, secret, `{"metadata":{"labels":{"status":"deployed"}}}`)
	if _, err := s.c.Helm(t.Context(), 4, "upgrade", "web", s.chart(), "-n", s.ns); err == nil || !strings.Contains(err.Error(), "is in progress") {
		t.Fatalf("%v", err)
	}
}

func mendLabelled(t *testing.T, s *releaseScene) {
	v, _ := s.judged(t, 0, wedge.ReleasePending, s.record(2), old)
	mentions(t, v, "deployed, which is not what counts", `"value":"pending-upgrade"`)
	s.paste(t, 4, v.Commands[0])
	s.kept(t)
	s.helm(t, 4, "upgrade", "web", s.chart())
}

// mendNudged: helm-controller unlocks by itself as soon as it is asked, and no
// record is touched by anybody else.
func mendNudged(t *testing.T, s *releaseScene, records string) {
	mark := s.c.Mark()
	v, _ := s.judged(t, 0, wedge.ReleasePending, s.tier())
	wantSteps(t, v, "nudge web, wait web")
	mentions(t, v, "helm-controller has started anew since")
	s.did(t, mark)
	s.judged(t, 0, wedge.ReleasePending, s.tier(), "--apply")
	s.did(t, mark, "patch helmreleases/web")
	s.kept(t)
	s.untilReady(t, s.hr())
	if got := s.records(t); got != records {
		t.Errorf("%s, want %s", got, records)
	}
	s.healthy(t, s.tier())
}

// running is HELM-02: an operation of helm-controller that runs, and what
// becomes of it when helm-controller is killed.
func (w *releaseWorld) running(t *testing.T) {
	s := w.scene(t, "running")
	s.apply(t, strings.Replace(helmRelease(s.ns, "web", values("hook", "post-install")), "timeout: 1m", "timeout: 30m", 1))
	hook := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: recordName("web", 1)}}
	if err := s.c.Until(t.Context(), hook, func() bool { return hook.Labels["status"] == "pending-install" }); err != nil {
		t.Fatal(err)
	}
	s.untilHook(t)
	s.remember(t)
	mark := s.c.Mark()
	v, o := s.judged(t, 0, wedge.ReleasePending, s.tier(), "--confirm-destructive")
	wantSteps(t, v, "")
	mentions(t, v, "in progress, leave it", "have passed of 30m")
	if v.State != "running" || v.ResolvesItself != wedge.Itself || v.Choice != nil {
		t.Errorf("%s", o)
	}
	s.did(t, mark)

	s.c.Kill(cluster.HelmController)
	w.newPod(t)
	v, _ = s.judged(t, 0, wedge.ReleasePending, s.tier())
	wantSteps(t, v, "nudge web, wait web")
	mentions(t, v, "helm-controller has started anew since")
	s.did(t, mark)
	if err := s.c.Start(t.Context(), cluster.HelmController); err != nil {
		t.Fatal(err)
	}
	// It looks at everything when it starts, and unlocks by itself.
	s.untilReady(t, s.hr())
	s.kept(t)
	if got := s.records(t); got != "v1 superseded, v2 deployed" {
		t.Error(got)
	}
	s.healthy(t, s.tier())
}
