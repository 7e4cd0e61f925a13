// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package tiers

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
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
		{Name: "REVISION", Value: func(n node) string { return printers.OrNone(shortRevision(n.AppliedRevision())) }},
		{Name: "SOURCE", Wide: true, Value: sourceCell},
		{Name: "GATE", Wide: true, Value: gateCell},
		{Name: "BELOW", Wide: true, Value: func(n node) string { return strconv.Itoa(n.Below) }},
		{Name: "AGE", Value: func(n node) string { return printers.Age(n.Created, now) }},
		{Name: "STATUS", State: true, Value: func(n node) string { return status(n, now) }},
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
	return n.Source.String() + "@" + printers.OrNone(shortRevision(n.SourceRevision()))
}

// status is the class of the tier and what a person needs to know beyond it. A
// tier that is red because of another one ends in its root cause, whose own row
// says what the matter is.
func status(n *tiers.Node, now time.Time) string {
	switch n.State {
	case tiers.Ready:
		return string(n.State)
	case tiers.Suspended:
		if n.ReadyStatus() == "True" {
			return n.Why + " (Ready when it was)"
		}
		return n.Why
	case tiers.Blocked:
		text := "blocked by " + blockers(n)
		if n.Root.Depth > 1 {
			text += "; root cause " + nameOf(n, n.Root.Object)
		} else if last := n.Root.Last(); explains(last.Reason) {
			text += ": " + last.Message
		}
		return text
	case tiers.Retrying:
		text := strings.TrimSpace("retrying "+when(n.RetryAt, now)) + ": " + oneLine(n.Why)
		if n.MayMissKind() {
			text += " (is it a deadlock? kubectl tiers why " + n.Ref.Name + ")"
		}
		return text
	default:
		return string(n.State) + ": " + oneLine(n.Why)
	}
}

// explains is true where no row of the table says why the blocker blocks.
func explains(r tiers.Reason) bool { return r != tiers.NotReady && r != tiers.Unhealthy }

func blockers(n *tiers.Node) string {
	names := make([]string, 0, len(n.Blockers))
	for _, b := range n.Blockers {
		names = append(names, nameOf(n, b.On))
	}
	return strings.Join(names, ", ")
}

// nameOf is as short as the reader's context allows.
func nameOf(n *tiers.Node, r flux.Ref) string {
	name := r.Name
	if r.Namespace != n.Ref.Namespace {
		name = r.Key()
	}
	if r.Kind != n.Ref.Kind {
		return r.Kind + "/" + name
	}
	return name
}

func when(at, now time.Time) string {
	switch left := at.Sub(now); {
	case at.IsZero():
		return ""
	case left <= 0:
		return "any moment"
	default:
		return fmt.Sprintf("at %s (in %s)", at.Local().Format(time.TimeOnly), left.Round(time.Second))
	}
}

// oneLine keeps the first line of a controller's message: what follows is the
// list of what it did apply.
func oneLine(s string) string {
	first, _, _ := strings.Cut(s, "\n")
	return strings.TrimSpace(first)
}

// shortRevision cuts a commit or a digest to what a person compares.
func shortRevision(rev string) string {
	const shown = 8
	for _, algorithm := range []string{"sha1:", "sha256:"} {
		if head, sum, ok := strings.Cut(rev, algorithm); ok && len(sum) > shown {
			return head + algorithm + sum[:shown]
		}
	}
	return rev
}
