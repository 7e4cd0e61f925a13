// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"fmt"
	"strings"

	"github.com/kubestandup/kubestandup/pkg/release"
)

// The ways out of uninstalling.
const (
	finishChoice     = "finish"
	keepChoice       = "keep"
	uninstallingFlag = "--uninstalling"
)

// releaseUninstalling judges releases whose newest record says "uninstalling":
// somebody began to delete them and did not get to the end. helm-controller
// retries for ever, with "has no deployed releases" where it wants the release
// and with StateError where it remembers it (internal/reconcile/state.go,
// v1.6.4); only a person knows whether the release shall live.
func releaseUninstalling(w *World) []Verdict {
	return w.releases(func(r *Release) *Verdict {
		if r.Status != release.Uninstalling || r.Record == nil {
			return nil
		}
		v := w.verdict(r, ReleaseUninstalling)
		v.Summary = fmt.Sprintf("release %s was being uninstalled, and that was never finished", r.Name)
		for _, k := range r.unserved() {
			v.evidence(secretRef(*r.Latest()), "manifest", k+": its kind is not served")
		}
		switch op := w.operation(r); {
		// helm-controller retries what has failed, so that it always began lately.
		case op.live && !(r.deleting() && r.says("Released", "UninstallFailed")):
			w.maybeRunning(r, &v, op)
		case r.deleting():
			w.uninstallingDeleted(r, &v)
		default:
			w.uninstallingWanted(r, &v)
		}
		return &v
	})
}

// uninstallingWanted: the HelmRelease is there and wants the release, or there
// is none.
func (w *World) uninstallingWanted(r *Release, v *Verdict) {
	v.Why = "helm-controller neither installs nor uninstalls a release in this state, however often it retries"
	if r.Node == nil {
		v.Why = "no HelmRelease owns it, and no helm goes on with it by itself"
	}
	finish, keep := w.finishing(r), w.keeping(r)
	switch w.Choices.Uninstalling {
	case finishChoice:
		w.chosen(r, v, finish, w.finish)
	case keepChoice:
		w.chosen(r, v, keep, w.keep)
	default:
		v.Choice = &Choice{Flag: uninstallingFlag, Options: []Option{finish, keep}}
	}
}

func (w *World) chosen(r *Release, v *Verdict, o Option, plan func(*Release) ([]Action, error)) {
	v.Refused = o.Refused
	if v.Refused != "" {
		return
	}
	acts, err := plan(r)
	if err != nil {
		v.Refused = err.Error()
		return
	}
	v.Actions = r.bracket(ReleaseUninstalling, acts)
}

// keeping is the option of marking the record failed: the next upgrade goes on
// from there, in place, and nothing is recreated.
func (w *World) keeping(r *Release) Option {
	o := Option{
		Value: keepChoice, Keeps: []string{"every object of the release that is still there", "its history"},
		Notes: []string{fmt.Sprintf("marks the record of revision %d failed instead of uninstalling, after a backup", r.Latest().Version)},
	}
	if r.Node == nil {
		o.Notes = append(o.Notes, "then upgrade it with helm")
		return o
	}
	o.Notes = append(o.Notes, "helm-controller then upgrades it in place to "+rollout(r))
	up := r.Node.Helm.Upgrade
	if up.Remediation == "uninstall" && up.Strategy != "RetryOnFailure" && !w.allows(r.Node.Ref) {
		o.Refused = fmt.Sprintf("%s has upgrade.remediation.strategy: uninstall, so an upgrade that fails would delete all of it; change that first, or --allow %s",
			r.Node.Ref, Arg(r.Node.Ref))
	}
	return o
}

// keep marks the newest record failed. Seen with helm-controller 1.6.3: it
// upgrades over it in 2 s and recreates nothing.
func (w *World) keep(r *Release) ([]Action, error) {
	data, err := r.Record.WithStatus(release.Failed, "Marked failed by kubectl unwedge: its uninstallation was never finished")
	if err != nil {
		return nil, err
	}
	return []Action{r.rewriteRecord(MarkFailed, release.Failed, data,
		"mark the record failed instead of uninstalling; no object of the release is deleted")}, nil
}

// uninstallingDeleted: the HelmRelease is being deleted, and its finalizer
// waits for an uninstall that does not succeed. What makes it fail is removed,
// so that helm-controller ends it; the HelmRelease itself is never suspended.
func (w *World) uninstallingDeleted(r *Release, v *Verdict) {
	v.Summary = fmt.Sprintf("release %s is being uninstalled with its HelmRelease, and that does not succeed", r.Name)
	v.ResolvesItself = When
	v.Why = "helm-controller tries again and again, and hides what Helm says"
	hooks := r.hooks("pre-delete", "post-delete")
	switch {
	case r.Node.Suspended:
		v.ResolvesItself, v.ResolvesWhen = Itself, "as soon as helm-controller looks at it"
		v.Why = "it is suspended: helm-controller lets go of it, and leaves behind what it owns"
	case w.Choices.Uninstalling == keepChoice:
		v.Refused = fmt.Sprintf("%s is being deleted: a release whose HelmRelease goes cannot be kept", r.Node.Ref)
	case w.Choices.Uninstalling == finishChoice:
		w.chosen(r, v, w.finishing(r), w.finish)
		if len(v.Actions) > 0 {
			v.Actions = append(v.Actions, Action{
				Verb: Nudge, Object: r.Node.Ref, pin: pin{uid: r.Node.UID}, step: askStep{},
				Description: "ask helm-controller to look: with no record left it lets the HelmRelease go",
			})
		}
	case r.OwnedUnknown != nil:
		v.ResolvesWhen, v.Refused = "as soon as what refuses the deletion no longer does", r.unknown()
	case len(r.unserved()) > 0:
		v.ResolvesWhen = "as soon as the kinds are served again, or the record no longer names them"
		v.Why = "Helm maps every object of the manifest before it deletes any, and these kinds are not served: " + strings.Join(r.unserved(), ", ")
		v.Repair = "if the kinds belong there, put their CustomResourceDefinitions back; else let the record forget them"
		w.dropUnserved(r, v)
	case len(hooks) > 0 && !r.Node.Helm.DisableUninstallHooks && r.hookFails():
		v.ResolvesWhen = "as soon as the hook succeeds, or is skipped"
		for _, h := range hooks {
			v.evidence(secretRef(*r.Latest()), "hook "+h.Kind+"/"+h.Name, strings.Join(h.Events, ", ")+" "+h.LastRun.Phase)
		}
		v.Repair = "look at the hook first (its Job and Pods): it may be there to save data. Where it can be done without, skip it"
		v.Actions = []Action{{
			Verb: SkipHooks, Object: r.Node.Ref, Destructive: true, pin: r.nodePin(),
			Description: "set uninstall.disableHooks: helm-controller deletes the release without running " + hookNames(hooks),
			step: mergeStep{manager: manager, patch: map[string]any{
				"spec": map[string]any{"uninstall": map[string]any{"disableHooks": true}},
			}},
		}, {
			Verb: Nudge, Object: r.Node.Ref, step: askStep{}, pin: pin{uid: r.Node.UID},
			Description: "ask helm-controller to go on now",
		}, {
			Verb: Await, Object: r.Node.Ref, step: goneStep{objects: refs(r.Node.Ref)},
			Description: "wait until it is gone",
		}}
	default:
		v.ResolvesWhen = "as soon as what refuses the deletion no longer does"
		v.Repair = "see what refuses: a webhook without an end, missing rights of " + valueOr(nonEmpty(r.Node.Helm.ServiceAccount), helmController).(string) +
			", a finalizer. What Helm could not delete is still there, and --uninstalling=finish deletes it in its place"
		for _, o := range r.Owned {
			if o.Live != nil {
				v.evidence(o.Ref, "metadata", "still there"+heldBy(o.Live))
			}
		}
	}
}

// dropUnserved rewrites the record without the documents that no kind serves,
// which is what keeps Helm from deleting the others.
func (w *World) dropUnserved(r *Release, v *Verdict) {
	const instead = "; --uninstalling=finish deletes what is left in its place"
	gone := map[int]bool{}
	for _, o := range r.Owned {
		switch {
		case o.Unknown:
			v.Refused = fmt.Sprintf("%s cannot be looked at: discovery of %s fails", o.Ref, o.APIVersion)
			return
		case o.Served:
		case o.Live != nil:
			v.Refused = fmt.Sprintf("%s is there, served as %s: a record that forgets it would leave it behind%s", o.Ref, o.Ref.APIVersion, instead)
			return
		default:
			gone[o.Index] = true
		}
	}
	for _, o := range r.Owned {
		if o.Served && gone[o.Index] {
			v.Refused = fmt.Sprintf("%s stands in one List with what is not served: a record that forgets that would leave it behind%s", o.Ref, instead)
			return
		}
	}
	data, err := r.Record.Without(func(index int) bool { return gone[index] })
	if err != nil {
		v.Refused = err.Error()
		return
	}
	v.Actions = []Action{
		r.rewriteRecord(DropDocuments, r.Status, data, "let the record forget "+strings.Join(r.unserved(), ", ")+"; such objects cannot exist while their kind is not served"),
		{Verb: Nudge, Object: r.Node.Ref, step: askStep{}, pin: pin{uid: r.Node.UID}, Description: "ask helm-controller to go on now"},
		{Verb: Await, Object: r.Node.Ref, step: goneStep{objects: refs(r.Node.Ref)}, Description: "wait until it is gone"},
	}
}

func (r *Release) hooks(events ...string) []release.Hook {
	var out []release.Hook
	for _, h := range r.Record.Hooks {
		for _, e := range events {
			if h.On(e) {
				out = append(out, h)
				break
			}
		}
	}
	return out
}

// hookFails is true when the record or the HelmRelease says that a hook of the
// deletion did not succeed.
func (r *Release) hookFails() bool {
	for _, h := range r.hooks("pre-delete", "post-delete") {
		if h.LastRun.Phase == "Failed" || h.LastRun.Phase == "Running" || !h.LastRun.StartedAt.IsZero() && h.LastRun.CompletedAt.IsZero() {
			return true
		}
	}
	for _, c := range r.Node.Conditions {
		if c.Status == "False" && strings.Contains(c.Message, "hook") {
			return true
		}
	}
	return false
}

// says is true when a condition of the HelmRelease is False for the reason.
func (r *Release) says(kind, reason string) bool {
	for _, c := range r.Node.Conditions {
		if c.Type == kind && c.Status == "False" && c.Reason == reason {
			return true
		}
	}
	return false
}

func hookNames(hooks []release.Hook) string {
	var names []string
	for _, h := range hooks {
		names = append(names, h.Kind+"/"+h.Name)
	}
	return strings.Join(names, ", ")
}
