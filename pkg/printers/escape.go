// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package printers

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// EscapeTerminal makes text that came from a server safe for a terminal, and
// keeps visible what it replaced: control characters become ^X, the 8-bit ones
// and those that reorder or hide text become \u00XX, bytes that are no UTF-8
// \xXX. Line feeds and tabs stay.
//
// k8s.io/cli-runtime's function of this name replaces ESC and CR alone, which
// leaves the 8-bit CSI (U+009B), backspace and the bidirectional overrides.
func EscapeTerminal(s string) string {
	return escape(s, func(r rune) bool { return r == '\n' || r == '\t' })
}

// OneLine is EscapeTerminal for a cell or a line of progress: white space of
// any kind, line feeds too, becomes one space.
func OneLine(s string) string {
	return strings.Join(strings.Fields(escape(s, unicode.IsSpace)), " ")
}

func escape(s string, keep func(rune) bool) string {
	if !strings.ContainsFunc(s, unsafeRune) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case keep(r) && r < utf8.RuneSelf, r == utf8.RuneError, !unsafeRune(r):
			b.WriteRune(r)
		case r < 0x20:
			b.WriteByte('^')
			b.WriteRune(r + '@')
		case r == 0x7f:
			b.WriteString("^?")
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		i += size
	}
	return b.String()
}

// unsafeRune is true for what may move the cursor, switch the terminal's mode,
// or show text in another order than it has. RuneError stands for bytes that
// are no UTF-8.
func unsafeRune(r rune) bool {
	return r == utf8.RuneError || unicode.In(r, unicode.Cc, unicode.Bidi_Control, unicode.Zl, unicode.Zp)
}
