// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/kubestandup/kubestandup/pkg/crds"
	"github.com/kubestandup/kubestandup/pkg/tiers"
)

// soon is a retry that is not worth a nudge.
const soon = time.Minute

// asleep finds the tiers that need nothing but to be looked at again, and that
// Flux will not look at for a while (CRD-05): without a retryInterval it waits
// for a whole interval. That is no wedge, and no restart helps.
func asleep(w *World) []Verdict {
	var all []Verdict
	for _, d := range w.Diagnoses {
		n := w.Graph.Node(d.Tier)
		// A tier that is at work sees the kind by itself. Its condition
		// Reconciling does not tell: it stays True between two attempts.
		if n == nil || n.State != tiers.Retrying || d.Rejected != nil || n.RetryAt.Sub(w.Now) <= soon || w.dead(kustomizeController) {
			continue
		}
		_, stale := w.staleMapper(d, n)
		switch {
		case stale:
		case d.Verdict == crds.NowServed:
			all = append(all, w.served(n))
		case d.Verdict == crds.Heals && len(d.Applied()) > 0:
			all = append(all, w.created(d, n))
		}
	}
	return all
}

// dead is true for a controller whose Deployment was seen, and that does not
// run: it will not look again.
func (w *World) dead(controller string) bool {
	return w.Controllers[controller] != nil && !w.runs(controller)
}

func (w *World) served(n *tiers.Node) Verdict {
	v := Verdict{
		Cause: Asleep, Object: n.Ref, State: "asleep", ResolvesItself: Itself, ResolvesWhen: "at " + stamp(n.RetryAt),
		Summary: fmt.Sprintf("%s lacked a kind that exists now; Flux will look again at %s", n.Ref, stamp(n.RetryAt)),
		Why:     fmt.Sprintf("kustomize-controller retries every %s; a new kind is nothing that it watches", n.RetryInterval),
		Repair:  "a smaller spec.retryInterval in git makes the next time shorter",
		Actions: []Action{nudge(n, "ask kustomize-controller to reconcile it now")},
	}
	v.asleepSince(n)
	return v
}

// created is for a trigger that is on the cluster while its operator has not
// made the kinds yet: they have to be waited for before Flux is asked.
func (w *World) created(d *crds.Diagnosis, n *tiers.Node) Verdict {
	t := d.Applied()[0]
	v := Verdict{
		Cause: Asleep, Object: n.Ref, State: "waits-for-operator", ResolvesItself: When,
		ResolvesWhen: fmt.Sprintf("as soon as %s has created %s; Flux then looks again after at most %s", t.Relation.System, t.Kinds(), n.RetryInterval),
		Summary:      fmt.Sprintf("%s: %s; Flux will look again at %s", n.Ref, d.Why, stamp(n.RetryAt)),
		Why:          fmt.Sprintf("kustomize-controller retries every %s; a new kind is nothing that it watches", n.RetryInterval),
	}
	w.missing(&v, d)
	if o := w.Operators[t.Relation.ID]; o.Found() && o.Available == 0 {
		v.Repair = "make the operator run first: " + o.Sentence()
		return v
	}
	v.Actions = []Action{{
		Verb: Nudge, Object: n.Ref, Description: fmt.Sprintf("wait until %s can be used, then ask kustomize-controller to reconcile it", t.Kinds()),
		step: breakStep{d}, pin: tierPin(n), while: []condition{{n.Ref, []string{"metadata", "generation"}, n.Generation}},
	}}
	return v
}

func (v *Verdict) asleepSince(n *tiers.Node) {
	if c := meta.FindStatusCondition(n.Conditions, "Ready"); c != nil {
		v.since(c.LastTransitionTime.Time)
	}
	v.evidence(n.Ref, "Ready", firstLine(readyMessage(n)))
	v.evidence(n.Ref, "spec.retryInterval", n.RetryInterval.String()+" (what Flux resolves)")
}

func nudge(n *tiers.Node, description string) Action {
	return Action{Verb: Nudge, Object: n.Ref, Description: description, step: askStep{}, pin: tierPin(n)}
}

// tierPin pins to what a tier is told to be: its status moves by itself.
func tierPin(n *tiers.Node) pin { return pin{uid: n.UID, generation: n.Generation} }

// readyMessage is what the controller says of a tier.
func readyMessage(n *tiers.Node) string {
	if c := meta.FindStatusCondition(n.Conditions, "Ready"); c != nil {
		return c.Message
	}
	return ""
}
