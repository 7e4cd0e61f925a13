// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kubestandup/kubestandup/pkg/crds"
	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/tiers"
)

// CRDs breaks the deadlocks in which tiers lack second-order kinds: it applies
// their triggers and nothing else, and nudges the tiers. Run again, it does
// only what is left.
//
// The error is that of the first tier that could not be helped, after all
// others were: a *crds.RefusedError (exit 6), a *crds.DeadlineError (exit 4), or
// one of the cluster. The report is complete in every case.
func CRDs(ctx context.Context, env *Env) (*StepReport, error) {
	start := time.Now()
	l, err := env.look(ctx)
	if err != nil {
		return nil, err
	}
	snapshot, b := l.snapshot, crds.Break{DryRun: env.DryRun, Timeout: env.Timeout, Say: env.Say}
	report := &StepReport{Name: "crds"}
	check := Check{Name: "deadlocks"}
	var errs []error
	lacking, broken := 0, 0
	for _, n := range l.graph.Tiers() {
		if !n.MayMissKind() {
			continue
		}
		d, err := env.CRDs.Diagnose(ctx, snapshot, n.Ref)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if d.Verdict == crds.NowServed && n.State == tiers.Progressing {
			continue // it is at work, and lacks nothing now
		}
		lacking++
		b.Say(fmt.Sprintf("%s: %s", n.Ref, d.Why))
		if d.Verdict == crds.Heals && (len(d.Applied()) == 0 || b.DryRun) {
			check.Findings = append(check.Findings, finding.Finding{
				Rule: "kind-missing", Severity: finding.Warning, Object: &n.Ref, Tier: &n.Ref, Missing: d.Report(),
				Message: fmt.Sprintf("%s: %s", n.Ref, d.Why),
				Fix:     env.Command("tiers", "why "+tierArg(n.Ref)),
			})
			continue
		}
		if err := env.CRDs.Break(ctx, d, b); err != nil {
			errs = append(errs, err)
			continue
		}
		broken++
	}
	if lacking == 0 && len(errs) == 0 {
		check.Message = "no tier lacks a kind: nothing to do"
	} else if check.Message = summary(broken, b.DryRun); broken > 0 && len(errs) == 0 {
		report.Next = env.Command("tiers", "--wait --nudge")
		if b.DryRun {
			report.Next = env.Command("standup", "crds")
		}
	}
	for _, err := range errs {
		check.Findings = append(check.Findings, finding.Finding{Rule: "crds-failed", Severity: finding.Error, Message: err.Error()})
	}
	report.Checks = []Check{check}
	report.close()
	if len(errs) > 0 {
		report.Result = Failed
	}
	report.Seconds = time.Since(start).Seconds()
	return report, errors.Join(errs...)
}

func summary(broken int, dryRun bool) string {
	switch {
	case broken == 0:
		return ""
	case dryRun:
		return fmt.Sprintf("%d would be freed", broken)
	}
	return fmt.Sprintf("%d freed", broken)
}
