// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubestandup/kubestandup/pkg/coldstart"
	"github.com/kubestandup/kubestandup/pkg/finding"
)

func missingNamespace() Rule {
	return Rule{
		ID: "CS011", Name: "missing-namespace", Severity: finding.Error,
		Title: "A tier applies objects into a Namespace that nothing creates before.",
		Check: func(s *Subject) []finding.Finding {
			l := newLook(s)
			var all []finding.Finding
			l.eachNeed(func(o *coldstart.Outcome, n coldstart.Need) {
				if n.Object.Kind == "Namespace" {
					all = append(all, l.namespace(o, n)...)
				}
			})
			return all
		},
	}
}

func (l *look) namespace(o *coldstart.Outcome, n coldstart.Need) []finding.Finding {
	name, tier := n.Object.Name, l.name(o.Tier)
	severity, message, fix := finding.Error, "", ""
	manifest := fmt.Sprintf("Add it to %s, which applies Namespaces before anything else:\napiVersion: v1\nkind: Namespace\nmetadata:\n  name: %s", tier, name)
	what := namespaced(n)
	switch p := n.Nearest(); {
	case n.When == coldstart.Late && p != nil && told(o, *p):
		return nil
	case n.When == coldstart.Late && p != nil:
		severity = finding.Warning
		message = fmt.Sprintf("%s applies %s into Namespace %s, which comes from %s, and nothing makes %s wait for that: on a cold cluster its first attempt may fail with `namespaces %q not found`, and is repeated only %s",
			tier, what, name, l.name(p.Tier), tier, name, retry(o))
		fix = l.raceFix(late{o, []brought{{*p, []coldstart.Need{n}}}})
	case n.When == coldstart.Perhaps:
		severity = finding.Info
		known := "nothing known creates"
		if len(n.TooLate) > 0 {
			known = fmt.Sprintf("%s creates too late", l.name(n.TooLate[0].Tier))
		}
		message = fmt.Sprintf("%s applies %s into Namespace %s, which %s; %s may, whose content is not known",
			tier, what, name, known, l.candidates(n.Candidates))
		fix = manifest
	case n.When != coldstart.Missing || l.isDown(n):
		return nil
	default:
		message = fmt.Sprintf("%s applies %s into Namespace %s, which nothing creates before: Flux fails the whole stage with `namespaces %q not found`, and no retry heals it",
			tier, what, name, name)
		fix = manifest
		if p := tooLate(n); p != nil { // a second Namespace of that name would be built twice (DG007)
			fix = fmt.Sprintf("Let a tier that %s depends on create Namespace %s: move it there from %s, which creates it too late.", tier, name, l.name(p.Tier))
		}
	}
	f := l.report("CS011", severity, o.Tier, firstUser(o, n), message)
	f.Causes = l.namespaceCauses(o, n)
	f.Fix = fix
	return []finding.Finding{f}
}

// tooLate is what creates the Namespace of a file, and not in time.
func tooLate(n coldstart.Need) *coldstart.Provider {
	for _, all := range [][]coldstart.Provider{n.Providers, n.TooLate} {
		for i := range all {
			if all[i].How == coldstart.ByGit {
				return &all[i]
			}
		}
	}
	return nil
}

// told is true where another rule says the same of the tiers: HG001 of a gate,
// CS003 and CS004 of a kind that comes from where the Namespace does.
func told(o *coldstart.Outcome, p coldstart.Provider) bool {
	if p.Reach == coldstart.Hollow {
		return true
	}
	for _, n := range o.Needs {
		if k := n.Nearest(); k != nil && n.Kind.Kind != "" && n.When == coldstart.Late && k.Reach == p.Reach && coldstart.Key(k.Tier) == coldstart.Key(p.Tier) {
			return true
		}
	}
	return false
}

// isDown is true where the Namespace stays away for a reason of other tiers.
func (l *look) isDown(n coldstart.Need) bool {
	for _, p := range n.Providers {
		inTime := p.How == coldstart.ByGit && p.Reach == coldstart.Same && p.Stage < n.Stage
		if p.Reach != coldstart.Down && !inTime {
			return false
		}
	}
	return len(n.Providers) > 0
}

func namespaced(n coldstart.Need) string {
	if len(n.Users) == 0 {
		return "objects"
	}
	return finding.Some(refs(users([]coldstart.Need{n})))
}

func (l *look) namespaceCauses(o *coldstart.Outcome, n coldstart.Need) []string {
	const enough = 5
	var causes []string
	for i, u := range n.Users {
		if i == enough {
			causes = append(causes, fmt.Sprintf("and %s more in that namespace", finding.Count(len(n.Users)-enough, "object")))
			break
		}
		causes = append(causes, fmt.Sprintf("%s is in stage %d of %s", l.place(o.Tier, u.Ref()), u.Stage, l.name(o.Tier)))
	}
	for _, u := range n.Users {
		creates, _, _ := unstructured.NestedBool(u.Object, "spec", "install", "createNamespace")
		if isRelease(u.Ref()) && creates {
			causes = append(causes, fmt.Sprintf("install.createNamespace of %s does not help: the HelmRelease itself has to be created in that namespace first", u.Ref()))
			break
		}
	}
	return append(causes, l.providerCauses(n, n.Providers)...)
}
