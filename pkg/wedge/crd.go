// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

// NamesRefused is a CRD whose names another one has.
const NamesRefused Cause = "crd-names-refused"

// mostEvidence bounds how many objects of one kind a verdict spells out.
const mostEvidence = 20

// terminatingDefinitions are CRDs that are being deleted: they go when their last
// object has gone, and until then nothing new of the kind can be made.
func terminatingDefinitions(w *World) []Verdict {
	var out []Verdict
	for _, d := range w.Definitions {
		if !d.Deleted.IsZero() {
			out = append(out, w.heldDefinition(d))
		}
	}
	return out
}

func (w *World) heldDefinition(d *Definition) Verdict {
	v := Verdict{
		Cause: DefinitionHeld, Object: d.Ref, State: "deleting", ResolvesItself: When,
		ResolvesWhen: "as soon as its last object is gone",
		Summary:      fmt.Sprintf("CRD %s is being deleted, and no %s can be made until it has gone", d.Ref.Name, d.Defines.Kind),
		Why:          "the API server deletes every object of the kind, and then the CRD; it waits for their finalizers",
		Repair: "nothing is to be done here. The CRD's own finalizer customresourcecleanup.apiextensions.k8s.io is never taken off: " +
			"the objects would stay in etcd and come back with the next CRD of this name",
	}
	v.since(d.Deleted)
	if c := conditionNamed(d.Conditions, "Terminating"); c != nil {
		v.evidence(d.Ref, "Terminating", because(c.Reason, c.Message))
	}
	v.evidence(d.Ref, "metadata.finalizers", strings.Join(d.Finalizers, ", "))
	if d.Unread != "" {
		v.evidence(d.Ref, "its objects", "not readable: "+d.Unread)
		v.Repair = "what holds it could not be listed; see " + string(ConversionFails) + " if a conversion is to blame. " + v.Repair
	}
	if own := foreign(d.Finalizers); len(own) > 0 {
		v.Repair = fmt.Sprintf("the CRD itself is held by %s: the controller that set it has to take it off. %s", strings.Join(own, ", "), v.Repair)
	}
	held := w.heldOf(d.Defines)
	if len(held) == 0 {
		return v
	}
	w.judgeHeld(&v, d, held)
	return v
}

func (w *World) heldOf(gk schema.GroupKind) []*Held {
	var out []*Held
	for _, h := range w.Held {
		if h.Ref.GroupVersionKind().GroupKind() == gk {
			out = append(out, h)
		}
	}
	return out
}

// judgeHeld decides over a definition that objects with finalizers keep.
func (w *World) judgeHeld(v *Verdict, d *Definition, held []*Held) {
	v.Summary = fmt.Sprintf("CRD %s is being deleted and is held by the finalizers of %s; no %s can be made until it has gone",
		d.Ref.Name, counted(len(held), "object", "objects"), d.Defines.Kind)
	var lost []*Held
	stopped := false
	whys := map[string]bool{}
	var reasons []string
	for i, h := range held {
		k := w.keeperOf(h)
		if i < mostEvidence {
			v.evidence(h.Ref, "metadata.finalizers", strings.Join(h.Finalizers, ", ")+": "+k.why)
		}
		if !whys[k.why] {
			whys[k.why] = true
			reasons = append(reasons, k.why)
		}
		if k.lost() {
			lost = append(lost, h)
		}
		stopped = stopped || k.state == keeperStopped
	}
	if len(held) > mostEvidence {
		v.evidence(d.Ref, "its objects", fmt.Sprintf("%d more have finalizers", len(held)-mostEvidence))
	}
	who := strings.Join(shortened(reasons, 5), "; ")
	v.Summary += ": " + who
	keep := v.Repair
	if len(lost) == 0 && !stopped {
		v.ResolvesWhen = "as soon as their controller has cleaned up: " + who
		v.Repair = "look what keeps the controller from finishing, if it takes long. " + keep
		return
	}
	v.ResolvesItself, v.ResolvesWhen = Never, ""
	v.Why = "the API server waits for the finalizers, and nobody is there who takes them off"
	v.Repair = "first choice: run the controller (" + who + "): it cleans up and takes the finalizers off. " +
		strings.Replace(keep, "nothing is to be done here. ", "", 1)
	if d.Defines == (schema.GroupKind{Group: flux.HelmGroup, Kind: flux.HelmReleaseKind}) {
		v.Repair += ". Taking the finalizer off a HelmRelease skips the uninstall: its workloads and records stay"
	}
	for _, h := range lost {
		w.letGo(v, h)
		if v.Refused != "" {
			v.Actions = nil
			return
		}
	}
}

// refusedNames are CRDs that are never established because another one has one
// of their names.
func refusedNames(w *World) []Verdict {
	var out []Verdict
	for _, d := range w.Definitions {
		c := conditionNamed(d.Conditions, "NamesAccepted")
		if c == nil || c.Status != metav1.ConditionFalse || !d.Deleted.IsZero() {
			continue
		}
		v := Verdict{
			Cause: NamesRefused, Object: d.Ref, State: c.Reason, ResolvesItself: Never,
			Summary: fmt.Sprintf("CRD %s is not served: one of its names is taken", d.Ref.Name),
			Why:     "names are given to whoever comes first; waiting does not change that",
			Repair:  "change the names of one of the two CRDs, or remove the one that is not wanted",
		}
		v.since(c.LastTransitionTime.Time)
		v.evidence(d.Ref, "NamesAccepted", because(c.Reason, c.Message))
		for _, o := range w.Definitions {
			if o != d && o.Defines.Group == d.Defines.Group && (o.Defines.Kind == d.Defines.Kind || o.Plural == d.Plural || strings.Contains(c.Message, `"`+o.Plural+`"`)) {
				v.evidence(o.Ref, "spec.names", fmt.Sprintf("kind %s, plural %s", o.Defines.Kind, o.Plural))
				v.Summary = fmt.Sprintf("CRD %s is not served: %s has one of its names", d.Ref.Name, o.Ref)
			}
		}
		out = append(out, v)
	}
	return out
}
