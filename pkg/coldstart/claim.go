// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package coldstart

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// Claim is a PersistentVolumeClaim that a tier waits for, and that no pod mounts
// before the tier is Ready: one that binds with its first pod stays Pending.
type Claim struct {
	Object flux.Ref
	// Sure is whether it is known to bind with its first pod.
	Sure bool
}

// claim is one that a tier waits for.
type claim struct {
	Claim
	mounted fact
}

// wireClaim: kstatus takes a Pending claim for one in progress.
func (m *model) wireClaim(t *tier, i *item) {
	var pvc corev1.PersistentVolumeClaim
	decode(i.Unstructured, &pvc)
	mode, known := m.binding(&pvc)
	if known && mode != storagev1.VolumeBindingWaitForFirstConsumer {
		return
	}
	c := claim{Claim{i.ref(), known}, m.mounts(&pvc)}
	m.claims[t] = append(m.claims[t], c)
	if c.Sure {
		m.health(t, c.Object, c.mounted)
	}
}

// unbound are the claims of the tier that no pod mounts, or none but those that
// come only once the tier is Ready.
func (m *model) unbound(t *tier) []Claim {
	var all []Claim
	for _, c := range m.claims[t] {
		behind := m.before(c.mounted, t.ready)
		if !m.held[c.mounted] {
			// What keeps back the tier itself may keep back the pod too.
			behind = len(m.nodes[c.mounted].any) == 0 ||
				m.held[t.stages[build.StageRest]] && m.wayTo(c.mounted, map[fact]bool{t.ready: true}) != nil
		}
		if behind {
			all = append(all, c.Claim)
		}
	}
	return all
}

// binding is when the claim binds; false where that is not known.
func (m *model) binding(pvc *corev1.PersistentVolumeClaim) (storagev1.VolumeBindingMode, bool) {
	class := pvc.Spec.StorageClassName
	if pvc.Spec.VolumeName != "" || class != nil && *class == "" {
		return storagev1.VolumeBindingImmediate, true
	}
	for _, i := range m.items {
		var pv corev1.PersistentVolume
		if i.GetKind() != "PersistentVolume" || i.GetAPIVersion() != "v1" {
			continue
		}
		decode(i.Unstructured, &pv)
		if ref := pv.Spec.ClaimRef; ref != nil && ref.Namespace == pvc.Namespace && ref.Name == pvc.Name {
			return storagev1.VolumeBindingImmediate, true
		}
	}
	for _, i := range m.items {
		if i.GetKind() != "StorageClass" || i.GroupVersionKind().Group != storagev1.GroupName {
			continue
		}
		if class != nil && i.GetName() == *class || class == nil && i.GetAnnotations()["storageclass.kubernetes.io/is-default-class"] == "true" {
			mode, _, _ := unstructured.NestedString(i.Object, "volumeBindingMode")
			return cmp.Or(storagev1.VolumeBindingMode(mode), storagev1.VolumeBindingImmediate), true
		}
	}
	return "", false
}

// mounts is when something is there that makes a pod with the claim, as far as
// is known, or may.
func (m *model) mounts(pvc *corev1.PersistentVolumeClaim) fact {
	f := m.add()
	for _, i := range m.items {
		if i.GetNamespace() == pvc.Namespace && i.GetKind() != "PersistentVolumeClaim" && !isRelease(i) && runsWith(i.Unstructured, pvc.Name) {
			m.way(f, i.created)
		}
	}
	for _, r := range m.releases {
		if r.chart.Basis != Rendered && cmp.Or(r.spec.TargetNamespace, r.ref.Namespace) == pvc.Namespace {
			m.way(f, r.created)
		}
	}
	if len(m.nodes[f].any) == 0 {
		m.forbid(f)
	}
	return f
}

// runsWith is true for a workload that makes pods with the claim, and for a
// resource of an operator that names it: that may.
func runsWith(o *unstructured.Unstructured, claim string) bool {
	pod := []string{"spec", "template", "spec"}
	var idle bool
	switch o.GetKind() {
	case "Pod":
		pod = []string{"spec"}
	case "CronJob":
		idle, _, _ = unstructured.NestedBool(o.Object, "spec", "suspend")
		pod = []string{"spec", "jobTemplate", "spec", "template", "spec"}
	case "Deployment", "StatefulSet", "ReplicaSet", "DaemonSet":
		replicas, set, _ := unstructured.NestedInt64(o.Object, "spec", "replicas")
		idle = set && replicas == 0
	case "Job":
		idle, _, _ = unstructured.NestedBool(o.Object, "spec", "suspend")
	default:
		return strings.Contains(o.GroupVersionKind().Group, ".") && names(o.Object["spec"], claim)
	}
	volumes, _, _ := unstructured.NestedFieldNoCopy(o.Object, append(pod, "volumes")...)
	list, _ := volumes.([]any)
	return !idle && slices.ContainsFunc(list, func(v any) bool {
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
