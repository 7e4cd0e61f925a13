// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"

	"github.com/kubestandup/kubestandup/pkg/coldstart"
	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

func unboundClaim() Rule {
	return Rule{
		ID: "HG004", Name: "unbound-volume-claim", Severity: finding.Error,
		Title: "A tier waits for a PersistentVolumeClaim that is not bound before a pod of a later tier uses it.",
		Check: func(s *Subject) []finding.Finding {
			l := newLook(s)
			var all []finding.Finding
			if s.Prediction == nil {
				return nil
			}
			for i := range s.Prediction.Outcomes {
				o := &s.Prediction.Outcomes[i]
				dependants := l.dependants(o.Tier)
				for _, c := range o.Claims {
					if c.Sure || len(dependants) > 0 {
						all = append(all, l.unbound(o.Tier, c))
					}
				}
			}
			return all
		},
	}
}

func (l *look) unbound(tier flux.Ref, claim coldstart.Claim) finding.Finding {
	name, severity := l.name(tier), finding.Warning
	var below []string
	for _, d := range l.dependants(tier) {
		below = append(below, l.name(d.Ref))
	}
	stays := fmt.Sprintf("the claim stays Pending, %s is never Ready", name)
	if len(below) > 0 {
		stays = fmt.Sprintf("the claim stays Pending, %s is never Ready, and %s never %s", name, finding.Some(below), finding.Verb(len(below), "starts", "start"))
	}
	class := "where its class binds with the first pod (WaitForFirstConsumer), "
	if claim.Sure {
		class = "its class binds with the first pod (WaitForFirstConsumer), so that "
		if len(below) > 0 {
			severity = finding.Error
		}
	}
	f := l.report("HG004", severity, tier, claim.Object, fmt.Sprintf(
		"%s waits for %s, which no pod mounts before %s is Ready: %s%s", name, claim.Object, name, class, stays))
	f.Causes = []string{
		l.place(tier, claim.Object) + " is Pending until a pod uses it",
		l.place(tier, tier) + " has wait: true, for which a Pending claim is in progress",
	}
	f.Fix = fmt.Sprintf("Move %s into the tier of the workload that mounts it, or give it a class that binds at once (volumeBindingMode: Immediate).", claim.Object)
	return f
}
