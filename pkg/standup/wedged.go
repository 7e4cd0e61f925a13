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
	verdicts, unseen := wedge.Judge(world), []finding.Finding(nil)
	for i := range verdicts {
		if v := &verdicts[i]; v.Open() && !saidElsewhere(v) {
			c.Findings = append(c.Findings, wedgeFinding(p.env, v))
		}
	}
	for _, gap := range world.Gaps {
		if gap.Object != nil && p.graph.Node(*gap.Object) != nil && strings.HasPrefix(gap.What, "which kinds ") {
			continue // kinds, or tiers
		}
		unseen = append(unseen, finding.Finding{
			Rule: "wedges-unseen", Severity: finding.Warning, Object: gap.Object,
			Message: strings.TrimSpace(fmt.Sprintf("%s could not be looked at: %s", gap.What, gap.Why)),
			Fix:     "silence about it is no health; make it readable, then: " + p.env.Command("standup", "preflight"),
		})
	}
	c.Findings = append(c.Findings, atOnce(unseen, "things could not be looked at, so nobody can say whether they are wedged")...)
	if len(c.Findings) == 0 {
		c.Message = "none"
	}
	return c, nil
}

// atOnce is one finding for several of one rule that ask for the same: who may
// not look at one kind may not look at many.
func atOnce(all []finding.Finding, what string) []finding.Finding {
	if len(all) < 2 {
		return all
	}
	f := all[0]
	f.Object, f.Message = nil, fmt.Sprintf("%d %s", len(all), what)
	for i := range all {
		f.Causes = append(f.Causes, all[i].Message)
	}
	return []finding.Finding{f}
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
