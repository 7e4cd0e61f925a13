// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package suggest

import (
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// edit changes the lines of one object of the file, and then reads it back:
// what was meant is applied to the values before, and must be what is there
// after. YAML can be written in more ways than are looked at here, and one that
// is misread must not be changed.
func (f *file) edit(a address, change func(segment) error, meant func(any) any) error {
	before, err := f.find(a)
	if err != nil {
		return err
	}
	var want, got any
	if err := before.object.Decode(&want); err != nil {
		return refuse("%s/%s in %s cannot be read: %v", a.kind, a.name, f.path, err)
	}
	lines, whole := f.lines, f.all()
	f.lines = slices.Clone(lines)
	if err := change(before); err != nil {
		f.lines = lines
		return err
	}
	after, err := f.find(a)
	if err == nil {
		err = after.object.Decode(&got)
	}
	if err != nil || !reflect.DeepEqual(meant(want), got) || len(f.all()) != len(whole) {
		f.lines = lines
		return refuse("%s/%s in %s is written in a way that cannot be changed line by line", a.kind, a.name, f.path)
	}
	return nil
}

func (f *file) all() []segment {
	all, err := f.segments()
	if err != nil {
		return nil
	}
	return all
}

// addItems puts items at the end of the list at spec.key, and makes the list
// where there is none.
func (f *file) addItems(a address, key string, items ...*yaml.Node) error {
	return f.addTo(a, "spec", key, items...)
}

// addTo is addItems for the list at parent.key; without a parent, for one of the
// object itself.
func (f *file) addTo(a address, parent, key string, items ...*yaml.Node) error {
	if len(items) == 0 {
		return nil
	}
	added := make([]any, len(items))
	for i, item := range items {
		if err := item.Decode(&added[i]); err != nil {
			return refuse("%s cannot be written: %v", key, err)
		}
	}
	front := false
	change := func(s segment) error {
		holder := under(s.object, parent)
		values := field(holder, key)
		switch {
		case holder == nil || holder.Kind != yaml.MappingNode:
			return refuse("%s/%s in %s has no %s", a.kind, a.name, f.path, parent)
		case values == nil:
			return f.addField(s, holder, key, &yaml.Node{Kind: yaml.SequenceNode, Content: items})
		case values.Kind == yaml.SequenceNode && values.Style&yaml.FlowStyle != 0:
			front = true
			return f.insertFlow(s, values, f.flowItems(items), len(values.Content) == 0)
		case values.Kind == yaml.SequenceNode && len(values.Content) > 0:
			return f.appendBlock(s, values, items)
		}
		return refuse("%s of %s/%s in %s is not a list", key, a.kind, a.name, f.path)
	}
	return f.edit(a, change, func(v any) any {
		holder, _ := v.(map[string]any)
		if parent != "" {
			holder, _ = holder[parent].(map[string]any)
		}
		old, _ := holder[key].([]any)
		if front {
			holder[key] = slices.Concat(added, old)
		} else {
			holder[key] = slices.Concat(old, added)
		}
		return v
	})
}

// setField adds a field to the mapping at parent, which does not have it.
func (f *file) setField(a address, parent, key string, value *yaml.Node) error {
	var added any
	if err := value.Decode(&added); err != nil {
		return refuse("%s.%s cannot be written: %v", parent, key, err)
	}
	change := func(s segment) error {
		holder := field(s.object, parent)
		if holder == nil || holder.Kind != yaml.MappingNode || field(holder, key) != nil {
			return refuse("%s.%s of %s/%s in %s cannot be set", parent, key, a.kind, a.name, f.path)
		}
		return f.addField(s, holder, key, value)
	}
	return f.edit(a, change, func(v any) any {
		all, _ := v.(map[string]any)
		if holder, ok := all[parent].(map[string]any); ok {
			holder[key] = added
		}
		return v
	})
}

// removeItems takes items out of the list at parent.key. A list of a kustomization file that becomes empty
// stays, since kustomize asks for one.
func (f *file) removeItems(a address, parent, key string, which func(*yaml.Node) bool) error {
	lines := f.lines
	for {
		var index int
		dropped := false
		change := func(s segment) error {
			holder := under(s.object, parent)
			values := field(holder, key)
			if values == nil || values.Kind != yaml.SequenceNode {
				index = -1
				return nil
			}
			if index = slices.IndexFunc(values.Content, which); index < 0 {
				return nil
			}
			if values.Style&yaml.FlowStyle != 0 {
				return f.removeFlow(s, values, index)
			}
			// A kustomization file of nothing at all is refused by kustomize, one
			// of an empty list is not.
			dropped = len(values.Content) == 1 && (parent != "" || (key == "resources" || key == "bases") && len(holder.Content) > 6)
			return f.removeBlock(s, holder, key, values, index, dropped)
		}
		err := f.edit(a, change, func(v any) any {
			holder, _ := v.(map[string]any)
			if parent != "" {
				holder, _ = holder[parent].(map[string]any)
			}
			if old, ok := holder[key].([]any); ok && index >= 0 && index < len(old) {
				holder[key] = slices.Delete(slices.Clone(old), index, index+1)
			}
			if dropped {
				delete(holder, key)
			}
			return v
		})
		if err != nil {
			f.lines = lines
			return err
		}
		if index < 0 {
			return nil
		}
	}
}

// under is the mapping at a field of an object; without one, the object.
func under(object *yaml.Node, parent string) *yaml.Node {
	if parent == "" {
		return object
	}
	return field(object, parent)
}

// addField writes a field behind the last one of a mapping.
func (f *file) addField(s segment, holder *yaml.Node, key string, value *yaml.Node) error {
	pair := &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{text(key), value}}
	if holder.Style&yaml.FlowStyle != 0 {
		inner := f.inFlow(pair)
		return f.insertFlow(s, holder, inner, len(holder.Content) == 0)
	}
	column := holder.Column
	lines, err := encode(pair, f.step(s), f.indented(s))
	if err != nil {
		return err
	}
	at := f.endOf(s, holder.Line, func(line string) bool { return indent(line) >= column-1 })
	f.splice(at, at, shifted(lines, column-1)...)
	return nil
}

// appendBlock writes items behind the last one of a list.
func (f *file) appendBlock(s segment, values *yaml.Node, items []*yaml.Node) error {
	column := values.Column
	lines, err := encode(&yaml.Node{Kind: yaml.SequenceNode, Content: items}, f.step(s), true)
	if err != nil {
		return err
	}
	at := f.endOf(s, values.Line, func(line string) bool { return inList(line, column) })
	f.splice(at, at, shifted(lines, column-1)...)
	return nil
}

func inList(line string, column int) bool {
	return indent(line) >= column || indent(line) == column-1 && strings.HasPrefix(line[column-1:], "-")
}

// removeBlock takes the lines of one item out. Where it was the only one, it
// leaves an empty list, or nothing.
func (f *file) removeBlock(s segment, holder *yaml.Node, key string, values *yaml.Node, index int, drop bool) error {
	column := values.Column
	from := s.body + values.Content[index].Line - 1
	if from >= s.to || !strings.HasPrefix(strings.TrimLeft(f.lines[from], " "), "-") {
		return refuse("an entry of %s in %s does not begin on the line of its dash", key, f.path)
	}
	to := f.endOf(s, from-s.body+1, func(line string) bool { return indent(line) >= column })
	if len(values.Content) > 1 {
		f.splice(from, to)
		return nil
	}
	head := slices.IndexFunc(holder.Content, func(n *yaml.Node) bool { return n == values }) - 1
	line := s.body + holder.Content[head].Line - 1
	if strings.TrimSpace(f.lines[line]) != key+":" {
		return refuse("the list %s in %s does not begin below its name", key, f.path)
	}
	if drop {
		f.splice(line, to)
		return nil
	}
	f.splice(from, to)
	f.splice(line, line+1, strings.TrimRight(f.lines[line], "\r\n")+" []")
	return nil
}

// endOf is the line behind a block that begins at a line of the segment (which
// counts from 1): lines that belong to it, with blank ones and comments between
// them.
func (f *file) endOf(s segment, line int, inside func(string) bool) int {
	end := s.body + line
	for i := end; i < s.to; i++ {
		switch text := f.lines[i]; {
		case blank(text):
		case inside(text):
			end = i + 1
		case !comment(text):
			return end
		}
	}
	return end
}

// step is how many columns the object indents by.
func (f *file) step(s segment) int {
	for i := 1; i < len(s.object.Content); i += 2 {
		if v := s.object.Content[i]; v.Kind == yaml.MappingNode && v.Style&yaml.FlowStyle == 0 && v.Column > s.object.Column {
			return v.Column - s.object.Column
		}
	}
	return 2
}

// indented is true where lists stand deeper than the name of their field: in
// the object itself, else in the first of the file that has a list.
func (f *file) indented(s segment) bool {
	if known, deeper := listStyle(s.object); known {
		return deeper
	}
	for _, other := range f.all() {
		if known, deeper := listStyle(other.object); known {
			return deeper
		}
	}
	return true
}

func listStyle(node *yaml.Node) (known, deeper bool) {
	if node == nil {
		return false, false
	}
	for i, child := range node.Content {
		if node.Kind == yaml.MappingNode && i%2 == 1 && child.Kind == yaml.SequenceNode && child.Style&yaml.FlowStyle == 0 && len(child.Content) > 0 {
			return true, child.Column > node.Content[i-1].Column
		}
		if known, deeper := listStyle(child); known {
			return known, deeper
		}
	}
	return false, false
}
