// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"context"
	"fmt"

	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/tiers"
)

// suspended reports the suspended ones among the tiers: those that resume would
// leave as they are, each with the reason, and all others at once.
func (p *preflight) suspended(ctx context.Context, nodes []*tiers.Node) ([]finding.Finding, error) {
	unset, err := p.placeholders(ctx)
	if err != nil {
		unset = nil // the check of the variables says so
	}
	var all []finding.Finding
	var meant []flux.Ref
	var who []string
	for _, n := range nodes {
		if n.State != tiers.Suspended {
			continue
		}
		s := p.said(n, true, unset)
		if s.rule == "" {
			if s, err = p.suspendedInGit(ctx, n); err != nil {
				return nil, err
			}
		}
		if s.rule == "" {
			meant = append(meant, n.Ref)
			who = append(who, n.Ref.String()+suspendedBy(n))
			continue
		}
		all = append(all, finding.Finding{
			Rule: s.rule, Severity: s.severity, Object: &n.Ref, Tier: &n.Ref, Fix: s.fix,
			Message: fmt.Sprintf("%s stays as it is%s: %s", n.Ref, suspendedBy(n), s.why),
		})
	}
	if len(meant) == 0 {
		return all, nil
	}
	f := finding.Finding{
		Rule: "tier-suspended", Severity: finding.Warning, Object: &meant[0], Tier: &meant[0], Causes: who,
		Message: fmt.Sprintf("%s suspended, and nothing says that this is meant: %s", plural(len(meant), "tier is", "tiers are"), listed(meant)),
		Fix:     p.env.Command("standup", "resume"),
		Suggestion: "one that is not meant to run: name it in resume.skip of " + p.env.file() +
			", or let its manifest in git say suspend: true",
	}
	return append(all, f), nil
}
