// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package printers

import "testing"

func TestParagraph(t *testing.T) {
	const text = "one two three four five six seven eight"
	for name, tt := range map[string]struct {
		label      string
		labelWidth int
		text       string
		width      int
		want       string
	}{
		"no terminal":    {"why", 8, text, 0, "  why     one two three four five six seven eight\n"},
		"wide":           {"why", 8, text, 80, "  why     one two three four five six seven eight\n"},
		"folded":         {"why", 8, text, 40, "  why     one two three four five six\n          seven eight\n"},
		"narrow":         {"why", 8, text, 30, "  why\n      one two three four five\n      six seven eight\n"},
		"a long label":   {"a-long-label", 8, "x", 0, "  a-long-label x\n"},
		"nothing to say": {"why", 8, "", 80, "  why\n"},
		"hostile text":   {"why", 4, "a\x1b[2Jb\nc", 0, "  why a^[[2Jb c\n"},
		"one long word":  {"why", 4, "https://example.org/a/very/long/path/that/is/copied", 32, "  why https://example.org/a/very/long/path/that/is/copied\n"},
	} {
		if got := Paragraph(2, tt.label, tt.labelWidth, tt.text, tt.width); got != tt.want {
			t.Errorf("%s:\n%q\nwant\n%q", name, got, tt.want)
		}
	}
}
