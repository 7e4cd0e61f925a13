// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package tiers

import (
	"strings"
	"testing"

	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/tiers"
)

func drawn() drawing {
	ks := func(name string, dependsOn ...string) flux.Tier {
		t := flux.Tier{Ref: flux.Ref{Kind: flux.KustomizationKind, Namespace: "ns", Name: name}}
		for _, d := range dependsOn {
			t.DependsOn = append(t.DependsOn, flux.Dependency{Ref: flux.Ref{Kind: flux.KustomizationKind, Namespace: "ns", Name: d}})
		}
		return t
	}
	root, child := ks("root"), ks("child", "absent")
	child.Owner, child.Suspended = root.Ref, true
	release := flux.Tier{Ref: flux.Ref{Kind: flux.HelmReleaseKind, Namespace: "ns", Name: `we"b<`}}
	g := tiers.Build(&flux.Snapshot{Tiers: []flux.Tier{root, child, release}}, tiers.Options{})
	return draw(g.Tiers())
}

func TestDrawings(t *testing.T) {
	var dot, mermaid strings.Builder
	if err := drawn().dot(&dot); err != nil {
		t.Fatal(err)
	}
	if err := drawn().mermaid(&mermaid); err != nil {
		t.Fatal(err)
	}
	for text, parts := range map[string][]string{
		dot.String(): {
			"digraph tiers {\n", `t0 [label="ns/root\nprogressing"`, `t1 [label="hr/ns/we\"b<\nprogressing"`, `[label="ns/child\nsuspended", fillcolor="#e0e0e0"]`,
			`[label="ns/absent", fillcolor="#ffffff"]`, "t3 -> t2;", "t0 -> t2 [style=dotted];",
		},
		mermaid.String(): {"flowchart LR\n", `t1["hr/ns/we#quot;b#lt;<br>`, `["ns/child<br>suspended"]`, "t3 --> t2\n", "t0 -.-> t2\n"},
	} {
		for _, part := range parts {
			if !strings.Contains(text, part) {
				t.Errorf("%s\nlacks %s", text, part)
			}
		}
	}
}
