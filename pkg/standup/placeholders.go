// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"context"
	"slices"

	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/standup/config"
)

// placeholder is a variable of standup.yaml that has no real value yet.
type placeholder struct {
	Variable config.Variable
	// From are where it stands: ConfigMaps, Secrets, or tiers that spell it out.
	From []flux.Ref
	// Unread is set instead where nobody can say whether the value is a
	// placeholder. Whoever acts must then take it for one.
	Unread error
	// Blocks and Degrades are the tiers that standup.yaml names, those that are
	// not on the cluster yet included; sorted.
	Blocks, Degrades []flux.Ref
	// Unknown are the names that no tier has.
	Unknown []string
}

// placeholders are the variables whose value is a placeholder, or may be one,
// in the order of standup.yaml. Without such variables it asks for nothing.
func (l *look) placeholders(ctx context.Context) ([]placeholder, error) {
	var asked []config.Variable
	for _, v := range l.env.File.Variables {
		if v.Placeholder != "" {
			asked = append(asked, v)
		}
	}
	if len(asked) == 0 {
		return nil, nil
	}
	all, err := l.variables(ctx)
	if err != nil {
		return nil, err
	}
	known, err := l.tierRefs(ctx)
	if err != nil {
		return nil, err
	}
	var found []placeholder
	for _, v := range asked {
		if p, ok := findPlaceholder(v, all); ok {
			var unknown [2][]string
			p.Blocks, unknown[0] = named(v.Blocks, known)
			p.Degrades, unknown[1] = named(v.Degrades, known)
			p.Unknown = slices.Concat(unknown[0], unknown[1])
			found = append(found, p)
		}
	}
	return found, nil
}

func findPlaceholder(v config.Variable, all []substitution) (placeholder, bool) {
	p := placeholder{Variable: v}
	for i := range all {
		value, ok, err := all[i].find(v.Name)
		switch {
		case err != nil:
			p.Unread = err
		case ok && config.Glob(v.Placeholder, value.value) && !slices.Contains(p.From, value.from):
			p.From = append(p.From, value.from)
		}
	}
	if len(p.From) > 0 {
		p.Unread = nil // one is enough
	}
	return p, len(p.From) > 0 || p.Unread != nil
}

// tierRefs are all tiers: those of the cluster and those that these build.
func (l *look) tierRefs(ctx context.Context) ([]flux.Ref, error) {
	b, err := l.builds(ctx)
	if err != nil {
		return nil, err
	}
	var refs []flux.Ref
	for _, n := range l.graph.Tiers() {
		refs = append(refs, n.Ref)
	}
	add := func(r flux.Ref) {
		if l.graph.Node(r) == nil {
			refs = append(refs, r)
		}
	}
	for i := range b.all {
		add(b.all[i].Tier)
	}
	for at, objects := range b.objects {
		if at.group == flux.HelmGroup && at.kind == flux.HelmReleaseKind {
			add(objects[0].Ref())
		}
	}
	slices.SortFunc(refs, flux.Ref.Compare)
	return slices.Compact(refs), nil
}

// named are the tiers that names of standup.yaml mean, and the names that none
// has.
func named(names []string, known []flux.Ref) (refs []flux.Ref, unknown []string) {
	for _, name := range names {
		before := len(refs)
		for _, r := range known {
			if config.NamesTier(name, r) {
				refs = append(refs, r)
			}
		}
		if len(refs) == before {
			unknown = append(unknown, name)
		}
	}
	slices.SortFunc(refs, flux.Ref.Compare)
	return slices.Compact(refs), unknown
}
