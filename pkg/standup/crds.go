// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/kubestandup/kubestandup/pkg/crds"
	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/tiers"
)

// CRDs applies what no controller will: the CRDs of the charts that
// standup.yaml names, and the triggers of deadlocks, alone; then it nudges the
// tiers that were kept back. Run again, it does only what is left.
//
// The error is that of the first thing that could not be done, after all others
// were: a *crds.RefusedError (exit 6), a *crds.DeadlineError or
// *crds.ServedDeadlineError (exit 4), or one of the cluster. The report is
// complete in every case.
func CRDs(ctx context.Context, env *Env) (*StepReport, error) {
	l, err := env.look(ctx)
	if err != nil {
		return nil, err
	}
	s := &crdsStep{look: l}
	report := &StepReport{}
	var errs []error
	for _, part := range []func(context.Context) (Check, error){l.chartCRDs, s.deadlocks, l.expectedCRDs} {
		c, err := part(ctx)
		if ctx.Err() != nil {
			return report, ctx.Err()
		}
		if err != nil && len(c.Findings) == 0 {
			c.Findings = []finding.Finding{{Rule: "crds-failed", Severity: finding.Error, Message: err.Error(), Fix: "run this again; it does only what is left"}}
		}
		errs = append(errs, err)
		report.Checks = append(report.Checks, c)
	}
	report.close()
	err = errors.Join(errs...)
	switch {
	case err != nil || report.Result != OK || s.broken == 0:
	case env.DryRun:
		report.Next = env.Command("standup", "crds")
	default:
		report.Next = env.Command("standup", "resume")
	}
	return report, err
}

type crdsStep struct {
	*look
	broken int
}

// deadlocks frees the tiers that lack kinds which only their own trigger would
// bring.
func (s *crdsStep) deadlocks(ctx context.Context) (Check, error) {
	env, c := s.env, Check{Name: "deadlocks"}
	b := crds.Break{DryRun: env.DryRun, Timeout: env.Timeout, Say: env.Say}
	var errs []error
	lacking, nudged := 0, 0
	for _, n := range s.graph.Tiers() {
		d, err := s.diagnose(ctx, n)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if d == nil || d.Verdict == crds.NowServed && n.State == tiers.Progressing {
			continue // it lacks nothing, or is at work and lacks nothing now
		}
		if why := s.tooEarly(n, d); why != "" {
			c.Findings = append(c.Findings, finding.Finding{
				Rule: "crd-deadlock-ahead", Severity: finding.Info, Object: &n.Ref, Tier: &n.Ref, Missing: d.Report(),
				Message: fmt.Sprintf("%s will be in a %s; %s", n.Ref, d.Why, why),
				Fix:     env.Command("standup", "crds"),
			})
			continue
		}
		lacking++
		b.Say(fmt.Sprintf("%s: %s", n.Ref, d.Why))
		if d.Verdict == crds.Heals && (len(d.Applied()) == 0 || b.DryRun) {
			c.Findings = append(c.Findings, finding.Finding{
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
		if s.broken++; d.Verdict == crds.NowServed {
			nudged++
		}
	}
	for _, err := range errs {
		c.Findings = append(c.Findings, finding.Finding{Rule: "crds-failed", Severity: finding.Error, Message: err.Error()})
	}
	if c.Message = summary(s.broken-nudged, nudged, b.DryRun); lacking == 0 && len(errs) == 0 {
		c.Message = "no tier lacks a kind: nothing to do"
	}
	return c, errors.Join(errs...)
}

// diagnose looks at a tier that lacks a kind, or that has not tried yet and
// will: a deadlock is known before it happens. It is nil where there is none.
func (s *crdsStep) diagnose(ctx context.Context, n *tiers.Node) (*crds.Diagnosis, error) {
	if n.MayMissKind() {
		return s.env.CRDs.Diagnose(ctx, s.snapshot, n.Ref)
	}
	if n.Ref.Kind != flux.KustomizationKind || n.State == tiers.Ready || n.State == tiers.Suspended || n.Remote || !n.Deleted.IsZero() {
		return nil, nil
	}
	b, err := s.builds(ctx)
	if err != nil {
		return nil, err
	}
	f := b.of(n.Ref)
	if f == nil || f.Result == nil { // its own status will say why
		return nil, nil
	}
	look, err := s.served(ctx)
	if err != nil {
		return nil, err
	}
	d, err := look.Judge(ctx, s.snapshot, f.Result)
	if err != nil || d.Verdict != crds.Deadlock {
		return nil, err
	}
	return d, nil
}

// tooEarly is why the trigger of a deadlock that has not happened yet is not
// applied: Flux would not do so either, at this moment.
func (s *crdsStep) tooEarly(n *tiers.Node, d *crds.Diagnosis) string {
	if n.MayMissKind() {
		return ""
	}
	if len(n.Blockers) > 0 {
		return "its trigger is left until what it depends on is Ready: run this step again then"
	}
	for _, t := range d.Kept() {
		if !t.Served {
			return fmt.Sprintf("its trigger is left until %s is served: run this step again then", t.Kind.Kind)
		}
	}
	return ""
}

// summary says how many tiers were in a deadlock, and how many only slept.
func summary(freed, nudged int, dryRun bool) string {
	would := ""
	if dryRun {
		would = "would be "
	}
	var parts []string
	if freed > 0 {
		parts = append(parts, fmt.Sprintf("%d %sfreed", freed, would))
	}
	if nudged > 0 {
		parts = append(parts, fmt.Sprintf("%d %snudged, since what it lacked is there now", nudged, would))
	}
	return strings.Join(parts, ", ")
}
