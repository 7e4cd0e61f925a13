// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package lint

import "github.com/kubestandup/kubestandup/pkg/finding"

// The rules that are no function of a cluster that builds.
const (
	neverReady            = "CS012"
	buildFailed           = "BUILD001"
	remoteBase            = "BUILD002"
	unknownField          = "BUILD003"
	chartFailed           = "BUILD004"
	unusedSuppression     = "SUP001"
	reasonlessSuppression = "SUP002"
)

// everyRule are the rules that a finding of a report may have.
func everyRule() []Rule {
	return append(Rules(),
		Rule{ID: neverReady, Name: "never-ready", Severity: finding.Error, Title: "A tier never becomes Ready on a cold cluster, and no other rule says why."},
		Rule{ID: buildFailed, Name: "build-failed", Severity: finding.Error, Title: "A tier does not build, so that Flux applies nothing of it."},
		Rule{ID: remoteBase, Name: "remote-base", Severity: finding.Warning, Title: "A tier is built from a remote base, which was not fetched: what is in it is not known."},
		Rule{ID: unknownField, Name: "unknown-variable", Severity: finding.Info, Title: "What a tier is built from depends on a variable whose value the repository does not hold."},
		Rule{ID: chartFailed, Name: "chart-failed", Severity: finding.Error, Title: "A HelmRelease has a chart of the repository that is not there, or does not render."},
		Rule{ID: unusedSuppression, Name: "unused-suppression", Severity: finding.Warning, Title: "A suppression hides nothing."},
		Rule{ID: reasonlessSuppression, Name: "suppression-without-reason", Severity: finding.Warning, Title: "A suppression gives no reason, and does not count."},
	)
}

// docs is where the pages are. It is not the release's own: a page may explain
// better later, and a release that is no tag has none.
const docs = "https://github.com/kubestandup/kubestandup/blob/main/docs/rules/"

// Page is the address of the rule's page.
func (r Rule) Page() string { return docs + r.Name + ".md" }

// RuleOf finds a rule that a finding names, those among them that are about a
// tier that does not build and about suppressions.
func RuleOf(id string) (Rule, bool) {
	for _, rule := range everyRule() {
		if rule.ID == id {
			return rule, true
		}
	}
	return Rule{}, false
}
