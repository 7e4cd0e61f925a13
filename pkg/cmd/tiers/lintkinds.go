// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package tiers

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/lint"
	"github.com/kubestandup/kubestandup/pkg/printers"
)

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
	tierCell := func(k lint.Kind) string {
		if len(namespaces) > 1 {
			return k.Tier.Key()
		}
		return k.Tier.Name
	}
	// Nobody reads the columns of a file, and lines of it that are as long as a
	// sentence.
	registrar := registrarCell
	if p.table.Width == 0 {
		registrar = registrarName
	}
	columns := []printers.Column[lint.Kind]{
		{Name: "CLUSTER", Wide: true, Value: func(k lint.Kind) string { return k.Entry }},
		{Name: "TIER", Value: tierCell},
		{Name: "KIND", Value: kindCell},
		{Name: "ORDER", Value: orderCell},
		{Name: "WHEN", State: true, Value: func(k lint.Kind) string { return string(k.When) }},
		{Name: "REGISTERED BY", Value: registrar},
	}
	table := p.table
	table.Wide = len(report.Entries) > 1
	if p.table.Width > 0 && fixedWidth(columns, rows, table.Wide)+minRegistrar > p.table.Width {
		p.kindBlocks(rows, tierCell)
		return
	}
	_ = printers.PrintTable(p.w, columns, rows, table)
	p.write("\n")
}

// minRegistrar is how many columns of text the last column of the audit takes
// at least, to be read as a column.
const minRegistrar = 40

// fixedWidth is how wide a table is without its last column.
func fixedWidth(columns []printers.Column[lint.Kind], rows []lint.Kind, wide bool) int {
	sum := 0
	for _, c := range columns[:len(columns)-1] {
		if c.Wide && !wide {
			continue
		}
		width := printers.TextWidth(c.Name)
		for _, row := range rows {
			width = max(width, printers.TextWidth(c.Value(row)))
		}
		sum += width + 3 // as the table pads
	}
	return sum
}

// kindBlocks prints the audit where a table of it does not fit.
func (p *lintPage) kindBlocks(rows []lint.Kind, tier func(lint.Kind) string) {
	for _, k := range rows {
		p.write(printers.Paragraph(0, "", 0, kindCell(k)+" in "+tier(k), p.table.Width))
		if k.Entry != "" {
			p.say("cluster", k.Entry)
		}
		p.say("when", string(k.When))
		p.say("order", orderCell(k))
		p.say("by", registrarCell(k))
		p.write("\n")
	}
}

// orderCell is empty of meaning where nobody is known to register the kind.
func orderCell(k lint.Kind) string {
	if k.RegisteredBy.How == lint.ViaNobody || k.RegisteredBy.How == lint.ViaPerhaps {
		return "-"
	}
	return string(k.Order)
}

// registrarName is registrarCell in short: what registers the kind, and where
// that is written.
func registrarName(k lint.Kind) string {
	r := k.RegisteredBy
	switch r.How {
	case lint.ViaNobody:
		return "nobody"
	case lint.ViaPerhaps:
		if r.Object != nil {
			return "perhaps " + r.Object.Kind + "/" + r.Object.Name
		}
		return "perhaps"
	case lint.ViaBefore:
		return cmp.Or(r.System, "whoever bootstraps the cluster") + ", before Flux"
	}
	text := string(r.How)
	if r.Object != nil {
		text += " " + r.Object.Kind + "/" + r.Object.Name
	}
	if place := lintPlace(&finding.Finding{File: r.File, Line: r.Line}); place != "" {
		text += " at " + place
	}
	return text
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
