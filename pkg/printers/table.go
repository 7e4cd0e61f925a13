// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package printers

import (
	"bufio"
	"io"
	"strings"
)

// Column is one column of a table of Ts.
type Column[T any] struct {
	// Name is the header: one word in capitals.
	Name string
	// Wide columns are shown by -o wide alone.
	Wide bool
	// State columns begin with a word whose colour tells how a thing is.
	State bool
	// Value is the text of a cell. It may come from a server as it is: the
	// table makes it safe for a terminal.
	Value func(T) string
}

// TableOptions says how a table is laid out.
type TableOptions struct {
	Wide      bool
	NoHeaders bool
	// Color paints state words; see AllowsColor.
	Color bool
	// Width is how many columns of text the terminal has; see TerminalWidth.
	// 0, where there is no terminal, means that no line is ever wrapped.
	Width int
}

const (
	// kubectl's tab writer: cells are padded by three spaces and are at
	// least six wide (k8s.io/cli-runtime/pkg/printers GetNewTabWriter).
	padding  = 3
	minWidth = 6
	// minLast is the narrowest last column that is still pleasant to read;
	// with less room it goes onto lines of its own.
	minLast = 24
	// hang is how deep such lines are indented.
	hang = 4
)

// PrintTable writes rows as kubectl would. The last column is where the reason
// of a state stands, which a person needs whole: on a terminal that is too
// narrow for it, it continues on lines of its own instead of being cut.
func PrintTable[T any](w io.Writer, columns []Column[T], rows []T, o TableOptions) error {
	var shown []Column[T]
	for _, c := range columns {
		if !c.Wide || o.Wide {
			shown = append(shown, c)
		}
	}
	if len(shown) == 0 {
		return nil
	}
	var lines [][]string
	if !o.NoHeaders {
		headers := make([]string, len(shown))
		for i, c := range shown {
			headers[i] = c.Name
		}
		lines = append(lines, headers)
	}
	for _, row := range rows {
		cells := make([]string, len(shown))
		for i, c := range shown {
			cells[i] = OneLine(c.Value(row))
		}
		lines = append(lines, cells)
	}

	widths := columnWidths(lines, len(shown))
	out := bufio.NewWriter(w)
	for n, cells := range lines {
		header := n == 0 && !o.NoHeaders
		paint := func(i int, text string) string {
			if !o.Color || header || !shown[i].State {
				return text
			}
			return colorState(text)
		}
		writeLine(out, cells, widths, o.Width, paint)
	}
	return out.Flush()
}

// columnWidths is the width of each column but the last, which needs none.
func columnWidths(lines [][]string, columns int) []int {
	widths := make([]int, columns-1)
	for i := range widths {
		widths[i] = minWidth
		for _, cells := range lines {
			widths[i] = max(widths[i], TextWidth(cells[i])+padding)
		}
	}
	return widths
}

func writeLine(out *bufio.Writer, cells []string, widths []int, width int, paint func(int, string) string) {
	var line strings.Builder
	offset := 0
	for i, w := range widths {
		line.WriteString(paint(i, cells[i]))
		line.WriteString(strings.Repeat(" ", w-TextWidth(cells[i])))
		offset += w
	}
	last := len(cells) - 1
	text := cells[last]
	switch {
	case width <= 0 || offset+TextWidth(text) <= width:
		line.WriteString(paint(last, text))
	case width-offset >= minLast:
		parts := wrap(text, width-offset)
		parts[0] = paint(last, parts[0])
		line.WriteString(strings.Join(parts, "\n"+strings.Repeat(" ", offset)))
	default:
		indent := "\n" + strings.Repeat(" ", hang)
		parts := wrap(text, width-hang)
		parts[0] = paint(last, parts[0])
		line.WriteString(indent + strings.Join(parts, indent))
	}
	for s := range strings.Lines(line.String()) {
		// Spaces at the end of a line are what a person copies by mistake.
		out.WriteString(strings.TrimRight(s, " \n"))
		out.WriteByte('\n')
	}
}

// wrap splits text between words into lines of at most width columns. A word
// that is longer stays whole, so that it can still be copied.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == "":
			line = word
		case TextWidth(line)+1+TextWidth(word) <= width:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
	}
	return append(lines, line)
}
