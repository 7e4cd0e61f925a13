// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// literals reports the ${TOKEN}s that ship as they stand (incident 11): Flux
// replaces none in a tier that has no variables. A text may hold a ${…} for
// other reasons, so only the names that are variables elsewhere count.
func (p *preflight) literals(b *builds, all []substitution) []finding.Finding {
	known, replaced := map[string]bool{}, map[string]bool{}
	for _, v := range p.env.File.Variables {
		known[v.Name] = true
	}
	for i := range all {
		for name := range all[i].values {
			known[name] = true
		}
		replaced[all[i].tier.Tier.Key()] = all[i].replaces()
	}
	var found []finding.Finding
	token := regexp.MustCompile(`\$+\{([_a-zA-Z][_a-zA-Z0-9]*)`)
	for i := range b.all {
		f := &b.all[i]
		if f.Result == nil || replaced[f.Tier.Key()] {
			continue
		}
		names, objects := map[string]bool{}, []flux.Ref(nil)
		for _, o := range f.Result.Objects {
			holds := false
			for _, name := range tokens(token, o) {
				if known[name] {
					names[name], holds = true, true
				}
			}
			if holds {
				objects = append(objects, o.Ref())
			}
		}
		if len(names) == 0 {
			continue
		}
		found = append(found, finding.Finding{
			Rule: "variable-literal", Severity: finding.Warning, Object: &objects[0], Tier: &f.Tier,
			Message: fmt.Sprintf("%s is not substituted with variables, so ${%s} ships as it stands", f.Tier,
				strings.Join(slices.Sorted(maps.Keys(names)), "}, ${")),
			Causes: []string{"it stands in " + listed(objects)},
			Fix: "add spec.postBuild.substituteFrom to that Kustomization in git, as the other tiers have it; " +
				"where the text is meant, annotate the object kustomize.toolkit.fluxcd.io/substitute: disabled",
		})
	}
	return found
}

// replaces is true when Flux replaces anything: with no variable at all it
// does not, unless it is told to always (fluxcd/pkg/kustomize
// kustomize_varsub.go SubstituteVariables).
func (s *substitution) replaces() bool {
	always, _, _ := unstructured.NestedString(s.tier.Kustomization.Object, "spec", "postBuild", "substituteStrategy")
	return len(s.values) > 0 || always == "Always" || s.unresolved() != nil
}

// tokens are the names that an object holds as ${NAME}. What a Kustomization
// patches its own build with is replaced there, if at all.
func tokens(token *regexp.Regexp, o build.Object) []string {
	const disabled = "kustomize.toolkit.fluxcd.io/substitute"
	if o.GetLabels()[disabled] == "disabled" || o.GetAnnotations()[disabled] == "disabled" {
		return nil
	}
	skip := ""
	if gvk := o.GroupVersionKind(); gvk.Group == flux.KustomizeGroup && gvk.Kind == flux.KustomizationKind {
		skip = "patches"
	}
	var names []string
	var walk func(value any)
	walk = func(value any) {
		switch value := value.(type) {
		case string:
			for _, found := range token.FindAllStringSubmatch(value, -1) {
				if dollars := strings.Count(found[0], "$"); dollars == 1 {
					names = append(names, found[1])
				}
			}
		case []any:
			for _, v := range value {
				walk(v)
			}
		case map[string]any:
			for key, v := range value {
				if key != skip || skip == "" {
					walk(key)
					walk(v)
				}
			}
		}
	}
	walk(o.Object)
	return names
}
