// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"context"
	"fmt"
	"slices"

	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// inventory reports the objects that two tiers have in their inventories: they
// overwrite each other, and the first that drops it deletes it for both. It is
// one finding for each group of tiers. Tiers of other clusters are left out.
func (p *preflight) inventory(ctx context.Context) (Check, error) {
	var c Check
	type shared struct {
		object flux.Ref
		tiers  []flux.Ref
	}
	look, err := p.served(ctx)
	if err != nil {
		return c, err
	}
	at := map[identity]*shared{}
	var order []*shared
	for _, kind := range []string{flux.KustomizationKind, flux.HelmReleaseKind} {
		all, err := p.objects(ctx, kind)
		if err != nil {
			return c, err
		}
		for _, o := range all {
			n := p.graph.Node(flux.Ref{Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName()})
			if n == nil || n.Remote {
				continue
			}
			entries, _ := inventory(o)
			for _, e := range entries {
				ref, err := e.ref()
				if err != nil {
					continue // verify says so
				}
				ref = placed(ref, n, look.Served)
				s := at[identityOf(ref)]
				if s == nil {
					s = &shared{object: ref}
					at[identityOf(ref)] = s
					order = append(order, s)
				}
				if !slices.Contains(s.tiers, n.Ref) {
					s.tiers = append(s.tiers, n.Ref)
				}
			}
		}
	}
	groups := map[string]int{}
	for _, s := range order {
		if len(s.tiers) < 2 {
			continue
		}
		slices.SortFunc(s.tiers, flux.Ref.Compare)
		inCharts := ofCharts(s.object, s.tiers)
		key := fmt.Sprint(s.tiers, inCharts)
		i, seen := groups[key]
		if !seen {
			i = len(c.Findings)
			groups[key] = i
			c.Findings = append(c.Findings, p.sharedFinding(s.object, s.tiers, inCharts))
		}
		c.Findings[i].Causes = append(c.Findings[i].Causes, s.object.String())
	}
	for i := range c.Findings {
		c.Findings[i].Causes = shorten(c.Findings[i].Causes)
	}
	c.Message = plural(len(order), "object", "objects") + " in the inventories"
	return c, nil
}

// ofCharts is true for a CRD that nobody but releases has. As a rule it is in the
// folder crds of each chart: Helm never deletes such a one, and does not update
// it unless it is told to.
func ofCharts(object flux.Ref, owners []flux.Ref) bool {
	return isCRD(object.GroupVersionKind().GroupKind()) &&
		!slices.ContainsFunc(owners, func(r flux.Ref) bool { return r.Kind != flux.HelmReleaseKind })
}

func (p *preflight) sharedFinding(object flux.Ref, owners []flux.Ref, inCharts bool) finding.Finding {
	if inCharts {
		return finding.Finding{
			Rule: "crd-in-two-releases", Severity: finding.Info, Object: &object, Tier: &owners[0],
			Message: fmt.Sprintf("the charts of %s have the same CRDs, %s first: which version of it the cluster has depends on which of them applied it", listed(owners), object),
			Fix:     "let all but one leave them out: install.crds and upgrade.crds: Skip, or the value of the chart that switches them off",
		}
	}
	f := finding.Finding{
		Rule: "object-in-two-tiers", Severity: finding.Warning, Object: &object, Tier: &owners[0],
		Message: fmt.Sprintf("%s have the same objects in their inventories, %s first: they overwrite each other", listed(owners), object),
		Fix:     "take them out of all but one in git; do that with prune off where they must not be deleted",
	}
	for _, owner := range owners {
		n := p.graph.Node(owner)
		// Helm deletes what a new release no longer has.
		if n.Prune || n.Ref.Kind == flux.HelmReleaseKind {
			f.Severity = finding.Error
			f.Message += fmt.Sprintf(", and when %s drops one, it is deleted for all", owner)
			break
		}
	}
	return f
}

// shorten keeps the first few lines, and says how many there were.
func shorten(lines []string) []string {
	if len(lines) <= mostNamed+1 {
		return lines
	}
	return append(slices.Clone(lines[:mostNamed]), fmt.Sprintf("and %d more", len(lines)-mostNamed))
}
