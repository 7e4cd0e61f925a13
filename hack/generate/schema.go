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
	"github.com/kubestandup/kubestandup/pkg/lint"
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
		"LintReport":    reflect.TypeFor[lint.Report](),
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
	Pattern     string             `json:"pattern,omitempty"`
	MinLength   int                `json:"minLength,omitempty"`
	Items       *schema            `json:"items,omitempty"`
	Properties  map[string]*schema `json:"properties,omitempty"`
	// Additional is a *schema, or false for none.
	Additional any                `json:"additionalProperties,omitempty"`
	Required   []string           `json:"required,omitempty"`
	Defs       map[string]*schema `json:"$defs,omitempty"`
}

// schemas are the schema files, by name.
func schemas(root string) (map[string][]byte, error) {
	files := map[string][]byte{}
	name, text, err := configSchema(root)
	if err != nil {
		return nil, err
	}
	files[name] = text
	for kind, t := range reports() {
		r := &reflector{source: newSource(root), defs: map[string]*schema{}}
		s, err := r.object(t)
		if err != nil {
			return nil, fmt.Errorf("schema of %s: %w", kind, err)
		}
		s.head(kind, r.defs)
		if s.Properties["apiVersion"] != nil && s.Properties["kind"] != nil {
			s.Properties["apiVersion"] = &schema{Const: printers.APIVersion}
			s.Properties["kind"] = &schema{Const: kind}
			s.Required = append([]string{"apiVersion", "kind"}, s.Required...)
		}
		if files[strings.ToLower(kind)+".json"], err = s.encode(); err != nil {
			return nil, fmt.Errorf("schema of %s: %w", kind, err)
		}
	}
	return files, nil
}

// head makes a schema one that stands in a file of its own.
func (s *schema) head(kind string, defs map[string]*schema) {
	s.Schema = "https://json-schema.org/draft/2020-12/schema"
	s.ID = "https://" + path.Dir(printers.APIVersion) + "/schemas/" + path.Base(printers.APIVersion) + "/" + kind + ".json"
	s.Title = kind
	s.Defs = defs
}

func (s *schema) encode() ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(s)
	return b.Bytes(), err
}

// reflector turns Go types into schemas; a named struct of ours becomes a
// definition that is referred to.
type reflector struct {
	source *source
	defs   map[string]*schema
	// config is true for what a person writes and config decodes: it is named by
	// its yaml tags, and read strictly.
	config bool
}

func (r *reflector) of(t reflect.Type) (*schema, error) {
	switch t {
	case reflect.TypeFor[time.Time](), reflect.TypeFor[metav1.Time]():
		return &schema{Type: "string", Format: "date-time"}, nil
	case reflect.TypeFor[metav1.ConditionStatus]():
		return &schema{Type: "string", Enum: []string{"True", "False", "Unknown"}}, nil
	case reflect.TypeFor[time.Duration]():
		if r.config {
			return &schema{Type: "string", Pattern: durationPattern}, nil
		}
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
	s := &schema{Type: "string", Enum: enum}
	if r.config {
		s.MinLength = 1
	}
	return s, err
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
	if r.config {
		s.Additional = false
	}
	for field := range t.Fields() {
		name, optional := r.name(field)
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
		if !optional {
			s.Required = append(s.Required, name)
		}
	}
	return s, nil
}

// name is that of a field in JSON, and whether it may be absent.
func (r *reflector) name(field reflect.StructField) (name string, optional bool) {
	if r.config {
		return field.Tag.Get("yaml"), field.Tag.Get("required") != "true"
	}
	name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
	all := strings.Split(options, ",")
	return name, slices.Contains(all, "omitempty") || slices.Contains(all, "omitzero")
}
