// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubestandup/kubestandup/test/cluster"
)

const readyRevision = "main@sha1:2134497e9a78fa4326d2b6be25f1f77929c01f04"

// TestRequests: ten tiers and five hundred take the same number of requests.
//
// No controller runs: the test writes the status that they would write of
// sources and tiers which are Ready.
func TestRequests(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, cluster.Options{Components: []cluster.Component{}, FluxDeployments: true})
	sh, named := shellFor(t, c), expect(t, c)
	if err := makeReadySource(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	commands := map[string][]string{
		"kubectl-tiers":   {"tiers"},
		"kubectl-standup": append([]string{"standup", "preflight"}, named...),
	}
	requests := map[string][]int{}
	for _, tiers := range []struct{ from, to int }{{0, 10}, {10, 500}} {
		if err := makeReadyTiers(t.Context(), c, tiers.from, tiers.to); err != nil {
			t.Fatal(err)
		}
		for plugin, command := range commands {
			mark := c.Mark()
			o := sh.want(t, 0, command...)
			if plugin == "kubectl-standup" {
				o.holds(t, o.stdout, fmt.Sprintf("%d of %d Ready", tiers.to, tiers.to))
			}
			all := sent(t, c, mark, plugin)
			requests[plugin] = append(requests[plugin], len(all))
			t.Logf("%s of %d tiers: %d requests, %s", plugin, tiers.to, len(all), o.took.Round(time.Millisecond))
			if tiers.to == 10 {
				t.Logf("\n%s", all)
			}
		}
	}
	for plugin, counts := range requests {
		if counts[0] != counts[1] || counts[0] == 0 {
			t.Errorf("%s sent %d requests for 10 tiers, and %d for 500", plugin, counts[0], counts[1])
		}
	}
	t.Run("names that are not there", func(t *testing.T) { wrongNames(t, sh) })
}

func ready() []metav1.Condition {
	return []metav1.Condition{{
		Type: meta.ReadyCondition, Status: metav1.ConditionTrue, Reason: meta.SucceededReason,
		Message: "written by the test", ObservedGeneration: 1, LastTransitionTime: metav1.Now(),
	}}
}

func makeReadySource(ctx context.Context, c *cluster.Cluster) error {
	source := &sourcev1.GitRepository{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster.FluxNamespace, Name: "flux-system"},
		Spec:       sourcev1.GitRepositorySpec{URL: "https://git.example.com/gitops", Interval: metav1.Duration{Duration: time.Hour}},
	}
	if err := c.Client().Create(ctx, source); err != nil {
		return err
	}
	source.Status = sourcev1.GitRepositoryStatus{
		ObservedGeneration: 1, Conditions: ready(),
		Artifact: &meta.Artifact{
			Path: "x.tar.gz", URL: "http://source-controller.flux-system.svc.cluster.local./x.tar.gz", Revision: readyRevision,
			Digest: "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", LastUpdateTime: metav1.Now(),
		},
	}
	return c.Client().Status().Update(ctx, source)
}

// makeReadyTiers makes a chain of tiers, from and to as in a slice.
func makeReadyTiers(ctx context.Context, c *cluster.Cluster, from, to int) error {
	const atOnce = 8
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i := from; i < to; i++ {
		group.Go(func() error {
			tier := tierOf(cluster.FluxNamespace, fmt.Sprintf("tier-%03d", i))
			tier.Spec = kustomizev1.KustomizationSpec{
				Interval: metav1.Duration{Duration: time.Hour}, Path: "./", Prune: true,
				SourceRef: kustomizev1.CrossNamespaceSourceReference{Kind: "GitRepository", Name: "flux-system"},
			}
			if i > 0 {
				tier.Spec.DependsOn = []kustomizev1.DependencyReference{{Name: fmt.Sprintf("tier-%03d", i-1)}}
			}
			if err := c.Client().Create(ctx, tier); err != nil {
				return err
			}
			tier.Status = kustomizev1.KustomizationStatus{
				ObservedGeneration: 1, Conditions: ready(), LastAppliedRevision: readyRevision, LastAttemptedRevision: readyRevision,
			}
			return c.Client().Status().Update(ctx, tier)
		})
	}
	return group.Wait()
}

// wrongNames: a name that is not there is answered with those that look like it.
func wrongNames(t *testing.T, sh *shell) {
	for _, tt := range []struct{ command, name, says string }{
		{"tiers", "tier-0012", `tier "tier-0012" does not exist: did you mean ks/flux-system/tier-001`},
		{"tiers why", "teir-499", `tier "teir-499" does not exist: did you mean ks/flux-system/tier-499`},
		{"tiers --wait", "storage", "tier \"storage\" does not exist (`kubectl tiers --releases` lists all that do)"},
	} {
		o := sh.want(t, 1, append(strings.Fields(tt.command), tt.name)...)
		o.holds(t, o.stderr, "error: "+tt.says)
		oneSentence(t, o, 2)
		if o.stdout != "" {
			t.Errorf("%s\nwant nothing on stdout", o)
		}
	}
	o := sh.want(t, 2, "tiers", "a/b/c/d")
	o.holds(t, o.stderr, `"a/b/c/d" names no tier: write NAME, ks/NAME, hr/NAME, or with its namespace ks/NAMESPACE/NAME`)
}
