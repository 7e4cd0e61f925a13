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
		if Matches(arg, ref) {
			return true
		}
	}
	return false
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
	return short(strings.ToLower(ref.Kind)) + "/" + ref.Key()
}
