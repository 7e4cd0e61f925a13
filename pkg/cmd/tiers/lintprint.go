// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package tiers

import (
	"bufio"
	"io"
	"strconv"
	"strings"

	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/lint"
	"github.com/kubestandup/kubestandup/pkg/printers"
)

// lintLabels is how wide the words before a paragraph are.
const lintLabels = 10

// text writes the report for people.
func (o *lintOptions) text(to io.Writer, report *lint.Report) error {
	return writeLint(to, report, o.Kinds, printers.TableOptions{
		Color: printers.AllowsColor(to, o.shell.NoColor), Width: printers.TerminalWidth(to),
	})
}

func writeLint(to io.Writer, report *lint.Report, kinds bool, table printers.TableOptions) error {
	p := &lintPage{w: bufio.NewWriter(to), table: table}
	if kinds {
		p.kinds(report)
	}
	for i := range report.Findings {
		p.finding(&report.Findings[i])
	}
	p.conclude(report)
	return p.w.Flush()
}

// lintPage prints a report. Flush has the errors.
type lintPage struct {
	w     *bufio.Writer
	table printers.TableOptions
}

func (p *lintPage) write(text string) { _, _ = p.w.WriteString(text) }

func (p *lintPage) say(label, text string) {
	if text != "" {
		p.write(printers.Paragraph(2, label, lintLabels, text, p.table.Width))
	}
}

// finding prints what is wrong, why, and what to do about it.
func (p *lintPage) finding(f *finding.Finding) {
	rule, _ := lint.RuleOf(f.Rule)
	title := p.table
	title.NoHeaders = true
	_ = printers.PrintTable(p.w, []printers.Column[*finding.Finding]{
		{State: true, Value: func(f *finding.Finding) string { return string(f.Severity) }},
		{Value: func(f *finding.Finding) string { return strings.TrimSpace(f.Rule + " " + rule.Name) }},
		{Value: lintPlace},
	}, []*finding.Finding{f}, title)
	p.write(printers.Paragraph(2, "", 0, lintSentence(f.Message), p.table.Width))
	for i, cause := range f.Causes {
		if where, found := strings.CutPrefix(cause, lint.FoundIn); found && i == len(f.Causes)-1 {
			p.say("found in", where)
			continue
		}
		p.say(onlyFirst(i, "because"), cause)
	}
	for i, m := range f.Missing {
		p.say(onlyFirst(i, "missing"), lint.MissingText(m))
	}
	for i, part := range lint.FixParts(f.Fix) {
		if part.Manifest {
			p.manifest(part.Text)
			continue
		}
		p.say(onlyFirst(i, "fix"), part.Text)
	}
	if rule.ID != "" {
		p.write(printers.Paragraph(2, "", 0, rule.Page(), 0))
	}
	p.write("\n")
}

// manifest prints what is to be copied as it is, so no line of it is folded.
func (p *lintPage) manifest(text string) {
	for line := range strings.SplitSeq(text, "\n") {
		p.write(strings.TrimRight(strings.Repeat(" ", 2+lintLabels+2)+printers.EscapeTerminal(line), " ") + "\n")
	}
}

func onlyFirst(i int, label string) string {
	if i > 0 {
		return ""
	}
	return label
}

// lintPlace is where a finding is; one that is written nowhere has an object.
func lintPlace(f *finding.Finding) string {
	switch {
	case f.File != "" && f.Line > 0:
		return f.File + ":" + strconv.Itoa(f.Line)
	case f.File != "":
		return f.File
	}
	for _, r := range []*flux.Ref{f.Object, f.Tier} {
		if r != nil {
			return r.String()
		}
	}
	return ""
}

// lintSentence ends what is one. What it begins with may be a name, which stays
// as it is.
func lintSentence(text string) string {
	text = strings.TrimSpace(text)
	if text == "" || strings.ContainsAny(text[len(text)-1:], ".!?") {
		return text
	}
	return text + "."
}
