// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package e2e

import (
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/kubestandup/kubestandup/test/cluster"
)

// releaseRequests: of each release one record is read, that of the highest
// revision, however many there are.
func releaseRequests(t *testing.T, c *cluster.Cluster) {
	const releases, revisions = 5, 10
	raw, err := os.ReadFile("../../pkg/release/testdata/records/helm4/web.v2.deployed.json")
	if err != nil {
		t.Fatal(err)
	}
	var record corev1.Secret
	if err := yaml.Unmarshal(raw, &record); err != nil {
		t.Fatal(err)
	}
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
}
