// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package tiers_test

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/tiers"
)

const (
	v1  = "kustomize.toolkit.fluxcd.io/v1"
	rev = "main@sha1:aaaa"
)

func ks(name string) flux.Ref {
	return flux.Ref{APIVersion: v1, Kind: "Kustomization", Namespace: "flux-system", Name: name}
}

func hr(name string) flux.Ref {
	return flux.Ref{APIVersion: "helm.toolkit.fluxcd.io/v2", Kind: "HelmRelease", Namespace: "flux-system", Name: name}
}

func git(name string) flux.Ref {
	return flux.Ref{Kind: "GitRepository", Namespace: "flux-system", Name: name}
}

// cluster is a snapshot in the making.
type cluster struct{ flux.Snapshot }

func newCluster(t ...flux.Tier) *cluster {
	c := &cluster{}
	for _, kind := range []string{"Kustomization", "HelmRelease", "GitRepository", "HelmChart"} {
		c.Served = append(c.Served, flux.Resource{Kind: kind})
	}
	c.Tiers = t
	c.source("flux-system", rev)
	return c
}

func (c *cluster) source(name, revision string) *cluster {
	s := flux.Source{Ref: git(name)}
	if revision != "" {
		s.Artifact = &flux.Artifact{Revision: revision}
	}
	c.Sources = append(c.Sources, s)
	return c
}

func (c *cluster) graph() *tiers.Graph { return tiers.Build(&c.Snapshot, tiers.Options{}) }

// tier is a Kustomization that has not been reconciled yet.
func tier(name string, dependsOn ...string) flux.Tier {
	t := flux.Tier{
		Ref: ks(name), Generation: 1, ObservedGeneration: -1, Source: git("flux-system"),
		Interval: 10 * time.Minute, RetryInterval: time.Minute, Timeout: 5 * time.Minute,
	}
	for _, d := range dependsOn {
		t.DependsOn = append(t.DependsOn, flux.Dependency{Ref: ks(d)})
	}
	return t
}

// transition is when every condition of these tests was set.
func transition() time.Time { return time.Date(2026, 11, 30, 2, 0, 0, 0, time.UTC) }

func with(t flux.Tier, change func(*flux.Tier)) flux.Tier {
	change(&t)
	return t
}

func condition(t flux.Tier, kind string, status metav1.ConditionStatus, reason, message string) flux.Tier {
	t.Conditions = append(append([]metav1.Condition{}, t.Conditions...), metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message,
		ObservedGeneration: t.Generation, LastTransitionTime: metav1.NewTime(transition()),
	})
	return t
}

func readyAt(t flux.Tier, revision string) flux.Tier {
	t = condition(t, "Ready", metav1.ConditionTrue, "ReconciliationSucceeded", "Applied revision: "+revision)
	t.ObservedGeneration, t.LastAppliedRevision, t.LastAttemptedRevision = t.Generation, revision, revision
	return t
}

func ready(t flux.Tier) flux.Tier { return readyAt(t, rev) }

func failed(t flux.Tier, reason, message string) flux.Tier {
	return condition(t, "Ready", metav1.ConditionFalse, reason, message)
}

func waits(t flux.Tier) flux.Tier { return with(t, func(t *flux.Tier) { t.Wait = true }) }

func ownedBy(t flux.Tier, parent string) flux.Tier {
	return with(t, func(t *flux.Tier) {
		t.Owner = flux.Ref{Kind: "Kustomization", Namespace: "flux-system", Name: parent}
	})
}

func names(nodes []*tiers.Node) []string {
	var out []string
	for _, n := range nodes {
		out = append(out, n.Ref.Name)
	}
	return out
}
