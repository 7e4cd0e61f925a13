// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/release"
)

// finishing is the option of ending the uninstallation: what it deletes, what
// it keeps, and why it would be refused.
func (w *World) finishing(r *Release) Option {
	o := Option{Value: finishChoice}
	if o.Refused = r.unknown(); o.Refused != "" {
		return o
	}
	if r.Foreign && !w.allows(secretRef(*r.Latest())) {
		o.Refused = fmt.Sprintf("its record is in namespace %s and names objects in %s, which Helm never does: whoever wrote it may be one who may not touch these. --allow %s",
			r.Namespace, r.Record.ReleaseNamespace, Arg(secretRef(*r.Latest())))
		return o
	}
	var lost []string
	for i := range r.Owned {
		obj := &r.Owned[i]
		switch why := obj.kept(); {
		case obj.Unknown:
			lost = append(lost, fmt.Sprintf("%s cannot be looked at: discovery of %s fails", obj.Ref, obj.Ref.APIVersion))
		case obj.Live == nil:
		case why != "" && !w.allows(obj.Ref):
			o.Keeps = append(o.Keeps, fmt.Sprintf("%s (%s)", obj.Ref, why))
		default:
			o.Deletes = append(o.Deletes, obj.Ref.String())
			if losing := obj.losing(); losing != "" && !w.allows(obj.Ref) {
				lost = append(lost, fmt.Sprintf("%s %s: --allow %s", obj.Ref, losing, Arg(obj.Ref)))
			}
		}
	}
	for _, rev := range r.Revisions {
		o.Deletes = append(o.Deletes, secretRef(rev).String())
	}
	if hooks := r.hooks("pre-delete", "post-delete"); len(hooks) > 0 && !w.Choices.Hooks {
		o.Notes = append(o.Notes, "its hooks are left out: "+hookNames(hooks)+" (--run-hooks runs them)")
	}
	if r.Node != nil && !r.deleting() {
		o.Notes = append(o.Notes, fmt.Sprintf("%s then installs the release anew", r.Node.Ref))
	}
	if len(lost) > 0 {
		o.Refused = "it would lose data: " + strings.Join(lost, "; ")
	}
	return o
}

// kept is why an object stays, empty when it goes.
func (o *Owned) kept() string {
	switch {
	case o.Keep:
		return "helm.sh/resource-policy says keep"
	case o.Owner != "":
		return "it now belongs to " + o.Owner
	}
	return ""
}

// losing is what would be lost with an object, empty for one that Flux makes
// again as it was.
func (o *Owned) losing() string {
	switch {
	case o.Kind == "PersistentVolumeClaim" && o.APIVersion == "v1":
		return "holds data"
	case virtual(o.Ref.Group()):
		return "runs virtual machines, or holds their disks"
	case len(o.Lost) > 0:
		return "takes with it " + some(o.Lost)
	}
	return ""
}

// some names a few objects and counts the rest.
func some(objects []flux.Ref) string {
	const few = 3
	var names []string
	for i, ref := range objects {
		if i == few {
			names = append(names, fmt.Sprintf("%d more", len(objects)-few))
			break
		}
		names = append(names, ref.String())
	}
	return strings.Join(names, ", ")
}

// finish deletes what is left of the release in Helm's order, waits until it
// is gone, and then deletes the records, the newest last: a run that is cut
// short finds the release as it is now.
func (w *World) finish(r *Release) ([]Action, error) {
	if w.Choices.Hooks && len(r.hooks("pre-delete", "post-delete")) > 0 {
		return w.finishWithHooks(r)
	}
	return append(w.deleteObjects(r), deleteRecords(r)...), nil
}

func (w *World) deleteObjects(r *Release) []Action {
	var acts []Action
	var going []flux.Ref
	for i := range r.Owned {
		o := &r.Owned[i]
		if o.Live == nil || o.kept() != "" && !w.allows(o.Ref) {
			continue
		}
		going = append(going, o.Ref)
		description := "delete it"
		if losing := o.losing(); losing != "" {
			description += ", which " + losing
		}
		acts = append(acts, Action{
			Verb: Delete, Object: o.Ref, Destructive: true, Description: description,
			pin: o.Live.pin(), step: deleteOwnedStep{r, *o},
		})
	}
	if len(going) > 0 {
		acts = append(acts, Action{
			Verb: Await, Object: r.Object(), step: goneStep{objects: going},
			Description: fmt.Sprintf("wait until %s gone", objectsAre(len(going))),
		})
	}
	return acts
}

func objectsAre(n int) string {
	if n == 1 {
		return "the object is"
	}
	return fmt.Sprintf("the %d objects are", n)
}

func deleteRecords(r *Release) []Action {
	var acts []Action
	for _, rev := range r.Revisions {
		acts = append(acts, deleteRecord(rev, ""))
	}
	return acts
}

// finishWithHooks runs the hooks of the deletion around it.
func (w *World) finishWithHooks(r *Release) ([]Action, error) {
	var acts []Action
	for _, event := range []string{"pre-delete", "post-delete"} {
		hooks := r.hooks(event)
		slices.SortStableFunc(hooks, func(a, b release.Hook) int { return a.Weight - b.Weight })
		for _, h := range hooks {
			run, err := w.runHook(r, h, event)
			if err != nil {
				return nil, err
			}
			acts = append(acts, run)
		}
		if event == "pre-delete" {
			acts = append(acts, w.deleteObjects(r)...)
		}
	}
	return append(acts, deleteRecords(r)...), nil
}

// unknown is why nothing can be said of what the release owns, empty when it
// could be looked at.
func (r *Release) unknown() string {
	if r.OwnedUnknown == nil {
		return ""
	}
	return "what is left of the release could not be looked at: " + r.OwnedUnknown.Error()
}

// unserved names the objects of the manifest whose kind is not served.
func (r *Release) unserved() []string {
	var names []string
	for _, o := range r.Owned {
		if !o.Served && !o.Unknown {
			names = append(names, fmt.Sprintf("%s (%s)", o.Ref, o.APIVersion))
		}
	}
	return names
}

// terminating names the objects of the release that are being deleted.
func (r *Release) terminating() []string {
	var names []string
	for _, o := range r.Owned {
		if o.Live != nil && !o.Live.Deleted.IsZero() {
			names = append(names, o.Ref.String()+heldBy(o.Live))
		}
	}
	return names
}

func heldBy(o *Observed) string {
	if len(o.Finalizers) == 0 {
		return ""
	}
	return ", held by finalizer " + strings.Join(o.Finalizers, ", ")
}

func refs(all ...flux.Ref) []flux.Ref { return all }

var errHookManifest = errors.New("its manifest is not one object")
