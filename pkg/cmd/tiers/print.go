// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package tiers

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/kubestandup/kubestandup/pkg/cmd/util"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/printers"
	"github.com/kubestandup/kubestandup/pkg/tiers"
)

// print writes the rows in the format that was asked for.
func (o *Options) print(target *util.Target, g *tiers.Graph, rows []*tiers.Node) error {
	switch o.Output {
	case "json", "yaml":
		return printers.PrintObject(o.shell.Out, o.Output, &tiers.List{
			TypeMeta: printers.TypeMeta("TierList"),
			Server:   tiers.Server{URL: target.Identity.URL, UID: target.Identity.UID},
			Items:    tiers.Report(rows),
			Cycles:   g.Cycles,
		})
	case "name":
		for _, n := range rows {
			if _, err := fmt.Fprintln(o.shell.Out, printers.Name(n.Ref)); err != nil {
				return err
			}
		}
		return nil
	case "dot":
		return draw(rows).dot(o.shell.Out)
	case "mermaid":
		return draw(rows).mermaid(o.shell.Out)
	}
	if len(rows) == 0 {
		fmt.Fprintln(o.shell.ErrOut, "No tiers found"+in(o.Namespace)+".")
		return nil
	}
	table := o.shell.Table(o.Output == "wide", o.NoHeaders)
	if err := printers.PrintTable(o.shell.Out, columns(time.Now()), rows, table); err != nil {
		return err
	}
	for _, loop := range g.Cycles {
		if !slices.ContainsFunc(rows, func(n *tiers.Node) bool { return slices.Contains(loop, n.Ref) }) {
			continue
		}
		fmt.Fprintf(o.shell.ErrOut, "Warning: dependency cycle: %s; none of its tiers can become Ready, "+
			"and Flux stops reconciling on new revisions of their source\n", printers.OneLine(tiers.FormatCycle(loop)))
	}
	return nil
}

func in(namespace string) string {
	if namespace == "" {
		return ""
	}
	return " in namespace " + namespace
}

func columns(now time.Time) []printers.Column[*tiers.Node] {
	type node = *tiers.Node
	return []printers.Column[node]{
		{Name: "LEVEL", Value: func(n node) string { return strconv.Itoa(n.Level) }},
		{Name: "NAMESPACE", Value: func(n node) string { return n.Ref.Namespace }},
		{Name: "NAME", Value: displayName},
		{Name: "READY", State: true, Value: func(n node) string { return string(n.ReadyStatus()) }},
		{Name: "REVISION", Value: func(n node) string { return printers.OrNone(util.ShortRevision(n.AppliedRevision())) }},
		{Name: "SOURCE", Wide: true, Value: sourceCell},
		{Name: "GATE", Wide: true, Value: gateCell},
		{Name: "BELOW", Wide: true, Value: func(n node) string { return strconv.Itoa(n.Below) }},
		{Name: "AGE", Value: func(n node) string { return printers.Age(n.Created, now) }},
		{Name: "STATUS", State: true, Value: func(n node) string { return util.TierStatus(n, now) }},
	}
}

func displayName(n *tiers.Node) string {
	if n.Ref.Kind == flux.HelmReleaseKind {
		return "hr/" + n.Ref.Name
	}
	return n.Ref.Name
}

func gateCell(n *tiers.Node) string {
	if n.Gate.Hollow {
		return n.Gate.Kind + " (hollow)"
	}
	return n.Gate.Kind
}

func sourceCell(n *tiers.Node) string {
	if n.Source.Name == "" {
		return "<none>"
	}
	return n.Source.String() + "@" + printers.OrNone(util.ShortRevision(n.SourceRevision()))
}
