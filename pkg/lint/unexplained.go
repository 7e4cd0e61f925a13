// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"

	"github.com/kubestandup/kubestandup/pkg/coldstart"
	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// unexplained reports the tiers that never come up, and that no rule has said
// anything about: what lint predicts, it also says.
func unexplained(s *Subject, found []finding.Finding) []finding.Finding {
	l := newLook(s)
	named := map[flux.Ref]bool{}
	for i := range found {
		for _, ref := range []*flux.Ref{found[i].Tier, found[i].Object} {
			if ref != nil && found[i].Severity != finding.Info {
				named[coldstart.Key(*ref)] = true
			}
		}
	}
	var all []finding.Finding
	for i := range s.Prediction.Outcomes {
		o := &s.Prediction.Outcomes[i]
		f := l.followed(o.Tier)
		if named[coldstart.Key(o.Tier)] || f == nil || f.Err != nil {
			continue
		}
		switch {
		case o.Verdict == coldstart.Never && (l.wantsSwitch(o) || waitsForDown(o)):
			// CS005 says so, of the release; or the finding about the tier that
			// would bring what this one lacks.
		case o.Verdict == coldstart.Never:
			all = append(all, l.stuckForEver(o, "is never applied as a whole", nil))
		case !o.Ready && len(o.WaitsFor) > 0:
			if causes, tells := l.waits(o, named); tells {
				all = append(all, l.stuckForEver(o, "applies everything and never becomes Ready", causes))
			}
		}
	}
	return all
}

// wantsSwitch is true of a tier that lacks a kind which the values of a chart
// switch off.
func (l *look) wantsSwitch(o *coldstart.Outcome) bool {
	return slices.ContainsFunc(o.Needs, func(n coldstart.Need) bool {
		return n.When == coldstart.Missing && n.Kind.Kind != "" && len(l.switchedOff(n.Kind.GroupKind())) > 0
	})
}

// waitsForDown is true of a tier that lacks what a tier which never comes up for
// another reason would bring.
func waitsForDown(o *coldstart.Outcome) bool {
	return slices.ContainsFunc(o.Needs, func(n coldstart.Need) bool {
		return n.When == coldstart.Missing && slices.ContainsFunc(n.Providers, func(p coldstart.Provider) bool { return p.Reach == coldstart.Down })
	})
}

// waits says for what the tier waits. It answers false where another tier, or
// something that has been reported, is why.
func (l *look) waits(o *coldstart.Outcome, named map[flux.Ref]bool) (causes []string, tells bool) {
	for _, ref := range o.WaitsFor {
		other := l.outcome(ref)
		switch {
		case named[coldstart.Key(ref)], other != nil && other.Verdict != coldstart.Suspended:
			return nil, false
		case other != nil:
			causes = append(causes, fmt.Sprintf("it waits for %s, which git suspends", l.place(o.Tier, ref)))
		default:
			causes = append(causes, fmt.Sprintf("it waits for %s, which never becomes Ready: what that needs comes only after this tier, or not at all", l.place(o.Tier, ref)))
		}
	}
	return causes, true
}

func (l *look) stuckForEver(o *coldstart.Outcome, what string, causes []string) finding.Finding {
	severity, tail := finding.Warning, ""
	if n := l.below(o.Tier); n > 0 {
		severity, tail = finding.Error, fmt.Sprintf(", and the %s below it %s down", finding.Count(n, "tier"), finding.Verb(n, "stays", "stay"))
	}
	f := l.report(neverReady, severity, o.Tier, o.Tier, fmt.Sprintf("%s %s on a cold cluster%s", l.name(o.Tier), what, tail))
	f.Causes = causes
	f.Fix = "Take what is waited for out of the tier, or let it come up before: un-suspend it, and put what it needs into a tier that this one depends on."
	return f
}
