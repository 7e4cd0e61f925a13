// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubestandup/kubestandup/pkg/finding"
)

// muteFindings are one line for each kind of which nothing says whether its
// objects are well.
func (v *verify) muteFindings(book *checkBook) []finding.Finding {
	var order []schema.GroupKind
	at, judged := map[schema.GroupKind][]*piece{}, map[schema.GroupKind]bool{}
	for _, p := range v.sorted() {
		if p.class == mute {
			gk := p.ref.GroupVersionKind().GroupKind()
			if at[gk] == nil {
				order = append(order, gk)
			}
			at[gk] = append(at[gk], p)
		} else {
			judged[p.ref.GroupVersionKind().GroupKind()] = true
		}
	}
	var all []finding.Finding
	for _, gk := range order {
		pieces := at[gk]
		f := finding.Finding{
			Rule: "unproved", Severity: finding.Info,
			Message: fmt.Sprintf("%s: nothing says whether %s", counted(len(pieces), gk.Kind), worksWork(len(pieces))),
		}
		if len(pieces) == 1 {
			f.Object = &pieces[0].ref
			f.Message = fmt.Sprintf("%s: nothing says whether it works", pieces[0].ref)
		}
		if p := pieces[0]; p.why != "" && !slices.ContainsFunc(pieces, func(other *piece) bool { return other.why != p.why }) {
			f.Message += "; " + firstLine(p.why)
		}
		if expr := commonExample(pieces); expr != "" && len(book.versions(gk)) == 0 {
			f.Fix = "a check proves it: below verify.checks of standup.yaml, with what is true of one that works"
			if expr == noStatus {
				f.Fix = "it has no status to read; where being there is all that it has to be, say so in your own name, below verify.checks of standup.yaml"
			}
			f.Suggestion = suggestion(pieces, expr, judged[gk])
		}
		all = append(all, f)
	}
	return all
}

// suggestion is a check for all objects of the kind, or, where the status of
// others says how they are, for each of these alone: a check replaces what a
// status says.
func suggestion(pieces []*piece, expr string, alone bool) string {
	ref := pieces[0].ref
	if !alone {
		return fmt.Sprintf("- {apiVersion: %s, kind: %s, current: %q}", ref.APIVersion, ref.Kind, expr)
	}
	var lines []string
	for _, p := range pieces[:min(len(pieces), mostNamed)] {
		namespace := ""
		if p.ref.Namespace != "" {
			namespace = ", namespace: " + p.ref.Namespace
		}
		lines = append(lines, fmt.Sprintf("- {apiVersion: %s, kind: %s%s, name: %q, current: %q}", ref.APIVersion, ref.Kind, namespace, p.ref.Name, expr))
	}
	return strings.Join(lines, "\n")
}

func worksWork(n int) string {
	if n == 1 {
		return "it works"
	}
	return "they work"
}

// commonExample is an expression that is true of all pieces as they are now; where
// they differ, that they have a status at all.
func commonExample(pieces []*piece) string {
	expr := pieces[0].example
	for _, p := range pieces {
		switch {
		case p.example == "":
			return ""
		case p.example != expr:
			expr = "has(status)"
		}
	}
	return expr
}

// example is an expression that is true of an object as it is now, and was not
// the moment it was applied. "true" is for one that has no status.
func example(u *unstructured.Unstructured) string {
	status, _, _ := unstructured.NestedMap(u.Object, "status")
	for _, field := range []string{"phase", "state"} {
		if s, ok := status[field].(string); ok && s != "" && !strings.ContainsAny(s, `'"\`) {
			return fmt.Sprintf("status.%s == '%s'", field, s)
		}
	}
	for _, field := range slices.Sorted(maps.Keys(status)) {
		if isIdentifier(field) {
			return "has(status." + field + ")"
		}
	}
	return noStatus
}

// noStatus is the check of whoever knows that being there is enough.
const noStatus = "true"

func isIdentifier(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

func (u *unseen) findings() []finding.Finding {
	var all []finding.Finding
	if len(u.remote) > 0 {
		all = append(all, finding.Finding{
			Rule: "tier-remote", Severity: finding.Info,
			Message: "applied to another cluster (spec.kubeConfig), so what was applied is unproved here: " + listed(u.remote),
		})
	}
	if len(u.silent) > 0 {
		all = append(all, finding.Finding{
			Rule: "release-without-inventory", Severity: finding.Info,
			Message: "their status does not say what they installed (helm-controller before 1.5), so only that they are Ready is known: " + listed(u.silent),
		})
	}
	for _, why := range u.garbled {
		all = append(all, finding.Finding{Rule: "inventory-garbled", Severity: finding.Warning, Message: why, Fix: "let Flux write it again: reconcile the tier"})
	}
	return all
}
