// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package suggest

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// file is a file as lines, each with its line ending, which the last one may
// lack.
type file struct {
	path  string
	lines []string
}

func newFile(path, content string) *file {
	lines := strings.SplitAfter(content, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return &file{path: path, lines: lines}
}

func (f *file) content() string { return strings.Join(f.lines, "") }

// eol is the line ending that the file uses.
func (f *file) eol() string {
	if len(f.lines) > 0 && strings.HasSuffix(f.lines[0], "\r\n") {
		return "\r\n"
	}
	return "\n"
}

// splice puts lines, which come without their endings, in the place of those
// from one to another. The last line of the file keeps its lack of an ending.
func (f *file) splice(from, to int, with ...string) {
	eol := f.eol()
	bare := to == len(f.lines) && to > 0 && !strings.HasSuffix(f.lines[to-1], "\n")
	ended := make([]string, len(with))
	for i, line := range with {
		ended[i] = line + eol
	}
	f.lines = slices.Concat(f.lines[:from], ended, f.lines[to:])
	if !bare || len(f.lines) == 0 {
		return
	}
	if last := from - 1; last >= 0 && !strings.HasSuffix(f.lines[last], "\n") {
		f.lines[last] += eol
	}
	last := len(f.lines) - 1
	f.lines[last] = strings.TrimSuffix(strings.TrimSuffix(f.lines[last], "\n"), "\r")
}

// segment is one document of a file.
type segment struct {
	// from and to are its lines, its separator among them; body is the first
	// after that.
	from, body, to int
	// object is nil where there are only comments. The lines of its nodes count
	// from 1 at body.
	object *yaml.Node
}

// first is the first document that holds something.
func (f *file) first() (segment, error) {
	segments, err := f.segments()
	if err != nil {
		return segment{}, err
	}
	at := slices.IndexFunc(segments, func(g segment) bool { return g.object != nil })
	if at < 0 {
		return segment{}, refuse("%s is empty", f.path)
	}
	return segments[at], nil
}

// segments are the documents of the file. It refuses what cannot be told apart
// by lines.
func (f *file) segments() ([]segment, error) {
	var all []segment
	current := segment{}
	for i, line := range f.lines {
		switch {
		case marks(line, "---"):
			if rest := strings.TrimSpace(line[3:]); rest != "" && !strings.HasPrefix(rest, "#") {
				return nil, refuse("a document of %s begins on the line of its ---", f.path)
			}
			if i > 0 {
				current.to = i
				all = append(all, current)
			}
			current = segment{from: i, body: i + 1}
		case marks(line, "...") || strings.HasPrefix(line, "%"):
			return nil, refuse("%s has YAML directives or the end of a document marked", f.path)
		}
	}
	current.to = len(f.lines)
	all = append(all, current)
	for i := range all {
		s := &all[i]
		var document yaml.Node
		if err := yaml.Unmarshal([]byte(strings.Join(f.lines[s.body:s.to], "")), &document); err != nil {
			return nil, refuse("%s is not YAML: %v", f.path, err)
		}
		if len(document.Content) == 1 && !null(document.Content[0]) {
			s.object = document.Content[0]
		}
	}
	return all, nil
}

// marks is true for a line that is the marker, which YAML allows nowhere else
// at the beginning of a line.
func marks(line, marker string) bool {
	rest, ok := strings.CutPrefix(line, marker)
	return ok && (rest == "" || strings.ContainsAny(rest[:1], " \t\r\n"))
}

// blank is true for a line that says nothing, comment for one that says it to
// people. What looks like a comment may be a line of a block scalar.
func blank(line string) bool { return strings.TrimSpace(line) == "" }

func comment(line string) bool { return strings.HasPrefix(strings.TrimSpace(line), "#") }

func indent(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// address names an object as its document does.
type address struct{ apiVersion, kind, namespace, name string }

func addressOf(object *yaml.Node) address {
	meta := field(object, "metadata")
	return address{
		scalar(field(object, "apiVersion")), scalar(field(object, "kind")),
		scalar(field(meta, "namespace")), scalar(field(meta, "name")),
	}
}

// find is the one document that writes the object.
func (f *file) find(a address) (segment, error) {
	all, err := f.segments()
	if err != nil {
		return segment{}, err
	}
	var found []segment
	for _, s := range all {
		if s.object != nil && addressOf(s.object) == a {
			found = append(found, s)
		}
	}
	if len(found) != 1 {
		return segment{}, refuse("%s writes %s/%s %d times", f.path, a.kind, a.name, len(found))
	}
	return found[0], nil
}

// at is the address of the object that begins at a line, which counts from 1.
func (f *file) at(line int) (address, error) {
	all, err := f.segments()
	if err != nil {
		return address{}, err
	}
	for _, s := range all {
		if s.object != nil && s.body < line && line <= s.to {
			return addressOf(s.object), nil
		}
	}
	return address{}, refuse("no object begins at %s:%d", f.path, line)
}

// cut takes the documents out of the file, and answers with their text. What
// stands between two separators goes together: comments above an object belong
// to it. A file in which no object is left is empty then, and what was cut is
// all of it.
func (f *file) cut(which func(*yaml.Node) bool) (string, error) {
	all, err := f.segments()
	if err != nil {
		return "", err
	}
	left := slices.ContainsFunc(all, func(s segment) bool { return s.object != nil && !which(s.object) })
	if !left {
		content := f.content()
		f.lines = nil
		return content, nil
	}
	var kept, taken []string
	first := true
	for _, s := range all {
		switch {
		case s.object != nil && which(s.object):
			if all[0].body == 1 && len(taken) == 0 || len(taken) > 0 {
				taken = append(terminated(taken, f.eol()), "---"+f.eol())
			}
			taken = append(taken, f.lines[s.body:s.to]...)
			continue
		case first && s.body > s.from && all[0].body == 0 && bareSeparator(f.lines[s.from]):
			// The file had no separator at its head, and needs none now.
			kept = append(kept, f.lines[s.body:s.to]...)
		default:
			kept = append(kept, f.lines[s.from:s.to]...)
		}
		first = false
	}
	f.lines = kept
	return strings.Join(terminated(taken, f.eol()), ""), nil
}

func bareSeparator(line string) bool { return strings.TrimSpace(line) == "---" }

func terminated(lines []string, eol string) []string {
	if n := len(lines); n > 0 && !strings.HasSuffix(lines[n-1], "\n") {
		lines[n-1] += eol
	}
	return lines
}

func field(node *yaml.Node, key string) *yaml.Node {
	if node == nil || node.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == key {
			return node.Content[i+1]
		}
	}
	return nil
}

func scalar(node *yaml.Node) string {
	if node == nil || node.Kind != yaml.ScalarNode {
		return ""
	}
	return node.Value
}

func null(node *yaml.Node) bool { return node.Kind == yaml.ScalarNode && node.Tag == "!!null" }
