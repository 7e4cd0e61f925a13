// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"fmt"
	"strings"

	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/tiers"
)

// dependencyMissing finds the tiers that depend on something which does not
// exist (DEP-04, DEP-05). No controller makes it for their sake; another tier,
// not applied yet, may bring it all the same.
func dependencyMissing(w *World) []Verdict {
	if w.Graph == nil {
		return nil
	}
	var all []Verdict
	for _, n := range w.Graph.Tiers() {
		if n.State != tiers.Blocked {
			continue
		}
		for _, b := range n.Blockers {
			if isTier(b.On) && (b.Reason == tiers.Missing || b.Reason == tiers.WrongKind) {
				all = append(all, w.missingDependency(n))
				break
			}
		}
	}
	return all
}

func isTier(r flux.Ref) bool {
	return r.Kind == flux.KustomizationKind || r.Kind == flux.HelmReleaseKind
}

func (w *World) missingDependency(n *tiers.Node) Verdict {
	v := Verdict{
		Cause: DependencyMissing, Object: n.Ref, State: "dependency-missing", ResolvesItself: Never,
		Why: "its controller looks every 30 seconds whether what it depends on is Ready, and makes none of it",
	}
	var absent, repairs []string
	mistaken := false
	// Flux reports the first of them only (DEP-08).
	for _, b := range n.Blockers {
		v.evidence(n.Ref, "waits for", b.Message)
		if !isTier(b.On) || b.Reason != tiers.Missing && b.Reason != tiers.WrongKind {
			continue
		}
		absent = append(absent, b.On.Key())
		repair, near := w.mend(n, b)
		mistaken = mistaken || near
		repairs = append(repairs, repair)
	}
	v.evidence(n.Ref, "Ready", firstLine(readyMessage(n)))
	is := "which does not exist"
	if len(absent) > 1 {
		is = "which do not exist"
	}
	v.Summary = fmt.Sprintf("%s depends on %s, %s", n.Ref, strings.Join(absent, " and "), is)
	v.Repair = strings.Join(repairs, "; ")
	if other := w.unapplied(n); other != nil && !mistaken {
		v.ResolvesItself = When
		v.ResolvesWhen = fmt.Sprintf("as soon as something brings %s; %s, for one, is not applied yet", strings.Join(absent, " and "), other.Ref)
	}
	return v
}

// mend says how a reference to what does not exist is put right, and whether
// it looks like a mistake: then nothing that comes later makes it right.
func (w *World) mend(n *tiers.Node, b tiers.Blocker) (repair string, mistake bool) {
	if b.Reason == tiers.WrongKind {
		kind := flux.KustomizationKind
		if b.On.Kind == kind {
			kind = flux.HelmReleaseKind
		}
		if b.On.Kind == flux.HelmReleaseKind {
			return fmt.Sprintf("%s is a %s, which a HelmRelease cannot depend on: let the Kustomization that applies %s depend on it", b.On.Key(), kind, n.Ref), true
		}
		other := w.Graph.Node(flux.Ref{Kind: kind, Namespace: b.On.Namespace, Name: b.On.Name})
		if other != nil && other.ContainedBy != nil {
			return fmt.Sprintf("%s is a %s, which a Kustomization cannot depend on: depend on %s, which applies it, with wait: true there",
				b.On.Key(), kind, other.ContainedBy.Ref), true
		}
		return fmt.Sprintf("%s is a %s, which a Kustomization cannot depend on: depend on a Kustomization that applies it and waits for it (wait: true)", b.On.Key(), kind), true
	}
	var elsewhere []string
	for _, o := range w.Graph.Tiers() {
		if o.Ref.Kind == b.On.Kind && o.Ref.Name == b.On.Name {
			elsewhere = append(elsewhere, o.Ref.Namespace)
		}
	}
	if len(elsewhere) > 0 {
		return fmt.Sprintf("%s exists in namespace %s: add `namespace: %s` to the dependency of %s in git",
			b.On.Name, strings.Join(elsewhere, ", "), elsewhere[0], n.Ref), true
	}
	return fmt.Sprintf("add %s, or remove it from spec.dependsOn of %s, in git", b.On.Key(), n.Ref), false
}

// unapplied is a tier that may still bring anything, since it is on its way. One
// that fails and is retried is as likely to be somebody else's trouble. Nil when
// there is none.
func (w *World) unapplied(but *tiers.Node) *tiers.Node {
	for _, n := range w.Graph.Tiers() {
		if n != but && n.Ref.Kind == flux.KustomizationKind && n.Deleted.IsZero() && n.State == tiers.Progressing {
			return n
		}
	}
	return nil
}

// dependencySuspended finds the suspended tiers that others wait for: a
// suspended Kustomization stays at its revision, so what depends on it hangs
// from the next commit of their source on (facts C.4, checkDependencies). One
// that nobody waits for is nobody's business.
func dependencySuspended(w *World) []Verdict {
	if w.Graph == nil {
		return nil
	}
	held := map[*tiers.Node][]heldTier{}
	for _, n := range w.Graph.Tiers() {
		if n.State != tiers.Blocked {
			continue
		}
		for _, b := range n.Blockers {
			on := w.Graph.Node(b.On)
			if on == nil || !on.Suspended {
				continue
			}
			if b.Reason == tiers.NotReady || b.Reason == tiers.StaleRevision || b.Reason == tiers.Unhealthy && !isTrue(on.Conditions, "Ready") {
				held[on] = append(held[on], heldTier{n, b})
			}
		}
	}
	var all []Verdict
	for _, n := range w.Graph.Tiers() {
		if len(held[n]) > 0 && n.Unwedge == "" { // else a repair of ours is half done, and will be finished
			all = append(all, w.suspendedDependency(n, held[n]))
		}
	}
	return all
}

// heldTier is a tier that waits for a suspended one.
type heldTier struct {
	*tiers.Node
	by tiers.Blocker
}

func (w *World) suspendedDependency(n *tiers.Node, held []heldTier) Verdict {
	v := Verdict{
		Cause: DependencySuspended, Object: n.Ref, State: "suspended", ResolvesItself: Never,
		Summary: fmt.Sprintf("%s is suspended, and %s for it", n.Ref, waits(len(held))),
		Why:     "a suspended tier is not reconciled, so it stays at its revision and as Ready as it was; only a person resumes it",
	}
	v.since(n.SuspendedSince)
	v.evidence(n.Ref, "spec.suspend", suspendedBy(n.Tier))
	for _, h := range held[:min(fewExamples, len(held))] {
		v.evidence(h.Ref, "waits for", h.by.Message)
	}
	if more := len(held) - fewExamples; more > 0 {
		v.evidence(n.Ref, "tiers that wait like these", fmt.Sprintf("%d more", more))
	}
	switch why := stays(n.Tier); {
	case !n.Deleted.IsZero():
		v.evidence(n.Ref, "metadata.deletionTimestamp", stamp(n.Deleted))
		v.Repair = fmt.Sprintf("%s is being deleted: take it out of spec.dependsOn of what waits for it", n.Ref)
	case why != "":
		v.Repair = fmt.Sprintf("it is kept suspended on purpose: %s. Resume it there, or take it out of spec.dependsOn of what waits for it", why)
	case n.Ref.Kind == flux.HelmReleaseKind:
		v.Repair = fmt.Sprintf("look at what %s would roll out now, and resume it: set spec.suspend to false", n.Ref)
	default:
		v.Actions = []Action{{
			Verb: Resume, Object: n.Ref, Destructive: n.Prune,
			Description: fmt.Sprintf("resume it, and ask kustomize-controller to reconcile it now: it applies %s. %s",
				rollsOut(n), pruning(n)),
			step: mergeStep{
				manager: manager, patch: map[string]any{"spec": map[string]any{"suspend": nil}},
				ask: []string{flux.RequestedAtAnnotation},
			},
			pin: tierPin(n),
		}}
	}
	return v
}

// pruning says what a resume may delete.
func pruning(n *tiers.Node) string {
	if n.Prune {
		return "Its prune deletes what git no longer has"
	}
	return "Nothing is deleted"
}

func waits(n int) string {
	if n == 1 {
		return "1 tier waits"
	}
	return fmt.Sprintf("%d tiers wait", n)
}

func rollsOut(n *tiers.Node) string {
	had, has := n.AppliedRevision(), n.SourceRevision()
	switch {
	case has == "":
		return "what its source has next"
	case had == has:
		return has + " once more"
	case had == "":
		return has
	}
	return fmt.Sprintf("%s in place of %s", has, had)
}
