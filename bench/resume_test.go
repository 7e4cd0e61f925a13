// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package bench

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubestandup/kubestandup/test/cluster"
)

// chainLength is that of the chain of MISSION.md.
const chainLength = 12

// BenchmarkResume brings a suspended chain of twelve tiers up: a root and the
// eleven that it applies, each one ConfigMap behind the one before, and each
// waiting for what it applies. The root does not: kustomize-controller looks at
// children every five seconds, which nobody can hasten. Beside it runs Flux alone: the same chain, all resumed at once, where each
// tier looks at its dependency every 30 seconds. The sum of what the tiers'
// reconciles take by themselves is what nobody can go below.
func BenchmarkResume(b *testing.B) {
	c := cluster.New(b, cluster.Options{Components: []cluster.Component{cluster.SourceController, cluster.KustomizeController}})
	standup := buildPlugin(b, "kubectl-standup")
	uid, err := c.UID(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	var ours, theirs, own []time.Duration
	pass := 0
	for b.Loop() {
		pass++
		with := newChain(b, c, fmt.Sprintf("ours-%d", pass))
		ours = append(ours, run(b, c, standup, "resume", "--expect-server", c.URL(), "--expect-uid", uid).took)
		with.wantReady(b)
		own = append(own, with.own(b))
		with.delete(b)

		alone := newChain(b, c, fmt.Sprintf("alone-%d", pass))
		began := time.Now()
		alone.resume(b)
		alone.untilReady(b)
		theirs = append(theirs, time.Since(began))
		alone.delete(b)
	}
	us, them, least := middle(ours), middle(theirs), middle(own)
	b.ReportMetric(us.Seconds(), "s/resume")
	b.ReportMetric(them.Seconds(), "s/flux-alone")
	b.ReportMetric(least.Seconds(), "s/own-reconciles")
	b.ReportMetric(them.Seconds()/us.Seconds(), "times-faster")
	b.ReportMetric(us.Seconds()/least.Seconds(), "times-own-reconciles")
	b.ReportMetric(0, "ns/op")
}

func middle(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

// chain is a suspended chain in a namespace.
type chain struct {
	c  *cluster.Cluster
	ns string
}

func (h *chain) tier(i int) *kustomizev1.Kustomization {
	name := "root"
	if i > 0 {
		name = fmt.Sprintf("tier-%02d", i)
	}
	return &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: h.ns, Name: name}}
}

func (h *chain) manifest(i int, wait bool) string {
	depends := ""
	if i > 1 {
		depends = fmt.Sprintf("  dependsOn: [{name: %s}]\n", h.tier(i-1).Name)
	}
	return fmt.Sprintf(`apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: %[1]s, namespace: %[2]s}
spec:
  interval: 1h
  retryInterval: 1m
  timeout: 5m
  path: ./%[1]s
  prune: true
  wait: %[4]t
  sourceRef: {kind: GitRepository, name: source}
%[3]s`, h.tier(i).Name, h.ns, depends, wait)
}

// newChain makes the chain as `flux suspend` would leave it before any of its
// tiers came up, its root apart.
func newChain(b *testing.B, c *cluster.Cluster, ns string) *chain {
	b.Helper()
	h := &chain{c, ns}
	files, tiers := cluster.Files{}, []string{}
	for i := range chainLength {
		name := h.tier(i).Name
		files[name+"/cm.yaml"] = fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: %s}}\n", name, ns)
		if i > 0 {
			tiers = append(tiers, h.manifest(i, true))
		}
	}
	files["root/tiers.yaml"] = strings.Join(tiers, "---\n")
	must := func(err error) {
		if err != nil {
			b.Helper()
			b.Fatal(err)
		}
	}
	_, err := c.Push(b.Context(), ns, files, "a chain")
	must(err)
	// The tiers come suspended, which git does not say.
	suspended := []string{fmt.Sprintf(`{apiVersion: v1, kind: Namespace, metadata: {name: %[1]s}}
---
{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {name: source, namespace: %[1]s}, spec: {interval: 1h, url: %[2]q, ref: {branch: main}}}
`, ns, c.RepoURL(ns))}
	for i := range chainLength {
		if i > 0 {
			suspended = append(suspended, h.manifest(i, true)+"  suspend: true\n")
		}
	}
	suspended = append(suspended, h.manifest(0, false))
	must(c.Apply(b.Context(), strings.Join(suspended, "---\n")))
	h.until(b, 0)
	must(c.Client().Patch(b.Context(), h.tier(0), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"suspend":true}}`)), client.FieldOwner("flux")))
	return h
}

func (h *chain) until(b *testing.B, i int) *kustomizev1.Kustomization {
	b.Helper()
	tier := h.tier(i)
	if err := h.c.Until(b.Context(), tier, func() bool {
		return tier.Status.ObservedGeneration == tier.Generation && apimeta.IsStatusConditionTrue(tier.Status.Conditions, meta.ReadyCondition)
	}); err != nil {
		b.Fatal(err)
	}
	return tier
}

// resume is `flux resume` of all tiers at once.
func (h *chain) resume(b *testing.B) {
	b.Helper()
	for i := range chainLength {
		if err := h.c.Client().Patch(b.Context(), h.tier(i), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"suspend":false}}`)), client.FieldOwner("flux")); err != nil {
			b.Fatal(err)
		}
	}
}

// untilReady waits for one after the other: no wait for a single one is longer
// than a test waits for an event.
func (h *chain) untilReady(b *testing.B) {
	b.Helper()
	for i := 1; i < chainLength; i++ {
		h.until(b, i)
	}
	h.until(b, 0)
}

func (h *chain) wantReady(b *testing.B) {
	b.Helper()
	for i := range chainLength {
		tier := h.tier(i)
		if err := h.c.Client().Get(b.Context(), client.ObjectKeyFromObject(tier), tier); err != nil {
			b.Fatal(err)
		}
		if tier.Spec.Suspend || !apimeta.IsStatusConditionTrue(tier.Status.Conditions, meta.ReadyCondition) {
			b.Fatalf("%s is not Ready after resume", tier.Name)
		}
	}
}

// own is the sum of what the reconciles took by themselves, as their controller
// measured them.
func (h *chain) own(b *testing.B) time.Duration {
	b.Helper()
	var sum time.Duration
	for i := range chainLength {
		tier := h.until(b, i)
		if len(tier.Status.History) > 0 {
			sum += tier.Status.History[0].LastReconciledDuration.Duration
		}
	}
	return sum
}

// delete removes the chain: resume is about all tiers of a cluster.
func (h *chain) delete(b *testing.B) {
	b.Helper()
	for i := range chainLength {
		if err := client.IgnoreNotFound(h.c.Client().Delete(b.Context(), h.tier(i))); err != nil {
			b.Fatal(err)
		}
	}
	for i := range chainLength {
		if err := h.c.UntilGone(b.Context(), h.tier(i)); err != nil {
			b.Fatal(err)
		}
	}
}
