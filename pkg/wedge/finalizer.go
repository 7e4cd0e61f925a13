// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

// settle is how long an object whose keeper is not known may take to go before
// that is worth a verdict.
const settle = 5 * time.Minute

// finalizers are resources that cannot go, because whoever has to take
// their finalizers off is gone: those of operators, and what keeps a Namespace.
// What keeps a CRD is told with the CRD.
func finalizers(w *World) []Verdict {
	var out []Verdict
	seen := map[flux.Ref]bool{}
	for _, t := range w.Triggers {
		seen[t.Ref] = true
		if v, ok := w.heldTrigger(t); ok {
			out = append(out, v)
		}
	}
	for _, h := range w.Held {
		// Flux's own objects are told with their releases and controllers.
		if seen[h.Ref] || h.Deleted.IsZero() || strings.HasSuffix(h.Ref.Group(), ".toolkit.fluxcd.io") ||
			!h.Named && w.terminating(h.Ref.Namespace) == nil || w.definitionGoes(h) {
			continue
		}
		k := w.keeperOf(h)
		if k.state == keeperUnknown && w.Now.Sub(h.Deleted) < settle {
			out = append(out, w.tooYoung(h))
			continue
		}
		if v, ok := w.heldVerdict(h, k); ok {
			out = append(out, v)
		}
	}
	return out
}

// tooYoung is the verdict on an object whose keeper is not known and that is
// being deleted for a short time only: most go by themselves.
func (w *World) tooYoung(h *Held) Verdict {
	names := strings.Join(foreign(h.Finalizers), ", ")
	v := Verdict{
		Cause: FinalizerHeld, Object: h.Ref, ResolvesItself: When, State: "deleting",
		Summary:      fmt.Sprintf("%s is being deleted and is held by %s", h.Ref, names),
		ResolvesWhen: "as soon as " + names + " is taken off",
		Why:          fmt.Sprintf("who does that is not known; after %s it counts as held for ever, and %s have passed", span(settle), span(w.Now.Sub(h.Deleted))),
		Repair:       "wait, or look what its controller is doing",
	}
	v.since(h.Deleted)
	v.evidenceHeld(h)
	return v
}

func (w *World) definitionGoes(h *Held) bool {
	d := w.definition(h.Ref.GroupVersionKind().GroupKind())
	return d != nil && !d.Deleted.IsZero()
}

// heldTrigger judges a resource of an operator. One that is not being deleted
// is held all the same where a webhook of the gone operator refuses every
// change of it: nobody can delete it any more.
func (w *World) heldTrigger(t *TriggerState) (Verdict, bool) {
	if len(foreign(t.Finalizers)) == 0 || w.definitionGoes(&t.Held) {
		return Verdict{}, false
	}
	k := w.keeperOf(&t.Held)
	if t.Deleted.IsZero() && (k.state != keeperGone || len(w.blocking(t.Ref.Group(), t.Plural)) == 0) {
		return Verdict{}, false
	}
	v, ok := w.heldVerdict(&t.Held, k)
	if ok && t.Phase != "" {
		v.evidence(t.Ref, "status.phase", t.Phase)
	}
	return v, ok
}

func (w *World) heldVerdict(h *Held, k keeper) (Verdict, bool) {
	names := strings.Join(foreign(h.Finalizers), ", ")
	v := Verdict{
		Cause: FinalizerHeld, Object: h.Ref, ResolvesItself: Never, State: "deleting",
		Summary: fmt.Sprintf("%s is being deleted and is held by %s: %s", h.Ref, names, k.why),
		Why:     "an object goes when its last finalizer is taken off, and nobody is there who does",
	}
	v.since(h.Deleted)
	if h.Deleted.IsZero() {
		v.State = "operator-gone"
		v.Summary = fmt.Sprintf("%s can neither be changed nor deleted: %s, and its webhooks still refuse every change", h.Ref, k.why)
		v.Why = "the API server asks a webhook that nobody answers"
	}
	v.evidenceHeld(h)
	doomed := w.doomed(h, k)
	if doomed != nil {
		v.evidence(doomed.Ref, "metadata.deletionTimestamp", doomed.Deleted.UTC().Format(timeFormat))
	}
	switch {
	case k.state == keeperRuns:
		return v, false
	case k.state == keeperComing && doomed == nil:
		v.ResolvesItself, v.ResolvesWhen = When, "as soon as its operator is available: "+k.why
		v.Why = "its operator takes the finalizer off once it runs"
		v.Repair = "mend what keeps the operator from running"
		return v, true
	case k.state == keeperStopped && doomed == nil:
		v.Repair = "scale the operator up: it cleans up and then takes the finalizer off"
		return v, true
	}
	v.Repair = "first choice: put the operator back; it cleans up and then takes the finalizer off"
	if s := h.Owner.sentence(); s != "" {
		v.Repair += " (" + s + ")"
	}
	if doomed != nil {
		v.Repair = fmt.Sprintf("the operator cannot come back: nothing new can be made in %s, which is being deleted. "+
			"So the way out is the finalizer of this resource, never that of the Namespace: its finalize call would orphan what is left in it", doomed.Ref)
	}
	if first := w.blocking(h.Ref.Group(), h.Plural); len(first) > 0 {
		v.Repair += fmt.Sprintf(". Before anything else %s has to go, which refuses every change of it (%s)", named(first, 5), WebhookWithoutEnd)
		for _, c := range first {
			v.evidence(c, "webhooks", "refuses every change of "+h.Ref.String())
		}
	}
	w.letGo(&v, h)
	return v, true
}

// doomed is the Namespace that keeps the operator from coming back: its own,
// or that of the resource.
func (w *World) doomed(h *Held, k keeper) *TerminatingNamespace {
	for _, ns := range []string{k.home, h.Ref.Namespace} {
		if ns == "" || ns == h.Ref.Namespace && h.Relation == nil {
			continue // an operator may well live elsewhere than its resources
		}
		if n := w.terminating(ns); n != nil {
			return n
		}
	}
	return nil
}

// letGo adds the actions that let an object go without its operator, or why
// that is refused.
func (w *World) letGo(v *Verdict, h *Held) {
	collected, left := w.leftovers(h)
	for _, r := range left {
		v.evidence(r, "left behind", "what the operator would have removed")
	}
	if why := w.unsafe(h); why != "" {
		v.Refused = why
		return
	}
	if h.Deleted.IsZero() {
		v.Actions = append(v.Actions, Action{
			Verb: Delete, Object: h.Ref, Destructive: true, step: deleteStep{}, pin: h.pin(),
			Description: "delete it; it stays until its finalizer is off",
		})
	}
	v.Actions = append(v.Actions, h.removal(w.describe(h, collected, left)), h.gone())
}

// known is true for an object whose controller is known, and not only guessed
// from the field managers: one of Flux, or of a system of the knowledge file.
func (h *Held) known() bool {
	return strings.HasSuffix(h.Ref.Group(), ".toolkit.fluxcd.io") || h.Relation != nil && h.Relation.Operator != nil
}

// definition is the CRD of the object's kind.
func (h *Held) definition() flux.Ref {
	return flux.Ref{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: h.Plural + "." + h.Ref.Group()}
}

// unsafe is why the finalizers of an object must not be taken off.
func (w *World) unsafe(h *Held) string {
	if why := w.Unread[PartWorkloads]; why != "" {
		return fmt.Sprintf("whether the controller that has to take the finalizers of %s off runs cannot be said: the workloads could not be read: %s", h.Ref, why)
	}
	if crd := h.definition(); !h.known() && !w.allows(h.Ref) && !w.allows(crd) {
		return fmt.Sprintf("which controller takes the finalizers of %s off is only guessed, by the name of who wrote them: %s. Where that one is gone for good: --allow %s, or --allow %s for all of its kind",
			h.Ref, w.keeperOf(h).why, Arg(h.Ref), Arg(crd))
	}
	if !virtual(h.Ref.Group()) {
		return ""
	}
	return w.refusal("letting " + h.Ref.String() + " go without its operator")
}

func (w *World) describe(h *Held, collected, left []flux.Ref) string {
	text := fmt.Sprintf("take %s off: the cleanup that it stands for is skipped", strings.Join(foreign(h.Finalizers), ", "))
	if h.Ref.Group() == flux.HelmGroup && h.Ref.Kind == flux.HelmReleaseKind {
		text += "; the release is not uninstalled: its workloads and its records stay"
	}
	if h.Ref.Group() == flux.KustomizeGroup {
		text += "; nothing is pruned: what it has applied stays"
	}
	if len(collected) > 0 {
		text += fmt.Sprintf("; the garbage collector then deletes what it owns, a CRD with every object of its kind: %s", named(collected, 20))
	}
	if len(left) > 0 {
		text += fmt.Sprintf("; left behind: %s", named(left, 20))
	}
	return text
}

// leftovers are what goes with a resource of an operator, because an owner
// reference ties it, and what stays when the operator does not clean up.
func (w *World) leftovers(h *Held) (collected, left []flux.Ref) {
	if h.Relation == nil || !h.Relation.HasTrigger(h.Ref.GroupVersionKind().GroupKind()) {
		return nil, nil
	}
	groups := map[string]bool{h.Ref.Group(): true}
	for _, k := range h.Relation.Creates {
		groups[k.Group] = true
		d := w.definition(k.GroupKind())
		switch {
		case d == nil:
		case d.Owner.ControllerUID == h.UID:
			collected = append(collected, d.Ref)
		default:
			left = append(left, d.Ref)
		}
	}
	for _, c := range w.Webhooks {
		if slices.ContainsFunc(c.Webhooks, func(hook Webhook) bool { return hook.about(groups) }) {
			add(&collected, &left, c.Ref, c.Owner, h)
		}
	}
	for _, a := range w.APIServices {
		if groups[a.GroupVersion.Group] || virtual(a.GroupVersion.Group) && virtual(h.Ref.Group()) && slices.ContainsFunc(w.homes(h), func(ns string) bool { return ns == a.Service.Namespace }) {
			add(&collected, &left, a.Ref, a.Owner, h)
		}
	}
	operator := w.operator(h.Relation)
	for _, d := range w.Workloads {
		if d != operator && slices.Contains(w.homes(h), d.Ref.Namespace) {
			left = append(left, d.Ref)
		}
	}
	return collected, left
}

func add(collected, left *[]flux.Ref, ref flux.Ref, owner Owner, h *Held) {
	if owner.ControllerUID == h.UID {
		*collected = append(*collected, ref)
		return
	}
	*left = append(*left, ref)
}

// homes are the namespaces that a system lives in.
func (w *World) homes(h *Held) []string {
	var out []string
	if h.Relation.Operator != nil && h.Relation.Operator.Namespace != "" {
		out = append(out, h.Relation.Operator.Namespace)
	}
	if d := w.operator(h.Relation); d != nil {
		out = append(out, d.Ref.Namespace)
	}
	if h.Ref.Namespace != "" {
		out = append(out, h.Ref.Namespace)
	}
	return out
}

// about is true for a webhook all of whose rules are about the groups.
func (h *Webhook) about(groups map[string]bool) bool {
	for _, r := range h.Rules {
		for _, g := range r.Groups {
			if !groups[g] {
				return false
			}
		}
	}
	return len(h.Rules) > 0
}
