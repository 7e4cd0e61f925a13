// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/tiers"
)

// gates names the tiers that others rely on and whose Ready does not prove
// what these need. What was proved a moment ago makes them harmless now, and
// not at the next start from cold.
func (v *verify) gates(context.Context) (Check, error) {
	c := Check{Name: "gates"}
	relying := map[*tiers.Node][]flux.Ref{}
	for _, n := range v.graph.Tiers() {
		for _, d := range n.DependsOn {
			if on := v.graph.Node(d.Ref); on != nil && on != n && d.ReadyExpr == "" {
				relying[on] = append(relying[on], n.Ref)
			}
		}
	}
	triggers := v.unprovedTriggers()
	var proved []flux.Ref
	for _, n := range v.graph.Tiers() {
		if len(relying[n]) == 0 || n.Remote {
			continue
		}
		if why := hollow(n, triggers[n]); why != "" {
			c.Findings = append(c.Findings, v.gateFinding(n, why, relying[n]))
			if v.isProved(n) && n.Gate.Hollow {
				proved = append(proved, n.Ref)
			}
		}
	}
	if len(proved) > fewGates {
		c.Findings = append(together(proved), slices.DeleteFunc(c.Findings, func(f finding.Finding) bool { return slices.Contains(proved, *f.Object) })...)
	}
	if len(c.Findings) == 0 && len(relying) > 0 {
		c.Message = fmt.Sprintf("hollow: none of the %d that other tiers rely on, as far as is known", len(relying))
	}
	return c, nil
}

// fewGates is how many hollow gates that do no harm now are named one by one:
// who sets wait nowhere has as many as tiers.
const fewGates = 5

// together is one finding for the gates that have nothing wrong behind them.
func together(gates []flux.Ref) []finding.Finding {
	return []finding.Finding{{
		Rule: "hollow-gate", Severity: finding.Info,
		Message: fmt.Sprintf("%d tiers that others rely on are hollow gates: their Ready means applied, since neither wait nor healthChecks is set; "+
			"all their objects were proved just now, so it does no harm until the next cold start: %s", len(gates), listed(gates)),
		Fix: wholeGate,
	}}
}

const wholeGate = "set wait: true in git, or healthCheckExprs for what kstatus cannot judge"

// isProved is true when every object of a tier was proved just now.
func (v *verify) isProved(n *tiers.Node) bool {
	t := v.of(n.Ref)
	return t.proved > 0 && t.unproved == 0 && t.failed == 0
}

// unprovedTriggers are the triggers of second-order kinds which their tier
// applies without a healthCheckExpr, although kstatus calls them Current the
// moment they are applied; one for each tier.
func (v *verify) unprovedTriggers() map[*tiers.Node]flux.Ref {
	found := map[*tiers.Node]flux.Ref{}
	for _, p := range v.sorted() {
		if !v.isTrigger(p.ref.GroupVersionKind().GroupKind()) {
			continue
		}
		for _, n := range p.tiers {
			about := func(c objectCheck) bool { return c.isAbout(p.ref) }
			if _, known := found[n]; !known && !slices.ContainsFunc(v.checks.ofTier[tierArg(n.Ref)], about) {
				found[n] = p.ref
			}
		}
	}
	return found
}

func (v *verify) isTrigger(gk schema.GroupKind) bool {
	for _, r := range v.base.ByTrigger(gk) {
		for _, t := range r.Triggers {
			if r.Second() && t.GroupKind() == gk && t.Ready != nil {
				return true
			}
		}
	}
	return false
}

// hollow is why a tier goes Ready too soon, empty where it does not.
func hollow(n *tiers.Node, trigger flux.Ref) string {
	switch {
	case n.Gate.Hollow:
		return n.Gate.Why
	case trigger.Name != "" && n.Wait:
		return fmt.Sprintf("it is Ready before %s has made its kinds, since no healthCheckExprs is about it", trigger)
	}
	return ""
}

func (v *verify) gateFinding(n *tiers.Node, why string, relying []flux.Ref) finding.Finding {
	f := finding.Finding{
		Rule: "hollow-gate", Severity: finding.Info, Object: &n.Ref, Tier: &n.Ref,
		Message: fmt.Sprintf("%s is a hollow gate: %s; %s %s on it", n.Ref, why, listed(relying), relies(len(relying))),
		Fix:     wholeGate,
	}
	switch t := v.of(n.Ref); {
	case t.failed > 0:
		f.Message += fmt.Sprintf("; not well just now: %d of its %d objects", t.failed, t.failed+t.unproved+t.proved)
	case t.unproved > 0:
		f.Message += fmt.Sprintf("; unproved just now: %d of its %d objects", t.unproved, t.unproved+t.proved)
	case v.isProved(n):
		f.Message += "; all its objects were proved just now, so it does no harm until the next cold start"
	}
	return f
}

func relies(n int) string {
	if n == 1 {
		return "relies"
	}
	return "rely"
}
