// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package draft

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// page is a YAML text in the making. Its comments are of two kinds: prose, a
// line that begins with "# ", and what is left to the reader, "#" at once
// before the YAML.
type page struct{ b strings.Builder }

func (p *page) String() string { return p.b.String() }

// width is where prose is broken.
const width = 88

func (p *page) line(text string) { p.b.WriteString(text + "\n") }

// gap begins a section.
func (p *page) gap() { p.line("") }

// say writes prose.
func (p *page) say(indent int, text string) {
	start := strings.Repeat(" ", indent) + "#"
	at := start
	for _, word := range strings.Fields(readable(text)) {
		if len(at)+1+len(word) > width && at != start {
			p.line(at)
			at = start
		}
		at += " " + word
	}
	p.line(at)
}

// tell is say on one line: what is to be pasted is not broken.
func (p *page) tell(text string) {
	p.line("# " + strings.Join(strings.Fields(readable(text)), " "))
}

// set writes YAML, commented out unless it is on.
func (p *page) set(indent int, on bool, text string) {
	before := strings.Repeat(" ", indent)
	if !on {
		before += "#"
	}
	p.line(before + text)
}

// readable is text without what a terminal or a YAML parser could trip over.
func readable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(text, "?"))
}

// quoted is a value in prose, short.
func quoted(value string) string {
	const longest = 60
	if runes := []rune(value); len(runes) > longest {
		value = string(runes[:longest]) + "…"
	}
	return strconv.Quote(value)
}

var word = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_./-]*$`)

// scalar is a string as YAML: plain where it is a word that YAML takes for
// nothing else. The escapes of Go are a part of those of YAML.
func scalar(text string) string {
	var n yaml.Node
	if word.MatchString(text) && yaml.Unmarshal([]byte(text), &n) == nil && len(n.Content) == 1 && n.Content[0].Tag == "!!str" && !yaml11(text) {
		return text
	}
	return strconv.Quote(strings.ToValidUTF8(text, "\uFFFD"))
}

// yaml11 is true for the words that older parsers take for a bool.
func yaml11(text string) bool {
	switch strings.ToLower(text) {
	case "y", "n", "yes", "no", "on", "off":
		return true
	}
	return false
}

// flow is a list of strings on one line.
func flow(values []string) string {
	all := make([]string, len(values))
	for i, value := range values {
		all[i] = strconv.Quote(strings.ToValidUTF8(value, "\uFFFD"))
	}
	return "[" + strings.Join(all, ", ") + "]"
}
