// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/kubestandup/kubestandup/pkg/crds"
	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/standup/config"
	"github.com/kubestandup/kubestandup/pkg/tiers"
)

// tiers reports each root cause once, with how many tiers it holds up, instead
// of one failure for every red tier.
func (p *preflight) tiers(ctx context.Context) (Check, error) {
	var c Check
	ready, held := 0, map[flux.Ref]int{}
	var order []*tiers.Node
	for _, n := range p.graph.Tiers() {
		switch {
		case n.State == tiers.Ready:
			ready++
		case ofSource(n): // the check of the sources says so, once
		case p.isRoot(n):
			order = append(order, n)
		default:
			held[n.Root.Object]++
		}
	}
	c.Message = fmt.Sprintf("%d of %d Ready", ready, len(p.graph.Tiers()))
	suspended, err := p.suspended(ctx, order)
	if err != nil {
		return c, err
	}
	for _, n := range order {
		if n.State == tiers.Suspended {
			continue
		}
		f, err := p.tierFinding(ctx, n)
		if err != nil {
			return c, err
		}
		if count := held[n.Ref]; count > 0 {
			f.Message += fmt.Sprintf("; %s", holdsUp(count))
		}
		c.Findings = append(c.Findings, f)
	}
	c.Findings = append(c.Findings, suspended...)
	return c, nil
}

// isRoot is true for a tier that is red for its own reason, or for want of
// something that is no tier.
func (p *preflight) isRoot(n *tiers.Node) bool {
	return n.Root != nil && (n.Root.Depth == 0 || p.graph.Node(n.Root.Object) == nil)
}

// ofSource is true for a tier that nothing holds up but its source.
func ofSource(n *tiers.Node) bool {
	return n.State == tiers.Blocked && len(n.Blockers) == 1 && n.Blockers[0].On == n.Source
}

func holdsUp(count int) string {
	if count == 1 {
		return "it holds up one other tier"
	}
	return fmt.Sprintf("it holds up %d other tiers", count)
}

func (p *preflight) tierFinding(ctx context.Context, n *tiers.Node) (finding.Finding, error) {
	f := finding.Finding{Severity: finding.Warning, Object: &n.Ref, Tier: &n.Ref, Message: fmt.Sprintf("%s: %s", n.Ref, firstLine(n.Why))}
	switch n.State {
	case tiers.Suspended:
		f.Rule = "tier-suspended"
		f.Fix = "if it is meant to run: " + p.command(fmt.Sprintf("flux resume %s %s -n %s", strings.ToLower(n.Ref.Kind), n.Ref.Name, n.Ref.Namespace))
	case tiers.Progressing:
		f.Rule, f.Severity = "tier-progressing", finding.Info
		f.Fix = "wait for it: " + p.env.Command("tiers", "--wait")
	case tiers.Wedged:
		f.Rule, f.Severity = "tier-wedged", finding.Error
		f.Fix = "change it in git: no controller will leave this state by itself"
	case tiers.Blocked:
		f.Rule, f.Severity = "tier-blocked", finding.Error
		for _, b := range n.Blockers {
			f.Causes = append(f.Causes, b.Message)
		}
		f.Fix = "make what it refers to exist, or change the reference in git"
	case tiers.Retrying:
		if n.AwaitsDependencies() {
			f.Rule, f.Severity = "tier-waiting", finding.Info
			f.Fix = "wait for it, or skip the wait: " + p.env.Command("tiers", "--wait --nudge")
			return f, nil
		}
		f.Rule, f.Severity = "tier-failing", finding.Error
		f.Message = fmt.Sprintf("%s fails and is retried%s: %s", n.Ref, every(n), firstLine(n.Why))
		f.Fix = "mend what its message names; Flux goes on by itself"
		if strings.Contains(n.Why, "/"+config.FileName+": missing Resource metadata") {
			f.Fix = "Flux takes " + config.FileName + " for a manifest; let it begin with these lines in git, which keep it out of every build:"
			f.Suggestion = config.Header
		}
	}
	if n.MayMissKind() {
		return p.missingKind(ctx, n, f)
	}
	return f, nil
}

func every(n *tiers.Node) string {
	if n.RetryInterval == 0 {
		return ""
	}
	return " every " + n.RetryInterval.String()
}

// missingKind looks closer at a tier that lacks a kind.
func (p *preflight) missingKind(ctx context.Context, n *tiers.Node, f finding.Finding) (finding.Finding, error) {
	d, err := p.diagnose(ctx, n)
	if ctx.Err() != nil {
		return f, ctx.Err()
	}
	if err != nil { // the rest of the report is worth more than none
		f.Causes = append(f.Causes, err.Error())
		f.Fix = "whether this is a deadlock could not be found out; mend what stands above, then " +
			p.env.Command("tiers", "why "+tierArg(n.Ref))
		return f, nil
	}
	if n.State == tiers.Progressing && d.Verdict == crds.NowServed {
		return f, nil
	}
	f.Severity = finding.Error
	return p.diagnosed(ctx, n, d, f)
}

func (p *preflight) diagnose(ctx context.Context, n *tiers.Node) (*crds.Diagnosis, error) {
	b, err := p.builds(ctx)
	if err != nil {
		return nil, err
	}
	f := b.of(n.Ref)
	switch {
	case f == nil:
		return nil, fmt.Errorf("%s was not there when the tiers were built", n.Ref)
	case f.Result == nil:
		return nil, b.why(f)
	}
	return p.judge(ctx, f)
}

func (p *preflight) diagnosed(ctx context.Context, n *tiers.Node, d *crds.Diagnosis, f finding.Finding) (finding.Finding, error) {
	f.Causes = append(f.Causes, firstLine(n.Why))
	if d.Verdict == crds.Deadlock {
		return p.deadlock(ctx, n.Ref, d, f)
	}
	f.Message = fmt.Sprintf("%s: %s", n.Ref, d.Why)
	f.Missing = d.Report()
	switch d.Verdict {
	case crds.NowServed:
		f.Rule, f.Severity = "tier-asleep", finding.Warning
		f.Fix = "a nudge is enough: " + p.env.Command("standup", "crds")
	default:
		f.Rule = "kind-missing"
		f.Fix = "wait, or see what should create it: " + p.env.Command("tiers", "why "+tierArg(n.Ref))
	}
	return p.withOperators(ctx, d, f)
}

// deadlock is a tier that would create kinds which it waits for.
func (p *preflight) deadlock(ctx context.Context, tier flux.Ref, d *crds.Diagnosis, f finding.Finding) (finding.Finding, error) {
	f.Rule, f.Message, f.Missing = ruleDeadlock, fmt.Sprintf("%s: %s", tier, d.Why), d.Report()
	f.Fix = p.env.Command("standup", "crds")
	f.Suggestion = fmt.Sprintf("for good: move %s and what needs them into a tier of their own that depends on %s",
		d.Kept()[0].Kinds(), tier.Name)
	return p.withOperators(ctx, d, f)
}

// withOperators adds what the operators behind the triggers are doing.
func (p *preflight) withOperators(ctx context.Context, d *crds.Diagnosis, f finding.Finding) (finding.Finding, error) {
	for i := range d.Triggers {
		operator, err := p.operator(ctx, &d.Triggers[i].Relation)
		if ctx.Err() != nil {
			return f, ctx.Err()
		}
		said := operator.Sentence()
		if err != nil {
			said = err.Error()
		}
		if !slices.Contains(f.Causes, said) {
			f.Causes = append(f.Causes, said)
		}
	}
	return f, nil
}

// tierArg names a tier so that `kubectl tiers` finds that one and no other.
func tierArg(r flux.Ref) string {
	if r.Kind == flux.HelmReleaseKind {
		return "hr/" + r.Key()
	}
	return "ks/" + r.Key()
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return strings.TrimSpace(line)
}
