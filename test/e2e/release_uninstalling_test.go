// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubestandup/kubestandup/pkg/wedge"
)

// failsAndUninstalls is an upgrade of which a failure deletes everything.
const failsAndUninstalls = "upgrade: {timeout: 3s, remediation: {retries: 1, strategy: uninstall}}"

// uninstallingCases are releases that somebody began to uninstall, while their
// HelmRelease wants them.
func uninstallingCases() []releaseCase {
	cases := []releaseCase{
		{"uninstalling, StateError with history: finish", leaveStateError, mendStateError},
		{"uninstalling, an upgrade that fails would uninstall", func(t *testing.T, s *releaseScene) {
			s.release(t, values("hook", "pre-delete"), failsAndUninstalls)
			s.remember(t)
			s.killed(t, 4, 1, "uninstalling", "uninstall", "web")
		}, mendNotKept},
	}
	for _, major := range []int{3, 4} {
		by := fmt.Sprintf(", Helm %d", major)
		leave := func(t *testing.T, s *releaseScene) {
			s.release(t, values("hook", "pre-delete"))
			s.remember(t)
			s.killed(t, major, 1, "uninstalling", "uninstall", "web")
			s.nudge(t)
			s.untilSays(t, "Ready", "False", "UpgradeFailed", "has no deployed releases")
		}
		cases = append(cases,
			releaseCase{"uninstalling, no deployed releases: keep" + by, leave, mendKept},
			releaseCase{"uninstalling, no deployed releases: finish" + by, leave, mendFinished},
		)
	}
	return cases
}

// mendKept: the record is marked failed, the next reconcile upgrades in place,
// and nothing is recreated.
func mendKept(t *testing.T, s *releaseScene) {
	mark := s.c.Mark()
	// A choice that was not made is nobody's to make.
	v, o := s.judged(t, 6, wedge.ReleaseUninstalling, s.tier(), "--confirm-destructive")
	if v.Choice == nil || len(v.Choice.Options) != 2 || len(v.Actions) > 0 {
		t.Fatalf("%s", o)
	}
	o.holds(t, o.stderr, "--uninstalling=finish --confirm-destructive", "--uninstalling=keep --confirm-destructive", "--expect-server "+s.c.URL())
	s.judged(t, 6, wedge.ReleaseUninstalling, s.tier(), "--uninstalling=keep")
	s.judged(t, 6, wedge.ReleaseUninstalling, s.tier(), "--uninstalling=keep", "--apply")
	s.did(t, mark)

	v, _ = s.judged(t, 0, wedge.ReleaseUninstalling, s.tier(), "--uninstalling=keep", "--confirm-destructive")
	wantSteps(t, v, "suspend web, mark-failed! v1, resume web, wait web")
	s.did(t, mark, "patch helmreleases/web", "patch secrets/v1", "patch helmreleases/web")
	s.kept(t)
	s.untilReady(t, s.hr())
	if got := s.records(t); got != "v1 superseded, v2 deployed" {
		t.Errorf("%s: its history is lost", got)
	}
	s.notOurs(t)
	s.healthy(t, s.tier())
}

// notOurs: a repair leaves neither its mark nor a suspension.
func (s *releaseScene) notOurs(t *testing.T) {
	t.Helper()
	hr := s.hr()
	if err := s.c.Client().Get(t.Context(), client.ObjectKeyFromObject(hr), hr); err != nil {
		t.Fatal(err)
	}
	if hr.Spec.Suspend || hr.Annotations["kubestandup.dev/unwedge"] != "" {
		t.Errorf("suspend is %v, annotations are %v", hr.Spec.Suspend, hr.Annotations)
	}
}

// mendFinished: what is left is deleted in Helm's order, then the records, and
// helm-controller installs anew.
func mendFinished(t *testing.T, s *releaseScene) {
	mark := s.c.Mark()
	v, _ := s.judged(t, 0, wedge.ReleaseUninstalling, s.tier(), "--uninstalling=finish", "--confirm-destructive")
	wantSteps(t, v, "suspend web, delete! web, delete! web, delete! web, wait web, delete! v1, resume web, wait web")
	s.did(t, mark, "patch helmreleases/web", "delete services/web", "delete configmaps/web", "delete serviceaccounts/web",
		"delete secrets/v1", "patch helmreleases/web")
	for i := range v.Actions {
		if a := &v.Actions[i]; a.Destructive && !strings.HasPrefix(a.Backup, s.backups+"/") {
			t.Errorf("%s %s has no backup: %q", a.Verb, a.Object, a.Backup)
		}
	}
	s.reinstalled(t)
}

// reinstalled: everything is new but what the chart says to keep.
func (s *releaseScene) reinstalled(t *testing.T) {
	t.Helper()
	s.untilReady(t, s.hr())
	live := s.live(t)
	for name, uid := range s.uids {
		if (live[name] == uid) != (name == "kept") || live[name] == "" {
			t.Errorf("%s was %s, and is %q", name, uid, live[name])
		}
	}
	if got := s.records(t); got != "v1 deployed" {
		t.Error(got)
	}
	s.notOurs(t)
	s.healthy(t, s.tier())
}

// leaveStateError: the remediation of a failed install is an uninstall, whose
// hook does not end. helm-controller remembers the record as it is.
func leaveStateError(t *testing.T, s *releaseScene) {
	s.apply(t, helmRelease(s.ns, "web", "install: {timeout: 3s, remediation: {retries: 1}}", failsToUninstall, values("hook", "pre-delete", "extra", slowDeployment)))
	s.untilSays(t, "Ready", "False", "StateError", "unable to determine state for release with status 'uninstalling'")
	s.remember(t)
}

func mendStateError(t *testing.T, s *releaseScene) {
	// The cause of the first failure is gone by now: the Pods run from here on.
	if err := s.c.MarkAvailable(t.Context(), s.ns, "slow"); err != nil {
		t.Fatal(err)
	}
	s.patch(t, `{"spec":{"install":{"timeout":"1m"}}}`)
	s.untilSays(t, "Ready", "False", "StateError", "")
	mark := s.c.Mark()
	v, _ := s.judged(t, 0, wedge.ReleaseUninstalling, s.tier())
	mentions(t, v, "False StateError: ")
	if keep := v.Choice.Options[1]; keep.Value != "keep" || keep.Refused != "" {
		t.Errorf("%+v", keep)
	}
	s.did(t, mark)
	s.judged(t, 0, wedge.ReleaseUninstalling, s.tier(), "--uninstalling=finish", "--confirm-destructive")
	s.did(t, mark, "patch helmreleases/web", "delete services/web", "delete deployments/slow", "delete configmaps/web", "delete serviceaccounts/web",
		"delete secrets/v1", "patch helmreleases/web")
	s.reinstalled(t)
}

// mendNotKept: to keep is refused where helm-controller would uninstall the
// release when the upgrade fails, and it is shown that it does.
func mendNotKept(t *testing.T, s *releaseScene) {
	// Today's values can not come up.
	s.patch(t, fmt.Sprintf(`{"spec":{"values":{"hook":"","extra":%q}}}`, slowDeployment))
	s.untilSays(t, "Ready", "False", "UpgradeFailed", "has no deployed releases")
	mark := s.c.Mark()
	v, o := s.judged(t, 6, wedge.ReleaseUninstalling, s.tier(), "--uninstalling=keep", "--confirm-destructive")
	wantSteps(t, v, "")
	mentions(t, v, "upgrade.remediation.strategy: uninstall, so an upgrade that fails would delete all of it", "--allow hr/"+s.ns+"/web")
	o.holds(t, o.stderr, "would delete all of it")
	s.did(t, mark)
	s.kept(t)

	v, _ = s.judged(t, 1, wedge.ReleaseUninstalling, s.tier(), "--uninstalling=keep", "--confirm-destructive", "--allow", s.tier())
	wantSteps(t, v, "suspend web, mark-failed! v1, resume web, wait web")
	if v.Actions[2].Result != wedge.Done {
		t.Fatalf("%+v", v.Actions)
	}
	// What is there by then was installed anew.
	for _, name := range []string{"ConfigMap", "Service", "ServiceAccount"} {
		o := s.objects()[name]
		if err := s.c.Until(t.Context(), o, func() bool { return o.GetUID() != s.uids[name] }); err != nil {
			t.Error(err)
		}
	}
}
