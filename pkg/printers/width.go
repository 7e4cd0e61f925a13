// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package printers

import (
	"io"
	"unicode"

	"golang.org/x/term"
	"golang.org/x/text/width"
)

// TerminalSize is how many columns and lines of text w shows, 0 and 0 when it
// is no terminal.
func TerminalSize(w io.Writer) (columns, lines int) {
	file, ok := w.(interface{ Fd() uintptr })
	if !ok {
		return 0, 0
	}
	columns, lines, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 0, 0
	}
	return columns, lines
}

// TerminalWidth is the first half of TerminalSize.
func TerminalWidth(w io.Writer) int {
	columns, _ := TerminalSize(w)
	return columns
}

// Fit cuts text to at most columns columns of a terminal, and shows by an
// ellipsis that it did.
func Fit(text string, columns int) string {
	if TextWidth(text) <= columns {
		return text
	}
	used := 0
	for i, r := range text {
		used += runeWidth(r)
		if used > columns-1 {
			return text[:i] + "…"
		}
	}
	return text
}

// TextWidth is how many columns of a terminal the text takes.
func TextWidth(text string) int {
	columns := 0
	for _, r := range text {
		columns += runeWidth(r)
	}
	return columns
}

func runeWidth(r rune) int {
	if unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	default:
		return 1
	}
}
