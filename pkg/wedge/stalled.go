// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/tiers"
)

// TierStalled is that a controller has given up on a tier as it is now.
const TierStalled Cause = "tier-stalled"

// stalledTiers finds the tiers whose controller does not look again before
// their spec changes: a readyExpr or a healthCheckExprs that does not compile,
// a source in another namespace that may not be used, a feature gate that is
// off (kustomize-controller internal/controller Reconcile; helm-controller the
// same). A release that used up its retries is judged with its records.
func stalledTiers(w *World) []Verdict {
	if w.Graph == nil {
		return nil
	}
	var all []Verdict
	for _, n := range w.Graph.Tiers() {
		c := meta.FindStatusCondition(n.Conditions, "Stalled")
		if n.State != tiers.Wedged || c == nil || c.Status != "True" || c.ObservedGeneration < n.Generation {
			continue
		}
		if n.Ref.Kind == flux.HelmReleaseKind && (c.Reason == "RetriesExceeded" || c.Reason == "MissingRollbackTarget") {
			continue
		}
		v := Verdict{
			Cause: TierStalled, Object: n.Ref, State: c.Reason, ResolvesItself: Never,
			Summary: fmt.Sprintf("the controller of %s has given up on it: %s", n.Ref, firstLine(c.Message)),
			Why:     "it does not look again at a spec that cannot work; neither time nor a nudge changes that",
			Repair:  fmt.Sprintf("correct %s in git: a new spec starts it anew", n.Ref),
		}
		v.since(c.LastTransitionTime.Time)
		v.evidence(n.Ref, "Stalled", because(c.Reason, c.Message))
		all = append(all, v)
	}
	return all
}
