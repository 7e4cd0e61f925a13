// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package printers

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestEscapeTerminal(t *testing.T) {
	for name, tc := range map[string]struct{ in, want, oneLine string }{
		"plain text is left alone":   {"apps is Ready", "apps is Ready", "apps is Ready"},
		"umlauts and marks too":      {"schlüssel ✔ 日本", "schlüssel ✔ 日本", "schlüssel ✔ 日本"},
		"colour":                     {"\x1b[31mred\x1b[0m", "^[[31mred^[[0m", "^[[31mred^[[0m"},
		"the 8-bit CSI":              {"a\u009b2Jb", `a\u009b2Jb`, `a\u009b2Jb`},
		"a title that is set":        {"\x1b]0;pwned\x07", "^[]0;pwned^G", "^[]0;pwned^G"},
		"overwriting with CR":        {"safe\rEVIL", "safe^MEVIL", "safe EVIL"},
		"backspace and delete":       {"a\b\x7f", "a^H^?", "a^H^?"},
		"lines and tabs":             {"one\n\ttwo\n", "one\n\ttwo\n", "one two"},
		"reordered text":             {"a\u202eb", `a\u202eb`, `a\u202eb`},
		"bytes that are no UTF-8":    {"a\xffb", `a\xffb`, `a\xffb`},
		"an honest replacement char": {"a\ufffdb", "a\ufffdb", "a\ufffdb"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := EscapeTerminal(tc.in); got != tc.want {
				t.Errorf("EscapeTerminal(%q) = %q, want %q", tc.in, got, tc.want)
			}
			if got := OneLine(tc.in); got != tc.oneLine {
				t.Errorf("OneLine(%q) = %q, want %q", tc.in, got, tc.oneLine)
			}
		})
	}
}

func FuzzEscapeTerminal(f *testing.F) {
	for _, seed := range []string{"", "plain", "\x1b[2J", "\u009b", "a\xc3", "\r\n\t", "\u2066x\u2069"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		for _, out := range []string{EscapeTerminal(in), OneLine(in)} {
			if !utf8.ValidString(out) {
				t.Fatalf("%q became %q, which is no UTF-8", in, out)
			}
			if i := strings.IndexFunc(out, func(r rune) bool {
				return unicode.IsControl(r) && r != '\n' && r != '\t'
			}); i >= 0 {
				t.Fatalf("%q became %q, which keeps a control character at %d", in, out, i)
			}
			if again := EscapeTerminal(out); again != out {
				t.Fatalf("%q became %q, and that %q", in, out, again)
			}
		}
		if strings.ContainsAny(OneLine(in), "\n\t") {
			t.Fatalf("%q is more than one line", OneLine(in))
		}
	})
}
