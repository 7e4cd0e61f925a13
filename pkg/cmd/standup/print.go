// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/printers"
	"github.com/kubestandup/kubestandup/pkg/standup"
)

// row is a line of the table: a check that is well, or one finding.
type row struct {
	check, result, detail string
}

// print prints what one step found and did; below a heading where it is one of
// several.
func (f *Flags) print(report *standup.StepReport, sequence bool) error {
	if report.Result == standup.Skipped {
		_, err := fmt.Fprintf(f.shell.Out, "%s: skipped\n", strings.ToUpper(report.Name))
		return err
	}
	if sequence {
		fmt.Fprintf(f.shell.Out, "\n%s: %s\n", strings.ToUpper(report.Name), report.Result)
	}
	var rows []row
	for _, c := range report.Checks {
		if len(c.Findings) == 0 || c.Message != "" {
			result := "ok"
			if slices.ContainsFunc(c.Findings, func(f finding.Finding) bool { return f.Severity != finding.Info }) {
				result = "partly"
			}
			rows = append(rows, row{c.Name, result, c.Message})
		}
		for _, found := range c.Findings {
			result := string(found.Severity)
			if found.Blocks {
				result = "blocks"
			}
			rows = append(rows, row{c.Name, result, found.Message})
		}
	}
	columns := []printers.Column[row]{
		{Name: "CHECK", Value: func(r row) string { return r.check }},
		{Name: "RESULT", State: true, Value: func(r row) string { return r.result }},
		{Name: "DETAIL", Value: func(r row) string { return r.detail }},
	}
	if len(rows) == 0 { // it was interrupted before it had looked at anything
		return nil
	}
	if err := printers.PrintTable(f.shell.Out, columns, rows, f.shell.Table(false, false)); err != nil {
		return err
	}
	for _, found := range report.Findings {
		// Of what is information alone the row says it all.
		if found.Severity != finding.Info || found.Suggestion != "" {
			f.explain(found)
		}
	}
	if report.Counts != (standup.Counts{}) {
		fmt.Fprintf(f.shell.Out, "\n%s\n", report.Counts)
	}
	if sequence {
		for _, found := range report.Findings {
			if found.Blocks {
				fmt.Fprintf(f.shell.Out, "\nStopped, and nothing was changed: %s\n%s", printers.OneLine(found.Message), printers.Paragraph(2, "fix", labelWidth, found.Fix, 0))
			}
		}
	}
	said := len(report.Findings) == 1 && report.Findings[0].Fix == report.Next
	if report.Next != "" && !said {
		fmt.Fprintf(f.shell.Out, "\nNext: %s\n", printers.OneLine(report.Next))
	}
	if sequence && report.Result != standup.OK {
		fmt.Fprintln(f.shell.Out)
	}
	return nil
}

// conclude ends a sequence with one sentence.
func (f *Flags) conclude(report *standup.Report, good, dryRun bool) {
	switch c := report.Counts; {
	case !good:
	case dryRun:
		fmt.Fprintln(f.shell.Out, "\nEvery step would end well. It was a dry run, and nothing was changed.")
	case c == (standup.Counts{}):
		fmt.Fprintln(f.shell.Out, "\nEvery step ended well. Nothing was verified.")
	default:
		fmt.Fprintf(f.shell.Out, "\nThe cluster is up: %s.\n", c)
	}
}

// explain prints the evidence of a finding and what to do about it.
func (f *Flags) explain(found finding.Finding) {
	terminal := f.shell.Table(false, false).Width
	say := func(label, text string) {
		width := terminal
		if strings.Contains(text, "kubectl ") || strings.HasPrefix(text, "- {") {
			width = 0 // what is broken into lines cannot be pasted
		}
		if text != "" {
			fmt.Fprint(f.shell.Out, printers.Paragraph(2, label, labelWidth, text, width))
		}
	}
	title := found.Rule
	if found.Object != nil {
		title += " " + found.Object.String()
	}
	fmt.Fprintf(f.shell.Out, "\n%s\n", printers.OneLine(title))
	for _, m := range found.Missing {
		text := m.Kind + " " + m.APIVersion
		if m.CreatedBy != "" {
			text += ", created by " + m.CreatedBy
		}
		say("missing", text)
	}
	for _, c := range found.Causes {
		say("seen", c)
	}
	say("fix", found.Fix)
	if !strings.Contains(found.Suggestion, "\n") {
		say("", found.Suggestion)
		return
	}
	for line := range strings.Lines(found.Suggestion) { // a text to be pasted as it is
		fmt.Fprintf(f.shell.Out, "%*s%s\n", labelWidth+2, "", printers.EscapeTerminal(strings.TrimRight(line, "\n")))
	}
}

// labelWidth is the room for the words that stand before the parts of a
// finding.
const labelWidth = 10
