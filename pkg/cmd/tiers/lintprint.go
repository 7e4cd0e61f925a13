// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package tiers

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/lint"
	"github.com/kubestandup/kubestandup/pkg/printers"
)

// lintLabels is how wide the words before a paragraph are.
const lintLabels = 9

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

// kinds prints the audit, without the kinds of which it would say the same on
// every cluster.
func (p *lintPage) kinds(report *lint.Report) {
	var rows []lint.Kind
	namespaces := map[string]bool{}
	for _, k := range report.Kinds {
		if !k.FluxsOwn() {
			rows = append(rows, k)
			namespaces[k.Tier.Namespace] = true
		}
	}
	if len(rows) == 0 {
		p.write("No tier uses a kind that is neither built in nor Flux's own.\n\n")
		return
	}
	columns := []printers.Column[lint.Kind]{
		{Name: "CLUSTER", Wide: true, Value: func(k lint.Kind) string { return k.Entry }},
		{Name: "TIER", Value: func(k lint.Kind) string {
			if len(namespaces) > 1 {
				return k.Tier.Key()
			}
			return k.Tier.Name
		}},
		{Name: "KIND", Value: kindCell},
		{Name: "ORDER", Value: func(k lint.Kind) string { return string(k.Order) }},
		{Name: "WHEN", State: true, Value: func(k lint.Kind) string { return string(k.When) }},
		{Name: "REGISTERED BY", Value: registrarCell},
	}
	table := p.table
	table.Wide = len(report.Entries) > 1
	_ = printers.PrintTable(p.w, columns, rows, table)
	p.write("\n")
}

// kindCell names a kind as `kubectl get` takes it.
func kindCell(k lint.Kind) string {
	if group, _, grouped := strings.Cut(k.APIVersion, "/"); grouped {
		return k.Kind + "." + group
	}
	return k.Kind
}

// registrarCell says who registers a kind, where that is written, and how it is
// known.
func registrarCell(k lint.Kind) string {
	r := k.RegisteredBy
	var text string
	switch r.How {
	case lint.ViaNobody:
		text = "nobody"
		if r.System != "" {
			text += "; " + r.System + " would"
		}
	case lint.ViaPerhaps:
		text = "nobody that is known"
		if r.Object != nil {
			text += "; " + r.Object.String() + " may"
		}
	case lint.ViaBefore:
		return cmp.Or(r.System, "whoever bootstraps the cluster") + ", before Flux reconciles anything"
	default:
		text = string(r.How)
		if r.How == lint.ViaChart && r.System != "" {
			text += " " + r.System + " of"
		}
		if r.Object != nil {
			text += " " + r.Object.String()
		}
		if r.Release != nil {
			text += " in the chart of " + r.Release.String()
		}
		if place := lintPlace(&finding.Finding{File: r.File, Line: r.Line}); place != "" {
			text += " at " + place
		}
		if r.System != "" && r.How != lint.ViaChart {
			text += " (" + r.System + ")"
		}
	}
	if k.Known != "" {
		known := k.Known
		if strings.HasPrefix(known, "stage ") {
			known = "in " + known
		}
		text += "; first known " + known
	}
	if k.Confidence != "" && k.Confidence != lint.ByBuild && k.Confidence != lint.ByRun {
		text += fmt.Sprintf(" [confidence: %s]", k.Confidence)
	}
	return text
}

// patches writes each patch once: findings of one cause share theirs.
func patches(to io.Writer, report *lint.Report) error {
	w := bufio.NewWriter(to)
	written := map[string]bool{}
	for i := range report.Findings {
		patch := report.Findings[i].Suggestion
		if patch == "" || written[patch] {
			continue
		}
		written[patch] = true
		_, _ = w.WriteString(strings.TrimRight(patch, "\n") + "\n") // Flush has the error
	}
	return w.Flush()
}
