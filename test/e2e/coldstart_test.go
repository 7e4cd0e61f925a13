// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package e2e

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubestandup/kubestandup/pkg/coldstart"
	"github.com/kubestandup/kubestandup/test/cluster"
)

const (
	coldGenerated = 16
	// coldRetry is how often everything that failed or waits is tried again.
	coldRetry = "12s"
	// coldRequeue is how often it is looked whether a dependency is Ready.
	coldRequeue = "10s"
	// coldTick is between two ticks of the clock: three are longer than the time
	// between two looks, and four than that between two attempts.
	coldTick = "4s"
	// coldAttempts are those that a tier must have begun, and failed, after the last
	// thing of its repository that came to be. One would do if nothing was forgotten
	// of what may let a tier go on.
	coldAttempts = 2
	clockRepo    = "clock"
)

// TestColdStart: many repositories come up at once on one empty control plane,
// and what was predicted of each tier is what happens.
func TestColdStart(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, coldOptions())
	repos := slices.Concat(coldFixtures(t, c), coldSeeds(t, c.RepoURL))
	ctx, cancel := context.WithTimeout(t.Context(), 25*time.Minute)
	defer cancel()

	began := time.Now()
	w := watchCold(ctx, t, c.Client(), repos)
	bootstrap(ctx, t, c, append(slices.Clone(repos), coldClock(c)))
	t.Logf("%s: pushed", time.Since(began).Round(time.Second))
	// Without helm-controller: so that what needs a chart's kinds and does not
	// wait for them has failed before they come.
	if err := w.standstill(ctx, c.Client(), 1, w.withoutReleases); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: standstill", time.Since(began).Round(time.Second))
	before := map[string]map[string]coldOutcome{}
	for _, r := range repos {
		before[r.id] = w.outcomes(r)
	}
	if err := c.Start(ctx, cluster.HelmController); err != nil {
		t.Fatal(err)
	}
	w.restart()
	if err := w.standstill(ctx, c.Client(), coldAttempts, every); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: end", time.Since(began).Round(time.Second))
	tally := coldTally{agreed: map[coldstart.Verdict]int{}}
	for _, r := range repos {
		t.Run(r.name, func(t *testing.T) {
			p := predict(t, r)
			p.compare(t, r, before[r.id], w.outcomes(r), &tally)
		})
	}
	if someFixtures() {
		return
	}
	for verdict, least := range map[coldstart.Verdict]int{coldstart.AtOnce: 50, coldstart.ByRetry: 12, coldstart.Never: 25, coldstart.Blocked: 20} {
		if tally.agreed[verdict] < least {
			t.Errorf("%d tiers were predicted %s, which proves little: want %d", tally.agreed[verdict], verdict, least)
		}
	}
	t.Logf("%d repositories, predicted: %v; %d races ended either way; %d are wrong", len(repos), tally.agreed, tally.free, tally.wrong)
}

// coldOptions are a control plane on which retries come in seconds, and nothing
// waits for its turn behind a health check of another repository.
func coldOptions() cluster.Options {
	many := []string{"--concurrent=120", "--kube-api-qps=1000", "--kube-api-burst=2000", "--requeue-dependency=" + coldRequeue}
	return cluster.Options{
		Components: cluster.DefaultComponents(),
		Kubelet:    true,
		Args: map[cluster.Component][]string{
			cluster.APIServer:           {"--enable-admission-plugins=ServiceAccount"}, // as in any cluster
			cluster.SourceController:    {"--concurrent=8", "--kube-api-qps=500", "--kube-api-burst=1000"},
			cluster.KustomizeController: many,
			cluster.HelmController:      append([]string{"--max-retry-delay=4s"}, many...),
		},
	}
}

// coldClock is a tier that fails for ever: each of its attempts is a tick.
func coldClock(c *cluster.Cluster) *coldRepo {
	r := newColdRepo(clockRepo, "the clock", c.RepoURL(clockRepo), cluster.Files{
		gotkSync:               generate(0)[gotkSync],
		"clusters/test/a.yaml": "apiVersion: nobody.example.com/v1\nkind: Nothing\nmetadata: {name: a}\n",
	})
	r.files[gotkSync] = strings.ReplaceAll(r.files[gotkSync], "retryInterval: "+coldRetry, "retryInterval: "+coldTick)
	return r
}

// bootstrap pushes the repositories and then, with all of their sources
// fetched, makes all of their roots.
func bootstrap(ctx context.Context, t *testing.T, c *cluster.Cluster, repos []*coldRepo) {
	t.Helper()
	for _, r := range repos {
		if _, err := c.Push(ctx, r.id, r.files, r.name); err != nil {
			t.Fatal(err)
		}
		source, _ := r.root(t)
		first := []string{object("v1", "Namespace", "", r.id), source, r.files[byHand]}
		if err := c.Apply(ctx, strings.Join(first, "---\n")); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range repos {
		source := &sourcev1.GitRepository{ObjectMeta: metav1.ObjectMeta{Namespace: r.id, Name: "flux-system"}}
		if err := c.Until(ctx, source, func() bool { return source.Status.Artifact != nil }); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range repos {
		_, kustomization := r.root(t)
		if err := c.Apply(ctx, kustomization); err != nil {
			t.Fatal(err)
		}
	}
}
