// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/tiers"
)

// tiers proves that each tier is Ready at the revision that its source has
// now. A tier that is not meant to run is skipped, and so is what cannot come
// up before it.
func (v *verify) tiers(ctx context.Context) (Check, error) {
	c := Check{Name: "tiers"}
	red := newPreflight(ctx, v.look)
	ready, behind := 0, map[flux.Ref]int{}
	var order []*tiers.Node
	for _, n := range v.graph.Tiers() {
		switch {
		case v.aside[n.Ref] != "":
			v.counts.Skipped++
			order = append(order, n)
		case n.State == tiers.Ready:
			ready++
			if len(v.degraded(n.Ref)) > 0 {
				v.counts.Unproved++
			} else {
				v.counts.Proved++
			}
		case ofSource(n): // the check of the sources says so, once
			v.counts.Failed++
		case v.ownReason(n):
			v.counts.Failed++
			order = append(order, n)
		default:
			behind[n.Root.Object]++
			if root := v.graph.Node(n.Root.Object); root != nil && v.aside[root.Ref] != "" {
				v.counts.Skipped++
			} else {
				v.counts.Failed++
			}
		}
	}
	c.Message = fmt.Sprintf("%d of %d Ready, at the revisions that their sources have now", ready, len(v.graph.Tiers()))
	for _, n := range order {
		f := asideFinding(n, v.aside[n.Ref])
		if v.aside[n.Ref] == "" {
			var err error
			if f, err = red.tierFinding(ctx, n); err != nil {
				return c, err
			}
			v.redFinding(n, &f)
		}
		if count := behind[n.Ref]; count > 0 {
			f.Message += "; " + holdsUp(count)
		}
		c.Findings = append(c.Findings, f)
	}
	return c, nil
}

// ownReason is true for a tier that is red for its own reason, or that names
// something which is no tier.
func (v *verify) ownReason(n *tiers.Node) bool {
	return n.Root.Depth == 0 || n.Root.Depth == 1 && v.graph.Node(n.Root.Object) == nil
}

// redFinding says what a tier that is red means here: the bring-up is over, so
// what still takes time is not yet proved, and no mere information.
func (v *verify) redFinding(n *tiers.Node, f *finding.Finding) {
	switch {
	case f.Rule == ruleDeadlock:
		v.left.deadlocked = true
	case n.State == tiers.Suspended && n.Unwedge != "":
		f.Severity, v.left.wedged = finding.Error, true
		f.Fix = "a repair was interrupted, which goes on with: " + v.env.Command("standup", "unwedge")
	case n.State == tiers.Suspended:
		f.Severity, v.left.suspended = finding.Error, true
		f.Fix = "if it is meant to run: " + v.env.Command("standup", "resume")
		f.Suggestion = fmt.Sprintf("if it is not, say so in standup.yaml: resume: {skip: [%s]}", tierArg(n.Ref))
		for source, err := range v.unread {
			f.Causes = append(f.Causes, fmt.Sprintf("whether git wants it suspended is not known: %s: %s", source, firstLine(err.Error())))
		}
		slices.Sort(f.Causes)
	case f.Severity == finding.Info:
		f.Severity, v.left.late = finding.Warning, true
	case n.State == tiers.Wedged:
		v.left.wedged = true
	}
}

func asideFinding(n *tiers.Node, why string) finding.Finding {
	return finding.Finding{
		Rule: "tier-skipped", Severity: finding.Info, Object: &n.Ref, Tier: &n.Ref,
		Message: fmt.Sprintf("%s is not meant to run: %s", n.Ref, why),
	}
}

// findAside finds the tiers that are not meant to run, each with the reason.
func (v *verify) findAside(ctx context.Context) (map[flux.Ref]string, error) {
	aside := map[flux.Ref]string{}
	for _, n := range v.graph.Tiers() {
		why, err := v.asideWhy(ctx, n)
		if err != nil {
			return nil, err
		}
		if why != "" {
			aside[n.Ref] = why
		}
	}
	return aside, nil
}

// asideWhy is why a tier is not meant to run, empty where it is. What git says
// is asked last: to know it, the tiers are built.
func (v *verify) asideWhy(ctx context.Context, n *tiers.Node) (string, error) {
	if s := v.said(n, n.Suspended, v.unset); s.aside {
		return s.why, nil
	}
	if !n.Suspended || n.Unwedge != "" {
		return "", nil
	}
	git, err := v.suspendedInGit(ctx, n)
	if err != nil || git.rule != "" {
		return git.why, err
	}
	b, err := v.builds(ctx)
	if err != nil {
		return "", err
	}
	v.unread = b.unfetched
	return "", nil
}

// degraded are the variables whose placeholders keep a tier from doing what it
// is for.
func (v *verify) degraded(tier flux.Ref) []string {
	var names []string
	for i := range v.unset {
		if p := &v.unset[i]; namesRef(p.Degrades, tier) {
			names = append(names, p.Variable.Name)
		}
	}
	return names
}

// placeholderCheck says of every variable without a real value what that means. A
// tier that is green all the same must never be read as one that works.
func (v *verify) placeholderCheck(context.Context) (Check, error) {
	c := Check{Name: "placeholders"}
	asked := 0
	for _, variable := range v.env.File.Variables {
		if variable.Placeholder != "" {
			asked++
		}
	}
	if set := asked - len(v.unset); set > 0 {
		c.Message = fmt.Sprintf("%d of %d variables have a real value", set, asked)
	}
	for i := range v.unset {
		c.Findings = append(c.Findings, v.placeholderFindings(&v.unset[i])...)
	}
	return c, nil
}

func (v *verify) placeholderFindings(p *placeholder) []finding.Finding {
	fix := "give it its value in git"
	if len(p.From) > 0 {
		fix += ", where " + listed(p.From) + " comes from"
	}
	var all []finding.Finding
	for _, ref := range p.Degrades {
		n := v.graph.Node(ref)
		if n == nil || n.State != tiers.Ready {
			continue // it is no green that could mislead
		}
		all = append(all, finding.Finding{
			Rule: "tier-degraded", Severity: finding.Info, Object: &n.Ref, Tier: &n.Ref, Fix: fix,
			Message: fmt.Sprintf("%s is Ready and cannot do what it is for: %s %s", n.Ref, p.Variable.Name, p.state()),
		})
	}
	if len(all) == 0 {
		f := finding.Finding{
			Rule: "placeholder", Severity: finding.Info, Fix: fix,
			Message: fmt.Sprintf("%s %s", p.Variable.Name, p.state()),
		}
		if len(p.Blocks) > 0 {
			f.Message += "; it blocks " + listed(p.Blocks)
		}
		all = append(all, f)
	}
	if p.Unread != nil { // nobody can say, so it is no information either
		all[0].Severity = finding.Warning
		all[0].Causes = append(all[0].Causes, p.Unread.Error())
	}
	return all
}

func (p *placeholder) state() string {
	if p.Unread != nil {
		return "may still be a placeholder, since its value could not be read"
	}
	return "is still a placeholder"
}

func namesRef(refs []flux.Ref, r flux.Ref) bool {
	return slices.ContainsFunc(refs, func(o flux.Ref) bool { return identityOf(o) == identityOf(r) })
}

// listed names a few of the objects, and says how many more there are.
func listed(refs []flux.Ref) string {
	const few = 8
	var out []string
	for i, r := range refs {
		if i == few && len(refs) > few+1 {
			out = append(out, fmt.Sprintf("and %d more", len(refs)-few))
			break
		}
		out = append(out, r.String())
	}
	return strings.Join(out, ", ")
}
