// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"slices"
	"strings"

	"github.com/kubestandup/kubestandup/pkg/finding"
)

// Rules are all rules, by ID. Each has a page in docs/rules.
func Rules() []Rule {
	all := []Rule{
		deadlock(), unregistered(), noPath(), retryOnly(), chartWithoutCRDs(), variablesWithoutPath(),
		sopsWithoutDecryption(), ciphertext(), forceInDeadlock(), teardownTwin(), missingNamespace(),
		refusedPod(), unansweredWebhook(), unrendered(),
		cycle(), missingDependency(), wrongKindDependency(), suspendedDependency(), crossSource(),
		rootWaitsForChild(), builtTwice(), selfServedSource(), missingSource(), sourceBehind(),
		hollowGate(), ignoredHealthChecks(), unprovedEffect(), unboundClaim(), jobRunsAgain(),
	}
	for i := range all {
		check := all[i].Check
		all[i].Check = func(s *Subject) []finding.Finding {
			found := check(s)
			for j := range found {
				found[j].Fix = strings.TrimSpace(found[j].Fix)
			}
			return found
		}
	}
	slices.SortFunc(all, func(a, b Rule) int { return strings.Compare(a.ID, b.ID) })
	return all
}
