// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"bytes"
	"strings"
)

// scanDocuments reads identities line by line: of what is written in block
// style, the keys of an object are the lines that are not indented, and no line
// of a value is. It answers false for a file in which that is not certain.
func scanDocuments(content []byte) ([]Document, bool) {
	if bytes.ContainsAny(content, "\t\r") && bytes.Contains(content, []byte("\r")) {
		content = bytes.ReplaceAll(content, []byte("\r\n"), []byte("\n"))
	}
	var s scanner
	for line := 1; len(content) > 0; line++ {
		text, rest, _ := bytes.Cut(content, []byte("\n"))
		if content = rest; !s.read(line, text) {
			return nil, false
		}
	}
	s.end()
	return s.all, true
}

type scanner struct {
	all  []Document
	now  Document
	seen map[string]bool
	// meta is true inside of metadata, indent the indentation of its fields,
	// 0 before the first.
	meta   bool
	indent int
}

// read takes one line, and answers false when a parser must decide.
func (s *scanner) read(number int, line []byte) bool {
	body := bytes.TrimLeft(line, " ")
	indent := len(line) - len(body)
	switch {
	case len(body) == 0, body[0] == '#':
		return true
	case indent > 0:
		return s.seen != nil && (!s.meta || s.metadata(indent, body))
	case bytes.HasPrefix(line, []byte("---")):
		s.end()
		after := bytes.TrimLeft(line[len("---"):], " ")
		return len(after) == 0 || after[0] == '#' && len(line) > len("---") && line[len("---")] == ' '
	case bytes.HasPrefix(line, []byte("- ")), bytes.Equal(line, []byte("-")):
		// The elements of a list may stand as far left as its key.
		return s.seen != nil && !s.meta
	}
	s.meta = false
	key, value, ok := keyValue(body)
	if !ok || s.seen[key] {
		return false
	}
	if s.seen == nil {
		s.seen, s.now.Line = map[string]bool{}, number
	}
	s.seen[key] = true
	switch key {
	case "apiVersion":
		s.now.APIVersion, ok = plain(value)
	case "kind":
		s.now.Kind, ok = plain(value)
		ok = ok && !strings.HasSuffix(s.now.Kind, "List")
	case "metadata":
		s.meta, s.indent = true, 0
		ok = value == ""
	}
	return ok
}

func (s *scanner) metadata(indent int, body []byte) bool {
	if s.indent == 0 {
		s.indent = indent
	}
	if indent > s.indent {
		return true // below a field
	}
	key, value, ok := keyValue(body)
	if indent < s.indent || !ok {
		// The elements of a list may stand as far left as its key.
		return indent == s.indent && bytes.HasPrefix(body, []byte("- "))
	}
	switch {
	case key == "name" && s.now.Name == "":
		s.now.Name, ok = plain(value)
	case key == "namespace" && s.now.Namespace == "":
		s.now.Namespace, ok = plain(value)
	case key == "name", key == "namespace":
		ok = false
	}
	return ok
}

func (s *scanner) end() {
	if s.seen != nil {
		s.all = append(s.all, s.now)
	}
	*s = scanner{all: s.all}
}

// keyValue takes a line of a mapping apart.
func keyValue(line []byte) (key, value string, ok bool) {
	for i, c := range line {
		switch {
		case c == ':' && i > 0 && (i+1 == len(line) || line[i+1] == ' '):
			value = strings.TrimSpace(string(line[i+1:]))
			if strings.HasPrefix(value, "#") {
				value = ""
			}
			return string(line[:i]), value, true
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_', c == '.', c == '/':
		default:
			return "", "", false
		}
	}
	return "", "", false
}

// plain is the value where it is written on one line without anything that
// means something to YAML.
func plain(value string) (string, bool) {
	if before, _, comment := strings.Cut(value, " #"); comment {
		value = strings.TrimSpace(before)
	}
	if n := len(value); n >= 2 && (value[0] == '"' || value[0] == '\'') && value[n-1] == value[0] {
		value = value[1 : n-1]
	}
	if value == "" {
		return "", false
	}
	for i := range len(value) {
		switch c := value[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '/', c == '.', c == '_':
		case (c == '-' || c == ':' || c == '$' || c == '{' || c == '}') && i > 0 || c == '$':
		default:
			return "", false
		}
	}
	return value, !strings.Contains(value, ": ")
}
