// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package printers

import (
	"io"
	"os"
	"strings"

	"k8s.io/cli-runtime/pkg/printers"
)

// AllowsColor is true when w is a terminal and nobody asked for no colour:
// --no-color, NO_COLOR or TERM=dumb.
func AllowsColor(w io.Writer, noColor bool) bool {
	return !noColor && printers.AllowsColorOutput(w)
}

// AllowsRedraw is true when w is a terminal whose cursor can be moved, in
// colour or not.
func AllowsRedraw(w io.Writer) bool {
	columns, _ := TerminalSize(w)
	return columns > 0 && os.Getenv("TERM") != "dumb"
}

const (
	reset  = "\x1b[0m"
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	faint  = "\x1b[2m"
)

// colorState paints the first word of text when it says how a thing is, and
// leaves every other text as it is.
func colorState(text string) string {
	word := text
	if i := strings.IndexAny(text, " :,;"); i >= 0 {
		word = text[:i]
	}
	color := stateColor(word)
	if color == "" {
		return text
	}
	return color + word + reset + text[len(word):]
}

func stateColor(word string) string {
	switch strings.ToLower(word) {
	case "ready", "true", "ok", "done", "proved", "established":
		return green
	case "progressing", "retrying", "blocked", "unknown", "warning", "findings", "unproved", "partly":
		return yellow
	case "wedged", "false", "failed", "error", "missing", "refused", "blocks":
		return red
	case "suspended", "skipped", "info":
		return faint
	default:
		return ""
	}
}
