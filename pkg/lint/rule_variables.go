// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/coldstart"
	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

func variablesWithoutPath() Rule {
	return Rule{
		ID: "CS006", Name: "variables-without-path", Severity: finding.Warning,
		Title: "A tier is built with variables that another tier brings, and nothing makes it wait for that tier.",
		Check: func(s *Subject) []finding.Finding {
			l := newLook(s)
			var all []finding.Finding
			l.eachNeed(func(o *coldstart.Outcome, n coldstart.Need) {
				p := n.Nearest()
				if p == nil || !isVariables(n) || p.Reach != coldstart.NoPath && p.Reach != coldstart.Applied {
					return
				}
				if l.substitutes(o.Tier, n, *p) {
					all = append(all, l.reportVariables(o, n, *p))
				}
			})
			return all
		},
	}
}

func isVariables(n coldstart.Need) bool {
	return n.When == coldstart.Late && n.Stage == 0 && builtWith(n) != "from"
}

// substitutes is true when the tier is built with the object's values, as far as
// that can be told: a build without any of them fails just the same as long as
// the object is missing, but then it is no part of what was meant.
func (l *look) substitutes(tier flux.Ref, n coldstart.Need, p coldstart.Provider) bool {
	if post := l.spec(tier).PostBuild; post != nil && post.SubstituteStrategy == kustomizev1.SubstituteStrategyAlways {
		return true
	}
	for _, o := range l.built(p) {
		if !same(refOf(o), n.Object) {
			continue
		}
		if o.GetKind() == "Secret" {
			return true // what is built holds placeholders in place of its values
		}
		for _, value := range values(o) {
			if value == "" || strings.HasPrefix(value, "ENC[") {
				return true // not to be told
			}
			if slices.ContainsFunc(l.objects(l.followed(tier)), func(u build.Object) bool { return holds(u.Object, value) }) {
				return true
			}
		}
		return false
	}
	return true
}

// values are those of a ConfigMap that Flux would substitute with.
func values(o *unstructured.Unstructured) []string {
	var all []string
	data, _, _ := unstructured.NestedStringMap(o.Object, "data")
	for _, v := range data {
		all = append(all, strings.ReplaceAll(v, "\n", ""))
	}
	return all
}

// holds is true when some field holds the text. A number or a truth value of
// the object may have been one.
func holds(v any, text string) bool {
	switch v := v.(type) {
	case []any:
		return slices.ContainsFunc(v, func(e any) bool { return holds(e, text) })
	case map[string]any:
		for _, e := range v {
			if holds(e, text) {
				return true
			}
		}
		return false
	case nil:
		return false
	}
	return strings.Contains(fmt.Sprint(v), text)
}

func (l *look) reportVariables(o *coldstart.Outcome, n coldstart.Need, p coldstart.Provider) finding.Finding {
	name := l.name(o.Tier)
	f := l.report("CS006", finding.Warning, o.Tier, o.Tier, fmt.Sprintf(
		"%s is built with the variables of %s, which %s brings, and nothing makes %s wait for %s: on a cold cluster its first build may fail (BuildFailed: substitute from '%s/%s' error), and is repeated only %s",
		name, n.Object, l.name(p.Tier), name, l.name(p.Tier), n.Object.Kind, n.Object.Name, retry(o)))
	f.Causes = []string{
		fmt.Sprintf("%s names %s in spec.postBuild.substituteFrom, and not as optional", l.place(o.Tier, o.Tier), n.Object),
		l.providerCause(brought{p, []coldstart.Need{n}}),
	}
	f.Fix = l.raceFix(late{o, []brought{{p, []coldstart.Need{n}}}})
	return f
}
