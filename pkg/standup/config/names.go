// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

// Glob is true when the pattern stands for the whole value: * is any text,
// also none, and ? any one character. Everything else, also / and [, is itself;
// upper and lower case differ. There is no way to write a * that is only
// itself.
func Glob(pattern, value string) bool {
	p, v := []rune(pattern), []rune(value)
	star, retry := -1, 0 // the last *, and where what follows it is tried next
	i, j := 0, 0
	for j < len(v) {
		switch {
		case i < len(p) && p[i] == '*':
			star, retry = i, j
			i++
		case i < len(p) && (p[i] == '?' || p[i] == v[j]):
			i++
			j++
		case star >= 0:
			retry++
			i, j = star+1, retry
		default:
			return false
		}
	}
	return strings.Trim(string(p[i:]), "*") == ""
}

// NamesTier is true when the name of a tier, as it is written in
// Variable.Blocks, Variable.Degrades and Resume.Skip, means that tier: NAME,
// NAMESPACE/NAME, ks/NAME, hr/NAME, ks/NAMESPACE/NAME or hr/NAMESPACE/NAME. A
// NAME alone means every tier of that name, of both kinds and in all
// namespaces. It is false for a name that is none.
func NamesTier(name string, ref flux.Ref) bool {
	n, err := parseTierName(name)
	return err == nil && n.name == ref.Name &&
		(n.namespace == "" || n.namespace == ref.Namespace) &&
		(n.kind == "" && (ref.Kind == flux.KustomizationKind || ref.Kind == flux.HelmReleaseKind) || n.kind == ref.Kind)
}

// tierName is what a person has said of a tier; what is empty was not said.
type tierName struct{ kind, namespace, name string }

func parseTierName(text string) (tierName, error) {
	var n tierName
	parts := strings.Split(text, "/")
	if len(parts) > 1 {
		if n.kind = tierKind(parts[0]); n.kind != "" {
			parts = parts[1:]
		}
	}
	if len(parts) > 1 {
		n.namespace, parts = parts[0], parts[1:]
		if problem := validation.IsDNS1123Label(n.namespace); problem != nil {
			return tierName{}, notATier(text)
		}
	}
	n.name = parts[0]
	if len(parts) > 1 || validation.IsDNS1123Subdomain(n.name) != nil {
		return tierName{}, notATier(text)
	}
	return n, nil
}

func notATier(text string) error {
	return fmt.Errorf("%q names no tier: write NAME, ks/NAME, hr/NAME, or with its namespace ks/NAMESPACE/NAME", text)
}

// tierKind takes the words that `kubectl tiers` takes.
func tierKind(word string) string {
	switch strings.ToLower(word) {
	case "ks", "kustomization", "kustomizations", "kustomization." + flux.KustomizeGroup:
		return flux.KustomizationKind
	case "hr", "helmrelease", "helmreleases", "helmrelease." + flux.HelmGroup:
		return flux.HelmReleaseKind
	}
	return ""
}
