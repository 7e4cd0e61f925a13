// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"context"
	"fmt"
	"strings"

	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/wedge"
)

// wedges are the verdicts of `kubectl unwedge` that ask for something to be
// done. What another check of the same report says is not said twice.
func (p *preflight) wedges(context.Context) (Check, error) {
	var c Check
	world, err := p.world()
	if err != nil {
		return c, err
	}
	verdicts := wedge.Judge(world)
	for i := range verdicts {
		if v := &verdicts[i]; v.Open() && !saidElsewhere(v) {
			c.Findings = append(c.Findings, wedgeFinding(p.env, v))
		}
	}
	for _, gap := range world.Gaps {
		if gap.Object != nil && p.graph.Node(*gap.Object) != nil && strings.HasPrefix(gap.What, "which kinds ") {
			continue // kinds, or tiers
		}
		c.Findings = append(c.Findings, finding.Finding{
			Rule: "wedges-unseen", Severity: finding.Warning, Object: gap.Object,
			Message: strings.TrimSpace(fmt.Sprintf("%s could not be looked at: %s", gap.What, gap.Why)),
			Fix:     "silence about it is no health; make it readable, then: " + p.env.Command("standup", "preflight"),
		})
	}
	if len(c.Findings) == 0 {
		c.Message = "none"
	}
	return c, nil
}

// saidElsewhere are the causes that other checks find by themselves: those of
// missing kinds, of the graph, and of the controllers.
func saidElsewhere(v *wedge.Verdict) bool {
	switch v.Cause {
	case wedge.ColdStart, wedge.VersionNotServed, wedge.Asleep, // kinds, tiers
		wedge.Cycle, wedge.DependencyMissing, wedge.DependencySuspended, wedge.TierStalled: // tiers
		return true
	case wedge.ControllerMissing: // flux-controllers, unless only its objects tell
		return v.State != "absent"
	}
	return false
}
