// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package e2e

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubestandup/kubestandup/pkg/coldstart"
	"github.com/kubestandup/kubestandup/test/cluster"
)

// TestColdStart_CDI: the repository of incident 2, before it was mended, after
// the split and with a gate, comes up with the real cdi-operator as predicted.
func TestColdStart_CDI(t *testing.T) {
	t.Parallel()
	options := coldOptions()
	options.Components = append(options.Components, cluster.HelmController)
	c := cluster.New(t, options)
	ctx, cancel := context.WithTimeout(t.Context(), 25*time.Minute)
	defer cancel()
	broken := coldMission(t, c, "m1", "mission-before")
	split, gated := coldMission(t, c, "m2", "mission-split"), coldMission(t, c, "m3", "mission-gated")
	w := watchCold(ctx, t, c.Client(), []*coldRepo{broken})
	tally := coldTally{agreed: map[coldstart.Verdict]int{}}

	bootstrap(ctx, t, c, []*coldRepo{coldClock(c), broken})
	if err := w.standstill(ctx, c.Client(), coldAttempts, every); err != nil {
		t.Fatal(err)
	}
	before := w.outcomes(broken)
	if o := before["m1/platform-config"]; o.verdict != coldstart.Never {
		t.Fatalf("CDI and its StorageProfile in one tier, with a cdi-operator that runs: %+v", o)
	}
	p := predict(t, broken)
	p.compare(t, broken, before, before, &tally)

	// On one cluster: neither gets further before there is an operator, and both
	// do with its kinds. Until then one fails and the other waits.
	if err := c.Stop(ctx, cluster.CDIOperator); err != nil {
		t.Fatal(err)
	}
	w.add(split, gated)
	bootstrap(ctx, t, c, []*coldRepo{split, gated})
	if err := w.standstill(ctx, c.Client(), 1, none); err != nil {
		t.Fatal(err)
	}
	before = w.outcomes(split)
	if o := before["m2/storage-profiles"]; o.verdict != coldstart.Never {
		t.Errorf("behind a gate that proves nothing: %+v", o)
	}
	held := w.outcomes(gated)
	if o := held["m3/storage-profiles"]; o.verdict != coldstart.Blocked {
		t.Errorf("behind a gate that proves the kind: %+v", o)
	}
	if err := c.Start(ctx, cluster.CDIOperator); err != nil {
		t.Fatal(err)
	}
	cdi := cdiResource()
	if err := c.Until(ctx, cdi, func() bool {
		phase, _, _ := unstructured.NestedString(cdi.Object, "status", "phase")
		return phase == "Deployed"
	}); err != nil {
		t.Fatal(err)
	}
	w.restart()
	if err := w.standstill(ctx, c.Client(), coldAttempts, every); err != nil {
		t.Fatal(err)
	}
	after := w.outcomes(split)
	if o := after["m2/storage-profiles"]; o.verdict != coldstart.ByRetry {
		t.Errorf("after the split: %+v", o)
	}
	p = predict(t, split)
	p.compare(t, split, before, after, &tally)
	p = predict(t, gated)
	p.compare(t, gated, held, w.outcomes(gated), &tally)
	t.Logf("predicted: %v; %d races ended either way; %d are wrong", tally.agreed, tally.free, tally.wrong)
}

// coldMission is a fixture with the install of the real operator.
func coldMission(t *testing.T, c *cluster.Cluster, id, name string) *coldRepo {
	t.Helper()
	files := readFixture(t, name)
	const operator = "platform/cdi-operator.yaml"
	if files[operator] == "" {
		t.Fatalf("%s has no %s", name, operator)
	}
	install, err := c.CDIInstall()
	if err != nil {
		t.Fatal(err)
	}
	files[operator] = install
	return newColdRepo(id, name, c.RepoURL(id), files)
}
