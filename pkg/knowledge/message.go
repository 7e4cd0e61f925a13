// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package knowledge

import (
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

// MissingKind is what a message of a controller says about a kind that its API
// server does not serve.
type MissingKind struct {
	// Object is the object that needs the kind, as far as the message names
	// it. Its APIVersion is that of the missing kind.
	Object flux.Ref
	// Kind is what is missing. The version and group are empty when the
	// message does not say them, and the kind when it says only them.
	Kind schema.GroupVersionKind
	// Certain is false for the one message that also means something else: the
	// controller still knows the kind, and either its CRD is gone or the
	// object lacks a namespace.
	Certain bool
	// Deleting is true when the kind was missed at pruning or deletion, which
	// then does not end either.
	Deleting bool
}

// Flux reports one missing kind per attempt, at random, of all that a build
// needs (fluxcd/pkg/ssa manager_apply.go ApplyAll dry-runs concurrently and
// stops at the first error). Helm reports all of them.
var (
	// noMatch is apimachinery's NoKindMatchError, in its three forms, and its
	// NoResourceMatchError (pkg/api/meta/errors.go).
	noMatch = regexp.MustCompile(`no matches for (?:kind "([^"\n]+)" in (version|versions|group) \[?"([^"\n]*)"|([^\s,"]+), Resource=)`)
	// applying is the object before a dry-run error: DryRunErr.Error
	// (fluxcd/pkg/ssa errors/errors.go), and its forms before v0.30.
	applying = regexp.MustCompile(`(?:^|[\s:])([^\s/:]+)/(?:([^\s/]+)/)?(\S+) dry-run failed(?:, error|, reason: \w+, error| \(\w+\))?: (?:unable to retrieve [^\n]*: )?$`)
	// deleting is the object before an error of manager_delete.go.
	deleting = regexp.MustCompile(`(?:^|[\s:])([^\s/:]+)/(?:([^\s/]+)/)?(\S+) (?:query|delete) failed: (?:unable to retrieve [^\n]*: )?$`)
	// helm is the object before Helm's error (helm.sh/helm pkg/kube, through
	// cli-runtime resource.Builder).
	helm = regexp.MustCompile(`resource mapping not found for name: "([^"\n]*)" namespace: "([^"\n]*)" from "[^"\n]*": $`)
	// gone is DryRunErr.Error for a kind that the controller's RESTMapper still
	// knows: cached mappings stay for as long as the process lives.
	gone = regexp.MustCompile(`(?:^|[\s:])([^\s/:]+)/(?:([^\s/]+)/)?(\S+) (?:namespace not specified|not found): the server could not find the requested resource`)
)

// MissingKinds reads the missing kinds out of a message of kustomize-controller
// or helm-controller, of current and older releases. It answers nil for a
// message about anything else.
func MissingKinds(message string) []MissingKind {
	var all []MissingKind
	for _, at := range noMatch.FindAllStringSubmatchIndex(message, -1) {
		m := MissingKind{Certain: true}
		gv, ok := versionOf(part(message, at, 2), part(message, at, 3)+part(message, at, 4))
		if !ok {
			continue
		}
		m.Kind = gv.WithKind(part(message, at, 1))
		before := message[:at[0]]
		before = before[strings.LastIndexByte(before, '\n')+1:]
		switch {
		case m.object(applying.FindStringSubmatch(before), 1, 2, 3):
		case m.object(deleting.FindStringSubmatch(before), 1, 2, 3):
			m.Deleting = true
		case m.object(helm.FindStringSubmatch(before), 0, 2, 1):
		}
		if m.Kind.Kind == "" {
			m.Kind.Kind = m.Object.Kind
		}
		m.Object.Kind = m.Kind.Kind
		if gv.Version != "" {
			m.Object.APIVersion = gv.String()
		}
		if m.Object.Name == "" {
			m.Object = flux.Ref{}
		}
		all = append(all, m)
	}
	for _, found := range gone.FindAllStringSubmatch(message, -1) {
		all = append(all, MissingKind{
			Object: flux.Ref{Kind: found[1], Namespace: found[2], Name: found[3]},
			Kind:   schema.GroupVersionKind{Kind: found[1]},
			// A namespaced kind never lacks its namespace in this form.
			Certain: found[2] != "",
		})
	}
	return all
}

// object takes the object from a match, when there is one.
func (m *MissingKind) object(found []string, kind, namespace, name int) bool {
	if found == nil {
		return false
	}
	m.Object = flux.Ref{Namespace: found[namespace], Name: strings.TrimSpace(found[name])}
	if kind > 0 {
		m.Object.Kind = found[kind]
	}
	return true
}

// versionOf reads what stands behind "in version", "in versions" (of which the
// first is taken) and "in group".
func versionOf(form, text string) (schema.GroupVersion, bool) {
	if form == "group" {
		return schema.GroupVersion{Group: text}, true
	}
	gv, err := schema.ParseGroupVersion(text)
	return gv, err == nil // more than one slash: not a message of the API
}

func part(message string, at []int, i int) string {
	if at[2*i] < 0 {
		return ""
	}
	return message[at[2*i]:at[2*i+1]]
}
