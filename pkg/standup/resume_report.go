// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/tiers"
	"github.com/kubestandup/kubestandup/pkg/wait"
	"github.com/kubestandup/kubestandup/pkg/wedge"
)

// announce says what was found suspended, and by whom, before anything is done.
func (r *resumer) announce() {
	for _, name := range r.unknown {
		r.env.say("Warning: " + r.unknownName(name).Message)
	}
	for _, n := range r.last.Tiers() {
		switch s, stays := r.stays[n.Ref]; {
		case stays:
			r.env.say(fmt.Sprintf("%s is left as it is%s: %s", n.Ref, suspendedBy(n), s.why))
		case n.Suspended:
			r.env.say(fmt.Sprintf("%s is to be resumed%s", n.Ref, suspendedBy(n)))
		}
	}
}

// suspendedBy says who suspended a tier and since when, in brackets.
func suspendedBy(n *tiers.Node) string {
	if !n.Suspended {
		return ""
	}
	who := "somebody" // a manager that Flux has dropped
	if n.SuspendedBy != "" {
		who = n.SuspendedBy
	}
	if n.SuspendedSince.IsZero() {
		return fmt.Sprintf(" (suspended by %s)", who)
	}
	return fmt.Sprintf(" (suspended by %s since %s)", who, n.SuspendedSince.UTC().Format(time.RFC3339))
}

// rehearsal is the report of a dry run: what would be resumed, level by level.
func (r *resumer) rehearsal() *StepReport {
	report := &StepReport{Checks: []Check{r.suspendedCheck()}}
	held := wait.HeldBack(r.last, r.excluded(), r.chosen)
	byLevel := map[int][]string{}
	for _, n := range r.last.Tiers() {
		if hold, back := held[n.Ref]; r.chosen[n.Ref] && (!back || hold.Applied) {
			byLevel[n.Level] = append(byLevel[n.Level], n.Ref.String()+suspendedBy(n))
		}
	}
	for _, level := range slices.Sorted(maps.Keys(byLevel)) {
		report.Checks = append(report.Checks, Check{
			Name: fmt.Sprintf("level %d", level), Message: "would be resumed: " + strings.Join(byLevel[level], ", "),
		})
	}
	report.Checks = append(report.Checks, r.heldCheck(), r.degradedCheck())
	if len(byLevel) > 0 {
		report.Next = r.env.Command("standup", "resume")
	}
	return r.closed(report)
}

// report says what was done, and what is left.
func (r *resumer) report(err error) *StepReport {
	report := &StepReport{}
	report.Checks = []Check{r.suspendedCheck(), r.resumedCheck(), r.heldCheck(), r.degradedCheck()}
	if err != nil && r.stoppedBy(err) {
		report.Checks = append(report.Checks, r.stoppedCheck(err))
	}
	report = r.closed(report)
	switch {
	case err != nil:
		report.Result, report.Error = Failed, err.Error()
		report.Next = r.env.Command("standup", "resume")
		if stuck, ok := errors.AsType[*wait.StuckError](err); ok && stuck.Diagnosed && stuck.Root.Object.Kind == flux.KustomizationKind {
			report.from = "crds" // it breaks the deadlock
		}
	default:
		report.Next = r.env.Command("standup", "verify")
	}
	return report
}

// closed leaves out the checks that have nothing to say.
func (r *resumer) closed(report *StepReport) *StepReport {
	report.Checks = slices.DeleteFunc(report.Checks, func(c Check) bool { return c.Message == "" && len(c.Findings) == 0 })
	report.close()
	return report
}

// suspendedCheck lists what is left as it is, with the reason.
func (r *resumer) suspendedCheck() Check {
	c := Check{Name: "suspended"}
	count := len(r.chosen)
	switch count {
	case 0:
		c.Message = "no tier is suspended that is meant to run"
	case 1:
		c.Message = "one tier was suspended that is meant to run"
	default:
		c.Message = fmt.Sprintf("%d tiers were suspended that are meant to run", count)
	}
	for _, ref := range r.staying() {
		s := r.stays[ref]
		said := ref.String() + ": "
		if n := r.last.Node(ref); n != nil {
			said = fmt.Sprintf("%s is left as it is%s: ", ref, suspendedBy(n))
		}
		c.Findings = append(c.Findings, finding.Finding{Rule: s.rule, Severity: s.severity, Object: &ref, Message: said + s.why, Fix: s.fix})
	}
	for _, name := range r.unknown {
		c.Findings = append(c.Findings, r.unknownName(name))
	}
	return c
}

// staying are the tiers and sources that are left as they are, sorted.
func (r *resumer) staying() []flux.Ref {
	return slices.SortedFunc(maps.Keys(r.stays), flux.Ref.Compare)
}

// resumedCheck says what was resumed, and what somebody else has done meanwhile.
func (r *resumer) resumedCheck() Check {
	c := Check{Name: "resumed", Message: "nothing was left to resume"}
	if len(r.resumed) > 0 {
		c.Message = listed(r.resumed)
	} else if len(r.chosen) > 0 {
		c.Message = ""
	}
	ready, all := 0, r.last.Tiers()
	for _, n := range all {
		if n.State == tiers.Ready {
			ready++
		}
		if _, stays := r.stays[n.Ref]; n.Suspended && !stays && !slices.Contains(r.moved, n.Ref) {
			c.Findings = append(c.Findings, finding.Finding{
				Rule: "tier-suspended-meanwhile", Severity: finding.Warning, Object: &n.Ref,
				Message: fmt.Sprintf("%s was suspended while this ran%s, and is left so", n.Ref, suspendedBy(n)),
				Fix:     "if it is meant to run: " + r.env.Command("standup", "resume"),
			})
		}
	}
	for _, ref := range r.moved {
		c.Findings = append(c.Findings, finding.Finding{
			Rule: "tier-moved", Severity: finding.Error, Object: &ref,
			Message: fmt.Sprintf("%s was skipped: it was changed in the moment in which it was to be resumed", ref),
			Fix:     "see it as it is now: " + r.env.Command("standup", "resume"),
		})
	}
	said := fmt.Sprintf("%d of %d tiers Ready", ready, len(all))
	c.Message = strings.TrimPrefix(c.Message+"; "+said, "; ")
	return c
}

// heldCheck names what cannot come up, once for each thing that keeps it.
func (r *resumer) heldCheck() Check {
	c := Check{Name: "held back"}
	by := map[flux.Ref][]flux.Ref{}
	for ref, hold := range wait.HeldBack(r.last, r.excluded(), r.chosen) {
		by[hold.On] = append(by[hold.On], ref)
	}
	for _, on := range slices.SortedFunc(maps.Keys(by), flux.Ref.Compare) {
		slices.SortFunc(by[on], flux.Ref.Compare)
		severity := finding.Warning
		if r.stays[on].aside { // somebody has decided that, and what follows from it
			severity = finding.Info
		}
		c.Findings = append(c.Findings, finding.Finding{
			Rule: "tier-held-back", Severity: severity, Object: &by[on][0],
			Message: fmt.Sprintf("%s cannot become Ready, since %s stays as it is: %s", listed(by[on]), on, r.stays[on].why),
			Fix:     r.stays[on].fix,
		})
	}
	return c
}

// degradedCheck names the tiers that come up and do not do what they are for.
func (r *resumer) degradedCheck() Check {
	c := Check{Name: "degraded"}
	for i := range r.unset {
		p := &r.unset[i]
		if len(p.Degrades) == 0 {
			continue
		}
		severity := finding.Info
		if p.Unread != nil {
			severity = finding.Warning
		}
		c.Findings = append(c.Findings, finding.Finding{
			Rule: "placeholder-degrades", Severity: severity, Object: &p.Degrades[0],
			Message: fmt.Sprintf("%s: Ready does not mean that it works, since %s %s", listed(p.Degrades), p.Variable.Name, p.state()),
			Fix:     fmt.Sprintf("give %s its value in git", p.Variable.Name),
		})
	}
	return c
}

// stoppedBy is false for the errors that come after everything else was done.
func (r *resumer) stoppedBy(err error) bool {
	if _, refused := errors.AsType[*ResumeRefusedError](err); refused {
		return false
	}
	_, moved := errors.AsType[*ResumeMovedError](err)
	return !moved
}

// stoppedCheck is the root cause, and what is left.
func (r *resumer) stoppedCheck(err error) Check {
	again := r.env.Command("standup", "resume")
	f := finding.Finding{
		Rule: "resume-stopped", Severity: finding.Error, Message: firstLine(err.Error()),
		Causes: r.leftCauses(), Fix: "mend that, then go on: " + again,
	}
	if errors.Is(err, context.Canceled) {
		f.Message, f.Fix = "interrupted", "go on: "+again
	}
	if stuck, ok := errors.AsType[*wait.StuckError](err); ok {
		f.Object, f.Tier = &stuck.Root.Object, &stuck.Tier
		switch {
		case stuck.Diagnosed && stuck.Root.Object.Kind == flux.HelmReleaseKind:
			f.Fix = "see the ways out: " + r.env.Command("standup", "unwedge "+wedge.Arg(stuck.Root.Object)) + ", then go on: " + again
		case stuck.Diagnosed:
			f.Fix = "break the deadlock: " + r.env.Command("standup", "crds") + ", then go on: " + again
		}
	}
	if late, ok := errors.AsType[*wait.DeadlineError](err); ok && late.Tier.Name != "" {
		f.Object, f.Tier = &late.Tier, &late.Tier
		if n := r.last.Node(late.Tier); n != nil && n.Root != nil {
			f.Object = &n.Root.Object
		}
	}
	return Check{Name: "stopped", Findings: []finding.Finding{f}}
}

// leftCauses are the tiers that are not Ready, each with its state.
func (r *resumer) leftCauses() []string {
	var out []string
	for _, n := range r.left {
		said := fmt.Sprintf("left: %s (%s)", n.Ref, n.State)
		if n.Root != nil {
			if n.Root.Object == n.Ref {
				said = fmt.Sprintf("left: %s (%s: %s)", n.Ref, n.State, firstLine(n.Root.Message))
			} else {
				said = fmt.Sprintf("left: %s (%s; root cause %s: %s)", n.Ref, n.State, n.Root.Object, firstLine(n.Root.Message))
			}
		}
		out = append(out, said)
	}
	return out
}

// leftWords names what is left in one sentence.
func (r *resumer) leftWords() string {
	if len(r.left) == 0 {
		return "nothing was known to be left"
	}
	refs := make([]flux.Ref, 0, len(r.left))
	for _, n := range r.left {
		refs = append(refs, n.Ref)
	}
	return "left: " + listed(refs) + "; to go on: " + r.env.Command("standup", "resume")
}
