// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"context"
	"fmt"
	"strings"

	"github.com/kubestandup/kubestandup/pkg/finding"
)

// names reports the names outside of the cluster's own domain that tiers
// claim: two clusters that claim one name fight over it.
func (p *preflight) names(ctx context.Context) (Check, error) {
	var c Check
	domain := p.env.File.Cluster.Domain
	if domain == "" {
		c.Message = "not compared: cluster.domain of standup.yaml is not set"
		return c, nil
	}
	b, err := p.builds(ctx)
	if err != nil {
		return c, err
	}
	count := 0
	for _, claim := range b.claims() {
		var foreign []string
		for _, host := range claim.hosts {
			switch {
			case isLocal(host):
			case below(host, domain):
				count++
			default:
				foreign = append(foreign, host)
			}
		}
		if len(foreign) > 0 {
			c.Findings = append(c.Findings, finding.Finding{
				Rule: "name-outside-domain", Severity: finding.Warning, Object: &claim.object, Tier: &claim.tier,
				Message: fmt.Sprintf("%s of %s claims %s, outside of %s: two clusters that claim one name fight over it",
					claim.object, claim.tier, strings.Join(foreign, ", "), domain),
				Fix: "make sure that no other cluster claims it, or bring it below cluster.domain in git",
			})
		}
	}
	c.Message = fmt.Sprintf("%s below %s", plural(count, "name is", "names are"), domain) + b.unknown()
	return c, nil
}
