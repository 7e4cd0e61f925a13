// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"fmt"

	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/release"
)

// resetAtAnnotation clears the count of failures where it equals requestedAt.
const resetAtAnnotation = "reconcile.fluxcd.io/resetAt"

// nodePin pins to what a HelmRelease wants, not to its status.
func (r *Release) nodePin() pin { return pin{uid: r.Node.UID, generation: r.Node.Generation} }

func recordPin(rev release.Revision) pin {
	return pin{uid: rev.UID, resourceVersion: rev.ResourceVersion}
}

// bracket puts acts on records between a suspend and a resume of the
// HelmRelease, so that the controller does not work on what changes under it.
// One that somebody else has suspended is left so; one that is being deleted
// is never suspended: its finalizer would let go.
func (r *Release) bracket(cause Cause, acts []Action) []Action {
	if r.Node == nil || r.deleting() {
		return acts
	}
	still := condition{r.Node.Ref, []string{"spec", "suspend"}, true}
	for i := range acts {
		acts[i].while = append(acts[i].while, still)
	}
	if r.Node.Suspended && !r.ours() {
		return acts
	}
	var out []Action
	if !r.Node.Suspended {
		out = append(out, Action{
			Verb: Suspend, Object: r.Node.Ref, pin: r.nodePin(),
			Description: "suspend it, so that helm-controller leaves the release alone meanwhile",
			step: mergeStep{manager: manager, patch: map[string]any{
				"spec":     map[string]any{"suspend": true},
				"metadata": map[string]any{"annotations": map[string]any{flux.UnwedgeAnnotation: string(cause)}},
			}},
		})
	}
	return append(append(out, acts...), r.unbracket("resume it, and ask helm-controller to reconcile it now")...)
}

// resume un-suspends the HelmRelease, asks for a reconcile, and waits for what
// comes of it.
func (r *Release) resume(description string) []Action {
	return []Action{{
		Verb: Resume, Object: r.Node.Ref, Description: description, pin: r.nodePin(),
		step: mergeStep{manager: manager, ask: []string{flux.RequestedAtAnnotation}, patch: map[string]any{
			"spec":     map[string]any{"suspend": nil},
			"metadata": map[string]any{"annotations": map[string]any{flux.UnwedgeAnnotation: nil}},
		}},
	}, r.outcome()}
}

// unbracket takes back a suspension of ours, whatever else has become of the
// spec meanwhile: left suspended, nobody would look at it.
func (r *Release) unbracket(description string) []Action {
	acts := r.resume(description)
	acts[0].pin = pin{uid: r.Node.UID}
	return acts
}

func (r *Release) outcome() Action {
	return Action{
		Verb: Await, Object: r.Node.Ref, step: outcomeStep{},
		Description: "wait until helm-controller has answered",
	}
}

// ask requests a reconcile; also are further annotations with the same token.
func (r *Release) ask(verb Verb, description string, also ...string) []Action {
	return []Action{
		{Verb: verb, Object: r.Node.Ref, Description: description, pin: r.nodePin(), step: askStep{also: also}},
		r.outcome(),
	}
}

// deleteRecord deletes one record. The release forgets that revision.
func deleteRecord(rev release.Revision, why string) Action {
	return Action{
		Verb: Delete, Object: secretRef(rev), Destructive: true, pin: recordPin(rev), step: deleteStep{},
		Description: fmt.Sprintf("delete the record of revision %d%s", rev.Version, why),
	}
}

// rewriteRecord writes other content of a record, and its label with it: Helm
// looks some things up by the label, others in the record.
func (r *Release) rewriteRecord(verb Verb, status release.Status, data []byte, description string) Action {
	latest := *r.Latest()
	return Action{
		Verb: verb, Object: secretRef(latest), Destructive: true, pin: recordPin(latest), Description: description,
		step: mergeStep{manager: manager, patch: map[string]any{
			"metadata": map[string]any{"labels": map[string]any{"status": string(status)}},
			"data":     map[string]any{"release": data},
		}},
	}
}
