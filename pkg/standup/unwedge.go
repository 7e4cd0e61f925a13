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

// Unwedge says what no controller will leave by itself, and changes nothing:
// what repairs it is typed as `kubectl standup unwedge`.
func Unwedge(ctx context.Context, env *Env) (*StepReport, error) {
	world, err := env.Wedges.Observe(ctx, wedge.Choices{})
	if err != nil {
		return nil, err
	}
	c := Check{Name: "wedges"}
	verdicts := wedge.Judge(world)
	for i := range verdicts {
		if v := &verdicts[i]; v.Open() {
			c.Findings = append(c.Findings, wedgeFinding(env, v))
		}
	}
	for _, gap := range world.Gaps {
		c.Findings = append(c.Findings, finding.Finding{
			Rule: "wedges-unseen", Severity: finding.Warning, Object: gap.Object,
			Message: strings.TrimSpace(fmt.Sprintf("%s could not be looked at: %s", gap.What, gap.Why)),
			Fix:     "silence about it is no health; make it readable, then: " + env.Command("standup", "unwedge"),
		})
	}
	report := &StepReport{Checks: []Check{c}}
	if len(c.Findings) == 0 {
		report.Checks[0].Message = "nothing is wedged"
	} else {
		report.Next = env.Command("standup", "unwedge")
	}
	report.close()
	return report, nil
}

// wedgeFinding is a verdict in the words of the other findings.
func wedgeFinding(env *Env, v *wedge.Verdict) finding.Finding {
	f := finding.Finding{
		Rule: "wedged-" + string(v.Cause), Severity: finding.Error, Object: &v.Object,
		Message: v.Summary,
		Fix:     env.Command("standup", "unwedge "+wedge.Arg(v.Object)),
	}
	if !strings.Contains(v.Summary, v.Object.Name) {
		f.Message = v.Object.String() + ": " + v.Summary
	}
	if v.Cause == wedge.DependencySuspended { // the next step is there for that
		f.Severity, f.Fix = finding.Info, env.Command("standup", "resume")
	}
	for _, e := range v.Evidence {
		f.Causes = append(f.Causes, strings.TrimSpace(fmt.Sprintf("%s %s: %s", e.Object, e.Field, e.Value)))
	}
	if v.Why != "" {
		f.Causes = append(f.Causes, v.Why)
	}
	return f
}
