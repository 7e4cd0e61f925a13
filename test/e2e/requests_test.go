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
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubestandup/kubestandup/test/cluster"
)

// manyTiers are more than what one person looks at.
const manyTiers = 500

// TestRequests: ten tiers and five hundred take the same number of requests,
// but for the further pages of a list. Each tier is built from the artifact of
// a real source, and has an object in its inventory.
//
// kustomize-controller does not run: the test writes the status that it would
// write of tiers that are Ready.
func TestRequests(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, cluster.Options{Components: []cluster.Component{cluster.SourceController}, FluxDeployments: true})
	sh, named := shellFor(t, c), expect(t, c)
	revision := pushMany(t, c)
	commands := map[string][]string{
		"kubectl-tiers":   {"tiers"},
		"kubectl-standup": append([]string{"standup", "preflight"}, named...),
		"verify":          append([]string{"standup", "verify"}, named...),
	}
	requests := map[string][]int{}
	for _, tiers := range []struct{ from, to int }{{0, 10}, {10, manyTiers}} {
		if err := makeReadyTiers(t.Context(), c, revision, tiers.from, tiers.to); err != nil {
			t.Fatal(err)
		}
		for name, command := range commands {
			mark := c.Mark()
			o := sh.want(t, 0, command...)
			plugin := name
			if name != "kubectl-tiers" {
				plugin = "kubectl-standup"
				o.holds(t, o.stdout, fmt.Sprintf("%d of %d Ready", tiers.to, tiers.to))
			}
			all := sent(t, c, mark, plugin)
			first := all.Where(func(e cluster.Event) bool { return !strings.Contains(e.URI, "continue=") })
			requests[name] = append(requests[name], len(first))
			t.Logf("%s of %d tiers: %d requests, and %d further pages, %s", name, tiers.to, len(first), len(all)-len(first), o.took.Round(time.Millisecond))
			if tiers.to == 10 {
				t.Logf("\n%s", all)
			}
		}
	}
	for plugin, counts := range requests {
		if counts[0] != counts[1] || counts[0] == 0 {
			t.Errorf("%s sent %d requests for 10 tiers, and %d for %d", plugin, counts[0], counts[1], manyTiers)
		}
	}
	t.Run("names that are not there", func(t *testing.T) { wrongNames(t, sh) })
}

// pushMany is a source with a folder for each tier.
func pushMany(t *testing.T, c *cluster.Cluster) (revision string) {
	t.Helper()
	names := make([]string, manyTiers)
	for i := range names {
		names[i] = manyName(i)
	}
	revision, err := c.Push(t.Context(), "many", folders(cluster.FluxNamespace, names...), "many tiers")
	if err != nil {
		t.Fatal(err)
	}
	source := &sourcev1.GitRepository{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster.FluxNamespace, Name: "flux-system"},
		Spec: sourcev1.GitRepositorySpec{
			URL: c.RepoURL("many"), Interval: metav1.Duration{Duration: time.Hour}, Reference: &sourcev1.GitRepositoryRef{Branch: "main"},
		},
	}
	if err := c.Client().Create(t.Context(), source); err != nil {
		t.Fatal(err)
	}
	until(t, c, source, func() bool { return source.Status.Artifact != nil && source.Status.Artifact.Revision == revision })
	return revision
}

func manyName(i int) string { return fmt.Sprintf("tier-%03d", i) }

func ready() []metav1.Condition {
	return []metav1.Condition{{
		Type: meta.ReadyCondition, Status: metav1.ConditionTrue, Reason: meta.SucceededReason,
		Message: "written by the test", ObservedGeneration: 1, LastTransitionTime: metav1.Now(),
	}}
}

// makeReadyTiers makes a chain of tiers, from and to as in a slice.
func makeReadyTiers(ctx context.Context, c *cluster.Cluster, revision string, from, to int) error {
	const atOnce = 8
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i := from; i < to; i++ {
		group.Go(func() error {
			made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.FluxNamespace, Name: manyName(i)}}
			if err := c.Client().Create(ctx, made); err != nil {
				return err
			}
			tier := tierOf(cluster.FluxNamespace, manyName(i))
			tier.Spec = kustomizev1.KustomizationSpec{
				Interval: metav1.Duration{Duration: time.Hour}, Path: "./" + manyName(i), Prune: true,
				SourceRef: kustomizev1.CrossNamespaceSourceReference{Kind: "GitRepository", Name: "flux-system"},
			}
			if i > 0 {
				tier.Spec.DependsOn = []kustomizev1.DependencyReference{{Name: manyName(i - 1)}}
			}
			if err := c.Client().Create(ctx, tier); err != nil {
				return err
			}
			tier.Status = kustomizev1.KustomizationStatus{
				ObservedGeneration: 1, Conditions: ready(), LastAppliedRevision: revision, LastAttemptedRevision: revision,
				Inventory: &kustomizev1.ResourceInventory{Entries: []kustomizev1.ResourceRef{{ID: cluster.FluxNamespace + "_" + manyName(i) + "__ConfigMap", Version: "v1"}}},
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
