// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

// normal is how long a Namespace may take to go without that being worth a
// verdict, when nothing is seen that holds it.
const normal = time.Minute

// namespaces are Namespaces that are being deleted, and exactly what holds
// each. There is no act for it: the Namespace goes when what holds it goes, and
// its finalize call would leave that in etcd, out of reach.
func namespaces(w *World) []Verdict {
	var out []Verdict
	for _, n := range w.Terminating {
		if v, ok := w.heldNamespace(n); ok {
			out = append(out, v)
		}
	}
	return out
}

func (w *World) heldNamespace(n *TerminatingNamespace) (Verdict, bool) {
	v := Verdict{
		Cause: NamespaceHeld, Object: n.Ref, State: "deleting", ResolvesItself: When,
		Why: "the namespace controller deletes everything in it, again and again, and lets it go once it is empty",
	}
	v.since(n.Deleted)
	failing := false
	for _, c := range n.Conditions {
		if c.Status == metav1.ConditionTrue {
			failing = failing || strings.HasSuffix(c.Type, "Failure")
			v.evidence(n.Ref, c.Type, because(c.Reason, c.Message))
		}
	}
	held := w.heldIn(n.Ref.Name)
	own := slices.DeleteFunc(slices.Clone(n.Spec), func(f string) bool { return f == "kubernetes" })
	own = append(own, foreign(n.Finalizers)...)
	if len(held) == 0 && !failing && len(own) == 0 && len(v.Evidence) == 0 && w.Now.Sub(n.Deleted) < normal {
		return v, false
	}
	var holders, next []string
	for i, h := range held {
		if i < mostEvidence {
			v.evidenceHeld(h)
		}
		holders = append(holders, fmt.Sprintf("%s by %s", h.Ref, strings.Join(h.Finalizers, ", ")))
		next = append(next, w.wayOut(h))
	}
	for _, u := range n.Unread {
		v.evidence(n.Ref, "what remains", "not readable: "+u)
	}
	if len(own) > 0 {
		holders = append(holders, "the Namespace itself by "+strings.Join(own, ", "))
		next = append(next, fmt.Sprintf("%s: the controller that set %s on the Namespace has to take it off", n.Ref, strings.Join(own, ", ")))
	}
	for _, why := range w.failures(n) {
		holders = append(holders, why[0])
		next = append(next, why[1])
	}
	v.Summary = fmt.Sprintf("Namespace %s is being deleted", n.Ref.Name)
	if len(holders) > 0 {
		v.Summary += " and is held: " + strings.Join(shortened(holders, 5), "; ")
	}
	v.Repair = "free what holds it. The Namespace's own finalize call is never used: it would orphan what is left in it"
	if next = compact(next); len(next) > 0 {
		v.Repair = strings.Join(shortened(next, 10), "; ") + ". The Namespace's own finalize call is never used: it would orphan what is left in it"
	}
	v.ResolvesWhen = "as soon as nothing is left in it"
	if len(holders) == 0 && len(v.Evidence) == 0 {
		v.ResolvesWhen = "as soon as the namespace controller acts"
		v.Repair = "it has said nothing about this Namespace yet: look whether kube-controller-manager runs"
	}
	return v, true
}

// heldIn are the objects in a namespace that finalizers keep.
func (w *World) heldIn(namespace string) []*Held {
	var out []*Held
	seen := map[flux.Ref]bool{}
	add := func(h *Held) {
		if h.Ref.Namespace == namespace && len(h.Finalizers) > 0 && !seen[h.Ref] {
			seen[h.Ref] = true
			out = append(out, h)
		}
	}
	for _, h := range w.Held {
		add(h)
	}
	for _, t := range w.Triggers {
		add(&t.Held)
	}
	slices.SortFunc(out, func(a, b *Held) int { return a.Ref.Compare(b.Ref) })
	return out
}

// wayOut says which verdict, or which controller, frees an object.
func (w *World) wayOut(h *Held) string {
	switch {
	case slices.Contains(h.Finalizers, "kubernetes.io/pvc-protection"):
		return fmt.Sprintf("%s: a Pod still uses the claim; it goes with the Pod", h.Ref)
	case slices.Contains(h.Finalizers, "service.kubernetes.io/load-balancer-cleanup"):
		return fmt.Sprintf("%s: the cloud's service controller has to take its load balancer down", h.Ref)
	case h.Ref.Group() == flux.HelmGroup:
		return fmt.Sprintf("%s: helm-controller uninstalls it first; see its own verdict. Never suspend it: that orphans the release", h.Ref)
	case h.Ref.Group() == flux.KustomizeGroup:
		return fmt.Sprintf("%s: kustomize-controller prunes first what it has applied. Never suspend it: that orphans all of it", h.Ref)
	}
	k := w.keeperOf(h)
	switch {
	case w.definitionGoes(h):
		return fmt.Sprintf("%s: see %s", h.Ref, DefinitionHeld)
	case k.lost(), k.state == keeperStopped:
		return fmt.Sprintf("%s: %s; see %s", h.Ref, k.why, FinalizerHeld)
	}
	return fmt.Sprintf("%s: %s", h.Ref, k.why)
}

// failures are what keeps the namespace controller from even looking, each
// with the way out.
func (w *World) failures(n *TerminatingNamespace) [][2]string {
	var out [][2]string
	for _, a := range w.APIServices {
		if slices.Contains(w.undiscovered(a), n) {
			out = append(out, [2]string{
				fmt.Sprintf("discovery of %s fails", a.GroupVersion), fmt.Sprintf("%s: see %s", a.Ref, APIUnavailable),
			})
		}
	}
	c := conditionNamed(n.Conditions, "NamespaceDeletionContentFailure")
	if c == nil || c.Status != metav1.ConditionTrue {
		return out
	}
	switch {
	case strings.Contains(c.Message, "conversion webhook"):
		out = append(out, [2]string{"what is in it cannot be converted", "see " + string(ConversionFails)})
	case strings.Contains(c.Message, "failed calling webhook"):
		out = append(out, [2]string{"a webhook that does not answer refuses the deletions", "see " + string(WebhookWithoutEnd)})
	default:
		out = append(out, [2]string{"deleting what is in it fails", "look at the message of NamespaceDeletionContentFailure"})
	}
	return out
}

// compact drops repetitions and keeps the order.
func compact(words []string) []string {
	var out []string
	for _, s := range words {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}
