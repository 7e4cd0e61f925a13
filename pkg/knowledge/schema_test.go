// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package knowledge_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// jsonSchema is the part of JSON Schema that hack/generate writes.
type jsonSchema struct {
	Ref        string                 `json:"$ref"`
	Type       string                 `json:"type"`
	Const      string                 `json:"const"`
	Enum       []string               `json:"enum"`
	Items      *jsonSchema            `json:"items"`
	Properties map[string]*jsonSchema `json:"properties"`
	Additional *jsonSchema            `json:"additionalProperties"`
	Required   []string               `json:"required"`
	Defs       map[string]*jsonSchema `json:"$defs"`
}

// problems are where the value is not what the schema says. A property that
// the schema does not name is one: the files are decoded strictly.
func (root *jsonSchema) problems(at string, s *jsonSchema, value any) []string {
	if name, ok := strings.CutPrefix(s.Ref, "#/$defs/"); ok {
		s = root.Defs[name]
	}
	switch value := value.(type) {
	case map[string]any:
		var all []string
		for _, name := range s.Required {
			if _, ok := value[name]; !ok {
				all = append(all, at+": "+name+" is missing")
			}
		}
		for name, v := range value {
			switch property := s.Properties[name]; {
			case property != nil:
				all = append(all, root.problems(at+"."+name, property, v)...)
			case s.Additional != nil:
				all = append(all, root.problems(at+"."+name, s.Additional, v)...)
			default:
				all = append(all, at+": "+name+" is not in the schema")
			}
		}
		return append(all, typed(at, s, "object")...)
	case []any:
		all := typed(at, s, "array")
		for i, v := range value {
			if s.Items != nil {
				all = append(all, root.problems(fmt.Sprintf("%s[%d]", at, i), s.Items, v)...)
			}
		}
		return all
	case string:
		if s.Const != "" {
			s = &jsonSchema{Type: "string", Enum: []string{s.Const}}
		}
		if len(s.Enum) > 0 && !slices.Contains(s.Enum, value) {
			return []string{fmt.Sprintf("%s: %q is none of %q", at, value, s.Enum)}
		}
		return typed(at, s, "string")
	case bool:
		return typed(at, s, "boolean")
	}
	return []string{fmt.Sprintf("%s: %T", at, value)}
}

func typed(at string, s *jsonSchema, want string) []string {
	if s.Type != want {
		return []string{at + ": it is a " + want + ", not a " + s.Type}
	}
	return nil
}

// TestSchema: what we ship is what the published schema says, and the schema
// says no to what it should.
func TestSchema(t *testing.T) {
	content, err := os.ReadFile("../../docs/schemas/knowledge.json")
	if err != nil {
		t.Fatalf("%v; make generate writes it", err)
	}
	var schema jsonSchema
	if err := json.Unmarshal(content, &schema); err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob("data/*.yaml")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var value any
		if err := yaml.Unmarshal(content, &value); err != nil {
			t.Fatal(err)
		}
		if problems := schema.problems(name, &schema, value); len(problems) > 0 {
			t.Errorf("%q", problems)
		}
	}
	shipped, err := os.ReadFile("data/kubevirt.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for file, wrong := range map[string]bool{
		string(shipped): false,
		strings.Replace(string(shipped), "class: cr\n", "class: crd\n", 1):                      true,
		strings.Replace(string(shipped), "  system: KubeVirt CDI\n", "", 1):                     true,
		strings.Replace(string(shipped), "confidence:", "trust:", 1):                            true,
		strings.Replace(string(shipped), "owned: true", "owned: certainly", 1):                  true,
		strings.Replace(string(shipped), "images: [", "image: [", 1):                            true,
		strings.Replace(string(shipped), "  why:", "  because:", 1):                             true,
		strings.Replace(string(shipped), "kubestandup.dev/v1alpha1", "other.dev/v1", 1):         true,
		strings.Replace(string(shipped), "scope: Cluster, versions", "scope: All, versions", 1): true,
	} {
		var value any
		if err := yaml.Unmarshal([]byte(file), &value); err != nil {
			t.Fatal(err)
		}
		if problems := schema.problems("", &schema, value); (len(problems) > 0) != wrong {
			t.Errorf("problems %q, want some: %t", problems, wrong)
		}
	}
}
