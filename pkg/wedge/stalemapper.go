// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/kubestandup/kubestandup/pkg/crds"
	"github.com/kubestandup/kubestandup/pkg/knowledge"
	"github.com/kubestandup/kubestandup/pkg/tiers"
)

// attemptTime is more than one attempt takes that fails at a missing kind: the
// stages before are waited for 60 seconds at most, each.
const attemptTime = 3 * time.Minute

// staleMappers finds the controllers that go on to say "no matches for kind"
// of a kind that has been served for longer than two of their attempts. Only
// kustomize-controller before 1.5 (Flux 2.5) does: later ones look a kind up
// anew whenever they do not know it.
func staleMappers(w *World) []Verdict {
	var all []Verdict
	for _, d := range w.Diagnoses {
		n := w.Graph.Node(d.Tier)
		if n == nil {
			continue
		}
		if v, stale := w.staleMapper(d, n); stale {
			all = append(all, v)
		}
	}
	return all
}

func (w *World) staleMapper(d *crds.Diagnosis, n *tiers.Node) (Verdict, bool) {
	kind, ok := w.unknownTo(d)
	c := w.Controllers[kustomizeController]
	definition := w.definition(kind.GroupKind())
	since := established(definition)
	ready := meta.FindStatusCondition(n.Conditions, "Ready")
	if !ok || since.IsZero() || ready == nil || n.RetryInterval <= 0 || n.AwaitsDependencies() ||
		!keepsNoMatch(c) || !c.Running() || c.Youngest.IsZero() || !c.Youngest.Before(since) {
		return Verdict{}, false
	}
	// A failure is tried again after retryInterval, so the attempt before the
	// last one began at the latest:
	before := ready.LastTransitionTime.Add(-n.RetryInterval - 2*attemptTime)
	if !before.After(since) {
		return Verdict{}, false
	}
	v := Verdict{
		Cause: StaleMapper, Object: n.Ref, State: "stale", ResolvesItself: Never,
		Summary: fmt.Sprintf("%s %s says that it knows no %s, which has been served since %s: two attempts and more",
			kustomizeController, c.Version, kind.Kind, stamp(since)),
		Why:    "a controller before v1.5 (Flux 2.5) keeps what it has learnt of the served kinds for as long as it runs",
		Repair: "upgrade Flux to 2.5 or later",
	}
	v.since(since)
	v.evidence(n.Ref, "Ready", fmt.Sprintf("%s (at %s)", firstLine(ready.Message), stamp(ready.LastTransitionTime.Time)))
	v.evidence(definition.Ref, "Established", "True since "+stamp(since))
	v.evidence(c.Deployment, "image", c.Version)
	v.evidence(c.Deployment, "running since", stamp(c.Youngest))
	v.evidence(n.Ref, "spec.retryInterval", n.RetryInterval.String()+" (what Flux resolves)")
	seen := w.Deployments[kustomizeController]
	v.Actions = []Action{{
		Verb: Restart, Object: c.Deployment,
		Description: fmt.Sprintf("restart the Pods of %s; it learns the served kinds anew. Nothing is deleted", c.Deployment),
		// A manager that starts with kubectl would lose the annotation at
		// Flux's next apply of itself, which is a second restart.
		step: mergeStep{manager: manager, patch: map[string]any{"spec": map[string]any{"template": map[string]any{
			"metadata": map[string]any{"annotations": map[string]any{"kubectl.kubernetes.io/restartedAt": stamp(w.Now)}},
		}}}},
		pin: pin{uid: seen.UID, generation: seen.Generation},
	}}
	return v, true
}

// unknownTo is the kind that the controller says it does not know although it
// is served.
func (w *World) unknownTo(d *crds.Diagnosis) (schema.GroupVersionKind, bool) {
	n := w.Graph.Node(d.Tier)
	if d.Verdict != crds.NowServed || n == nil || n.State != tiers.Retrying {
		return schema.GroupVersionKind{}, false
	}
	ready := meta.FindStatusCondition(n.Conditions, "Ready")
	if ready == nil || ready.Status != metav1.ConditionFalse {
		return schema.GroupVersionKind{}, false
	}
	for _, m := range knowledge.MissingKinds(ready.Message) {
		if _, is := w.Served.Resource(m.Kind); is && m.Certain && m.Kind.Group != "" && !m.Deleting {
			return m.Kind, true
		}
	}
	return schema.GroupVersionKind{}, false
}

// keepsNoMatch is true for a kustomize-controller that remembers kinds which it
// once did not know. One whose version cannot be read is not suspected.
func keepsNoMatch(c *Controller) bool {
	if c == nil {
		return false
	}
	v, err := version.ParseSemantic(c.Version)
	return err == nil && v.LessThan(version.MustParseSemantic("1.5.0"))
}

// established is since when a CRD is Established, the zero time when it is not.
func established(d *Definition) time.Time {
	if d == nil {
		return time.Time{}
	}
	c := meta.FindStatusCondition(d.Conditions, "Established")
	if c == nil || c.Status != metav1.ConditionTrue {
		return time.Time{}
	}
	return c.LastTransitionTime.Time
}
