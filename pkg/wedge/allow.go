// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"strings"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

// allows is true when a person has named the object with --allow.
func (w *World) allows(ref flux.Ref) bool {
	for _, arg := range w.Choices.Allow {
		if allowed(arg, ref) {
			return true
		}
	}
	return false
}

// allowed is stricter than Matches, because what it names may be lost: one
// object at most. An object that has a Namespace is named with it, and a kind
// that has no group is that of Kubernetes or Flux where these have one by that
// name.
func allowed(arg string, ref flux.Ref) bool {
	kind, rest, _ := strings.Cut(arg, "/")
	if name, ok := releaseOf(ref); ok && strings.EqualFold(kind, releaseType) {
		return rest == ref.Namespace+"/"+name
	}
	if group, known := groupOf(strings.ToLower(ref.Kind)); known && group != ref.Group() && !strings.Contains(kind, ".") {
		return false
	}
	return rest == ref.Key() && Matches(arg, ref)
}

// LacksNamespace is true for a name without a namespace of a kind whose objects
// all have one, so that it allows nothing.
func LacksNamespace(arg string) bool {
	kind, rest, _ := strings.Cut(strings.ToLower(arg), "/")
	if strings.Contains(rest, "/") {
		return false
	}
	for _, namespaced := range []string{"helmrelease", "kustomization", "persistentvolumeclaim", "secret", "configmap", "statefulset", "datavolume", releaseType} {
		if kind == namespaced || kind == plural(namespaced) || kind == short(namespaced) {
			return true
		}
	}
	return false
}

// groupOf is the group that people mean by a kind that they name alone.
func groupOf(kind string) (group string, known bool) {
	switch kind {
	case "configmap", "endpoints", "event", "limitrange", "namespace", "node", "persistentvolume", "persistentvolumeclaim",
		"pod", "podtemplate", "replicationcontroller", "resourcequota", "secret", "service", "serviceaccount":
		return "", true
	case "helmrelease":
		return flux.HelmGroup, true
	case "kustomization":
		return flux.KustomizeGroup, true
	case "customresourcedefinition":
		return "apiextensions.k8s.io", true
	}
	return "", false
}

// Matches is true when TYPE/NAME or TYPE/NAMESPACE/NAME names the object. TYPE
// is its kind in any case, singular or plural, or kind.group; a record may also
// be named by its release, as release/NAME.
func Matches(arg string, ref flux.Ref) bool {
	kind, rest, found := strings.Cut(arg, "/")
	if name, ok := releaseOf(ref); ok && strings.EqualFold(kind, releaseType) {
		return rest == name || rest == ref.Namespace+"/"+name
	}
	if !found || rest != ref.Name && rest != ref.Key() {
		return false
	}
	kind = strings.ToLower(kind)
	kind, group, qualified := strings.Cut(kind, ".")
	if qualified && group != ref.Group() {
		return false
	}
	own := strings.ToLower(ref.Kind)
	return kind == own || kind == plural(own) || kind == short(own)
}

// releaseType is what stands for a release whose records are Secrets.
const releaseType = "release"

// releaseOf is the name of the release that a record belongs to.
func releaseOf(ref flux.Ref) (name string, ok bool) {
	name, ok = strings.CutPrefix(ref.Name, "sh.helm.release.v1.")
	if i := strings.LastIndex(name, ".v"); ok && ref.Kind == "Secret" && i > 0 {
		return name[:i], true
	}
	return "", false
}

func plural(kind string) string {
	switch {
	case strings.HasSuffix(kind, "s"), strings.HasSuffix(kind, "x"), strings.HasSuffix(kind, "ch"):
		return kind + "es"
	case strings.HasSuffix(kind, "y"):
		return strings.TrimSuffix(kind, "y") + "ies"
	}
	return kind + "s"
}

// short is what kubectl calls the kinds that are named most often here.
func short(kind string) string {
	switch kind {
	case "helmrelease":
		return "hr"
	case "kustomization":
		return "ks"
	case "persistentvolumeclaim":
		return "pvc"
	case "customresourcedefinition":
		return "crd"
	case "namespace":
		return "ns"
	}
	return kind
}

// Arg is how an object is named on the command line.
func Arg(ref flux.Ref) string {
	if name, ok := releaseOf(ref); ok {
		return releaseType + "/" + ref.Namespace + "/" + name
	}
	kind := strings.ToLower(ref.Kind)
	if group, known := groupOf(kind); known && group != ref.Group() {
		return kind + "." + ref.Group() + "/" + ref.Key()
	}
	return short(kind) + "/" + ref.Key()
}
