// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

// phaseError is the phase that cdi-operator ends in when its lock, the
// ConfigMap cdi-config, is not its CDI resource's, or is gone while the
// resource has a phase (containerized-data-importer pkg/operator/controller
// reconciler-hooks.go checkSanity; controller-lifecycle-operator-sdk
// pkg/sdk/reconciler Reconcile).
const phaseError = "Error"

// phaseDeploying is the phase of a CDI whose Deployments are not available yet.
const phaseDeploying = "Deploying"

func cdiKind() schema.GroupKind { return schema.GroupKind{Group: "cdi.kubevirt.io", Kind: "CDI"} }

// cdiErrors are CDI resources in phase Error, or that do not get as far as
// Deployed, and an operator that has no CDI resource.
func cdiErrors(w *World) []Verdict {
	var out []Verdict
	for _, t := range w.Triggers {
		if t.Ref.GroupVersionKind().GroupKind() != cdiKind() || !t.Deleted.IsZero() {
			continue
		}
		op := w.operator(t.Relation)
		switch {
		case op == nil || op.Wanted == 0 || t.Phase != phaseError && t.Phase != phaseDeploying:
		case t.Phase == phaseError:
			out = append(out, w.cdiError(t, op))
		default:
			out = append(out, w.cdiDeploying(t, op))
		}
	}
	if v, ok := w.cdiMissing(); ok {
		out = append(out, v)
	}
	return out
}

// lockState is what the lock says of a CDI resource.
type lockState int

const (
	lockUnknown lockState = iota
	lockHeld              // by this very resource
	lockAbsent
	lockStale // by a resource that is gone, or the lock itself is going
	lockForeign
)

func (w *World) lockOf(t *TriggerState) (lockState, string) {
	l := w.Lock
	switch {
	case l == nil:
		return lockUnknown, "its lock was not looked at"
	case l.Unknown != "":
		return lockUnknown, fmt.Sprintf("its lock %s could not be read: %s", l.Ref, l.Unknown)
	case !l.Exists:
		return lockAbsent, fmt.Sprintf("its lock %s does not exist", l.Ref)
	case !l.Deleted.IsZero():
		return lockStale, fmt.Sprintf("its lock %s is being deleted", l.Ref)
	case l.Owner.ControllerUID == t.UID:
		return lockHeld, fmt.Sprintf("its lock %s is its own", l.Ref)
	}
	for _, o := range w.Triggers {
		if o.UID == l.Owner.ControllerUID && o.Deleted.IsZero() {
			return lockForeign, fmt.Sprintf("its lock %s belongs to %s, and only one CDI resource may exist", l.Ref, o.Ref)
		}
	}
	return lockStale, fmt.Sprintf("its lock %s belongs to a %s with uid %s, which is gone", l.Ref, l.Owner.Controller.Kind, l.Owner.ControllerUID)
}

func (w *World) cdiError(t *TriggerState, op *Workload) Verdict {
	state, sentence := w.lockOf(t)
	v := Verdict{
		Cause: CDIError, Object: t.Ref, State: t.Phase, ResolvesItself: Never,
		Summary: fmt.Sprintf("%s is in phase Error: %s", t.Ref, sentence),
		Why:     "the operator does not leave phase Error by itself; older releases never do (kubevirt/containerized-data-importer#3080)",
	}
	w.evidenceCDI(&v, t, op)
	if op.Available == 0 {
		v.ResolvesItself, v.ResolvesWhen = When, "as soon as the operator runs; nothing can be said before"
		v.Why = w.workloadKeeper(op).why
		v.Repair = "mend what keeps the operator from running"
		return v
	}
	upgrade := "least risk first: (1) upgrade the operator; "
	never := ". The CRD datavolumes.cdi.kubevirt.io is never deleted: every DataVolume would go with it"
	switch {
	case state == lockUnknown:
		v.Repair = upgrade + "before more can be said, the lock has to be readable" + never
	case state == lockForeign:
		v.Repair = "delete the CDI resource that is not wanted; the other one stays. Which that is, only you can tell: look which one made the CRDs (their ownerReferences)" + never
	case state != lockAbsent && !op.restartedSince(t.erredAt(w.Lock)):
		v.Repair = upgrade + "(2) restart it; (3) if the phase is still Error after that, run again: recreating the CDI resource is then the last way" + never
		v.Actions = []Action{restart(op, w.Now)}
	default:
		v.Repair = upgrade + "(2) a restart does not help here; (3) recreate the CDI resource" + never
		w.recreate(&v, t)
	}
	return v
}

// erredAt is when the phase became what it is, as far as anything tells.
func (t *TriggerState) erredAt(l *Lock) time.Time {
	var at time.Time
	for _, c := range t.Conditions {
		if c.Type == "Degraded" && c.Status == "True" {
			at = c.LastTransitionTime.Time
		}
	}
	if l != nil && l.Deleted.After(at) {
		at = l.Deleted
	}
	if at.IsZero() {
		at = t.Created
	}
	return at
}

func (d *Workload) restartedSince(t time.Time) bool {
	return !d.RestartedAt.IsZero() && !d.RestartedAt.Before(t)
}

// restart replaces the Pods of a Deployment, as kubectl rollout restart does.
func restart(d *Workload, now time.Time) Action {
	annotations := map[string]any{"kubectl.kubernetes.io/restartedAt": now.UTC().Format(time.RFC3339)}
	return Action{
		Verb: Restart, Object: d.Ref, pin: pin{uid: d.UID, generation: d.Generation},
		step: mergeStep{manager: manager, patch: map[string]any{
			"spec": map[string]any{"template": map[string]any{"metadata": map[string]any{"annotations": annotations}}},
		}},
		Description: "replace its Pods: a new operator reads the lock anew",
	}
}

// recreate deletes the CDI resource so that it is made anew. Its operator, and
// then the garbage collector, delete what it owns: the CRDs of DataVolumes
// among it. So nothing that holds data may be there.
func (w *World) recreate(v *Verdict, t *TriggerState) {
	for _, d := range w.Data.imports() {
		v.evidence(d.Ref, "phase", d.Phase+": data is being written")
	}
	if in := w.Data.imports(); len(in) > 0 {
		refs := make([]flux.Ref, 0, len(in))
		for _, d := range in {
			refs = append(refs, d.Ref)
		}
		v.Refused = fmt.Sprintf("recreating %s would break off the imports into %s: wait until they are done", t.Ref, named(refs, 20))
		return
	}
	if v.Refused = w.refusal("recreating " + t.Ref.String()); v.Refused != "" {
		return
	}
	again := "Apply it again afterwards: its backup, or the tier that holds it"
	if t.Owner.Tier.Name != "" {
		again = fmt.Sprintf("%s applies it again", t.Owner.Tier)
	}
	collected, _ := w.leftovers(&t.Held)
	text := "delete it, so that it is made anew with a lock of its own"
	if len(collected) > 0 {
		text += fmt.Sprintf("; with it goes what it owns, a CRD with every object of its kind: %s", named(collected, 20))
	}
	v.Actions = []Action{
		{
			Verb: Delete, Object: t.Ref, Destructive: true, step: deleteStep{}, pin: pin{uid: t.UID, generation: t.Generation},
			Description: text + ". " + again,
		},
		{
			Verb: Await, Object: t.Ref, step: goneStep{append([]flux.Ref{t.Ref}, collected...)},
			Description: "wait until it and what it owns are gone: the operator makes nothing anew before that",
		},
	}
	if w.Flux == nil {
		return
	}
	for i := range w.Flux.Tiers {
		if o := &w.Flux.Tiers[i]; o.Ref == t.Owner.Tier && !o.Suspended && o.Deleted.IsZero() {
			v.Actions = append(v.Actions, Action{
				Verb: Nudge, Object: o.Ref, pin: pin{uid: o.UID, generation: o.Generation}, step: askStep{},
				Description: "ask it to apply the CDI resource again",
			})
		}
	}
}

func (w *World) evidenceCDI(v *Verdict, t *TriggerState, op *Workload) {
	v.evidence(t.Ref, "status.phase", t.Phase)
	for _, c := range t.Conditions {
		if c.Message != "" {
			v.evidence(t.Ref, c.Type, string(c.Status)+": "+because(c.Reason, c.Message))
		}
		if c.Type == "Degraded" && c.Status == "True" {
			v.since(c.LastTransitionTime.Time)
		}
	}
	v.evidence(t.Ref, "metadata.uid", string(t.UID))
	if l := w.Lock; l != nil {
		switch {
		case l.Unknown != "":
			v.evidence(l.Ref, "", "not readable: "+l.Unknown)
		case !l.Exists:
			v.evidence(l.Ref, "", "does not exist")
		default:
			v.evidence(l.Ref, "metadata.ownerReferences uid", string(l.Owner.ControllerUID))
			if !l.Deleted.IsZero() {
				v.evidence(l.Ref, "metadata.deletionTimestamp", l.Deleted.UTC().Format(timeFormat))
			}
		}
	}
	v.evidence(t.Ref, "status.operatorVersion", t.OperatorVersion)
	v.evidence(op.Ref, "image", op.Image)
	v.evidence(op.Ref, "status.availableReplicas", fmt.Sprintf("%d of %d", op.Available, op.Wanted))
}
