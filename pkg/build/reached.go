// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

// reached are the tiers that the roots lead to. One that was met while a
// variable was not known yet may have got another name since.
func (f *follower) reached() []Followed {
	parents := make([][]flux.Ref, len(f.nodes))
	seen := make([]bool, len(f.nodes))
	var visit func(i int)
	visit = func(i int) {
		if seen[i] {
			return
		}
		seen[i] = true
		if f.nodes[i].Result == nil {
			return
		}
		for _, child := range f.nodes[i].Result.Children() {
			visit(f.at[child.Ref().Key()])
		}
	}
	for i := range f.roots {
		visit(i)
	}
	for i, n := range f.nodes {
		if n.Result == nil || !seen[i] {
			continue
		}
		for _, child := range n.Result.Children() {
			of := f.at[child.Ref().Key()]
			// Another cluster's tier of the same name is not meant.
			if of != i && (!n.Remote || f.nodes[of].Remote) && !slices.Contains(parents[of], n.Tier) {
				parents[of] = append(parents[of], n.Tier)
			}
		}
	}
	var all []Followed
	for i, n := range f.nodes {
		if seen[i] {
			n.Parents = parents[i]
			all = append(all, n.Followed)
		}
	}
	return all
}

// isRemoteTier is true when the tier applies to another cluster.
func isRemoteTier(tier *unstructured.Unstructured) bool {
	_, found, _ := unstructured.NestedFieldNoCopy(tier.Object, "spec", "kubeConfig")
	return found
}
