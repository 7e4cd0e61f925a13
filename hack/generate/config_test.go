// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/kubestandup/kubestandup/pkg/standup/config"
)

// compiled is the schema of standup.yaml as an editor reads it.
func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	name, text, err := configSchema(root)
	if err != nil || name != "standup.json" {
		t.Fatal(name, err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("file:///standup.json", document); err != nil {
		t.Fatal(err)
	}
	s, err := compiler.Compile("file:///standup.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// asJSON is a YAML document as an editor holds it against a schema.
func asJSON(t *testing.T, text string) any {
	t.Helper()
	var value any
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return document
}

func decode(t *testing.T, text string) error {
	t.Helper()
	file := filepath.Join(t.TempDir(), config.FileName)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := config.Read(file, config.FileName)
	return err
}

// The file that the decoder's own tests hold to be complete fits the schema,
// and so does what init drafts.
func TestConfigSchemaFitsTheWholeFile(t *testing.T) {
	for _, file := range []string{"config/testdata/whole.yaml", "draft/testdata/prod.yaml"} {
		text, err := os.ReadFile(filepath.Join("../../pkg/standup", file))
		if err != nil {
			t.Fatal(err)
		}
		if err := decode(t, string(text)); err != nil {
			t.Fatal(err)
		}
		if err := compiled(t).Validate(asJSON(t, string(text))); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// Schema and decoder agree on what has the right shape.
func TestConfigSchemaAgreesWithTheDecoder(t *testing.T) {
	schema := compiled(t)
	texts := map[bool][]string{
		true: {
			"{}",
			"cluster: {}",
			"cluster: {server: https://h, uid: a, domain: d}",
			"variables: []",
			"variables: [{name: A}]",
			"nodes: {count: 3}",
			"crds: {expect: [a.b]}",
			"crds: {fromCharts: [{helmRelease: a/b}]}",
			"resume: {timeout: 1h30m}",
			"resume: {timeout: .5h}",
			"verify: {checks: [{apiVersion: v1, kind: A, current: a}]}",
			"crds: {fromCharts: [{helmRelease: a/b, values: {a: [~, \"\", 1, 1.5, {b: true}]}}]}",
		},
		false: {
			"cluster: {sever: a}",
			"clutser: {}",
			"cluster: ~",
			"cluster: {uid: 1}",
			"cluster: {uid: \"\"}",
			"cluster: [a]",
			"variables: [{}]",
			"variables: [~]",
			"variables: [{name: A, required: 1}]",
			"variables: [{name: A, forbid: a}]",
			"variables: [{name: A, forbid: [\"\"]}]",
			"nodes: {count: three}",
			"nodes: {count: 1.5}",
			"nodes: {minKernel: 5.15}",
			"crds: {expect: {a: b}}",
			"crds: {fromCharts: [{values: {}}]}",
			"resume: {timeout: 10}",
			"resume: {timeout: 10 minutes}",
			"resume: {timeout: -5m}",
			"resume: {skip: [a, ~]}",
			"verify: {checks: [{kind: A, current: a}]}",
			"verify: {checks: [{apiVersion: v1, current: a}]}",
			"verify: {checks: [{apiVersion: v1, kind: A}]}",
			"crds: {fromCharts: [{helmRelease: a/b, values: []}]}",
		},
	}
	for good, all := range texts {
		for _, text := range all {
			agrees(t, schema, text, good)
		}
	}
}

func agrees(t *testing.T, schema *jsonschema.Schema, text string, good bool) {
	t.Helper()
	decoded, valid := decode(t, text), schema.Validate(asJSON(t, text))
	if (decoded == nil) != good {
		t.Errorf("%s: the decoder says %v", text, decoded)
	}
	if (valid == nil) != good {
		t.Errorf("%s: the schema says %v", text, valid)
	}
}

// Every field of the types is a property, described where it is documented, and
// no other is.
func TestConfigSchemaHasEveryField(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	_, text, err := configSchema(root)
	if err != nil {
		t.Fatal(err)
	}
	var all struct {
		schema
		AdditionalProperties *bool `json:"additionalProperties"`
	}
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	if all.AdditionalProperties == nil || *all.AdditionalProperties || len(all.Required) != 0 {
		t.Errorf("additional properties %v, required %v", all.AdditionalProperties, all.Required)
	}
	var look func(of reflect.Type, properties map[string]*schema)
	look = func(of reflect.Type, properties map[string]*schema) {
		count := 0
		for field := range of.Fields() {
			name := field.Tag.Get("yaml")
			if name == "" || name == "-" {
				continue
			}
			count++
			property, inner := properties[name], field.Type
			if property == nil {
				t.Errorf("%s.%s is no property", of, field.Name)
				continue
			}
			ref := property.Ref
			if inner.Kind() == reflect.Slice {
				inner, ref = inner.Elem(), property.Items.Ref
			}
			if inner.Kind() != reflect.Struct {
				continue
			}
			def := all.Defs[strings.TrimPrefix(ref, "#/$defs/")]
			if def == nil {
				t.Errorf("%s.%s refers to %q", of, field.Name, ref)
				continue
			}
			if def.Additional != false || def.Description == "" {
				t.Errorf("%s: additional properties %v, description %q", ref, def.Additional, def.Description)
			}
			look(inner, def.Properties)
		}
		if count != len(properties) {
			t.Errorf("%s has %d fields, its schema %d properties", of, count, len(properties))
		}
	}
	look(reflect.TypeFor[config.Config](), all.Properties)
	if got := all.Defs["config.Resume"].Properties["timeout"]; got.Pattern != durationPattern || !strings.HasPrefix(got.Description, "Timeout is how long") {
		t.Errorf("got %+v", got)
	}
}

// What the reports say of a duration is a number, and no text.
func TestDurationsOfReportsAreNumbers(t *testing.T) {
	r := &reflector{source: newSource(t.TempDir()), defs: map[string]*schema{}}
	if s, err := r.of(reflect.TypeFor[time.Duration]()); err != nil || s.Type != "integer" || s.Pattern != "" {
		t.Errorf("got %+v, %v", s, err)
	}
}
