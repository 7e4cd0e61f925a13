// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package e2e

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/fluxcd/pkg/apis/meta"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kubestandup/kubestandup/test/cluster"
)

// plainReleases are releases of plain Helm, each in its namespace.
const plainReleases = 5

// recordFile is a record that the real Helm 4 has written.
func recordFile(t *testing.T, name string) *corev1.Secret {
	t.Helper()
	raw, err := os.ReadFile("../../pkg/release/testdata/records/helm4/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var record corev1.Secret
	if err := yaml.Unmarshal(raw, &record); err != nil {
		t.Fatal(err)
	}
	return &record
}

// releaseRequests: of each release one record is read, that of the highest
// revision, however many there are.
func releaseRequests(t *testing.T, c *cluster.Cluster) {
	const releases, revisions = plainReleases, 10
	record := recordFile(t, "web.v2.deployed")
	for i := range releases {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("app-%d", i)}}
		if err := c.Client().Create(t.Context(), ns); err != nil {
			t.Fatal(err)
		}
		for n := 1; n <= revisions; n++ {
			s := corev1.Secret{Type: record.Type, Data: record.Data}
			s.ObjectMeta = metav1.ObjectMeta{
				Namespace: ns.Name, Name: recordName("web", n), Labels: record.Labels,
			}
			if err := c.Client().Create(t.Context(), &s); err != nil {
				t.Fatal(err)
			}
		}
	}
	mark := c.Mark()
	o := shellFor(t, c).want(t, 0, "unwedge")
	o.holds(t, o.stderr, "Nothing is wedged.")
	gets := sent(t, c, mark, "kubectl-unwedge").Where(func(e cluster.Event) bool { return e.Resource == "secrets" && e.Verb == "get" })
	if len(gets) != releases {
		t.Errorf("%d records were read of %d releases:\n%s", len(gets), releases, gets)
	}
	for _, e := range gets {
		if want := fmt.Sprintf(".v%d", revisions); e.Name[len(e.Name)-len(want):] != want {
			t.Errorf("read %s", e.Name)
		}
	}
	t.Logf("%d releases of %d revisions: %d requests, %s", releases, revisions, len(sent(t, c, mark, "kubectl-unwedge")), o.took.Round(time.Millisecond))
	namedRequests(t, c)
}

// namedRequests: who asks about one release gets it alone looked at, however
// many are wedged. helm-controller does not run: the test writes the status that
// it has while it fails on such a release.
func namedRequests(t *testing.T, c *cluster.Cluster) {
	sh := shellFor(t, c)
	commands := map[string][]string{
		"its name":      {"unwedge", "hr/stuck-00/leaving"},
		"its record":    {"unwedge", "release/stuck-00/leaving"},
		"its namespace": {"unwedge", "-n", "stuck-00"},
		"all":           {"unwedge"},
	}
	requests := map[string][]int{}
	for _, stuck := range []struct{ from, to int }{{0, 1}, {1, 12}} {
		for i := stuck.from; i < stuck.to; i++ {
			leaveStuck(t, c, fmt.Sprintf("stuck-%02d", i))
		}
		for by, command := range commands {
			mark := c.Mark()
			o := sh.want(t, 0, command...)
			o.holds(t, o.stdout, "HelmRelease/stuck-00/leaving: ", "(release-uninstalling)")
			if by == "its namespace" && stuck.to > 1 {
				o.holds(t, o.stderr, fmt.Sprintf("not looked at: %d releases in other namespaces", stuck.to-1+plainReleases))
			}
			requests[by] = append(requests[by], len(sent(t, c, mark, "kubectl-unwedge")))
		}
	}
	t.Logf("requests for 1 release that is wedged, and for 12: %v", requests)
	for by, n := range requests {
		if grows := n[1] > n[0]; grows != (by == "all") {
			t.Errorf("by %s, %d requests were sent while 1 release was wedged, and %d while 12 were", by, n[0], n[1])
		}
	}
}

// leaveStuck makes a release whose uninstallation nobody ends.
func leaveStuck(t *testing.T, c *cluster.Cluster, namespace string) {
	t.Helper()
	record := recordFile(t, "leaving.v1.uninstalling")
	record.ObjectMeta = metav1.ObjectMeta{Namespace: namespace, Name: record.Name, Labels: record.Labels}
	hr := &helmv2.HelmRelease{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "leaving"},
		Spec: helmv2.HelmReleaseSpec{
			Interval: metav1.Duration{Duration: time.Hour},
			ChartRef: &helmv2.CrossNamespaceSourceReference{Kind: "OCIRepository", Name: "none"},
		},
	}
	for _, obj := range []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, record, hr} {
		if err := c.Client().Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	hr.Status.ObservedGeneration = hr.Generation
	hr.Status.Conditions = []metav1.Condition{{
		Type: meta.ReadyCondition, Status: metav1.ConditionFalse, Reason: helmv2.UpgradeFailedReason, ObservedGeneration: hr.Generation,
		Message: `Helm upgrade failed for release: "leaving" has no deployed releases`, LastTransitionTime: metav1.Now(),
	}}
	if err := c.Client().Status().Update(t.Context(), hr); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Client().Delete(context.WithoutCancel(t.Context()), hr); err != nil {
			t.Error(err)
		}
	})
}
