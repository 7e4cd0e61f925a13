// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package knowledge

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// OperatorOf are the relations whose controller the workload runs: those one of
// whose images is that of one of its containers, from whatever registry; where
// there are none, those whose labels it has.
func (b *Base) OperatorOf(workload *unstructured.Unstructured) []Relation {
	if b.index == nil {
		return nil
	}
	pod := PodOf(workload)
	if pod == nil {
		return nil
	}
	var found []int
	containers, _, _ := unstructured.NestedFieldNoCopy(pod, "spec", "containers")
	list, _ := containers.([]any)
	for _, c := range list {
		container, _ := c.(map[string]any)
		image, _ := container["image"].(string)
		repository := repositoryOf(image)
		for _, known := range b.images[lastPart(repository)] {
			if repository == known.repository || strings.HasSuffix(repository, "/"+known.repository) {
				if !slices.Contains(found, known.relation) {
					found = append(found, known.relation)
				}
			}
		}
	}
	slices.Sort(found)
	var all []Relation
	for _, i := range found {
		all = append(all, b.relations[i])
	}
	if len(all) > 0 {
		return all
	}
	for _, r := range b.labelled {
		if labelled(r.Operator.Labels, workload.Object) || labelled(r.Operator.Labels, pod) {
			all = append(all, r)
		}
	}
	return all
}

// PodOf is what has the metadata and the spec of the pods; nil for an object
// that is no workload.
func PodOf(workload *unstructured.Unstructured) map[string]any {
	gvk := workload.GroupVersionKind()
	switch {
	case gvk.Group == "" && gvk.Kind == "Pod":
		return workload.Object
	case gvk.Group == "apps" && (gvk.Kind == "Deployment" || gvk.Kind == "DaemonSet" || gvk.Kind == "StatefulSet"):
		template, _, _ := unstructured.NestedFieldNoCopy(workload.Object, "spec", "template")
		pod, _ := template.(map[string]any)
		return pod
	}
	return nil
}

func labelled(labels map[string]string, object map[string]any) bool {
	field, _, _ := unstructured.NestedFieldNoCopy(object, "metadata", "labels")
	has, _ := field.(map[string]any)
	for key, value := range labels {
		if got, ok := has[key].(string); !ok || got != value {
			return false
		}
	}
	return true
}

// repositoryOf is an image's repository, without registry, tag and digest
// (distribution/reference normalize.go splitDockerDomain).
func repositoryOf(image string) string {
	image, _, _ = strings.Cut(image, "@")
	if registry, rest, ok := strings.Cut(image, "/"); ok && (registry == "localhost" || strings.ContainsAny(registry, ".:")) {
		image = rest
	}
	if colon := strings.LastIndexByte(image, ':'); colon > strings.LastIndexByte(image, '/') {
		image = image[:colon]
	}
	return image
}

func lastPart(repository string) string {
	return repository[strings.LastIndexByte(repository, '/')+1:]
}
