// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"

	"github.com/kubestandup/kubestandup/pkg/coldstart"
	"github.com/kubestandup/kubestandup/pkg/finding"
)

func refusedPod() Rule {
	return Rule{
		ID: "CS013", Name: "refused-pod", Severity: finding.Error,
		Title: "A tier applies a Pod whose ServiceAccount or class is not there before, so that the API server refuses it and the whole stage.",
		Check: func(s *Subject) []finding.Finding {
			l := newLook(s)
			var all []finding.Finding
			l.eachNeed(func(o *coldstart.Outcome, n coldstart.Need) {
				if ofPod(n) {
					all = append(all, l.refusedPod(o, n)...)
				}
			})
			return all
		},
	}
}

// eachNeed asks about what the tiers lack, or may. Git suspends the others.
func (l *look) eachNeed(ask func(*coldstart.Outcome, coldstart.Need)) {
	if l.Prediction == nil {
		return
	}
	for i := range l.Prediction.Outcomes {
		o := &l.Prediction.Outcomes[i]
		for _, n := range o.Needs {
			if o.Verdict != coldstart.Suspended {
				ask(o, n)
			}
		}
	}
}

// ofPod is true of what Pods need to be admitted.
func ofPod(n coldstart.Need) bool {
	switch n.Object.Kind {
	case "ServiceAccount", "PriorityClass", "RuntimeClass":
		return len(n.Users) > 0 && n.Users[0].GetKind() == "Pod"
	}
	return false
}

func (l *look) refusedPod(o *coldstart.Outcome, n coldstart.Need) []finding.Finding {
	tier, pods := l.name(o.Tier), namespaced(n)
	severity, message := finding.Error, fmt.Sprintf("%s applies %s with %s", tier, pods, n.Object)
	fix := fmt.Sprintf("Apply %s in a tier that %s depends on; or let a Deployment or a Job make the Pod, whose controller tries again.", n.Object, tier)
	refusal := fmt.Sprintf("the API server refuses the Pod in the dry run already (Forbidden: %s), and Flux applies nothing of the stage", forbidden(n))
	switch p := n.Nearest(); {
	case n.When == coldstart.Late && p != nil && told(o, *p):
		return nil
	case n.When == coldstart.Late && p != nil:
		severity = finding.Warning
		message += fmt.Sprintf(", which comes from %s, and nothing makes %s wait for that: on a cold cluster it may come too late: %s, and tries again only %s", l.name(p.Tier), tier, refusal, retry(o))
		fix = l.raceFix(late{o, []brought{{*p, []coldstart.Need{n}}}})
	case n.When == coldstart.Perhaps:
		severity = finding.Info
		message += fmt.Sprintf(", which nothing known creates; %s may, whose content is not known", l.candidates(n.Candidates))
	case n.When != coldstart.Missing || l.isDown(n):
		return nil
	case len(n.Providers) == 0:
		severity = finding.Warning
		message += fmt.Sprintf(", which nothing in the repository creates: unless something outside of it does before, %s, and no retry heals it", refusal)
	case n.Providers[0].Reach == coldstart.Behind:
		message += fmt.Sprintf(", which comes from %s, and that waits for %s: %s, and no retry heals it", l.name(n.Providers[0].Tier), tier, refusal)
	default:
		message += fmt.Sprintf(", which is in the same stage: %s, the %s neither, so that no retry heals it", refusal, n.Object.Kind)
	}
	f := l.report("CS013", severity, o.Tier, firstUser(o, n), message)
	f.Causes = l.needCauses(o.Tier, []coldstart.Need{n})
	f.Causes = append(f.Causes, l.providerCauses(n, n.Providers)...)
	f.Fix = fix
	return []finding.Finding{f}
}

// forbidden is how the API server says it (kubernetes plugin/pkg/admission).
func forbidden(n coldstart.Need) string {
	switch n.Object.Kind {
	case "PriorityClass":
		return fmt.Sprintf("no PriorityClass with name %s was found", n.Object.Name)
	case "RuntimeClass":
		return fmt.Sprintf("pod rejected: RuntimeClass %q not found", n.Object.Name)
	}
	return fmt.Sprintf("error looking up service account %s/%s", n.Object.Namespace, n.Object.Name)
}
