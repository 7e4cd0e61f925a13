// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package tiers

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

// IsReady is true when the tier's Ready counts: it is True, of the current
// spec, and of the revision that its source has now. A Ready that an older
// revision left behind proves nothing about this one, nor does one at the
// artifact of a source that has not looked at its new spec yet.
func (n *Node) IsReady() bool {
	return n.isTrue() && n.Deleted.IsZero() && n.Generation == n.ObservedGeneration && n.atRevision(n.AppliedRevision()) &&
		!n.sourceIsBehind()
}

// sourceIsBehind is true while the source has not acted on its own spec. Not
// every kind of source says so, and a suspended one never will.
func (n *Node) sourceIsBehind() bool {
	o := n.Origin
	return o != nil && !o.Suspended && o.ObservedGeneration > 0 && o.Generation > o.ObservedGeneration
}

func (n *Node) isTrue() bool { return meta.IsStatusConditionTrue(n.Conditions, readyCondition) }

// AppliedRevision is the revision that the tier last reported as its own.
func (n *Node) AppliedRevision() string {
	if n.Ref.Kind == flux.HelmReleaseKind {
		return n.LastAttemptedRevision
	}
	return n.LastAppliedRevision
}

// SourceRevision is the revision that the tier's source has now, empty when it
// has none or is not there.
func (n *Node) SourceRevision() string {
	if n.Origin == nil || n.Origin.Artifact == nil {
		return ""
	}
	return n.Origin.Artifact.Revision
}

// atRevision compares with the source's revision. A release's revision is its
// chart's version, which only a HelmChart's artifact has for a revision too.
func (n *Node) atRevision(revision string) bool {
	if n.Ref.Kind == flux.HelmReleaseKind && n.Source.Kind != "HelmChart" {
		return true
	}
	return n.Origin == nil && n.Ref.Kind == flux.HelmReleaseKind || n.SourceRevision() == revision && revision != ""
}

// ReadyStatus is the tier's Ready condition: True, False or Unknown.
func (n *Node) ReadyStatus() metav1.ConditionStatus {
	if c := meta.FindStatusCondition(n.Conditions, readyCondition); c != nil {
		return c.Status
	}
	return metav1.ConditionUnknown
}

// classify gives the tier its state. The order of the questions matters: what
// nobody will end comes before what only takes time.
func (g *Graph) classify(n *Node, o Options) {
	ready := meta.FindStatusCondition(n.Conditions, readyCondition)
	stalled := meta.FindStatusCondition(n.Conditions, stalledCondition)
	n.Gate = n.gate()
	switch {
	case n.Suspended:
		n.State, n.Why = Suspended, n.SuspendedWhy()
	case !n.Deleted.IsZero():
		n.State, n.Why = Progressing, n.deletedWhy()
	case o.Wedged[n.Ref] != "":
		n.State, n.Why = Wedged, o.Wedged[n.Ref]
	case n.stalled(stalled):
		n.State, n.Why = Wedged, stalled.Reason+": "+stalled.Message
	case n.IsReady():
		n.State, n.Why = Ready, ready.Message
	case g.inCycle(n):
		n.State, n.Why = Wedged, "dependency cycle: "+g.cycleOf(n)
	case len(n.Blockers) > 0:
		n.State, n.Why = Blocked, "blocked: "+n.Blockers[0].Message
		if more := len(n.Blockers) - 1; more > 0 {
			n.Why += fmt.Sprintf(" (and %d more)", more)
		}
	case n.isTrue() && !n.AtWork():
		n.State, n.Why = Progressing, n.staleWhy()
	case ready != nil && ready.Status == metav1.ConditionFalse && ready.ObservedGeneration >= n.Generation:
		n.State = Retrying
		n.RetryAt, n.Why = n.retry(ready)
	case ready == nil:
		n.State, n.Why = Progressing, "not reconciled yet"
	default:
		n.State, n.Why = Progressing, ready.Message
		if c := meta.FindStatusCondition(n.Conditions, reconcilingCondition); c != nil && ready.Status != metav1.ConditionFalse {
			n.Why = c.Message
		}
	}
}

// stalled is true when the controller has given up on what the tier is now: a
// release that used up its retries starts anew with another chart.
func (n *Node) stalled(c *metav1.Condition) bool {
	if c == nil || c.Status != metav1.ConditionTrue || c.ObservedGeneration < n.Generation {
		return false
	}
	return n.Ref.Kind != flux.HelmReleaseKind || n.LastAttemptedRevision == "" || n.atRevision(n.LastAttemptedRevision)
}

// retry is when the controller looks again after a failure, and the failure.
//
// kustomize-controller requeues after retryInterval when it failed by itself
// and after its --requeue-dependency (30 s by default) when a dependency did.
// The clock starts at the transition of Ready: every attempt of its own goes
// through Unknown, so the time moves with each one.
func (n *Node) retry(ready *metav1.Condition) (time.Time, string) {
	if ready.Reason == dependencyNotReady {
		return time.Time{}, "its dependencies are met now; the controller looks again within 30s"
	}
	if n.RetryInterval == 0 || ready.Reason == artifactFailed && strings.Contains(ready.Message, "retrying in") {
		return time.Time{}, ready.Message
	}
	return ready.LastTransitionTime.Add(n.RetryInterval), ready.Message
}

// AwaitsDependencies is true when the controller's last look ended at a
// dependency: nothing failed, and it looks again every 30 seconds.
func (n *Node) AwaitsDependencies() bool {
	c := meta.FindStatusCondition(n.Conditions, readyCondition)
	return c != nil && c.Status == metav1.ConditionFalse && c.Reason == dependencyNotReady
}

// AtWork is true while the controller reconciles the tier.
func (n *Node) AtWork() bool { return meta.IsStatusConditionTrue(n.Conditions, reconcilingCondition) }

// MissesKind is true when the tier's last attempt failed because a kind is not
// served: by itself that is no wedge, a retry may find the kind there. The
// second form is that of a controller that still knows a kind which has gone.
func (n *Node) MissesKind() bool {
	c := meta.FindStatusCondition(n.Conditions, readyCondition)
	return c != nil && c.Status == metav1.ConditionFalse &&
		(strings.Contains(c.Message, "no matches for") || strings.Contains(c.Message, "the server could not find the requested resource"))
}

// MayMissKind is true for a Kustomization that Flux works on, on this cluster,
// and that lacks a kind, or whose last attempt failed to apply while the next one, under way now, hides
// why: to know, it has to be built.
func (n *Node) MayMissKind() bool {
	if n.Ref.Kind != flux.KustomizationKind || n.Remote || n.Suspended || !n.Deleted.IsZero() {
		return false
	}
	return n.MissesKind() || n.State == Progressing && n.ReadyStatus() == metav1.ConditionUnknown && n.LastOutcome == "ReconciliationFailed"
}

func (n *Node) deletedWhy() string {
	why := "being deleted since " + n.Deleted.UTC().Format(time.RFC3339)
	if len(n.Finalizers) > 0 {
		why += ", held by finalizer " + strings.Join(n.Finalizers, ", ")
	}
	return why
}

func (n *Node) staleWhy() string {
	switch {
	case n.Generation != n.ObservedGeneration:
		return fmt.Sprintf("Ready for generation %d of its spec; generation %d is not reconciled yet", n.ObservedGeneration, n.Generation)
	case n.sourceIsBehind():
		return fmt.Sprintf("Ready at %s; its source %s has a new spec and has not acted on it yet", orNone(n.AppliedRevision()), n.Source)
	case n.SourceRevision() == "":
		return fmt.Sprintf("Ready at %s, but its source %s has no artifact now", orNone(n.AppliedRevision()), n.Source)
	default:
		return fmt.Sprintf("Ready at %s; its source is at %s", orNone(n.AppliedRevision()), n.SourceRevision())
	}
}

func (g *Graph) inCycle(n *Node) bool { return g.cycleOf(n) != "" }

// cycleOf prints the loop that the tier is part of, empty when it is in none.
func (g *Graph) cycleOf(n *Node) string {
	for _, loop := range g.Cycles {
		for _, ref := range loop {
			if key(ref) == key(n.Ref) {
				return FormatCycle(loop)
			}
		}
	}
	return ""
}

// FormatCycle prints a loop back to its start: a → b → a.
func FormatCycle(loop []flux.Ref) string {
	var b strings.Builder
	for _, ref := range loop {
		b.WriteString(ref.Key() + " → ")
	}
	return b.String() + loop[0].Key()
}

// gate says what the tier's Ready proves. A gate of applied objects is hollow
// only where somebody relies on it.
func (n *Node) gate() Gate {
	switch {
	case n.Ref.Kind == flux.HelmReleaseKind:
		return Gate{Kind: "release"}
	case n.Wait && n.HealthCheckExprs:
		return Gate{Kind: "wait+healthCheckExprs"}
	case n.Wait:
		return Gate{Kind: "wait"}
	case len(n.HealthChecks) > 0:
		return Gate{Kind: "healthChecks"}
	}
	none := Gate{Kind: "applied"}
	if n.dependants > 0 {
		none.Hollow = true
		none.Why = "Ready means applied: neither wait nor healthChecks is set, and other tiers depend on it"
	}
	return none
}
