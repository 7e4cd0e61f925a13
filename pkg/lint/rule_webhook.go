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

func unansweredWebhook() Rule {
	return Rule{
		ID: "CS014", Name: "unanswered-webhook", Severity: finding.Error,
		Title: "A tier applies objects about which a webhook is asked before what answers it runs.",
		Check: func(s *Subject) []finding.Finding {
			l := newLook(s)
			var all []finding.Finding
			l.eachNeed(func(o *coldstart.Outcome, n coldstart.Need) {
				switch {
				case n.Webhook == nil:
				case n.Webhook.Refused:
					all = append(all, l.refusedWebhook(o, n))
				case n.When == coldstart.Missing && !l.isDown(n):
					all = append(all, l.deadWebhook(o, n))
				case n.When == coldstart.Late && !sooner(o, n):
					all = append(all, l.lateWebhook(o, n))
				}
			})
			return all
		},
	}
}

// sooner is true where a kind of the tier comes late from where the webhook
// does: whoever mends the one mends the other.
func sooner(o *coldstart.Outcome, n coldstart.Need) bool {
	p := n.Nearest()
	return p == nil || slices.ContainsFunc(o.Needs, func(k coldstart.Need) bool {
		by := k.Nearest()
		return by != nil && k.Webhook == nil && k.When == coldstart.Late && coldstart.Key(by.Tier) == coldstart.Key(p.Tier)
	})
}

func (l *look) refusedWebhook(o *coldstart.Outcome, n coldstart.Need) finding.Finding {
	f := l.report("CS014", finding.Error, o.Tier, n.Object, fmt.Sprintf(
		"%s applies %s, whose webhook %s does not say sideEffects: None or NoneOnDryRun: the API server takes no other, Flux fails the whole stage, and no retry heals it",
		l.name(o.Tier), n.Object, n.Webhook.Name))
	f.Causes = []string{l.place(o.Tier, n.Object) + " is refused in the dry run (Invalid: sideEffects)"}
	f.Fix = "Write it, if the webhook changes nothing when it is asked in a dry run:\nsideEffects: None"
	return f
}

func (l *look) deadWebhook(o *coldstart.Outcome, n coldstart.Need) finding.Finding {
	tier, p := l.name(o.Tier), n.Providers[0]
	kept := fmt.Sprintf("waits in the same stage of %s, of which Flux applies nothing until the webhook answers", tier)
	if p.Reach == coldstart.Behind {
		kept = fmt.Sprintf("is in %s, which itself waits for %s", l.name(p.Tier), tier)
	}
	f := l.report("CS014", finding.Error, o.Tier, firstUser(o, n), fmt.Sprintf(
		"%s never comes up on a cold cluster: the API server asks webhook %s about %s, in the dry run too, and %s, which answers it, %s (`failed calling webhook`): %s",
		tier, n.Webhook.Name, namespaced(n), p.Object, kept, l.unhealed(o.Tier)))
	f.Causes = append(l.webhookCauses(o, n), l.waitCauses(p.Waits)...)
	f.Fix = fmt.Sprintf("Apply %s in a tier that %s depends on, with a gate (wait: true); or apply %s together with %s, and not before: of one tier Flux applies webhooks last.",
		p.Object, tier, n.Object, p.Object)
	return f
}

func (l *look) lateWebhook(o *coldstart.Outcome, n coldstart.Need) finding.Finding {
	tier, p := l.name(o.Tier), *n.Nearest()
	server := p.About()
	severity, why := finding.Warning, fmt.Sprintf("nothing makes %s wait until %s answers", tier, server)
	if !n.Webhook.First {
		severity, why = finding.Info, why+", should the webhook be there before it"
	}
	if p.Reach == coldstart.Hollow {
		severity, why = finding.Warning, fmt.Sprintf("the Ready of %s, which it waits for, does not prove that %s answers", l.name(p.GateTier()), server)
	}
	then := "is repeated only " + retry(o)
	if l.waitsAlready(p.Tier, o.Tier) {
		severity, then = finding.Warning, fmt.Sprintf("no retry heals it then, for %s waits for %s", l.name(p.Tier), tier)
	}
	f := l.report("CS014", severity, o.Tier, firstUser(o, n), fmt.Sprintf(
		"%s applies %s, about which the API server asks webhook %s, and %s: on a cold cluster its first attempt may fail with `failed calling webhook`, and %s",
		tier, namespaced(n), n.Webhook.Name, why, then))
	f.Causes = l.webhookCauses(o, n)
	f.Fix = l.webhookFix(o, p, server)
	return f
}

// webhookFix is an edge to the tier of what answers, and a gate there.
func (l *look) webhookFix(o *coldstart.Outcome, p coldstart.Provider, server flux.Ref) string {
	if l.waitsAlready(p.Tier, o.Tier) {
		return fmt.Sprintf("%s waits for %s, so that an edge would close a loop: move what the webhook is asked about into a tier of its own that depends on %s.",
			l.name(p.Tier), l.name(o.Tier), l.name(p.Tier))
	}
	text := ""
	if !l.waitsAlready(o.Tier, p.Tier) {
		text = "Let it wait, in " + addTo(l, o.Tier, specYAML{DependsOn: []dependencyYAML{dependsOn(o.Tier, p.Tier)}})
	}
	g := gate{tier: p.Tier}
	if g.watch(l, l.spec(p.Tier), []flux.Ref{server}, nil); !g.none() {
		text += fmt.Sprintf("%set the Ready of %s prove that %s answers:\n%s", map[bool]string{true: "L", false: "and l"}[text == ""], l.name(p.Tier), server, g.text(l))
	}
	return text
}

// webhookCauses says who asks and who answers.
func (l *look) webhookCauses(o *coldstart.Outcome, n coldstart.Need) []string {
	causes := []string{fmt.Sprintf("%s is asked about what is in stage %d of %s", n.Object, n.Stage, l.name(o.Tier))}
	for _, u := range n.Users[:min(len(n.Users), 5)] {
		causes = append(causes, fmt.Sprintf("%s is one of them", l.place(o.Tier, u.Ref())))
	}
	for _, p := range n.Providers {
		causes = append(causes, fmt.Sprintf("%s answers, in %s", l.place(p.Tier, p.About()), l.name(p.Tier)))
	}
	return unique(causes)
}
