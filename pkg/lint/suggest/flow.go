// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package suggest

import (
	"bytes"
	"encoding/json"
	"strings"

	"go.yaml.in/yaml/v3"
)

// insertFlow writes behind the opening bracket of a list or mapping in flow
// style: where it closes is not known.
func (f *file) insertFlow(s segment, node *yaml.Node, what string, empty bool) error {
	line, at, err := f.position(s, node)
	if err != nil {
		return err
	}
	text := f.lines[line]
	if at >= len(text) || text[at] != '[' && text[at] != '{' {
		return refuse("a list in flow style of %s does not begin with its bracket", f.path)
	}
	if !empty {
		what += ", "
	}
	f.lines[line] = text[:at+1] + what + text[at+1:]
	return nil
}

// removeFlow takes one item out of a list in flow style whose items are plain
// or quoted words, or flow themselves.
func (f *file) removeFlow(s segment, values *yaml.Node, index int) error {
	line, from, err := f.position(s, values.Content[index])
	if err != nil {
		return err
	}
	text := f.lines[line]
	if index+1 < len(values.Content) {
		next, to, err := f.position(s, values.Content[index+1])
		if err != nil {
			return err
		}
		if next != line {
			return refuse("a list in flow style of %s spans lines", f.path)
		}
		f.lines[line] = text[:from] + text[to:]
		return nil
	}
	to := strings.IndexByte(text[from:], ']')
	if to < 0 {
		return refuse("a list in flow style of %s spans lines", f.path)
	}
	head := strings.TrimRight(text[:from], " ")
	if index > 0 {
		head = strings.TrimRight(strings.TrimSuffix(head, ","), " ")
	}
	f.lines[line] = head + text[from+to:]
	return nil
}

// position is the line of a node in the file, and the byte in that line. Its
// column counts characters.
func (f *file) position(s segment, node *yaml.Node) (line, at int, err error) {
	line = s.body + node.Line - 1
	if line < 0 || line >= s.to {
		return 0, 0, refuse("%s has no line %d", f.path, line+1)
	}
	column := 1
	for i := range f.lines[line] {
		if column == node.Column {
			return line, i, nil
		}
		column++
	}
	return 0, 0, refuse("%s has no column %d in line %d", f.path, node.Column, line+1)
}

func (f *file) flowItems(items []*yaml.Node) string {
	return f.inFlow(&yaml.Node{Kind: yaml.SequenceNode, Content: items})
}

// inFlow is what stands between the brackets of a list or a mapping in flow
// style. In a file of JSON it is that.
func (f *file) inFlow(node *yaml.Node) string {
	var text string
	if strings.HasSuffix(f.path, ".json") {
		var value any
		var out bytes.Buffer
		encoder := json.NewEncoder(&out)
		encoder.SetEscapeHTML(false)
		if node.Decode(&value) != nil || encoder.Encode(value) != nil {
			return ""
		}
		text = strings.TrimSpace(out.String())
	} else {
		lines, err := encode(asFlow(node), 2, false)
		if err != nil {
			return ""
		}
		text = strings.Join(lines, " ")
	}
	return text[1 : len(text)-1]
}

func asFlow(node *yaml.Node) *yaml.Node {
	copied := *node
	copied.Style = node.Style | yaml.FlowStyle
	if node.Kind == yaml.ScalarNode {
		copied.Style = node.Style &^ (yaml.LiteralStyle | yaml.FoldedStyle)
	}
	return &copied
}

// encode writes a node as lines.
func encode(node *yaml.Node, step int, indented bool) ([]string, error) {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(step)
	if !indented {
		encoder.CompactSeqIndent()
	}
	if err := encoder.Encode(node); err != nil {
		return nil, refuse("YAML cannot be written: %v", err)
	}
	if err := encoder.Close(); err != nil {
		return nil, refuse("YAML cannot be written: %v", err)
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n"), nil
}

func shifted(lines []string, by int) []string {
	moved := make([]string, len(lines))
	for i, line := range lines {
		if line != "" {
			line = strings.Repeat(" ", by) + line
		}
		moved[i] = line
	}
	return moved
}

// text is a string as a node, quoted where YAML needs it.
func text(s string) *yaml.Node {
	var node yaml.Node
	node.SetString(s)
	return &node
}

func yes() *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: "true"}
}

// mapping makes a mapping of keys and values, without those that are empty.
func mapping(pairs ...string) *yaml.Node {
	node := &yaml.Node{Kind: yaml.MappingNode}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			node.Content = append(node.Content, text(pairs[i]), text(pairs[i+1]))
		}
	}
	return node
}
