// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package suggest

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
)

// contextLines is how many lines stand around a change, as git has it.
const contextLines = 3

// noteWidth is where notes are broken into lines.
const noteWidth = 78

// diff is what was changed, with the notes before it. git and patch skip them.
func (t *tree) diff(notes []string) string {
	var out strings.Builder
	for i, note := range notes {
		if i > 0 {
			out.WriteString("#\n")
		}
		for _, line := range wrapped(note, noteWidth-2) {
			out.WriteString("# " + line + "\n")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.files)) {
		t.diffFile(&out, name)
	}
	return out.String()
}

func (t *tree) diffFile(out *strings.Builder, name string) {
	before, existed := t.before[name]
	after := t.files[name].content()
	if existed && before == after {
		return
	}
	a, b := quoted("a/"+name), quoted("b/"+name)
	fmt.Fprintf(out, "diff --git %s %s\n", a, b)
	from, to := a, b
	switch {
	case !existed:
		fmt.Fprint(out, "new file mode 100644\n")
		from = "/dev/null"
	case after == "":
		fmt.Fprintf(out, "deleted file mode %s\n", t.mode(name))
		to = "/dev/null"
	}
	fmt.Fprintf(out, "--- %s\n+++ %s\n", ended(from), ended(to))
	old, changed := newFile(name, before).lines, t.files[name].lines
	matcher := difflib.NewMatcherWithJunk(old, changed, false, nil)
	for _, group := range matcher.GetGroupedOpCodes(contextLines) {
		hunk(out, group, old, changed)
	}
}

func hunk(out *strings.Builder, group []difflib.OpCode, old, changed []string) {
	first, last := group[0], group[len(group)-1]
	fmt.Fprintf(out, "@@ -%s +%s @@\n", span(first.I1, last.I2), span(first.J1, last.J2))
	for _, code := range group {
		if code.Tag == 'e' {
			hunkLines(out, " ", old[code.I1:code.I2])
			continue
		}
		hunkLines(out, "-", old[code.I1:code.I2])
		hunkLines(out, "+", changed[code.J1:code.J2])
	}
}

func hunkLines(out *strings.Builder, prefix string, lines []string) {
	for _, line := range lines {
		out.WriteString(prefix + line)
		if !strings.HasSuffix(line, "\n") {
			out.WriteString("\n\\ No newline at end of file\n")
		}
	}
}

// span is a range of lines as a hunk has it. An empty one names the line before.
func span(from, to int) string {
	switch to - from {
	case 0:
		return fmt.Sprintf("%d,0", from)
	case 1:
		return fmt.Sprint(from + 1)
	}
	return fmt.Sprintf("%d,%d", from+1, to-from)
}

// mode is how git has the file.
func (t *tree) mode(name string) string {
	if info, err := fs.Stat(t.disk, name); err == nil && info.Mode().Perm()&0o100 != 0 {
		return "100755"
	}
	return "100644"
}

// quoted is a path as git writes it.
func quoted(name string) string {
	plain := !strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == '"' || r == '\\' || r == 0x7f })
	if plain {
		return name
	}
	var out strings.Builder
	for _, b := range []byte(name) {
		switch {
		case b == '"' || b == '\\':
			out.WriteString(`\` + string(rune(b)))
		case b < ' ' || b == 0x7f:
			fmt.Fprintf(&out, `\%03o`, b)
		default:
			out.WriteByte(b)
		}
	}
	return `"` + out.String() + `"`
}

// ended closes a path with a blank in it by a tab, as git does: patch would end
// it at the blank.
func ended(name string) string {
	if strings.Contains(name, " ") {
		return name + "\t"
	}
	return name
}

func wrapped(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
