// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package tiers

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/lint"
	"github.com/kubestandup/kubestandup/pkg/printers"
)

// patches writes each patch once: findings of one cause share theirs.
func patches(to io.Writer, report *lint.Report) error {
	w := bufio.NewWriter(to)
	all, _ := distinctPatches(report)
	for _, patch := range all {
		_, _ = w.WriteString(strings.TrimRight(patch, "\n") + "\n") // Flush has the error
	}
	return w.Flush()
}

// distinctPatches leaves out what changes a file that an earlier patch changes:
// it was made for the file as it is.
func distinctPatches(report *lint.Report) (all []string, leftOut int) {
	for i := range report.Findings {
		patch := report.Findings[i].Suggestion
		if patch == "" || slices.ContainsFunc(all, func(p string) bool { return strings.Contains(p, patch) }) {
			continue
		}
		// A finding of several clusters has the patches of all of them.
		all = slices.DeleteFunc(all, func(p string) bool { return strings.Contains(patch, strings.TrimRight(p, "\n")+"\n") })
		if slices.ContainsFunc(all, func(p string) bool { return overlap(p, patch) }) {
			leftOut++
			continue
		}
		all = append(all, patch)
	}
	return all, leftOut
}

// overlap is true of patches that change a file both.
func overlap(a, b string) bool {
	files := func(patch string) []string {
		var all []string
		for line := range strings.Lines(patch) {
			if strings.HasPrefix(line, "diff --git ") {
				all = append(all, line)
			}
		}
		return all
	}
	other := files(b)
	return slices.ContainsFunc(files(a), func(line string) bool { return slices.Contains(other, line) })
}

// patched says of the patches what their comments say, which are lost where git
// reads them, what has none, and how they are applied from here.
func (o *lintOptions) patched(to io.Writer, report *lint.Report) error {
	here, err := os.Getwd()
	if err == nil {
		here, err = filepath.EvalSymlinks(here)
	}
	if err != nil {
		here = "" // then the whole command is written out
	}
	return writePatched(to, report, here, printers.TerminalWidth(to))
}

func writePatched(to io.Writer, report *lint.Report, here string, width int) error {
	w := bufio.NewWriter(to)
	say := func(text string) { _, _ = w.WriteString(printers.Paragraph(0, "", 0, text, width)) } // Flush has the error
	all, leftOut := distinctPatches(report)
	for i, patch := range all {
		for j, note := range patchNotes(patch) {
			label := ""
			if j == 0 {
				label = fmt.Sprintf("patch %d", i+1)
			}
			_, _ = w.WriteString(printers.Paragraph(2, label, lintLabels, note, width))
		}
	}
	of, without := 0, 0
	for i := range report.Findings {
		if f := &report.Findings[i]; f.Severity != finding.Info {
			of++
			if f.Suggestion == "" {
				without++
			}
		}
	}
	if without > 0 {
		say(fmt.Sprintf("%d of %s %s no patch: patches are written for CS001 and HG001 alone, and only where they are safe.",
			without, plural(of, "finding"), verbs(without, "has", "have")))
	}
	if leftOut > 0 {
		say(fmt.Sprintf("%d more %s files that these change too: apply these, and run this again.",
			leftOut, verbs(leftOut, "patch changes", "patches change")))
	}
	if len(all) > 0 && report.Root != "" && report.Root != here {
		say("The patches are relative to the root of the repository; apply them with: git -C " + shellWord(report.Root) + " apply")
	}
	return w.Flush()
}

// patchNotes are the paragraphs of the comments before the diffs of a patch.
func patchNotes(patch string) []string {
	var notes []string
	open := false // the last paragraph goes on
	for line := range strings.Lines(patch) {
		text, comment := strings.CutPrefix(strings.TrimRight(line, "\r\n"), "#")
		text = strings.TrimSpace(text)
		switch {
		case !comment || text == "":
			open = false
		case open:
			notes[len(notes)-1] += " " + text
		default:
			notes, open = append(notes, text), true
		}
	}
	return notes
}

// shellWord is a path as a shell takes it.
func shellWord(path string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+,:@", r)
	}
	if strings.IndexFunc(path, func(r rune) bool { return !plain(r) }) < 0 {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
