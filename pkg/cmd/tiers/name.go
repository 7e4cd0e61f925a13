// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package tiers

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kubestandup/kubestandup/pkg/cmd/util"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/tiers"
)

// parseName reads NAME, KIND/NAME, NAMESPACE/NAME or KIND/NAMESPACE/NAME.
func parseName(arg string) (kind, namespace, name string, err error) {
	parts := strings.Split(arg, "/")
	switch strings.ToLower(parts[0]) {
	case "ks", "kustomization", "kustomizations", "kustomization." + flux.KustomizeGroup:
		kind = flux.KustomizationKind
	case "hr", "helmrelease", "helmreleases", "helmrelease." + flux.HelmGroup:
		kind = flux.HelmReleaseKind
	}
	if kind != "" && len(parts) > 1 {
		parts = parts[1:]
	} else {
		kind = ""
	}
	switch {
	case len(parts) == 1 && parts[0] != "":
		return kind, "", parts[0], nil
	case len(parts) == 2 && parts[0] != "" && parts[1] != "":
		return kind, parts[0], parts[1], nil
	}
	return "", "", "", util.UsageError(fmt.Errorf("%q names no tier: write NAME, ks/NAME, hr/NAME, or with its namespace ks/NAMESPACE/NAME", arg))
}

// find looks a tier up. A name that several tiers have must be made plain;
// one that none has is answered with those that look like it.
func find(g *tiers.Graph, inNamespace, arg string) (*tiers.Node, error) {
	kind, namespace, name, err := parseName(arg)
	if err != nil {
		return nil, err
	}
	if namespace == "" {
		namespace = inNamespace
	}
	var exact, near []*tiers.Node
	for _, n := range g.Tiers() {
		switch {
		case n.Ref.Name == name && (namespace == "" || n.Ref.Namespace == namespace) && (kind == "" || n.Ref.Kind == kind):
			exact = append(exact, n)
		case alike(n.Ref.Name, name):
			near = append(near, n)
		}
	}
	slices.SortStableFunc(near, func(a, b *tiers.Node) int { return tiers.Distance(a.Ref.Name, name) - tiers.Distance(b.Ref.Name, name) })
	if kind == "" && len(exact) > 1 { // a Kustomization is meant where only one is
		if ks := onlyKustomization(exact); ks != nil {
			return ks, nil
		}
	}
	switch len(exact) {
	case 1:
		return exact[0], nil
	case 0:
		return nil, fmt.Errorf("tier %q does not exist%s (`kubectl tiers --releases` lists all that do)", arg, didYouMean(near))
	default:
		return nil, util.UsageError(fmt.Errorf("tier %q is ambiguous%s", arg, didYouMean(exact)))
	}
}

// alike is true for names of which one is part of the other, or that a slip of
// the fingers makes of each other. Of short names any two would be that.
func alike(a, b string) bool {
	const slips = 2
	return strings.Contains(a, b) || strings.Contains(b, a) ||
		min(len(a), len(b)) > 2*slips && tiers.Distance(a, b) <= slips
}

func onlyKustomization(nodes []*tiers.Node) *tiers.Node {
	var found *tiers.Node
	for _, n := range nodes {
		if n.Ref.Kind == flux.KustomizationKind {
			if found != nil {
				return nil
			}
			found = n
		}
	}
	return found
}

func didYouMean(nodes []*tiers.Node) string {
	const most = 3
	var names []string
	for _, n := range nodes[:min(len(nodes), most)] {
		names = append(names, shortKind(n.Ref)+"/"+n.Ref.Key())
	}
	if len(names) == 0 {
		return ""
	}
	return ": did you mean " + strings.Join(names, " or ") + "?"
}

func shortKind(r flux.Ref) string {
	if r.Kind == flux.HelmReleaseKind {
		return "hr"
	}
	return "ks"
}
