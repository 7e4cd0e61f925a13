// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package suggest

import (
	"bytes"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// named is the field of a kustomization file that names an object, so that the
// build fails once the object is gone; empty for none. A patch with a target
// does not: it may find nothing.
func (d *Draft) named(dir string, file map[string]any, at address) string {
	is := func(selector any) bool {
		fields, _ := selector.(map[string]any)
		return fields["kind"] == at.kind && fields["name"] == at.name
	}
	for _, entry := range entries(file, "patchesStrategicMerge") {
		if text, ok := entry.(string); ok && d.patches(dir, text, at) {
			return "patchesStrategicMerge"
		}
	}
	for _, entry := range entries(file, "patches") {
		fields, _ := entry.(map[string]any)
		for _, key := range []string{"patch", "path"} {
			if text, ok := fields[key].(string); ok && fields["target"] == nil && d.patches(dir, text, at) {
				return "a patch"
			}
		}
	}
	for field, key := range map[string]string{"patchesJson6902": "target", "replacements": "source", "vars": "objref"} {
		for _, entry := range entries(file, field) {
			if fields, ok := entry.(map[string]any); ok && is(fields[key]) {
				return field
			}
		}
	}
	return ""
}

func entries(file map[string]any, key string) []any {
	all, _ := file[key].([]any)
	return all
}

// patches is true where a strategic merge patch, or the file that holds it, is
// one of the object.
func (d *Draft) patches(dir, text string, at address) bool {
	if !strings.Contains(text, "\n") {
		content, err := fs.ReadFile(d.tree.disk, path.Join(dir, text))
		if err != nil {
			return false
		}
		text = string(content)
	}
	decoder := yaml.NewDecoder(bytes.NewReader([]byte(text)))
	for {
		var document yaml.Node
		if decoder.Decode(&document) != nil || len(document.Content) == 0 {
			return false
		}
		if a := addressOf(document.Content[0]); a.kind == at.kind && a.name == at.name {
			return true
		}
	}
}

// singledOut is true where a patch changes a Kustomization by its name, so that
// one of another name beside it would not get the same.
func (d *Draft) singledOut(m manifest, is def, other string) (bool, error) {
	at := m.at
	var targets []any
	for _, u := range m.uses {
		if d.clusters[u.cluster] != is.cluster {
			continue
		}
		for _, name := range u.via {
			content, err := fs.ReadFile(d.tree.disk, name)
			if err != nil {
				return false, refuse("%s cannot be read: %v", name, err)
			}
			var file map[string]any
			if err := yaml.Unmarshal(content, &file); err != nil {
				return false, refuse("%s is not YAML: %v", name, err)
			}
			if d.named(path.Dir(name), file, at) != "" {
				return true, nil
			}
			targets = slices.Concat(targets, entries(file, "patches"))
		}
		if parent := is.byKey(u.tier); parent != nil {
			spec, _ := parent.Kustomization.Object["spec"].(map[string]any)
			targets = slices.Concat(targets, entries(spec, "patches"))
		}
	}
	return slices.ContainsFunc(targets, func(patch any) bool {
		fields, _ := patch.(map[string]any)
		target, _ := fields["target"].(map[string]any)
		name, _ := target["name"].(string)
		if kind, given := target["kind"].(string); name == "" || given && kind != "" && !matches(kind, at.kind) {
			return false
		}
		return matches(name, is.tier.Name) && !matches(name, other)
	}), nil
}

// matches is how kustomize compares the target of a patch.
func matches(pattern, name string) bool {
	expression, err := regexp.Compile("^(?:" + pattern + ")$")
	return err == nil && expression.MatchString(name)
}
