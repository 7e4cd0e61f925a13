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
	f.release(parents)
	var all []Followed
	for i, n := range f.nodes {
		if seen[i] {
			n.Parents = parents[i]
			all = append(all, n.Followed)
		}
	}
	return all
}

// release takes from a root the parents that are there because of it alone: it
// was on the cluster before them, or none would ever be. Two roots that contain
// each other keep the second one's.
func (f *follower) release(parents [][]flux.Ref) {
	if f.builder.Live {
		return // what is on a cluster came by whichever way it came
	}
	var standing []int
	for i := range f.roots {
		if len(parents[i]) == 0 {
			standing = append(standing, i)
		}
	}
	for i := range f.roots {
		if len(parents[i]) == 0 {
			continue
		}
		brought := f.leadsTo(standing, i)
		if !slices.ContainsFunc(parents[i], func(p flux.Ref) bool { return brought[f.at[p.Key()]] }) {
			parents[i] = nil
			standing = append(standing, i)
		}
	}
}

// leadsTo are the nodes that some lead to by ways that leave one out.
func (f *follower) leadsTo(from []int, without int) map[int]bool {
	seen := map[int]bool{}
	for left := slices.Clone(from); len(left) > 0; left = left[1:] {
		i := left[0]
		if i == without || seen[i] {
			continue
		}
		seen[i] = true
		if f.nodes[i].Result == nil {
			continue
		}
		for _, child := range f.nodes[i].Result.Children() {
			left = append(left, f.at[child.Ref().Key()])
		}
	}
	return seen
}

// isRemoteTier is true when the tier applies to another cluster.
func isRemoteTier(tier *unstructured.Unstructured) bool {
	_, found, _ := unstructured.NestedFieldNoCopy(tier.Object, "spec", "kubeConfig")
	return found
}
