// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package printers

import "strings"

// Paragraph is text behind a label, indented, each line of it ending in a
// newline. On a terminal (width > 0) it is broken between words, and its lines
// hang below its first one, or below the label where little room is left.
func Paragraph(indent int, label string, labelWidth int, text string, width int) string {
	first := strings.Repeat(" ", indent) + OneLine(label)
	if label != "" || labelWidth > 0 {
		first += strings.Repeat(" ", max(1, indent+labelWidth-TextWidth(first)))
	}
	text = OneLine(text)
	if text == "" {
		return strings.TrimRight(first, " ") + "\n"
	}
	at := TextWidth(first)
	switch {
	case width <= 0 || at+TextWidth(text) <= width:
		return first + text + "\n"
	case width-at >= minLast:
		return first + strings.Join(wrap(text, width-at), "\n"+strings.Repeat(" ", at)) + "\n"
	}
	under := strings.Repeat(" ", indent+hang)
	return strings.TrimRight(first, " ") + "\n" + under + strings.Join(wrap(text, width-indent-hang), "\n"+under) + "\n"
}
