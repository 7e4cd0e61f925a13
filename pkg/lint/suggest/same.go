// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package suggest

import (
	"encoding/json"
	"maps"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// carried are the fields of a kustomization file that a new one beside the moved
// objects gets too.
func carried() []string {
	return []string{"namespace", "namePrefix", "nameSuffix", "commonLabels", "labels", "commonAnnotations"}
}

// comparison is what may differ between an object as it is written and as its
// tier applies it, because the new tier makes the same difference.
type comparison struct {
	spec          map[string]any // of the tier
	kustomization map[string]any // that names the object's file; nil for none
}

// same is true where the new tier makes of the document what the old one did. It
// is false for what is patched, or changed in other ways, on the way.
func (c comparison) same(document *yaml.Node, o build.Object) bool {
	var written any
	if document.Decode(&written) != nil {
		return false
	}
	w, ok := normal(written).(map[string]any)
	if !ok {
		return false
	}
	a, ok := normal(o.Object).(map[string]any)
	if !ok {
		return false
	}
	wm, _ := w["metadata"].(map[string]any)
	am, _ := a["metadata"].(map[string]any)
	if wm == nil || am == nil || !c.sameName(wm, am) || !c.sameNamespace(wm, am) {
		return false
	}
	for _, key := range []string{"labels", "annotations"} {
		if !c.sameExtras(key, wm, am) {
			return false
		}
	}
	for _, m := range []map[string]any{wm, am} {
		for _, key := range []string{"name", "namespace", "labels", "annotations", "creationTimestamp"} {
			delete(m, key)
		}
	}
	delete(w, "status")
	delete(a, "status")
	return c.equal(w, a)
}

func (c comparison) sameName(w, a map[string]any) bool {
	written, _ := w["name"].(string)
	applied, _ := a["name"].(string)
	for _, from := range []map[string]any{c.kustomization, c.spec} {
		prefix, _ := from["namePrefix"].(string)
		suffix, _ := from["nameSuffix"].(string)
		written = prefix + written + suffix
	}
	return c.equal(written, applied)
}

// sameNamespace is true where the namespace is that of the spec, else that of
// the kustomization file, else as it is written. What is in none stays so.
func (c comparison) sameNamespace(w, a map[string]any) bool {
	for _, set := range []any{c.spec["targetNamespace"], c.kustomization["namespace"]} {
		if name, _ := set.(string); name != "" {
			return a["namespace"] == nil || c.equal(name, a["namespace"])
		}
	}
	return c.equal(w["namespace"], a["namespace"])
}

// sameExtras compares labels or annotations. Those that the new tier sets too
// may be there in addition.
func (c comparison) sameExtras(key string, w, a map[string]any) bool {
	written, _ := w[key].(map[string]any)
	applied, _ := a[key].(map[string]any)
	set := c.sets(key)
	for name, value := range applied {
		if strings.HasPrefix(name, flux.KustomizeGroup+"/") && written[name] == nil {
			continue
		}
		want := written[name]
		if given, ok := set[name]; ok {
			want = given
		}
		if !c.equal(want, value) {
			return false
		}
	}
	for name := range written {
		if _, kept := applied[name]; !kept {
			return false
		}
	}
	return true
}

// sets are the labels or annotations that the tier, or the kustomization file,
// puts on every object.
func (c comparison) sets(key string) map[string]any {
	all := map[string]any{}
	add := func(v any) {
		if m, ok := v.(map[string]any); ok {
			maps.Copy(all, m)
		}
	}
	if key == "annotations" {
		add(c.kustomization["commonAnnotations"])
	} else {
		add(c.kustomization["commonLabels"])
		labels, _ := c.kustomization["labels"].([]any)
		for _, l := range labels {
			if m, ok := l.(map[string]any); ok {
				add(m["pairs"])
			}
		}
	}
	common, _ := c.spec["commonMetadata"].(map[string]any)
	add(common[key]) // the controller's come last
	return all
}

// equal compares values. A text with a variable becomes anything.
func (c comparison) equal(written, applied any) bool {
	switch w := written.(type) {
	case string:
		if _, substitutes := c.spec["postBuild"]; substitutes && strings.Contains(w, "${") {
			return true
		}
	case map[string]any:
		a, ok := applied.(map[string]any)
		if !ok || len(a) != len(w) {
			return false
		}
		for key := range w {
			if value, there := a[key]; !there || !c.equal(w[key], value) {
				return false
			}
		}
		return true
	case []any:
		a, ok := applied.([]any)
		if !ok || len(a) != len(w) {
			return false
		}
		for i := range w {
			if !c.equal(w[i], a[i]) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(written, applied)
}

// normal is the value as JSON would have it: numbers of one type. Null fields,
// which kustomize drops, are dropped.
func normal(v any) any {
	content, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	var out any
	if json.Unmarshal(content, &out) != nil {
		return nil
	}
	return withoutNulls(out)
}

func withoutNulls(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			if value == nil {
				delete(v, key)
			} else {
				v[key] = withoutNulls(value)
			}
		}
	case []any:
		for i := range v {
			v[i] = withoutNulls(v[i])
		}
	}
	return v
}

// sameNodes is true for values that say the same.
func sameNodes(a, b []*yaml.Node) bool {
	var av, bv any
	list := func(nodes []*yaml.Node) *yaml.Node { return &yaml.Node{Kind: yaml.SequenceNode, Content: nodes} }
	return list(a).Decode(&av) == nil && list(b).Decode(&bv) == nil && reflect.DeepEqual(av, bv)
}
