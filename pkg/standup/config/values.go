// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"math"
	"reflect"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// decodeMap reads a mapping of which nothing is known but that a chart takes
// it: values.
func (d *decoder) decodeMap(n *yaml.Node, field string, v reflect.Value, depth int) error {
	if n.Kind != yaml.MappingNode {
		return d.mistyped(n, field, "a mapping")
	}
	value, err := d.free(n, field, depth)
	if err != nil {
		return err
	}
	v.Set(reflect.ValueOf(value))
	return nil
}

// free is a value of any shape, as encoding/json would have it but for numbers,
// which are int64 where they are whole. Unlike in a field of ours, null
// and the empty string mean something: Helm takes a key out with null.
func (d *decoder) free(n *yaml.Node, field string, depth int) (any, error) {
	switch {
	case depth > maxDepth:
		return nil, d.fail(n, "%s is nested too deeply", field)
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		return nil, d.fail(n, "%s uses an anchor or an alias: write the value out", field)
	}
	switch n.Kind {
	case yaml.MappingNode:
		return d.freeMap(n, field, depth)
	case yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, item := range n.Content {
			var err error
			if list[i], err = d.free(item, field+"["+strconv.Itoa(i)+"]", depth+1); err != nil {
				return nil, err
			}
		}
		return list, nil
	default:
		return d.freeScalar(n, field)
	}
}

func (d *decoder) freeMap(n *yaml.Node, field string, depth int) (any, error) {
	values := make(map[string]any, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		_, twice := values[key.Value]
		switch {
		case key.Kind == yaml.AliasNode || key.Anchor != "" || key.Tag == "!!merge":
			return nil, d.fail(key, "%s uses an anchor or an alias: write the value out", field)
		case key.Kind != yaml.ScalarNode || key.Tag != "!!str":
			return nil, d.fail(key, "field %s of %s must be a string: put it in quotes", printableKey(key), field)
		case twice:
			return nil, d.fail(key, "field %s of %s is given twice", printableKey(key), field)
		}
		var err error
		if values[key.Value], err = d.free(value, join(field, key.Value), depth+1); err != nil {
			return nil, err
		}
	}
	return values, nil
}

func (d *decoder) freeScalar(n *yaml.Node, field string) (any, error) {
	switch n.Tag {
	case "!!null":
		return nil, nil
	case "!!str", "!!timestamp": // Helm reads a date as text
		return n.Value, nil
	case "!!bool":
		var b bool
		if err := n.Decode(&b); err == nil {
			return b, nil
		}
	case "!!int":
		var i int64
		if err := n.Decode(&i); err == nil {
			return i, nil
		}
		return nil, d.fail(n, "%s is too large a number: put it in quotes", field)
	case "!!float":
		var f float64
		if err := n.Decode(&f); err == nil && !math.IsInf(f, 0) && !math.IsNaN(f) {
			return f, nil
		}
		return nil, d.fail(n, "%s is no finite number: put it in quotes if it is text", field)
	}
	return nil, d.mistyped(n, field, "a mapping, a list, text, a number, true or false")
}
