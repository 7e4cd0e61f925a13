// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package knowledge

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Derived are the kinds that this trigger creates: those that the relation
// names, and those that follow from what the trigger says. The error is for a
// trigger that does not say what it must; its controller cannot create a CRD
// from it either.
func (r Relation) Derived(trigger *unstructured.Unstructured) ([]Kind, error) {
	all := append([]Kind(nil), r.Creates...)
	for _, d := range r.Derive {
		kind, err := d.of(trigger)
		if err != nil {
			return nil, fmt.Errorf("%s/%s: %w", trigger.GetKind(), trigger.GetName(), err)
		}
		if kind != nil {
			all = append(all, *kind)
		}
	}
	return all, nil
}

func (d Derivation) of(trigger *unstructured.Unstructured) (*Kind, error) {
	if d.If != "" {
		// A field that is null is not there.
		if value, _, _ := unstructured.NestedFieldNoCopy(trigger.Object, strings.Split(d.If, ".")...); value == nil {
			return nil, nil // nothing to derive, and nothing wrong
		}
	}
	kind := &Kind{Scope: d.Scope}
	if d.ScopePath != "" {
		switch said, _, _ := unstructured.NestedString(trigger.Object, strings.Split(d.ScopePath, ".")...); Scope(said) {
		case Cluster, Namespaced:
			kind.Scope = Scope(said)
		}
	}
	for _, field := range []struct {
		value Value
		into  *string
	}{{d.Group, &kind.Group}, {d.Kind, &kind.Kind}, {d.Plural, &kind.Plural}} {
		value, err := field.value.of(trigger)
		if err != nil {
			return nil, err
		}
		*field.into = value
	}
	return kind, nil
}

func (v Value) of(trigger *unstructured.Unstructured) (string, error) {
	value := v.Constant
	if v.Path != "" {
		value, _, _ = unstructured.NestedString(trigger.Object, strings.Split(v.Path, ".")...)
		if value == "" {
			value = v.Default
		}
	}
	if value == "" {
		return "", fmt.Errorf("%s is empty", v.Path)
	}
	if v.Lower {
		value = strings.ToLower(value)
	}
	if v.Plural {
		value = plural(value)
	}
	return value, nil
}

// plural is that of a regular English word, as controllers make it that do not
// ask for one (gobuffalo/flect, without its list of exceptions).
func plural(word string) string {
	switch {
	case strings.HasSuffix(word, "y") && len(word) > 1 && !strings.ContainsRune("aeiou", rune(word[len(word)-2])):
		return word[:len(word)-1] + "ies"
	case strings.HasSuffix(word, "s"), strings.HasSuffix(word, "x"), strings.HasSuffix(word, "z"),
		strings.HasSuffix(word, "ch"), strings.HasSuffix(word, "sh"):
		return word + "es"
	}
	return word + "s"
}
