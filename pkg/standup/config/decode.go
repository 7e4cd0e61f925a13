// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// maxDepth is more than the deepest field of a standup.yaml; it bounds the
// recursion over a file that is none.
const maxDepth = 32

// Error is something wrong at a place in the file.
type Error struct {
	Position
	Message string
}

func (e *Error) Error() string { return e.Position.String() + ": " + e.Message }

// yamlLine is how the parser writes a place into its messages; it has no other
// way to tell.
var yamlLine = regexp.MustCompile(`^(?:yaml: )?(?:line (\d+): )?(.*)$`)

// parse reads one document strictly.
func parse(data []byte, name string) (*Config, error) {
	d := &decoder{path: name, positions: map[string]Position{}}
	c := &Config{Path: name, positions: d.positions}
	documents := yaml.NewDecoder(bytes.NewReader(data))
	var document yaml.Node
	switch err := documents.Decode(&document); {
	case errors.Is(err, io.EOF):
		return c, nil // nothing but comments
	case err != nil:
		return nil, d.syntax(err)
	}
	var second yaml.Node
	switch err := documents.Decode(&second); {
	case errors.Is(err, io.EOF):
	case err != nil:
		return nil, d.syntax(err)
	default:
		return nil, d.fail(&second, "a second document: %s holds one cluster", FileName)
	}
	root := document.Content[0]
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return c, nil
	}
	if err := d.decode(root, "", reflect.ValueOf(c).Elem(), 0); err != nil {
		return nil, err
	}
	if err := c.validate(); err != nil {
		return nil, err
	}
	return c, nil
}

// decoder fills a struct from YAML nodes, so that each complaint has a place.
// It knows the few shapes that standup.yaml is made of and no aliases: without
// them no small file becomes a large one.
type decoder struct {
	path      string
	positions map[string]Position
}

func (d *decoder) decode(n *yaml.Node, field string, v reflect.Value, depth int) error {
	switch {
	case depth > maxDepth:
		return d.fail(n, "%s is nested too deeply", field)
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		return d.fail(n, "%s uses an anchor or an alias: write the value out", orRoot(field))
	case n.Kind == yaml.ScalarNode && (n.Tag == "!!null" || n.Value == ""):
		return d.fail(n, "%s has no value: fill it in or remove the line", orRoot(field))
	}
	d.positions[field] = d.at(n)
	switch v.Kind() {
	case reflect.Struct:
		return d.decodeStruct(n, field, v, depth)
	case reflect.Slice:
		return d.decodeSlice(n, field, v, depth)
	case reflect.Map:
		return d.decodeMap(n, field, v, depth)
	default:
		return d.decodeScalar(n, field, v)
	}
}

func (d *decoder) decodeStruct(n *yaml.Node, field string, v reflect.Value, depth int) error {
	if n.Kind != yaml.MappingNode {
		return d.mistyped(n, field, "a mapping")
	}
	known := fieldsOf(v)
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		target, ok := known[key.Value]
		switch {
		case key.Kind != yaml.ScalarNode || key.Tag == "!!merge" || !ok:
			return d.fail(key, "field %s is unknown: %s knows %s", printableKey(key), orRoot(field), names(known))
		case seen[key.Value]:
			return d.fail(key, "field %s is given twice", key.Value)
		}
		seen[key.Value] = true
		if err := d.decode(value, join(field, key.Value), target, depth+1); err != nil {
			return err
		}
	}
	for _, name := range required(v.Type()) {
		if !seen[name] {
			return d.fail(n, "%s lacks %s: add it", orRoot(field), name)
		}
	}
	return nil
}

func (d *decoder) decodeSlice(n *yaml.Node, field string, v reflect.Value, depth int) error {
	if n.Kind != yaml.SequenceNode {
		return d.mistyped(n, field, "a list")
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
	for i, item := range n.Content {
		if err := d.decode(item, field+"["+strconv.Itoa(i)+"]", v.Index(i), depth+1); err != nil {
			return err
		}
	}
	return nil
}

// decodeScalar takes a value only where YAML resolves it to the type that is
// asked for: `uid: 0123` is a number and no string.
func (d *decoder) decodeScalar(n *yaml.Node, field string, v reflect.Value) error {
	if v.Type() == reflect.TypeFor[time.Duration]() {
		return d.decodeDuration(n, field, v)
	}
	want, wanted := "!!str", "a string"
	switch v.Kind() {
	case reflect.Bool:
		want, wanted = "!!bool", "true or false"
	case reflect.Int, reflect.Int64:
		want, wanted = "!!int", "a whole number"
	case reflect.String:
	default:
		return d.fail(n, "%s is of a type that is not read yet", field)
	}
	if n.Kind != yaml.ScalarNode || n.Tag != want {
		return d.mistyped(n, field, wanted)
	}
	if err := n.Decode(v.Addr().Interface()); err != nil {
		return d.mistyped(n, field, wanted)
	}
	return nil
}

func (d *decoder) decodeDuration(n *yaml.Node, field string, v reflect.Value) error {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!str" {
		return d.mistyped(n, field, "a duration such as 90s or 10m")
	}
	duration, err := time.ParseDuration(n.Value)
	switch {
	case err != nil:
		return d.fail(n, "%s must be a duration such as 90s or 10m, not %q", field, n.Value)
	case duration <= 0:
		return d.fail(n, "%s must be longer than nothing, not %s: remove the line for the default", field, n.Value)
	}
	v.SetInt(int64(duration))
	return nil
}

func (d *decoder) mistyped(n *yaml.Node, field, wanted string) error {
	found := strings.TrimPrefix(n.Tag, "!!")
	if name, ok := map[string]string{
		"str": "a string", "int": "a number", "float": "a number", "bool": "true or false",
		"map": "a mapping", "seq": "a list", "timestamp": "a date",
	}[found]; ok {
		found = name
	}
	hint := ""
	if wanted == "a string" && n.Kind == yaml.ScalarNode {
		hint = ": put it in quotes"
	}
	return d.fail(n, "%s must be %s, not %s%s", orRoot(field), wanted, found, hint)
}

func (d *decoder) at(n *yaml.Node) Position {
	return Position{Path: d.path, Line: n.Line, Column: n.Column}
}

func (d *decoder) fail(n *yaml.Node, format string, args ...any) error {
	return &Error{Position: d.at(n), Message: fmt.Sprintf(format, args...)}
}

// syntax turns the parser's message round: the place comes first.
func (d *decoder) syntax(err error) error {
	parts := yamlLine.FindStringSubmatch(strings.ReplaceAll(err.Error(), "\n", " "))
	line, _ := strconv.Atoi(parts[1]) // 0 where the parser names none
	return &Error{Position: Position{Path: d.path, Line: max(line, 1)}, Message: "this is not YAML: " + parts[2]}
}

func fieldsOf(v reflect.Value) map[string]reflect.Value {
	known := map[string]reflect.Value{}
	for i := range v.NumField() {
		name := v.Type().Field(i).Tag.Get("yaml")
		if name != "" && name != "-" {
			known[name] = v.Field(i)
		}
	}
	return known
}

// required are the fields that a mapping cannot do without, by the tag of that
// name, which the schema is made from too.
func required(t reflect.Type) []string {
	var names []string
	for field := range t.Fields() {
		if field.Tag.Get("required") == "true" {
			names = append(names, field.Tag.Get("yaml"))
		}
	}
	return names
}

func names(known map[string]reflect.Value) string {
	var all []string
	for name := range known {
		all = append(all, name)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

func printableKey(n *yaml.Node) string {
	if n.Kind != yaml.ScalarNode {
		return "that is no word"
	}
	return strconv.Quote(n.Value)
}

func join(field, key string) string { return strings.TrimPrefix(field+"."+key, ".") }

func orRoot(field string) string {
	if field == "" {
		return FileName
	}
	return field
}
