// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/knowledge"
	"github.com/kubestandup/kubestandup/pkg/printers"
	"github.com/kubestandup/kubestandup/pkg/standup"
	"github.com/kubestandup/kubestandup/pkg/tiers"
	"github.com/kubestandup/kubestandup/pkg/wedge"
)

// reports are the versioned reports, by their kind. A report of a new kind is
// one line here.
func reports() map[string]reflect.Type {
	return map[string]reflect.Type{
		"TierList":      reflect.TypeFor[tiers.List](),
		"StandupReport": reflect.TypeFor[standup.Report](),
		"UnwedgePlan":   reflect.TypeFor[wedge.Plan](),
		"Identity":      reflect.TypeFor[standup.IdentityReport](),
		"Knowledge":     reflect.TypeFor[knowledge.File](),
		// In every report; not one of its own.
		"Finding": reflect.TypeFor[finding.Finding](),
	}
}

// schema is the part of JSON Schema 2020-12 that the reports need. What is
// absent from it is absent from the JSON.
type schema struct {
	Schema      string             `json:"$schema,omitempty"`
	ID          string             `json:"$id,omitempty"`
	Ref         string             `json:"$ref,omitempty"`
	Title       string             `json:"title,omitempty"`
	Description string             `json:"description,omitempty"`
	Type        string             `json:"type,omitempty"`
	Format      string             `json:"format,omitempty"`
	Const       string             `json:"const,omitempty"`
	Enum        []string           `json:"enum,omitempty"`
	Items       *schema            `json:"items,omitempty"`
	Properties  map[string]*schema `json:"properties,omitempty"`
	Additional  *schema            `json:"additionalProperties,omitempty"`
	Required    []string           `json:"required,omitempty"`
	Defs        map[string]*schema `json:"$defs,omitempty"`
}

// schemas are the schema files, by name.
func schemas(root string) (map[string][]byte, error) {
	files := map[string][]byte{}
	for kind, t := range reports() {
		r := &reflector{source: newSource(root), defs: map[string]*schema{}}
		s, err := r.object(t)
		if err != nil {
			return nil, fmt.Errorf("schema of %s: %w", kind, err)
		}
		s.Schema = "https://json-schema.org/draft/2020-12/schema"
		s.ID = "https://" + path.Dir(printers.APIVersion) + "/schemas/" + path.Base(printers.APIVersion) + "/" + kind + ".json"
		s.Title = kind
		s.Defs = r.defs
		if s.Properties["apiVersion"] != nil && s.Properties["kind"] != nil {
			s.Properties["apiVersion"] = &schema{Const: printers.APIVersion}
			s.Properties["kind"] = &schema{Const: kind}
			s.Required = append([]string{"apiVersion", "kind"}, s.Required...)
		}
		var b bytes.Buffer
		encoder := json.NewEncoder(&b)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(s); err != nil {
			return nil, fmt.Errorf("schema of %s: %w", kind, err)
		}
		files[strings.ToLower(kind)+".json"] = b.Bytes()
	}
	return files, nil
}

// reflector turns Go types into schemas; a named struct of ours becomes a
// definition that is referred to.
type reflector struct {
	source *source
	defs   map[string]*schema
}

func (r *reflector) of(t reflect.Type) (*schema, error) {
	switch t {
	case reflect.TypeFor[time.Time](), reflect.TypeFor[metav1.Time]():
		return &schema{Type: "string", Format: "date-time"}, nil
	case reflect.TypeFor[metav1.ConditionStatus]():
		return &schema{Type: "string", Enum: []string{"True", "False", "Unknown"}}, nil
	}
	switch t.Kind() {
	case reflect.Pointer:
		return r.of(t.Elem())
	case reflect.Interface:
		return &schema{}, nil
	case reflect.Bool:
		return &schema{Type: "boolean"}, nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return &schema{Type: "integer"}, nil
	case reflect.Float32, reflect.Float64:
		return &schema{Type: "number"}, nil
	case reflect.String:
		return r.word(t)
	case reflect.Slice, reflect.Array:
		items, err := r.of(t.Elem())
		return &schema{Type: "array", Items: items}, err
	case reflect.Map:
		values, err := r.of(t.Elem())
		return &schema{Type: "object", Additional: values}, err
	case reflect.Struct:
		return r.reference(t)
	default:
		return nil, fmt.Errorf("%s has no form in JSON", t)
	}
}

// word is a string; of a type with constants, one of these.
func (r *reflector) word(t reflect.Type) (*schema, error) {
	enum, err := r.source.constants(t)
	return &schema{Type: "string", Enum: enum}, err
}

func (r *reflector) reference(t reflect.Type) (*schema, error) {
	// Two packages may use the same name for a type.
	name := path.Base(t.PkgPath()) + "." + t.Name()
	ref := &schema{Ref: "#/$defs/" + name}
	if _, known := r.defs[name]; known {
		return ref, nil
	}
	r.defs[name] = &schema{} // it may hold itself
	s, err := r.object(t)
	if err != nil {
		return nil, err
	}
	r.defs[name] = s
	return ref, nil
}

func (r *reflector) object(t reflect.Type) (*schema, error) {
	docs, err := r.source.docs(t)
	if err != nil {
		return nil, err
	}
	s := &schema{Type: "object", Description: docs.text, Properties: map[string]*schema{}}
	for field := range t.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "-" || !field.IsExported():
			continue
		case field.Anonymous && name == "":
			inner, err := r.object(field.Type)
			if err != nil {
				return nil, err
			}
			for name, property := range inner.Properties {
				s.Properties[name] = property
			}
			s.Required = append(s.Required, inner.Required...)
			continue
		case name == "":
			return nil, fmt.Errorf("%s.%s has no name in JSON", t, field.Name)
		}
		property, err := r.of(field.Type)
		if err != nil {
			return nil, fmt.Errorf("%s.%s: %w", t, field.Name, err)
		}
		property.Description = docs.fields[field.Name]
		s.Properties[name] = property
		if optional := strings.Split(options, ","); !slices.Contains(optional, "omitempty") && !slices.Contains(optional, "omitzero") {
			s.Required = append(s.Required, name)
		}
	}
	return s, nil
}
