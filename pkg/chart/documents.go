// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	helmrelease "helm.sh/helm/v4/pkg/release/v1/util"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// documents are those of a file that a template made, as Helm splits it, which
// is more forgiving than YAML.
func documents(text string) []string {
	split := helmrelease.SplitManifests(text)
	names := slices.SortedFunc(maps.Keys(split), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) // they end in a number
	})
	out := make([]string, 0, len(split))
	for _, name := range names {
		out = append(out, split[name])
	}
	return out
}

// collect adds the CustomResourceDefinitions among the documents of a file.
func collect(file, text string, into map[string]*unstructured.Unstructured) error {
	for _, document := range documents(text) {
		// Most of a chart is something else, and is not worth parsing.
		if !strings.Contains(document, crdKind) {
			continue
		}
		var object map[string]any
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			return fmt.Errorf("%s: a document with a %s is no YAML object: %w", file, crdKind, err)
		}
		if err := each(object, func(u *unstructured.Unstructured) error { return keep(file, u, into) }); err != nil {
			return err
		}
	}
	return nil
}

// each calls for an object, or for those of a list.
func each(object map[string]any, do func(*unstructured.Unstructured) error) error {
	u := &unstructured.Unstructured{Object: object}
	items, ok := object["items"].([]any)
	if !ok || !strings.HasSuffix(u.GetKind(), "List") {
		return do(u)
	}
	for _, item := range items {
		if one, ok := item.(map[string]any); ok {
			if err := each(one, do); err != nil {
				return err
			}
		}
	}
	return nil
}

func keep(file string, u *unstructured.Unstructured, into map[string]*unstructured.Unstructured) error {
	gvk := u.GroupVersionKind()
	if gvk.Kind != crdKind || gvk.Group != crdGroup {
		return nil
	}
	if gvk.Version != "v1" {
		return fmt.Errorf("%s: %s %s is of %s, which no server since Kubernetes 1.22 accepts: take a newer version of the chart",
			file, crdKind, u.GetName(), u.GetAPIVersion())
	}
	if u.GetName() == "" {
		return fmt.Errorf("%s: a %s has no name", file, crdKind)
	}
	// The server writes it, and what generators leave of it is no status.
	unstructured.RemoveNestedField(u.Object, "status")
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(u.Object, "metadata", "namespace")
	into[u.GetName()] = u
	return nil
}

// parse adds the objects of a document.
func parse(file, document string, all []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	var object map[string]any
	if err := yaml.Unmarshal([]byte(document), &object); err != nil {
		return nil, fmt.Errorf("%s: a document is no YAML object: %w", file, err)
	}
	if len(object) == 0 { // comments
		return all, nil
	}
	return all, each(object, func(u *unstructured.Unstructured) error {
		if u.GetKind() == "" || u.GetAPIVersion() == "" {
			return fmt.Errorf("%s: an object has no apiVersion or no kind", file)
		}
		all = append(all, u)
		return nil
	})
}
