// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"regexp"
	"strings"
)

// FixPart is a part of a finding's fix: a paragraph, or a manifest that is to
// be copied as it is.
type FixPart struct {
	Text     string
	Manifest bool
}

// FixParts reads a fix. After its first line, which is words, a line that YAML
// could begin with, a key in lower case, and what is indented are a manifest; any
// other line is a paragraph.
func FixParts(fix string) []FixPart {
	key := regexp.MustCompile(`^(---|#|- |[a-z][A-Za-z0-9_-]*:( .*)?$)`)
	var parts []FixPart
	for line := range strings.SplitSeq(fix, "\n") {
		last := len(parts) - 1
		inside := last >= 0 && parts[last].Manifest
		switch {
		case strings.TrimSpace(line) == "":
			if inside {
				parts[last].Text += "\n"
			}
		case inside && (key.MatchString(line) || line[0] == ' '):
			parts[last].Text += "\n" + line
		case len(parts) > 0 && (key.MatchString(line) || strings.HasPrefix(line, "  ")):
			parts = append(parts, FixPart{Text: line, Manifest: true})
		default:
			parts = append(parts, FixPart{Text: strings.TrimSpace(line)})
		}
	}
	for i := range parts {
		parts[i].Text = strings.TrimRight(parts[i].Text, "\n")
	}
	return parts
}
