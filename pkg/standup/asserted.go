// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"context"
	"fmt"
	"slices"

	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/standup/config"
)

// asserted holds the variables against what standup.yaml says of them, and
// finds those that cannot be resolved, or are never replaced.
func (p *preflight) asserted(ctx context.Context) (Check, error) {
	var c Check
	all, err := p.variables(ctx)
	if err != nil {
		return c, err
	}
	b, err := p.builds(ctx)
	if err != nil {
		return c, err
	}
	c.Findings = append(c.Findings, p.references(b, all)...)
	for _, v := range p.env.File.Variables {
		if v.Required {
			c.Findings = append(c.Findings, p.required(v, all)...)
		}
		if len(v.Forbid) > 0 {
			c.Findings = append(c.Findings, p.forbidden(v, all)...)
		}
	}
	placeholders, err := p.placeholders(ctx)
	if err != nil {
		return c, err
	}
	for i := range placeholders {
		c.Findings = append(c.Findings, p.placeholderFinding(&placeholders[i]))
	}
	c.Findings = append(c.Findings, p.literals(b, all)...)
	c.Message = plural(len(all), "tier is", "tiers are") + " substituted with variables"
	if n := len(p.env.File.Variables); n > 0 && len(c.Findings) == 0 {
		c.Message += ", and " + plural(n, "variable is", "variables are") + " as standup.yaml says"
	}
	return c, nil
}

// required reports the tiers that are substituted and do not know the variable.
// One whose value is only in git, encrypted, knows it.
func (p *preflight) required(v config.Variable, all []substitution) []finding.Finding {
	var lacking, unknown []flux.Ref
	for i := range all {
		s := &all[i]
		value, ok := s.values[v.Name]
		switch {
		case ok && (value.sealed || value.value != ""):
		case s.unresolved() != nil:
			unknown = append(unknown, s.tier.Tier)
		default:
			lacking = append(lacking, s.tier.Tier)
		}
	}
	f := finding.Finding{
		Rule: "variable-missing", Severity: finding.Error, Blocks: true,
		Fix: "set it in what spec.postBuild of these tiers names; " + p.entry(v),
	}
	var found []finding.Finding
	switch {
	case len(all) == 0:
		f.Message = fmt.Sprintf("variable %s is required, and no tier is substituted with variables", v.Name)
		found = append(found, f)
	case len(lacking) > 0:
		f.Tier = &lacking[0]
		f.Message = fmt.Sprintf("variable %s is required, and has no value in %s", v.Name, listed(lacking))
		found = append(found, f)
	}
	if len(unknown) > 0 {
		f.Rule, f.Tier = "variable-unresolved", &unknown[0]
		f.Message = fmt.Sprintf("variable %s is required, and what gives it a value to %s could not be read", v.Name, listed(unknown))
		f.Fix = "make readable what could not be read; " + p.entry(v)
		found = append(found, f)
	}
	return found
}

// forbidden reports values that belong to another cluster, each place once.
func (p *preflight) forbidden(v config.Variable, all []substitution) []finding.Finding {
	var found []finding.Finding
	told := map[string]bool{}
	for i := range all {
		s := &all[i]
		value, ok, err := s.find(v.Name)
		f := finding.Finding{Severity: finding.Error, Blocks: true, Tier: &s.tier.Tier}
		switch {
		case err != nil:
			f.Rule = "variable-unresolved"
			f.Message = fmt.Sprintf("whether variable %s has a value that standup.yaml forbids cannot be said: %v", v.Name, err)
			f.Fix = "make it readable, or bring it to the cluster; " + p.entry(v)
		case ok && matchesAny(v.Forbid, value.value) != "":
			glob := matchesAny(v.Forbid, value.value)
			f.Rule, f.Object = "variable-forbidden", &value.from
			f.Message = fmt.Sprintf("variable %s has a value in %s that standup.yaml forbids (%s)", v.Name, value.from, glob)
			if !value.secret {
				f.Message = fmt.Sprintf("variable %s is %q in %s, which standup.yaml forbids (%s)", v.Name, value.value, value.from, glob)
			}
			f.Fix = "it is another cluster's: correct it in git before anything is resumed; " + p.entry(v)
		default:
			continue
		}
		if !told[f.Message] {
			told[f.Message] = true
			found = append(found, f)
		}
	}
	return found
}

func matchesAny(globs []string, value string) string {
	i := slices.IndexFunc(globs, func(glob string) bool { return config.Glob(glob, value) })
	if i < 0 {
		return ""
	}
	return globs[i]
}

func (p *preflight) placeholderFinding(h *placeholder) finding.Finding {
	f := finding.Finding{
		Rule: "variable-placeholder", Severity: finding.Warning,
		Fix: "put the real value into git when there is one; until then a green tier does not mean that it works",
	}
	f.Message = fmt.Sprintf("variable %s is still a placeholder (%s)", h.Variable.Name, h.Variable.Placeholder)
	if h.Unread != nil {
		f.Rule, f.Severity, f.Blocks = "variable-unresolved", finding.Error, true
		f.Message = fmt.Sprintf("whether variable %s is still a placeholder cannot be said: %v", h.Variable.Name, h.Unread)
		f.Fix = "make it readable, or bring it to the cluster"
	} else {
		f.Object = &h.From[0]
		if len(h.Blocks)+len(h.Degrades) > 0 && len(h.Unknown) == 0 {
			f.Severity = finding.Info // standup.yaml says what it means, so it is no news
		}
		f.Causes = append(f.Causes, "it stands in "+listed(h.From))
	}
	if len(h.Blocks) > 0 {
		f.Message += "; it blocks " + listed(h.Blocks)
	}
	if len(h.Degrades) > 0 {
		f.Message += "; it degrades " + listed(h.Degrades)
	}
	for _, name := range h.Unknown {
		f.Causes = append(f.Causes, fmt.Sprintf("no tier is called %s, which standup.yaml names", name))
	}
	return f
}

// entry is where standup.yaml says what is expected.
func (p *preflight) entry(v config.Variable) string {
	for i := range p.env.File.Variables {
		if at, ok := p.env.File.Position(fmt.Sprintf("variables[%d].name", i)); ok && p.env.File.Variables[i].Name == v.Name {
			return "it is asserted at " + at.String()
		}
	}
	return "it is asserted in standup.yaml"
}

// references reports what substituteFrom names and that is not there, or may
// not be read: the tier fails before anything of it is applied.
func (p *preflight) references(b *builds, all []substitution) []finding.Finding {
	type trouble struct {
		reference
		tiers []flux.Ref
	}
	at := map[flux.Ref]*trouble{}
	var order []*trouble
	for i := range all {
		for _, r := range all[i].refs {
			if r.err == nil && (!r.absent || r.optional) {
				continue
			}
			if at[r.object] == nil {
				at[r.object] = &trouble{reference: r}
				order = append(order, at[r.object])
			}
			at[r.object].tiers = append(at[r.object].tiers, all[i].tier.Tier)
		}
	}
	slices.SortFunc(order, func(a, b *trouble) int { return a.object.Compare(b.object) })
	var e *earlier
	var found []finding.Finding
	for _, t := range order {
		f := finding.Finding{Severity: finding.Error, Object: &t.object, Tier: &t.tiers[0]}
		switch {
		case t.err != nil:
			f.Rule, f.Blocks = "variables-unread", len(p.env.File.Variables) > 0
			f.Message = fmt.Sprintf("%s, which %s substituted from, could not be read: %v", t.object, isAre(t.tiers), t.err)
			f.Fix = "let this user get it, then: " + p.env.Command("standup", "preflight")
		case t.builtBy == nil:
			f.Rule, f.Blocks = "variables-absent", len(p.env.File.Variables) > 0
			f.Message = fmt.Sprintf("%s, which %s substituted from, does not exist, and no tier builds it", t.object, isAre(t.tiers))
			f.Fix = "create it, or make the reference optional in git"
		default:
			if e == nil {
				e = p.earlier(b)
			}
			f = comesLater(f, e, &t.reference, t.tiers)
		}
		found = append(found, f)
	}
	return found
}

// comesLater is about variables that a tier will bring: well where that tier
// is applied first, a deadlock where it cannot be, and a race else.
func comesLater(f finding.Finding, e *earlier, r *reference, tiers []flux.Ref) finding.Finding {
	by := r.builtBy.Tier
	var never, race []flux.Ref
	for _, t := range tiers {
		switch {
		case t == by || e.than(by, t) && !e.than(t, by):
			never = append(never, t)
		case !e.than(t, by):
			race = append(race, t)
		}
	}
	f.Rule = "variables-later"
	switch {
	case len(never) > 0:
		f.Rule, f.Tier = "variables-deadlock", &never[0]
		f.Message = fmt.Sprintf("%s, which %s substituted from, is built by %s, which is not applied before: it is never there in time",
			r.object, isAre(never), by)
		f.Fix = "move it into a tier that these depend on, or create it by hand"
	case len(race) > 0:
		f.Rule, f.Severity, f.Tier = "variables-race", finding.Warning, &race[0]
		f.Message = fmt.Sprintf("%s, which %s substituted from, comes with %s, and no edge says that it comes first", r.object, isAre(race), by)
		f.Fix = fmt.Sprintf("add dependsOn: [{name: %s, namespace: %s}] in git; without it Flux fails, and succeeds at a retry", by.Name, by.Namespace)
	default:
		f.Severity = finding.Info
		f.Message = fmt.Sprintf("%s, which %s substituted from, comes with %s", r.object, isAre(tiers), by)
		f.Fix = "wait for that tier"
	}
	return f
}

func isAre(tiers []flux.Ref) string {
	if len(tiers) == 1 {
		return listed(tiers) + " is"
	}
	return listed(tiers) + " are"
}
