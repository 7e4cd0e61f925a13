// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/knowledge"
)

// keeper is who has to take the finalizers off an object.
type keeper struct {
	state keeperState
	// why is one sentence.
	why string
	// home is the namespace that its Deployment belongs in, as far as known.
	home string
}

type keeperState int

const (
	keeperUnknown keeperState = iota
	keeperRuns
	keeperComing // its Deployment is there and wants replicas
	keeperStopped
	keeperGone
)

// lost is true when nobody can be seen who would take the finalizers off.
func (k keeper) lost() bool { return k.state == keeperGone || k.state == keeperUnknown }

// operator is the Deployment of a relation's operator; nil when none was seen.
func (w *World) operator(r *knowledge.Relation) *Workload {
	if r == nil || r.Operator == nil || len(r.Operator.Labels) == 0 {
		return nil
	}
	for _, d := range w.Workloads {
		if labels.SelectorFromSet(r.Operator.Labels).Matches(labels.Set(d.Labels)) {
			return d
		}
	}
	return nil
}

// keeperOf finds out who has to take the finalizers off.
func (w *World) keeperOf(h *Held) keeper {
	group := h.Ref.Group()
	switch {
	case len(foreign(h.Finalizers)) == 0:
		return keeper{state: keeperRuns, why: fmt.Sprintf("Kubernetes itself takes %s off once nothing needs the object", strings.Join(h.Finalizers, ", "))}
	case strings.HasSuffix(group, ".toolkit.fluxcd.io"):
		return w.fluxKeeper(h)
	case w.Unread[PartWorkloads] != "":
		return keeper{why: "the workloads could not be read: " + w.Unread[PartWorkloads]}
	case h.Relation != nil && h.Relation.Operator != nil:
		return w.operatorKeeper(h.Relation)
	}
	return w.writerKeeper(h)
}

// fluxKeeper knows which of Flux's controllers reconciles a kind.
func (w *World) fluxKeeper(h *Held) keeper {
	name := "source-controller"
	switch h.Ref.Group() {
	case flux.KustomizeGroup:
		name = "kustomize-controller"
	case flux.HelmGroup:
		name = "helm-controller"
	case "notification.toolkit.fluxcd.io":
		name = "notification-controller"
	case "image.toolkit.fluxcd.io":
		name = "image-reflector-controller"
		if h.Ref.Kind == "ImageUpdateAutomation" {
			name = "image-automation-controller"
		}
	}
	c := w.Controllers[name]
	switch {
	case c == nil:
		return keeper{state: keeperGone, why: "no Deployment of " + name + " was seen"}
	case c.Running():
		return keeper{state: keeperRuns, why: name + " runs"}
	case c.Wanted == 0:
		return keeper{keeperStopped, fmt.Sprintf("%s is scaled to zero", c.Deployment), c.Deployment.Namespace}
	}
	return keeper{keeperComing, fmt.Sprintf("%s has %d of %d replicas ready", c.Deployment, c.Ready, c.Wanted), c.Deployment.Namespace}
}

func (w *World) operatorKeeper(r *knowledge.Relation) keeper {
	d := w.operator(r)
	if d == nil {
		return keeper{keeperGone, "no operator of " + r.System + " was seen", r.Operator.Namespace}
	}
	return w.workloadKeeper(d)
}

func (w *World) workloadKeeper(d *Workload) keeper {
	k := keeper{home: d.Ref.Namespace}
	switch {
	case d.Wanted == 0:
		k.state, k.why = keeperStopped, fmt.Sprintf("%s is scaled to zero", d.Ref)
	case d.Available > 0:
		k.state, k.why = keeperRuns, fmt.Sprintf("%s runs", d.Ref)
	default:
		k.state, k.why = keeperComing, fmt.Sprintf("%s has none of %d replicas available", d.Ref, d.Wanted)
		if pods := w.podsOf(d.Ref.Namespace, d.PodLabels); len(pods) > 0 {
			k.why += "; " + strings.Join(pods, "; ")
		}
	}
	return k
}

// writerKeeper looks for a workload that is named as who wrote the
// finalizers: by default a client calls itself as its program is called.
func (w *World) writerKeeper(h *Held) keeper {
	var writers []string
	for _, m := range h.SetBy {
		if !tool(m) {
			writers = append(writers, m)
		}
	}
	if len(writers) == 0 {
		return keeper{why: "who takes " + strings.Join(foreign(h.Finalizers), ", ") + " off is not known"}
	}
	best := keeper{state: keeperGone, why: fmt.Sprintf("%s wrote the finalizer, and no workload of that name was seen", strings.Join(writers, ", "))}
	for _, d := range w.Workloads {
		if slices.ContainsFunc(writers, func(m string) bool { return slices.Contains(d.Names, m) }) {
			if k := w.workloadKeeper(d); k.state < best.state {
				best = k
			}
		}
	}
	return best
}

// tool is true for field managers that write what somebody else has written
// down: that they wrote a finalizer says nothing of who takes it off.
func tool(manager string) bool {
	m := path.Base(manager)
	return strings.HasPrefix(m, "kubectl") || strings.HasPrefix(m, "argocd") ||
		slices.Contains([]string{"helm", "kustomize-controller", "helm-controller", "flux", "standup", "Terraform", "before-first-apply", "unknown"}, m)
}

// foreign are the finalizers that Kubernetes' own controllers do not take off.
// One without a domain of its own, or of kubernetes.io, is theirs (k8s.io/api
// core/v1, kubernetes pkg/controller).
func foreign(finalizers []string) []string {
	var out []string
	for _, f := range finalizers {
		domain, _, named := strings.Cut(f, "/")
		switch {
		case f == "foregroundDeletion", f == "orphan", f == "kubernetes",
			named && (domain == "kubernetes.io" || domain == "batch.kubernetes.io" || domain == "service.kubernetes.io" ||
				strings.HasSuffix(domain, ".apiextensions.k8s.io")),
			f == "customresourcecleanup.apiextensions.k8s.io":
		default:
			out = append(out, f)
		}
	}
	return out
}

// removal takes the foreign finalizers off, the last first so that the places
// of the others stay; each is tested, so that nothing else goes.
func (h *Held) removal(description string) Action {
	away := foreign(h.Finalizers)
	ops := []op{{"test", "/metadata/uid", string(h.UID)}}
	for i := len(h.Finalizers) - 1; i >= 0; i-- {
		if slices.Contains(away, h.Finalizers[i]) {
			at := fmt.Sprintf("/metadata/finalizers/%d", i)
			ops = append(ops, op{"test", at, h.Finalizers[i]}, op{Op: "remove", Path: at})
		}
	}
	return Action{
		Verb: RemoveFinalizer, Object: h.Ref, Destructive: true, Description: description,
		step: patchStep{ops: ops, manager: manager}, pin: pin{uid: h.UID},
	}
}

// gone waits until the object is gone.
func (h *Held) gone() Action {
	return Action{Verb: Await, Object: h.Ref, Description: "wait until it is gone", step: goneStep{[]flux.Ref{h.Ref}}}
}

func (v *Verdict) evidenceHeld(h *Held) {
	v.evidence(h.Ref, "metadata.finalizers", strings.Join(h.Finalizers, ", "))
	if !h.Deleted.IsZero() {
		v.evidence(h.Ref, "metadata.deletionTimestamp", h.Deleted.UTC().Format(timeFormat))
	}
	if len(h.SetBy) > 0 {
		v.evidence(h.Ref, "metadata.managedFields (who wrote the finalizers)", strings.Join(h.SetBy, ", "))
	}
}

// sentence says who put an object there, empty where nothing tells.
func (o Owner) sentence() string {
	switch {
	case o.Tier.Name != "":
		return fmt.Sprintf("it is applied by %s", o.Tier)
	case o.Release != "":
		return fmt.Sprintf("it belongs to the Helm release %s", o.Release)
	case o.Controller.Name != "":
		return fmt.Sprintf("it was made by the controller of %s", o.Controller)
	}
	return ""
}
