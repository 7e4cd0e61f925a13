// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bytes"
	"fmt"
	"iter"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
	"helm.sh/helm/v4/pkg/chart/common"
	goyaml "sigs.k8s.io/yaml/goyaml.v3"
)

// maxDepth is how deep maps and lists may lie in each other. set may put a map
// into itself, and what goes through that has no end but that of the stack,
// which is the program's.
const maxDepth = 1000

// walking are the functions that go through all of what they are given.
func walking() []string {
	return []string{
		"print", "printf", "println", "html", "js", "urlquery",
		"toString", "toStrings", "quote", "squote", "cat", "join", "sortAlpha",
		"deepCopy", "mustDeepCopy", "deepEqual", "merge", "mustMerge", "mergeOverwrite", "mustMergeOverwrite",
		"toPrettyJson", "mustToPrettyJson", "toRawJson", "mustToRawJson", "toYamlPretty", "toToml", "mustToToml",
		"uniq", "mustUniq", "has", "mustHas", "without", "mustWithout",
	}
}

func checkDepth(name string, args []reflect.Value) error {
	left := maxItems
	for _, arg := range args {
		if arg.CanInterface() && !through(arg.Interface(), 0, &left) {
			return fmt.Errorf("%s gets more than %d items, or maps and lists that lie more than %d deep in each other", name, maxItems, maxDepth)
		}
	}
	return nil
}

// through is false for what is too much. One item that is in two lists counts
// twice. Templates put maps and lists into nothing else.
func through(v any, depth int, left *int) bool {
	if *left--; *left < 0 || depth > maxDepth {
		return false
	}
	switch v := v.(type) {
	case common.Values:
		return through(map[string]any(v), depth, left)
	case map[string]any:
		return throughAll(maps.Values(v), depth, left)
	case []any:
		return throughAll(slices.Values(v), depth, left)
	case []map[string]any: // of chunk and the like
		return throughAll(slices.Values(v), depth, left)
	case [][]any:
		return throughAll(slices.Values(v), depth, left)
	}
	return true
}

func throughAll[T any](all iter.Seq[T], depth int, left *int) bool {
	for each := range all {
		if !through(each, depth+1, left) {
			return false
		}
	}
	return true
}

// copying are the functions that make a text at once as often as another one
// has places for it.
func copying() []string { return []string{"join", "replace", "wrapWith"} }

func checkCopies(name string, args []reflect.Value) error {
	var size float64
	switch name {
	case "replace": // old, new, in
		old, with, in := args[0].String(), args[1].String(), args[2].String()
		size = float64(strings.Count(in, old)) * float64(len(with))
	case "wrapWith": // length, separator, text
		size = float64(args[1].Len()) * float64(args[2].Len())
	default: // separator, list
		list := args[1]
		for list.Kind() == reflect.Interface || list.Kind() == reflect.Pointer {
			list = list.Elem()
		}
		if list.Kind() == reflect.Slice || list.Kind() == reflect.Array {
			size = float64(args[0].Len()) * float64(list.Len())
		}
	}
	if size > maxText {
		return fmt.Errorf("%s makes %.0f MiB", name, math.Ceil(size/(1<<20)))
	}
	return nil
}

// toYAMLPretty, toTOML and mustToTOML are Helm's, which cannot be had from it
// (helm v4.2.4 pkg/engine funcs.go).
func toYAMLPretty(v any) string {
	var data bytes.Buffer
	encoder := goyaml.NewEncoder(&data)
	encoder.SetIndent(2)
	if err := encoder.Encode(v); err != nil {
		return ""
	}
	return strings.TrimSuffix(data.String(), "\n")
}

func toTOML(v any) string {
	text, err := mustToTOML(v)
	if err != nil {
		return err.Error()
	}
	return text
}

func mustToTOML(v any) (string, error) {
	var data bytes.Buffer
	err := toml.NewEncoder(&data).Encode(v)
	return data.String(), err
}
