// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"fmt"
	"reflect"
	"slices"
	"text/template"

	"github.com/Masterminds/sprig/v3"
)

const (
	// maxText is what a function of a template may return, in bytes, and
	// maxItems how many items.
	maxText  = maxRendered
	maxItems = 1 << 20
	// maxCount is how often a function may be told to repeat something.
	maxCount = 1 << 20
)

// helms are the functions that Helm has of its own, or has changed (helm v4.2.4
// pkg/engine funcs.go funcMap, engine.go initFunMap).
func helms() []string {
	return []string{
		"env", "expandenv", "getHostByName", "fail", "required", "include", "tpl", "lookup",
		"toToml", "mustToToml", "fromToml", "toYaml", "mustToYaml", "toYamlPretty", "fromYaml", "fromYamlArray",
		"toJson", "mustToJson", "fromJson", "fromJsonArray",
	}
}

// counting are the functions that repeat something as often as a number says.
func counting() []string {
	return []string{"until", "untilStep", "seq", "repeat", "indent", "nindent", "randAlphaNum", "randAlpha", "randAscii", "randNumeric", "randBytes"}
}

// functions are those of templates, which fail when ctx is done: Helm's engine
// cannot be stopped, and what it renders in vain would go on, and grow, beside
// everything else. They also fail at what no chart needs. A template that calls
// none of them is not stopped.
func (r *rendering) functions() template.FuncMap {
	all := sprig.TxtFuncMap()
	all["print"], all["printf"], all["println"] = fmt.Sprint, fmt.Sprintf, fmt.Sprintln // as text/template
	all["html"], all["js"], all["urlquery"] = template.HTMLEscaper, template.JSEscaper, template.URLQueryEscaper
	for _, name := range helms() {
		delete(all, name)
	}
	all["toYamlPretty"], all["toToml"], all["mustToToml"] = toYAMLPretty, toTOML, mustToTOML
	for name, function := range all {
		all[name] = r.bound(name, function)
	}
	all[markFunction] = r.begin
	all["lookup"] = r.lookup
	return all
}

func (r *rendering) bound(name string, function any) any {
	f := reflect.ValueOf(function)
	kind := f.Type()
	ins := make([]reflect.Type, kind.NumIn())
	for i := range ins {
		ins[i] = kind.In(i)
	}
	failure := reflect.TypeFor[error]()
	outs := []reflect.Type{kind.Out(0), failure}
	check := checks(name)
	made := reflect.MakeFunc(reflect.FuncOf(ins, outs, kind.IsVariadic()), func(args []reflect.Value) []reflect.Value {
		refuse := func(err error) []reflect.Value {
			r.refused.Store(true)
			return []reflect.Value{reflect.Zero(outs[0]), reflect.ValueOf(&err).Elem()}
		}
		if err := r.ctx.Err(); err != nil {
			return refuse(err)
		}
		for _, check := range check {
			if err := check(name, args); err != nil {
				return refuse(err)
			}
		}
		var results []reflect.Value
		if kind.IsVariadic() {
			results = f.CallSlice(args)
		} else {
			results = f.Call(args)
		}
		if tooLarge(results[0]) {
			return refuse(fmt.Errorf("%s makes more than %d MiB, or %d items", name, maxText>>20, maxItems))
		}
		if len(results) == 1 {
			results = append(results, reflect.Zero(failure))
		}
		return results
	})
	return made.Interface()
}

// checks are those of what a function is called with.
func checks(name string) []func(string, []reflect.Value) error {
	var all []func(string, []reflect.Value) error
	if slices.Contains(counting(), name) {
		all = append(all, checkCount)
	}
	if slices.Contains(copying(), name) {
		all = append(all, checkCopies)
	}
	if slices.Contains(walking(), name) {
		all = append(all, checkDepth)
	}
	return all
}

func checkCount(name string, args []reflect.Value) error {
	if count, size := repeats(args); count > maxCount || count*size > maxText {
		return fmt.Errorf("%s repeats something %d times", name, count)
	}
	return nil
}

// repeats are the largest number and the largest text, in bytes, of arguments.
func repeats(args []reflect.Value) (count, size int64) {
	size = 1
	var look func(reflect.Value)
	look = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Interface, reflect.Pointer:
			look(v.Elem())
		case reflect.Int, reflect.Int64, reflect.Int32:
			count = max(count, v.Int(), -v.Int())
		case reflect.Float64:
			count = max(count, int64(min(max(v.Float(), -v.Float()), 1<<40)))
		case reflect.String:
			size = max(size, int64(v.Len()))
		case reflect.Slice:
			for i := range v.Len() {
				look(v.Index(i))
			}
		}
	}
	for _, arg := range args {
		look(arg)
	}
	return count, size
}

func tooLarge(v reflect.Value) bool {
	for v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.String:
		return v.Len() > maxText
	case reflect.Slice, reflect.Map:
		return v.Len() > maxItems
	}
	return false
}
