// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/coldstart"
	"github.com/kubestandup/kubestandup/pkg/finding"
)

type objectOf = build.Object

func unboundClaim() Rule {
	return Rule{
		ID: "HG004", Name: "unbound-volume-claim", Severity: finding.Warning,
		Title: "A tier waits for a PersistentVolumeClaim that is not bound before a pod of a later tier uses it.",
		Check: func(s *Subject) []finding.Finding {
			l := newLook(s)
			var all []finding.Finding
			for i := range s.World.Tiers {
				f := &s.World.Tiers[i]
				if dependants := l.dependants(f.Tier); len(dependants) == 0 || !l.spec(f.Tier).Wait {
					continue
				}
				for _, o := range l.objects(f) {
					if o.GetKind() != "PersistentVolumeClaim" || o.GroupVersionKind().Group != "" || l.bindsAtOnce(o) || l.mounted(f, o) {
						continue
					}
					all = append(all, l.unbound(f, o))
				}
			}
			return all
		},
	}
}

// bindsAtOnce is true where the claim does not wait for a pod: it names its
// volume, has no class, or has one that says Immediate.
func (l *look) bindsAtOnce(claim build.Object) bool {
	if volume, _, _ := unstructured.NestedString(claim.Object, "spec", "volumeName"); volume != "" {
		return true
	}
	name, set, _ := unstructured.NestedString(claim.Object, "spec", "storageClassName")
	if set && name == "" {
		return true
	}
	for i := range l.World.Tiers {
		for _, o := range l.objects(&l.World.Tiers[i]) {
			if isClass(o.Unstructured, name) {
				return immediate(o.Unstructured)
			}
		}
	}
	for _, chart := range l.World.Charts {
		for _, o := range chart.Objects {
			if isClass(o, name) {
				return immediate(o)
			}
		}
	}
	return false
}

// isClass is true of the StorageClass of the name, of the default one where no
// name is given.
func isClass(o *unstructured.Unstructured, name string) bool {
	if o.GetKind() != "StorageClass" || o.GroupVersionKind().Group != "storage.k8s.io" {
		return false
	}
	if name == "" {
		return o.GetAnnotations()["storageclass.kubernetes.io/is-default-class"] == "true"
	}
	return o.GetName() == name
}

func immediate(class *unstructured.Unstructured) bool {
	mode, _, _ := unstructured.NestedString(class.Object, "volumeBindingMode")
	return mode == "" || mode == "Immediate" // the API's default
}

// mounted is true where a pod may mount the claim while its tier waits for it:
// one of the tier itself, or of a tier that does not wait for that.
func (l *look) mounted(f *build.Followed, claim build.Object) bool {
	for i := range l.World.Tiers {
		other := &l.World.Tiers[i]
		if (other.Tier == f.Tier || !l.waitsAlready(other.Tier, f.Tier)) && l.mounts(other, claim) {
			return true
		}
	}
	return false
}

// mounts is true where the tier itself holds what may mount the claim.
func (l *look) mounts(f *build.Followed, claim build.Object) bool {
	for _, o := range l.objects(f) {
		if o.GetKind() == "PersistentVolumeClaim" || !isRelease(o.Ref()) && o.GetNamespace() != claim.GetNamespace() {
			continue
		}
		if isRelease(o.Ref()) {
			chart := l.World.Charts[coldstart.Key(o.Ref())]
			if chart.Basis != coldstart.Rendered { // where it installs there, it may
				if into(o) == claim.GetNamespace() {
					return true
				}
				continue
			}
			if slices.ContainsFunc(chart.Objects, func(c *unstructured.Unstructured) bool { return runsWith(c, claim.GetName()) }) {
				return true
			}
			continue
		}
		if runsWith(o.Unstructured, claim.GetName()) {
			return true
		}
	}
	return false
}

// into is the namespace that a HelmRelease installs into.
func into(release build.Object) string {
	if target, _, _ := unstructured.NestedString(release.Object, "spec", "targetNamespace"); target != "" {
		return target
	}
	return release.GetNamespace()
}

// runsWith is true for a workload that makes pods with the claim, and for a
// resource of an operator that names it: that may.
func runsWith(o *unstructured.Unstructured, claim string) bool {
	group := o.GroupVersionKind().Group
	pod := []string{"spec", "template", "spec"}
	switch o.GetKind() {
	case "Pod":
		pod = []string{"spec"}
	case "CronJob":
		if suspended, _, _ := unstructured.NestedBool(o.Object, "spec", "suspend"); suspended {
			return false
		}
		pod = []string{"spec", "jobTemplate", "spec", "template", "spec"}
	case "Deployment", "StatefulSet", "ReplicaSet":
		if replicas, set, _ := unstructured.NestedInt64(o.Object, "spec", "replicas"); set && replicas == 0 {
			return false
		}
	case "Job":
		if suspended, _, _ := unstructured.NestedBool(o.Object, "spec", "suspend"); suspended {
			return false
		}
	default:
		return strings.Contains(group, ".") && names(o.Object["spec"], claim)
	}
	volumes, _, _ := unstructured.NestedFieldNoCopy(o.Object, append(pod, "volumes")...)
	list, _ := volumes.([]any)
	return slices.ContainsFunc(list, func(v any) bool {
		volume, _ := v.(map[string]any)
		name, _, _ := unstructured.NestedString(volume, "persistentVolumeClaim", "claimName")
		return name == claim
	})
}

// names is true when some field is the text.
func names(v any, text string) bool {
	switch v := v.(type) {
	case string:
		return v == text
	case []any:
		return slices.ContainsFunc(v, func(e any) bool { return names(e, text) })
	case map[string]any:
		for _, e := range v {
			if names(e, text) {
				return true
			}
		}
	}
	return false
}

func (l *look) unbound(f *build.Followed, claim build.Object) finding.Finding {
	class, _, _ := unstructured.NestedString(claim.Object, "spec", "storageClassName")
	if class == "" {
		class = "the default class"
	} else {
		class = "class " + class
	}
	var below []string
	for _, d := range l.dependants(f.Tier) {
		below = append(below, l.name(d.Ref))
	}
	r := l.report("HG004", finding.Warning, f.Tier, claim.Ref(), fmt.Sprintf(
		"%s waits for %s, which no pod of the tier mounts: where %s binds with the first pod (WaitForFirstConsumer), the claim stays Pending, %s is never Ready, and %s never %s",
		l.name(f.Tier), claim.Ref(), class, l.name(f.Tier), some(below), verb(len(below), "starts", "start")))
	r.Causes = []string{
		l.place(f.Tier, claim.Ref()) + " is Pending until a pod uses it",
		l.place(f.Tier, f.Tier) + " has wait: true, for which a Pending claim is in progress",
	}
	r.Fix = fmt.Sprintf("Move %s into the tier of the workload that mounts it, or give it a class that binds at once (volumeBindingMode: Immediate).", claim.Ref())
	return r
}
