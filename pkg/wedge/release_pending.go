// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"fmt"
	"strings"
)

// releasePending judges releases whose newest record says that an operation
// runs: pending-install, pending-upgrade, pending-rollback. helm-controller
// unlocks such a release at its next reconcile (internal/reconcile/unlock.go,
// since v0.37), so what is wrong is what keeps it from reconciling; plain Helm
// never does.
func releasePending(w *World) []Verdict {
	return w.releases(func(r *Release) *Verdict {
		if !r.Status.Pending() {
			return nil
		}
		v := w.verdict(r, ReleasePending)
		if op := w.operation(r); op.live {
			w.maybeRunning(r, &v, op)
			return &v
		}
		if r.Node == nil {
			w.pendingPlain(r, &v)
		} else {
			w.pendingManaged(r, &v)
		}
		return &v
	})
}

// maybeRunning is the verdict on an operation that may be at work right now.
func (w *World) maybeRunning(r *Release, v *Verdict, op operation) {
	if r.Node == nil {
		v.Summary = fmt.Sprintf("release %s is %s, and may be at work", r.Name, r.Status)
		v.Why = "a helm that was killed never does"
		v.ResolvesItself, v.ResolvesWhen = When, "as soon as helm ends, if it still runs"
		v.Refused = "that helm may still run: " + op.why
		return
	}
	v.State = "running"
	v.Summary = fmt.Sprintf("release %s is %s: in progress, leave it", r.Name, r.Status)
	v.ResolvesItself = Itself
	v.ResolvesWhen = fmt.Sprintf("as soon as the operation ends (%s)", op.why)
	v.Why = "somebody may be at work on it"
}

func (w *World) pendingManaged(r *Release, v *Verdict) {
	c := w.Controllers[helmController]
	op := w.operation(r)
	v.Summary = fmt.Sprintf("release %s is left in %s: %s", r.Name, r.Status, op.why)
	v.ResolvesItself = When
	v.Why = "helm-controller marks such a release failed and goes on from there, as soon as it reconciles it"
	if dying(r, c) {
		v.evidence(c.Deployment, "status.restarts", fmt.Sprintf("%d, the last one %s", c.Restarts, c.LastTermination))
	}
	leftovers := r.terminating()
	switch {
	case r.deleting() && r.Node.Suspended:
		v.ResolvesItself, v.ResolvesWhen = Itself, "as soon as helm-controller looks at it"
		v.Why = "it is being deleted while it is suspended: helm-controller lets go of it and leaves what it owns behind"
	case r.deleting():
		v.ResolvesItself, v.ResolvesWhen = Itself, "as soon as helm-controller has uninstalled it"
	case !unlocks(c):
		w.pendingOld(r, v, c)
	case r.OwnedUnknown != nil:
		v.Refused = r.unknown()
	case len(leftovers) > 0:
		v.ResolvesWhen = "as soon as what is left of the former release is gone: " + strings.Join(leftovers, ", ")
		v.Why = "objects of the release are still being deleted; an install that races them loses data"
	case c != nil && !c.Running():
		v.ResolvesWhen = "as soon as " + helmController + " runs"
		v.Why = fmt.Sprintf("%s has %d of %d replicas ready", c.Deployment, c.Ready, c.Wanted)
	case r.Node.Suspended:
		w.pendingSuspended(r, v)
	case len(r.Node.Blockers) > 0:
		v.ResolvesWhen = "as soon as what it waits for is there: " + r.Node.Blockers[0].Message
		if root := r.Node.Root; root != nil && root.Object != r.Node.Ref {
			v.evidence(root.Object, "root cause", root.Message)
		}
		v.Why = "helm-controller does not reconcile it before that"
	default:
		v.ResolvesWhen = "as soon as helm-controller reconciles it"
		v.Actions = r.ask(Nudge, "ask helm-controller to reconcile it now; it marks the release failed and upgrades it in place")
	}
}

// dying is true when the controller that left the release pending keeps being
// killed: unlocking releases first is then pointless.
func dying(_ *Release, c *Controller) bool {
	return c != nil && c.Restarts > 1 && c.LastTermination != "" && c.LastTermination != "Completed"
}

// pendingSuspended: a suspended release is not reconciled, so not unlocked.
func (w *World) pendingSuspended(r *Release, v *Verdict) {
	n := r.Node
	v.ResolvesWhen = "as soon as it is resumed"
	v.Why = "it is suspended, and helm-controller looks at nothing else before that"
	v.evidence(n.Ref, "spec.suspend", suspendedBy(n.Tier))
	if latest := r.latestSnapshot(); latest != nil {
		v.evidence(n.Ref, "what a resume rolls out", rollout(r))
	}
	switch why := stays(n.Tier); {
	case r.ours():
		v.Actions = r.unbracket("resume it: a former run of unwedge had suspended it")
	case w.moves(r) != "":
		v.Refused = "resuming it would uninstall the release: " + w.moves(r)
	case why != "":
		v.Repair = "it is kept suspended on purpose: " + why
	default:
		v.Actions = r.resume(fmt.Sprintf("resume it; helm-controller marks the release failed and upgrades it (%s)", rollout(r)))
	}
}

// pendingOld: a helm-controller before v0.37 fails for ever on a lock.
func (w *World) pendingOld(r *Release, v *Verdict, c *Controller) {
	v.ResolvesItself = Never
	v.Why = fmt.Sprintf("%s %s does not unlock releases: that came with v0.37", helmController, c.Version)
	if stays(r.Node.Tier) != "" {
		v.Repair = "it is kept suspended on purpose: " + stays(r.Node.Tier)
		return
	}
	v.Actions = r.bracket(ReleasePending, r.dropPending())
}

// pendingPlain: nobody will touch the release but a person.
func (w *World) pendingPlain(r *Release, v *Verdict) {
	op := w.operation(r)
	v.Summary = fmt.Sprintf("release %s is left in %s: %s", r.Name, r.Status, op.why)
	v.Why = "no HelmRelease owns it, and plain Helm refuses every upgrade: another operation is in progress"
	if r.Good == nil {
		v.Repair = "then install it again with the same chart and values: it adopts what is there"
		v.Commands = []string{fmt.Sprintf("helm upgrade --install %s CHART -n %s", r.Name, r.Record.ReleaseNamespace)}
		for _, o := range r.Owned {
			if o.Live != nil && o.Owner == "" {
				v.evidence(o.Ref, "kept", "it is adopted, not deleted")
			}
		}
		v.Actions = r.dropPending()
		return
	}
	if len(r.unserved()) == 0 {
		v.Repair = fmt.Sprintf("roll it back to revision %d, the newest that was good. If its hooks fail, run this again with --allow %s, which deletes the pending records alone",
			r.Good.Version, Arg(secretRef(*r.Latest())))
		v.Commands = []string{fmt.Sprintf("helm rollback %s %d -n %s", r.Name, r.Good.Version, r.Namespace)}
		if !w.allows(secretRef(*r.Latest())) {
			return
		}
	} else {
		v.evidence(secretRef(*r.Latest()), "manifest", "kinds that are not served: "+strings.Join(r.unserved(), ", "))
	}
	v.Actions = r.dropPending()
}

// dropPending deletes the pending records above the newest good one, and
// nothing else: the highest last, so that a run that is cut short is found
// again.
func (r *Release) dropPending() []Action {
	var acts []Action
	for _, rev := range r.Revisions {
		if r.Good != nil && rev.Version < r.Good.Version {
			continue
		}
		if rev.Label.Pending() || rev.Version == r.Latest().Version {
			acts = append(acts, deleteRecord(rev, ", which never ended; no object of the release is deleted"))
		}
	}
	return acts
}
