// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// Patch applies kustomize patches, as the spec of a FluxInstance or of a
// Kustomization writes them, to objects. The answer is new objects, in the same
// order.
func Patch(objects []*unstructured.Unstructured, patches []any) ([]*unstructured.Unstructured, error) {
	if len(patches) == 0 {
		return objects, nil
	}
	files := filesys.MakeFsInMemory()
	write := func(name string, content any) error {
		raw, err := yaml.Marshal(content)
		if err != nil {
			return err
		}
		return files.WriteFile("/"+name, raw)
	}
	var inline []any
	for _, patch := range patches {
		// A path would be read, over the network too.
		fields, _ := patch.(map[string]any)
		kept := map[string]any{"patch": fields["patch"]}
		if target, ok := fields["target"]; ok {
			kept["target"] = target
		}
		inline = append(inline, kept)
	}
	var names []any
	for i, o := range objects {
		name := fmt.Sprintf("object-%d.yaml", i)
		if err := write(name, o.Object); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	err := write(konfig.DefaultKustomizationFileName(), map[string]any{"resources": names, "patches": inline})
	if err != nil {
		return nil, err
	}
	var patched []*unstructured.Unstructured
	err = withSchema(func(bool) error {
		m, err := runKustomize(files, "/")
		if err != nil {
			return err
		}
		for _, res := range m.Resources() {
			content, err := res.Map()
			if err != nil {
				return err
			}
			patched = append(patched, &unstructured.Unstructured{Object: content})
		}
		return nil
	})
	return patched, err
}
