// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package tiers

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/kubestandup/kubestandup/pkg/cmd/util"
	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/lint"
	"github.com/kubestandup/kubestandup/pkg/printers"
)

// patches writes the patch of all findings together: one part for each file, so
// that it applies as a whole.
func patches(to io.Writer, report *lint.Report) error {
	here, err := os.Getwd()
	if err == nil {
		here, err = filepath.EvalSymlinks(here)
	}
	if err == nil && report.Patch.Diff != "" && below(report.Root, here) {
		return util.UsageError(fmt.Errorf("--suggest in a folder of the repository: git apply would leave out, silently, what is not below it; run: cd %s && kubectl tiers lint --suggest | git apply", shellWord(report.Root)))
	}
	_, err = io.WriteString(to, report.Patch.Diff)
	return err
}

// below is true for a folder inside root that is not root itself.
func below(root, folder string) bool {
	rel, err := filepath.Rel(root, folder)
	return root != "" && err == nil && rel != "." && filepath.IsLocal(rel)
}

// patched says of the patch what its comments say, which are lost where git
// reads them, what it does not mend, and how it is applied from here.
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
	for i, note := range report.Patch.Notes {
		label := ""
		if i == 0 {
			label = "patch"
		}
		_, _ = w.WriteString(printers.Paragraph(2, label, lintLabels, note, width))
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
		say(fmt.Sprintf("%d of %s %s no patch (information is not counted): patches are written for %s alone, and only where they are safe.",
			without, finding.Count(of, "finding"), finding.Verb(without, "has", "have"), finding.And(lint.Suggested())))
	}
	if n := report.Patch.Left; n > 0 {
		say(fmt.Sprintf("%s %s not go together with the rest: apply this one, and run it again.", morePatches(n), finding.Verb(n, "does", "do")))
	}
	if report.Patch.Diff != "" && report.Root != "" && report.Root != here {
		say("The patch is relative to the root of the repository; apply it with: git -C " + shellWord(report.Root) + " apply")
	}
	return w.Flush()
}

func morePatches(n int) string {
	if n == 1 {
		return "1 more patch"
	}
	return fmt.Sprintf("%d more patches", n)
}

// anded names things in a sentence.
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
