// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package tiers

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/printers"
	"github.com/kubestandup/kubestandup/pkg/tiers"
)

// drawing is the graph as a picture: an arrow points from what comes first to
// what needs it, and a dotted one from a tier to the tiers that it contains.
type drawing struct {
	nodes []drawnNode
	edges []drawnEdge
}

type drawnNode struct {
	id, label string
	state     tiers.State
}

type drawnEdge struct {
	from, to string
	contains bool
}

// draw makes the picture of the rows. What they depend on and is not among them
// is drawn too, without a state: it is hidden, or does not exist.
func draw(rows []*tiers.Node) drawing {
	var d drawing
	ids := map[flux.Ref]string{}
	node := func(r flux.Ref, state tiers.State) string {
		r.APIVersion = ""
		id, known := ids[r]
		if !known {
			id = "t" + strconv.Itoa(len(ids))
			ids[r] = id
			d.nodes = append(d.nodes, drawnNode{id, printers.OneLine(tierArg(r)), state})
		}
		return id
	}
	for _, n := range rows {
		node(n.Ref, n.State)
	}
	for _, n := range rows {
		to := node(n.Ref, n.State)
		for _, dep := range n.DependsOn {
			d.edges = append(d.edges, drawnEdge{from: node(dep.Ref, ""), to: to})
		}
		if p := n.ContainedBy; p != nil && slices.Contains(rows, p) {
			d.edges = append(d.edges, drawnEdge{from: node(p.Ref, p.State), to: to, contains: true})
		}
	}
	return d
}

// tierArg names a tier as `kubectl tiers NAME` takes it.
func tierArg(r flux.Ref) string {
	if r.Kind == flux.HelmReleaseKind {
		return "hr/" + r.Key()
	}
	return r.Key()
}

// stateColor is the fill of a node.
func stateColor(s tiers.State) string {
	switch s {
	case tiers.Ready:
		return "#c8e6c9"
	case tiers.Progressing:
		return "#bbdefb"
	case tiers.Retrying, tiers.Blocked:
		return "#ffe0b2"
	case tiers.Wedged:
		return "#ffcdd2"
	case tiers.Suspended:
		return "#e0e0e0"
	}
	return "#ffffff"
}

// dot writes the picture for Graphviz.
func (d drawing) dot(w io.Writer) error {
	var b strings.Builder
	b.WriteString("digraph tiers {\n  rankdir=LR;\n  node [shape=box, style=filled];\n")
	for _, n := range d.nodes {
		fmt.Fprintf(&b, "  %s [label=%s, fillcolor=%q];\n", n.id, dotText(n.label, string(n.state)), stateColor(n.state))
	}
	for _, e := range d.edges {
		style := ""
		if e.contains {
			style = " [style=dotted]"
		}
		fmt.Fprintf(&b, "  %s -> %s%s;\n", e.from, e.to, style)
	}
	b.WriteString("}\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func dotText(lines ...string) string {
	text := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(strings.TrimSpace(strings.Join(lines, "\n")))
	return `"` + strings.ReplaceAll(text, "\n", `\n`) + `"`
}

// mermaid writes the picture as GitHub and GitLab draw it in Markdown.
func (d drawing) mermaid(w io.Writer) error {
	var b strings.Builder
	b.WriteString("flowchart LR\n")
	for _, n := range d.nodes {
		text := strings.NewReplacer("#", "#35;", `"`, "#quot;", "<", "#lt;", ">", "#gt;").Replace(n.label)
		if n.state != "" {
			text += "<br>" + string(n.state)
		}
		fmt.Fprintf(&b, "  %s[\"%s\"]\n  style %s fill:%s\n", n.id, text, n.id, stateColor(n.state))
	}
	for _, e := range d.edges {
		arrow := "-->"
		if e.contains {
			arrow = "-.->"
		}
		fmt.Fprintf(&b, "  %s %s %s\n", e.from, arrow, e.to)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
