// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

const (
	// longWithoutStatus is after how long an object without a status tells by
	// itself that nobody looks at it.
	longWithoutStatus = 10 * time.Minute
	// dyingWithin is how recent the last death of a controller must be, and
	// dyingRestarts how many there must have been, for it to be dying still.
	dyingWithin   = time.Hour
	dyingRestarts = 2

	outOfMemory   = "OOMKilled"
	fluxFinalizer = "finalizers.fluxcd.io"
	// fewExamples is how many objects of a kind are worth a line each.
	fewExamples = 3
)

// charge is what one controller has to look after.
type charge struct {
	controller string
	objects    int
	// silent have no status; held are being deleted and wait for it.
	silent, held []flux.Ref
	evidence     []Evidence
	// oldest is when the first of the silent was made.
	oldest time.Time
}

// controllerMissing finds the controllers whose objects nobody looks at
// (CRD-16). A controller may run under another label or outside of the
// cluster, so one whose Deployment was not seen is missed only where its
// objects tell so.
func controllerMissing(w *World) []Verdict {
	if w.Flux == nil {
		return nil
	}
	var all []Verdict
	for _, ch := range charges(w) {
		c := w.Controllers[ch.controller]
		switch {
		case ch.objects == 0, w.runs(ch.controller), c.diesNow(w.Now):
		case c != nil:
			all = append(all, notRunning(c, ch))
		case w.unseen(ch):
			all = append(all, w.notInstalled(ch))
		}
	}
	return all
}

// charges are Flux's objects by the controller that looks after them.
func charges(w *World) []charge {
	source, kustomize, helm := charge{controller: sourceController}, charge{controller: kustomizeController}, charge{controller: helmController}
	for i := range w.Flux.Sources {
		s := &w.Flux.Sources[i]
		switch s.Ref.Kind {
		case "ExternalArtifact": // made by others
			continue
		case "HelmRepository": // one of type oci never gets a status
		default:
			if len(s.Conditions) == 0 && s.ObservedGeneration <= 0 && !s.Suspended {
				source.silent = append(source.silent, s.Ref)
				source.evidence = append(source.evidence, Evidence{s.Ref, "status", "none"})
			}
		}
		source.objects++
	}
	for i := range w.Flux.Tiers {
		ch := &kustomize
		if w.Flux.Tiers[i].Ref.Kind == flux.HelmReleaseKind {
			ch = &helm
		}
		ch.add(&w.Flux.Tiers[i])
	}
	return []charge{source, kustomize, helm}
}

func (ch *charge) add(t *flux.Tier) {
	ch.objects++
	switch {
	case !t.Deleted.IsZero():
		if slices.Contains(t.Finalizers, fluxFinalizer) {
			ch.held = append(ch.held, t.Ref)
			ch.evidence = append(ch.evidence, Evidence{t.Ref, "metadata.deletionTimestamp", fmt.Sprintf("%s, held by %s", stamp(t.Deleted), fluxFinalizer)})
		}
	case len(t.Conditions) == 0 && t.ObservedGeneration <= 0 && !t.Suspended:
		if ch.oldest.IsZero() || t.Created.Before(ch.oldest) {
			ch.oldest = t.Created
		}
		ch.silent = append(ch.silent, t.Ref)
		ch.evidence = append(ch.evidence, Evidence{t.Ref, "status", "none, since " + stamp(t.Created)})
	}
}

// runs is true where a Deployment of the controller, or of a shard of it, has
// a Pod that is Ready.
func (w *World) runs(controller string) bool {
	for name, c := range w.Controllers {
		if (name == controller || strings.HasPrefix(name, controller+"-")) && c.Running() {
			return true
		}
	}
	return false
}

// unseen is true when a controller whose Deployment was not seen is missing.
func (w *World) unseen(ch charge) bool {
	if w.fluxNamespace() != "" {
		return len(ch.silent)+len(ch.held) > 0
	}
	// Nothing of Flux was seen: it may run elsewhere, or nobody may look. Then
	// only a silence tells that lasts, and that is complete.
	return len(ch.silent) > 0 && len(ch.silent) == ch.objects && !ch.oldest.IsZero() && w.Now.Sub(ch.oldest) > longWithoutStatus
}

// fluxNamespace is where Flux's controllers were seen, empty when none was.
func (w *World) fluxNamespace() string {
	for _, name := range []string{
		kustomizeController, sourceController, helmController,
		"notification-controller", "image-reflector-controller", "image-automation-controller",
	} {
		if c := w.Controllers[name]; c != nil {
			return c.Deployment.Namespace
		}
	}
	return ""
}

func notRunning(c *Controller, ch charge) Verdict {
	v := Verdict{Cause: ControllerMissing, Object: c.Deployment, ResolvesItself: Never}
	if c.Wanted == 0 {
		v.State = "scaled-to-zero"
		v.Summary = fmt.Sprintf("%s is scaled to zero, so nobody reconciles its %s", c.Deployment, finding.Count(ch.objects, "object"))
		v.Why = "a Deployment stays at the number of replicas that it is given"
		v.Repair = fmt.Sprintf("set spec.replicas of %s to 1; it then goes on by itself", c.Deployment)
		v.Commands = []string{fmt.Sprintf("kubectl scale deployment %s --replicas=1 -n %s", c.Deployment.Name, c.Deployment.Namespace)}
		v.evidence(c.Deployment, "spec.replicas", "0")
	} else {
		v.State = "not-ready"
		v.Summary = fmt.Sprintf("%s has no Pod that is Ready, so nobody reconciles its %s", c.Deployment, finding.Count(ch.objects, "object"))
		v.ResolvesItself, v.ResolvesWhen = When, "as soon as a Pod of it becomes Ready"
		v.Why = "nothing that concerns its objects moves before that"
		v.Repair = fmt.Sprintf("look at the Pods and the events of %s", c.Deployment)
		v.evidence(c.Deployment, "status.readyReplicas", fmt.Sprintf("0 of %d", c.Wanted))
		v.evidence(c.Deployment, "lastState.terminated.reason", c.LastTermination)
	}
	ch.tell(&v)
	return v
}

func (w *World) notInstalled(ch charge) Verdict {
	object := flux.Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: w.fluxNamespace(), Name: ch.controller}
	if object.Namespace == "" {
		object.Namespace = "flux-system"
	}
	v := Verdict{
		Cause: ControllerMissing, Object: object, State: "absent", ResolvesItself: Never,
		Summary: fmt.Sprintf("no %s was seen on this cluster, and nobody looks at its objects", ch.controller),
		Why:     "the CRDs of its kinds are there, which is why its objects could be made; nothing else knows what to do with them",
		Repair: fmt.Sprintf("install Flux again with %s among its components (flux bootstrap, or flux install, with the version that the others have); "+
			"its objects then go on by themselves", ch.controller),
	}
	v.since(ch.oldest)
	ch.tell(&v)
	return v
}

// tell adds what the objects of a controller tell of it.
func (ch *charge) tell(v *Verdict) {
	v.Evidence = append(v.Evidence, ch.evidence[:min(fewExamples, len(ch.evidence))]...)
	if more := len(ch.evidence) - fewExamples; more > 0 {
		v.evidence(v.Object, "objects like these", fmt.Sprintf("%d more", more))
	}
	if len(ch.held) > 0 {
		v.Repair += fmt.Sprintf("; until then, leave the finalizer of %s where it is: without it, what the object owns is left behind", ch.held[0])
	}
}

// diesNow is true for a controller that is killed again and again for want of
// memory.
func (c *Controller) diesNow(now time.Time) bool {
	return c != nil && c.LastTermination == outOfMemory && c.Restarts >= dyingRestarts && now.Sub(c.LastTerminatedAt) < dyingWithin
}

// controllerDies finds the controllers that are killed in the midst of their
// work (HELM-04): what they leave behind is not to be repaired before that.
func controllerDies(w *World) []Verdict {
	var all []Verdict
	for name, c := range w.Controllers {
		if c.diesNow(w.Now) {
			all = append(all, dies(name, c))
		}
	}
	return all
}

func dies(name string, c *Controller) Verdict {
	v := Verdict{
		Cause: ControllerDies, Object: c.Deployment, State: outOfMemory, ResolvesItself: Never,
		Summary: fmt.Sprintf("%s is killed for want of memory again and again: %d times, last at %s", c.Deployment, c.Restarts, stamp(c.LastTerminatedAt)),
		Why: "each operation that it begins dies with it and is begun again; " +
			"to unlock releases or to nudge tiers before it lives is pointless",
	}
	v.evidence(c.Deployment, "lastState.terminated.reason", fmt.Sprintf("%s at %s", c.LastTermination, stamp(c.LastTerminatedAt)))
	v.evidence(c.Deployment, "restartCount", fmt.Sprint(c.Restarts))
	limit := c.MemoryLimit
	if limit == "" {
		limit = "none: the node ran out of memory"
	}
	v.evidence(c.Deployment, "resources.limits.memory", limit)
	concurrent, set := c.arg("concurrent")
	if !set {
		concurrent = "4, the default" // main.go of helm- (v1.6.4) and kustomize-controller (v1.9.6)
	}
	v.evidence(c.Deployment, "--concurrent", concurrent)
	v.Repair = fmt.Sprintf("raise the memory limit of %s (now %s), or lower its --concurrent (now %s)", c.Deployment, limit, concurrent)
	if name == helmController {
		gates, _ := c.arg("feature-gates")
		watch := "off, the default"
		if strings.Contains(gates, "OOMWatch=true") {
			watch = "on"
		}
		v.evidence(c.Deployment, "feature gate OOMWatch", watch)
		if watch != "on" {
			v.Repair += "; --feature-gates=OOMWatch=true makes it end its operations in order before it is killed"
		}
	}
	return v
}

// arg is the value of a flag, written --name=value or --name value.
func (c *Controller) arg(name string) (string, bool) {
	for i, a := range c.Args {
		flag, value, joined := strings.Cut(strings.TrimLeft(a, "-"), "=")
		switch {
		case flag != name || !strings.HasPrefix(a, "-"):
		case joined:
			return value, true
		case i+1 < len(c.Args):
			return c.Args[i+1], true
		}
	}
	return "", false
}

// stamp prints a time as every report does.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
