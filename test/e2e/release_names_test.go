// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package e2e

import (
	"slices"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubestandup/kubestandup/pkg/release"
	"github.com/kubestandup/kubestandup/pkg/wedge"
)

// namedCases are releases whose records are not where one looks first, and sets
// of records that look worse than they are.
func namedCases() []releaseCase {
	return []releaseCase{
		{"HELM12 the records are not in the target namespace", leaveTargeted, mendTargeted},
		{"HELM13 a name longer than 53", leaveLong, mendLong},
		{"HELM14 the records are on another cluster", leaveElsewhere, mendElsewhere},
		{"HELM22 two writers, two deployed revisions", func(t *testing.T, s *releaseScene) {
			s.helm(t, 4, "install", "web", s.chart())
			s.helm(t, 4, "upgrade", "web", s.chart())
			s.rewrite(t, 1, release.Deployed)
			s.remember(t)
		}, mendTwoWriters},
	}
}

// leaveTargeted: the release is called by its target namespace, and another one
// of that name, which does not count, has its records there.
func leaveTargeted(t *testing.T, s *releaseScene) {
	target := s.ns + "-to"
	s.apply(t, "{apiVersion: v1, kind: Namespace, metadata: {name: "+target+"}}")
	s.release(t, "targetNamespace: "+target)
	name := target + "-web"
	s.helm(t, 4, "history", name) // in the namespace of the HelmRelease
	if _, err := s.c.Helm(t.Context(), 4, "install", name, s.chart(), "-n", target, "--set", "extra=", "--take-ownership"); err != nil {
		t.Fatal(err)
	}
	hook := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: name + "-hook"}}
	if err := s.c.HelmKilled(t.Context(), 4, client.ObjectKey{Namespace: s.ns, Name: recordName(name, 2)}, "pending-upgrade", hook,
		"upgrade", name, s.chart(), "-n", s.ns, "--set", "hook=pre-upgrade", "--timeout", "1h"); err != nil {
		t.Fatal(err)
	}
}

func mendTargeted(t *testing.T, s *releaseScene) {
	target := s.ns + "-to"
	name := target + "-web"
	v, _ := s.judged(t, 0, wedge.ReleasePending, s.tier(), "--apply")
	wantSteps(t, v, "nudge web, wait web")
	mentions(t, v, "release "+name+" is left in pending-upgrade", s.ns+" counts; the records of the same name in namespace "+target+" do not")
	for _, e := range v.Evidence {
		if e.Object.Kind == "Secret" && e.Object.Namespace != s.ns {
			t.Errorf("%s is not the record that counts", e.Object)
		}
	}
	s.untilReady(t, s.hr())
	if got := s.recordsOf(t, name); got != "v1 superseded, v2 failed, v3 deployed" {
		t.Error(got)
	}
	s.healthy(t, s.tier())
}

const (
	longTarget = "a-target-999"                                  // 12 characters
	longName   = "a-helm-release-with-a-name-of-45-characters-0" // and its neighbour ends in 1
)

// leaveLong has two releases whose names begin with the same 40 characters.
func leaveLong(t *testing.T, s *releaseScene) {
	s.apply(t, "{apiVersion: v1, kind: Namespace, metadata: {name: "+longTarget+"}}")
	for _, hr := range s.long() {
		s.apply(t, helmRelease(s.ns, hr.Name, "targetNamespace: "+longTarget))
		s.untilReady(t, hr)
	}
	name := release.ShortenName(longTarget + "-" + longName)
	if len(name) != 53 || !strings.HasPrefix(name, (longTarget + "-" + longName)[:40]+"-") {
		t.Fatal(name)
	}
	hook := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: name + "-hook"}}
	if err := s.c.HelmKilled(t.Context(), 4, client.ObjectKey{Namespace: s.ns, Name: recordName(name, 2)}, "pending-upgrade", hook,
		"upgrade", name, s.chart(), "-n", s.ns, "--set", "hook=pre-upgrade", "--timeout", "1h"); err != nil {
		t.Fatal(err)
	}
}

func (s *releaseScene) long() []*helmv2.HelmRelease {
	var all []*helmv2.HelmRelease
	for _, end := range []string{"0", "1"} {
		all = append(all, &helmv2.HelmRelease{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: strings.TrimSuffix(longName, "0") + end}})
	}
	return all
}

func mendLong(t *testing.T, s *releaseScene) {
	mark := s.c.Mark()
	plan, o := s.unwedge(t, 0, "-n", s.ns)
	if len(plan.Verdicts) != 1 || plan.Verdicts[0].Object.Name != longName || plan.Verdicts[0].Cause != wedge.ReleasePending {
		t.Fatalf("%s", o)
	}
	s.unwedge(t, 0, "-n", s.ns, "--apply")
	s.did(t, mark, "patch helmreleases/"+longName)
	s.untilReady(t, s.long()[0])
	if plan, o = s.unwedge(t, 0, "-n", s.ns); len(plan.Verdicts) > 0 {
		t.Errorf("%s", o)
	}
}

// leaveElsewhere has a kubeconfig that leads nowhere, and records of the same
// name on this cluster.
func leaveElsewhere(t *testing.T, s *releaseScene) {
	s.killed(t, 4, 1, "pending-install", "install", "web", s.chart(), "--set", "hook=post-install")
	s.remember(t)
	s.apply(t, "{apiVersion: v1, kind: Secret, metadata: {name: other, namespace: "+s.ns+"}, stringData: {value: \"no kubeconfig\"}}\n",
		helmRelease(s.ns, "web", "kubeConfig: {secretRef: {name: other}}"))
	hr := s.hr()
	if err := s.c.Until(t.Context(), hr, func() bool {
		return slices.ContainsFunc(hr.Status.Conditions, func(c metav1.Condition) bool { return c.Type == "Ready" && c.Status == "False" })
	}); err != nil {
		t.Fatal(err)
	}
}

func mendElsewhere(t *testing.T, s *releaseScene) {
	mark := s.c.Mark()
	v, _ := s.judged(t, 0, wedge.ReleaseElsewhere, s.tier(), "--confirm-destructive")
	wantSteps(t, v, "")
	mentions(t, v, "its records are on the cluster that spec.kubeConfig names")
	s.did(t, mark)
	for _, e := range sent(t, s.c, mark, "kubectl-unwedge") {
		if e.Resource == "secrets" && e.Name == "other" {
			t.Errorf("its kubeconfig was read: %s", e)
		}
	}
	s.kept(t)
}

// mendTwoWriters: Helm takes the newest, so there is nothing to clean.
func mendTwoWriters(t *testing.T, s *releaseScene) {
	mark := s.c.Mark()
	s.healthy(t, s.record(1))
	plan, o := s.unwedge(t, 0, "-n", s.ns, old, "--confirm-destructive")
	if len(plan.Verdicts) > 0 {
		t.Errorf("%s", o)
	}
	s.did(t, mark)
	s.kept(t)
	s.helm(t, 4, "upgrade", "web", s.chart())
}
