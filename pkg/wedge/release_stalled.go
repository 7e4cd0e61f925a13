// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/release"
	"github.com/kubestandup/kubestandup/pkg/tiers"
)

// stalled is the Stalled condition of a HelmRelease that its controller has
// given up on in its present form; nil when it has not, when its spec has changed
// since, or where the record has a state of its own that is judged instead.
func stalled(r *Release, reason string) *metav1.Condition {
	if r.Node == nil || r.deleting() || r.Status.Pending() || r.Status == release.Uninstalling {
		return nil
	}
	for i := range r.Node.Conditions {
		c := &r.Node.Conditions[i]
		if c.Type == "Stalled" && c.Status == metav1.ConditionTrue && c.Reason == reason && c.ObservedGeneration >= r.Node.Generation {
			return c
		}
	}
	return nil
}

// releaseExhausted judges HelmReleases that have used up their retries. A
// release that failed once on a cold cluster is such a one: by default there
// is no retry. A reset (requestedAt and resetAt with the same new value) gives
// it another round.
func releaseExhausted(w *World) []Verdict {
	return w.releases(func(r *Release) *Verdict {
		c := stalled(r, "RetriesExceeded")
		if c == nil {
			return nil
		}
		v := w.verdict(r, ReleaseExhausted)
		v.State = c.Reason
		v.since(c.LastTransitionTime.Time)
		v.Summary = fmt.Sprintf("release %s has used up its retries: %s", r.Name, firstLine(withoutValues(c.Message)))
		v.Why = "helm-controller does not look at it again before its spec, chart or values change, or somebody resets it"
		v.Repair = "mend what made it fail first; with retries or strategy RetryOnFailure it would have come up by itself"
		switch why := w.cannotReset(r); {
		case r.Node.Suspended:
			v.ResolvesItself, v.ResolvesWhen = When, "as soon as it is resumed"
		case why != "":
			v.Refused = why
		default:
			try := fmt.Sprintf("it tries the same %s again, in place", rollout(r))
			if r.Latest() == nil {
				try = fmt.Sprintf("it installs %s anew, since no record of the release is left", rollout(r))
			}
			act := r.ask(Reset, "reset its count of failures (requestedAt and resetAt, one value): "+try, resetAtAnnotation)
			if up := r.Node.Helm; up.Upgrade.Remediation == "uninstall" || up.LastAction == "install" && (up.Install.Retries > 0 || up.Install.LastFailure) {
				act[0].Destructive = true
				act[0].Description += "; should it fail again, its remediation uninstalls it"
			}
			v.Actions = act
		}
		return &v
	})
}

// cannotReset is why a reset makes no sense yet.
func (w *World) cannotReset(r *Release) string {
	if why := w.moves(r); why != "" {
		return "the next reconcile would uninstall it: " + why
	}
	if hook := w.refusing(r); hook != nil {
		return fmt.Sprintf("%s, which made it fail, still refuses (%s)", hook, WebhookWithoutEnd)
	}
	if why := r.unknown(); why != "" {
		return why
	}
	if left := r.terminating(); len(left) > 0 {
		return "objects of the former release are still being deleted: " + strings.Join(left, ", ")
	}
	if len(r.Node.Blockers) > 0 && r.Node.State == tiers.Blocked {
		return "it waits for something else first: " + r.Node.Blockers[0].Message
	}
	return ""
}

// refusing is the configuration of a webhook that nobody answers and that the
// HelmRelease has failed on; nil when there is none.
func (w *World) refusing(r *Release) *flux.Ref {
	for _, config := range w.Webhooks {
		for _, dead := range w.deadHooks(config) {
			for _, c := range r.Node.Conditions {
				if strings.Contains(c.Message, fmt.Sprintf("failed calling webhook %q", dead.hook.Name)) {
					return &config.Ref
				}
			}
		}
	}
	return nil
}

// releaseNoTarget judges HelmReleases whose failed upgrade was to be rolled
// back to a revision that helm-controller no longer knows
// (internal/reconcile/rollback_remediation.go ErrMissingRollbackTarget). A
// reset makes no history: the same upgrade ends the same way.
func releaseNoTarget(w *World) []Verdict {
	return w.releases(func(r *Release) *Verdict {
		c := stalled(r, "MissingRollbackTarget")
		if c == nil {
			return nil
		}
		v := w.verdict(r, ReleaseNoTarget)
		v.State = c.Reason
		v.since(c.LastTransitionTime.Time)
		v.Summary = fmt.Sprintf("the upgrade of release %s failed, and there is no revision to roll back to", r.Name)
		v.evidence(r.Node.Ref, "status.history", fmt.Sprintf("%d entries", len(r.Node.Helm.History)))
		v.Why = "helm-controller has stopped; a reset alone repeats the same upgrade and stops again, and deleting records would clear the history once more"
		v.Repair = "mend the chart or the values (a new spec starts it anew); where the cause lay elsewhere and is gone, " +
			"a reset tries it once more, and force upgrades in any case. Leave the records alone"
		for _, flag := range []string{"--reset", "--force"} {
			v.Commands = append(v.Commands, fmt.Sprintf("flux reconcile helmrelease %s -n %s %s", r.Node.Ref.Name, r.Node.Ref.Namespace, flag))
		}
		return &v
	})
}

// releaseTooBig judges HelmReleases whose record does not fit into a Secret.
// Nothing is locked, and nothing to be deleted: there is one Secret for each
// revision, so that old ones take no room away.
func releaseTooBig(w *World) []Verdict {
	return w.releases(func(r *Release) *Verdict {
		if r.Node == nil {
			return nil
		}
		for _, c := range r.Node.Conditions {
			if c.Status != metav1.ConditionFalse || !tooBig(c.Message) {
				continue
			}
			v := w.verdict(r, ReleaseTooBig)
			v.State = c.Reason
			v.since(c.LastTransitionTime.Time)
			v.Summary = fmt.Sprintf("the record of release %s is too big for a Secret", r.Name)
			v.Why = "the API server refuses it; the release before is as it was, and nothing is locked"
			v.Repair = "shrink the release: CRDs out of the chart's templates, .helmignore for stray files, or split it. Deleting old revisions does not help: each has a Secret of its own"
			return &v
		}
		return nil
	})
}

func tooBig(message string) bool {
	return strings.Contains(message, "sh.helm.release.v1.") && strings.Contains(message, "Too long") ||
		strings.Contains(message, "may not be more than 1048576 bytes") ||
		strings.Contains(message, "Request entity too large")
}

// releaseMoves judges suspended HelmReleases that a resume would uninstall.
func releaseMoves(w *World) []Verdict {
	return w.releases(func(r *Release) *Verdict {
		if r.Node == nil || !r.Node.Suspended || r.deleting() || r.Status.Pending() || w.moves(r) == "" {
			return nil
		}
		v := w.verdict(r, ReleaseMoves)
		v.State = "suspended"
		v.since(r.Node.SuspendedSince)
		v.evidence(r.Node.Ref, "spec", w.moves(r))
		v.Summary = fmt.Sprintf("a resume would UNINSTALL release %s: %s", r.Name, w.moves(r))
		v.ResolvesItself, v.ResolvesWhen = When, "as soon as the spec names the release that is there, or somebody resumes it and loses that"
		v.Why = "helm-controller uninstalls a release whose name, namespace, storage or chart changes, before it installs the new one"
		v.Repair = "undo the change of the spec before it is resumed"
		return &v
	})
}

// releaseElsewhere names HelmReleases whose records are on another cluster:
// nothing here tells how they are.
func releaseElsewhere(w *World) []Verdict {
	return w.releases(func(r *Release) *Verdict {
		if !r.Remote || r.Node.State == tiers.Ready {
			return nil
		}
		v := Verdict{Cause: ReleaseElsewhere, Object: r.Node.Ref, State: "elsewhere", ResolvesItself: When}
		v.evidence(r.Node.Ref, "spec.kubeConfig", "set")
		v.Summary = fmt.Sprintf("release %s is on another cluster", r.Name)
		v.ResolvesWhen = "as soon as it is looked at there"
		v.Why = "its records are on the cluster that spec.kubeConfig names, and this connection leads to another one"
		v.Repair = "run this with a context of that cluster"
		return &v
	})
}

// releaseHeld judges what keeps a HelmRelease from being what it should: a run
// of unwedge that was ended before it could resume it, or rights that its
// deletion lacks.
func releaseHeld(w *World) []Verdict {
	return w.releases(func(r *Release) *Verdict {
		switch {
		case r.ours() && !r.Status.Pending() && (r.Record == nil || r.Status != "uninstalling"):
			v := w.verdict(r, ReleaseHeld)
			v.State = "suspended"
			v.since(r.Node.SuspendedSince)
			v.Summary = "a former run of unwedge suspended it for a repair, and was ended before it could resume it"
			v.evidence(r.Node.Ref, "metadata.annotations", "kubestandup.dev/unwedge: "+r.Node.Unwedge)
			v.Why = "helm-controller does nothing about a suspended HelmRelease"
			v.Actions = r.unbracket("resume it, and ask helm-controller to reconcile it now")
			return &v
		case r.deleting() && r.forbidden() != "":
			v := w.verdict(r, ReleaseHeld)
			v.State = "deleting"
			v.since(r.Node.Deleted)
			v.Summary = "it cannot be deleted: " + r.forbidden()
			v.Why = "helm-controller skips the uninstallation where its ServiceAccount is gone, but not where the account is there without its rights"
			v.ResolvesItself, v.ResolvesWhen = When, "as soon as the rights are back"
			v.Repair = fmt.Sprintf("give ServiceAccount %s its RoleBinding back and let it finish. Last: --allow %s removes the finalizer; what the release owns is then left behind",
				valueOr(nonEmpty(r.Node.Helm.ServiceAccount), "of helm-controller"), Arg(r.Node.Ref))
			if w.allows(r.Node.Ref) {
				v.Actions = []Action{{
					Verb: RemoveFinalizer, Object: r.Node.Ref, Destructive: true, pin: r.nodePin(),
					Description: "remove its finalizer: nothing is uninstalled, and what the release owns stays: " + some(r.ownedRefs()),
					step:        removeFinalizer(r.Node.Finalizers, "finalizers.fluxcd.io"),
				}}
			}
			return &v
		}
		return nil
	})
}

// forbidden is what the API server forbids to the deletion, empty when nothing.
func (r *Release) forbidden() string {
	for _, c := range r.Node.Conditions {
		if c.Status == metav1.ConditionFalse && (strings.Contains(c.Message, "is forbidden") || strings.Contains(c.Message, "could not impersonate")) {
			return firstLine(withoutValues(c.Message))
		}
	}
	return ""
}

func (r *Release) ownedRefs() []flux.Ref {
	var out []flux.Ref
	for _, o := range r.Owned {
		if o.Live != nil {
			out = append(out, o.Ref)
		}
	}
	return out
}

// removeFinalizer takes one finalizer out of the list, where it is still at
// its place.
func removeFinalizer(finalizers []string, name string) patchStep {
	for i, f := range finalizers {
		if f == name {
			path := fmt.Sprintf("/metadata/finalizers/%d", i)
			return patchStep{manager: manager, ops: []op{{"test", path, name}, {"remove", path, nil}}}
		}
	}
	return patchStep{manager: manager}
}
