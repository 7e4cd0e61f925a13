// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

// deadWebhooks are webhook configurations that refuse every request of their
// rules, because nothing answers and they fail closed. One verdict for each
// configuration, by the worst of its webhooks.
func deadWebhooks(w *World) []Verdict {
	var out []Verdict
	for _, c := range w.Webhooks {
		if v, ok := w.deadWebhook(c); ok {
			out = append(out, v)
		}
	}
	return out
}

// deadHook is a webhook that fails closed and that nothing answers.
type deadHook struct {
	index    int
	hook     *Webhook
	state    backendState
	sentence string
}

func (w *World) deadHooks(c *WebhookConfiguration) []deadHook {
	var out []deadHook
	for i := range c.Webhooks {
		h := &c.Webhooks[i]
		if !h.FailClosed || h.Service.Name == "" || !w.applies(h) {
			continue
		}
		state, sentence := w.backend(h.Service)
		if state != backendAlive && state != backendUnknown {
			out = append(out, deadHook{i, h, state, sentence})
		}
	}
	return out
}

// applies is false for a webhook whose rules name only kinds of groups that no
// definition and no aggregated API registers: it can block nothing.
func (w *World) applies(h *Webhook) bool {
	if w.Unread[PartDefinitions] != "" || w.Unread[PartAPIServices] != "" {
		return len(h.Rules) > 0
	}
	for _, r := range h.Rules {
		for _, group := range r.Groups {
			if builtinGroup(group) ||
				slices.ContainsFunc(w.Definitions, func(d *Definition) bool { return d.Defines.Group == group }) ||
				slices.ContainsFunc(w.APIServices, func(a *APIService) bool { return a.GroupVersion.Group == group }) {
				return true
			}
		}
	}
	return false
}

// builtinGroup is true for the groups that Kubernetes itself serves, and for
// the rule that means all of them.
func builtinGroup(group string) bool {
	return !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io")
}

func (w *World) deadWebhook(c *WebhookConfiguration) (Verdict, bool) {
	dead := w.deadHooks(c)
	if len(dead) == 0 {
		return Verdict{}, false
	}
	worst := slices.MaxFunc(dead, func(a, b deadHook) int { return cmp.Compare(a.state, b.state) })
	v := Verdict{
		Cause: WebhookWithoutEnd, Object: c.Ref, ResolvesItself: Never, State: "no-service",
		Summary: fmt.Sprintf("webhook %s of %s refuses every %s, because nothing answers: %s", worst.hook.Name, c.Ref, worst.hook.blocks(), worst.sentence),
		Why:     "failurePolicy Fail turns a webhook that is not reached into a refusal, and nothing takes a webhook away whose operator is gone",
	}
	for _, d := range dead {
		v.evidence(c.Ref, fmt.Sprintf("webhooks[%d].failurePolicy", d.index), fmt.Sprintf("Fail: %s, for %s", d.hook.Name, d.hook.blocks()))
	}
	seen := map[string]bool{}
	for _, d := range dead {
		if key := d.hook.Service.String(); !seen[key] {
			seen[key] = true
			w.evidenceBackend(&v, d.hook.Service)
		}
	}
	svc := serviceRef(worst.hook.Service)
	restore := "put the operator back whose webhook this is; it then answers, and cleans up after itself"
	if s := c.Owner.sentence(); s != "" {
		restore += " (" + s + ")"
	}
	switch worst.state {
	case backendComing, backendRevived:
		v.State, v.ResolvesItself = "waiting", When
		v.ResolvesWhen = fmt.Sprintf("as soon as an endpoint of %s is ready", svc)
		v.Why = "what answers is there and only not ready"
		v.Repair = "mend what keeps its Pods from being Ready; the webhook itself is left alone"
		return v, true
	case backendEmpty:
		v.State = "no-workload"
		v.Repair = restore + "; the webhook is not deleted while its Service exists"
		return v, true
	}
	if t := w.goesWith(c); t != nil {
		v.State, v.ResolvesItself = "owner-goes", When
		v.ResolvesWhen = fmt.Sprintf("as soon as %s is gone, which owns it and is being deleted", t.Ref)
		v.Why = "the garbage collector deletes what the resource owns"
		v.Repair = fmt.Sprintf("free %s (see %s); the webhook goes with it", t.Ref, FinalizerHeld)
		return v, true
	}
	v.Repair = restore + ". Else the webhook has to go before anything that it guards can be changed or deleted"
	if virtual(guards(dead)) {
		if v.Refused = w.refusal("deleting " + c.Ref.String()); v.Refused != "" {
			return v, true
		}
	}
	v.Actions = w.removeHooks(c, dead)
	return v, true
}

// goesWith is the resource that owns the configuration, where it is being
// deleted and the configuration does not keep it from that.
func (w *World) goesWith(c *WebhookConfiguration) *TriggerState {
	for _, t := range w.Triggers {
		if t.UID == c.Owner.ControllerUID && !t.Deleted.IsZero() && !slices.Contains(w.blocking(t.Ref.Group(), t.Plural), c.Ref) {
			return t
		}
	}
	return nil
}

// guards is a group of kubevirt.io that the webhooks are about, or empty.
func guards(dead []deadHook) string {
	for _, d := range dead {
		for _, r := range d.hook.Rules {
			for _, g := range r.Groups {
				if virtual(g) {
					return g
				}
			}
		}
	}
	return ""
}

// removeHooks deletes the configuration when nothing answers for any of its
// webhooks, and takes out the dead ones when something does.
func (w *World) removeHooks(c *WebhookConfiguration, dead []deadHook) []Action {
	var actions []Action
	for _, d := range dead {
		if d.state == backendGone && !slices.ContainsFunc(actions, func(a Action) bool { return a.Object == serviceRef(d.hook.Service) }) {
			actions = append(actions, stillAbsent(d.hook.Service))
		}
	}
	exact := pin{uid: c.UID, resourceVersion: c.ResourceVersion}
	if w.allGone(c) {
		return append(actions, Action{
			Verb: Delete, Object: c.Ref, Destructive: true, step: deleteStep{}, pin: exact,
			Description: fmt.Sprintf("delete the configuration with its %s: what it checked is checked no more. It holds no data; whatever made it may make it anew",
				counted(len(c.Webhooks), "webhook", "webhooks")),
		})
	}
	var ops []op
	var names []string
	for i := len(dead) - 1; i >= 0; i-- { // the last first: the places of the others stay
		if d := dead[i]; d.state == backendGone {
			at := fmt.Sprintf("/webhooks/%d", d.index)
			ops = append(ops, op{"test", at + "/name", d.hook.Name}, op{Op: "remove", Path: at})
			names = append(names, d.hook.Name)
		}
	}
	slices.Reverse(names)
	return append(actions, Action{
		Verb: Patch, Object: c.Ref, Destructive: true, step: patchStep{ops: ops, manager: manager}, pin: exact,
		Description: fmt.Sprintf("take %s out of it and keep its other webhooks, whose backends answer or are not known not to", strings.Join(names, ", ")),
	})
}

// allGone is true when no webhook of the configuration, of whatever failure
// policy, has a Service that exists.
func (w *World) allGone(c *WebhookConfiguration) bool {
	for i := range c.Webhooks {
		if c.Webhooks[i].Service.Name == "" {
			return false
		}
		if state, _ := w.backend(c.Webhooks[i].Service); state != backendGone {
			return false
		}
	}
	return true
}

// blocks says which requests the webhook is asked about.
func (h *Webhook) blocks() string {
	var parts []string
	for _, r := range h.Rules {
		var what []string
		for _, res := range r.Resources {
			for _, g := range r.Groups {
				switch g {
				case "":
					what = append(what, res)
				default:
					what = append(what, res+"."+g)
				}
			}
		}
		ops := strings.Join(r.Operations, ", ")
		if ops == "*" {
			ops = "request"
		}
		parts = append(parts, ops+" of "+strings.Join(shortened(what, 6), ", "))
	}
	out := strings.Join(shortened(parts, 4), "; ")
	if h.Narrow {
		out += " that its selectors match"
	}
	return out
}

// blocking are the configurations that refuse changes of a kind, and that
// nothing will answer for again.
func (w *World) blocking(group, plural string) []flux.Ref {
	var out []flux.Ref
	for _, c := range w.Webhooks {
		for _, d := range w.deadHooks(c) {
			if d.state == backendGone && d.hook.matches(group, plural) {
				out = append(out, c.Ref)
				break
			}
		}
	}
	return out
}

func (h *Webhook) matches(group, plural string) bool {
	for _, r := range h.Rules {
		if (slices.Contains(r.Groups, group) || slices.Contains(r.Groups, "*")) &&
			(slices.Contains(r.Resources, plural) || slices.Contains(r.Resources, "*") || slices.Contains(r.Resources, "*/*")) {
			return true
		}
	}
	return false
}
