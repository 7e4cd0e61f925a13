// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// sourceFix is what to do about a source that has no artifact, or no new one.
func (p *preflight) sourceFix(s *flux.Source, ready *metav1.Condition) string {
	switch {
	case s.Ref.Kind == "ExternalArtifact":
		return "make the controller that fills it run: source-watcher, where an ArtifactGenerator made it"
	case s.Artifact == nil && (ready == nil || ready.Status == metav1.ConditionUnknown):
		return "it may only be on its way: wait a moment, then: " + p.env.Command("standup", "preflight")
	case s.Ref.Kind == "HelmChart":
		return "make that chart exist at that version where its HelmRelease looks for it, or correct spec.chart of the HelmRelease in git"
	}
	return "mend what its message names: its URL, which has to be reachable from inside the cluster, its ref or its credentials; source-controller goes on by itself"
}

// withoutCharts leaves out the HelmCharts whose own source is among the
// findings: that is the cause.
func (p *preflight) withoutCharts(ctx context.Context, found []finding.Finding) ([]finding.Finding, error) {
	told := func(r flux.Ref) bool {
		return slices.ContainsFunc(found, func(f finding.Finding) bool { return f.Object != nil && bare(*f.Object) == r })
	}
	drop := map[flux.Ref]bool{}
	if slices.ContainsFunc(found, func(f finding.Finding) bool { return f.Object != nil && f.Object.Kind == "HelmChart" }) {
		all, err := p.objects(ctx, "HelmChart")
		if err != nil {
			return nil, err
		}
		for _, o := range all {
			drop[flux.Ref{Kind: "HelmChart", Namespace: o.GetNamespace(), Name: o.GetName()}] = told(sourceOfChart(o))
		}
	}
	return slices.DeleteFunc(found, func(f finding.Finding) bool { return f.Object != nil && drop[bare(*f.Object)] }), nil
}

func sourceOfChart(chart *unstructured.Unstructured) flux.Ref {
	ref, _, _ := unstructured.NestedStringMap(chart.Object, "spec", "sourceRef")
	return flux.Ref{Kind: ref["kind"], Namespace: chart.GetNamespace(), Name: ref["name"]}
}
