// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

// Trees gives the tree of a source, or nil when there is none to build from.
type Trees func(ctx context.Context, source flux.Ref) (*Tree, error)

// Only knows one tree, that of one source: a working tree and the source that
// serves it. Sources compare by kind, namespace and name, as Flux does.
func Only(source flux.Ref, tree *Tree) Trees {
	source.APIVersion = ""
	return func(_ context.Context, of flux.Ref) (*Tree, error) {
		if of.APIVersion = ""; of == source {
			return tree, nil
		}
		return nil, nil // the contract of Trees
	}
}

// Followed is one tier that was reached from a root.
type Followed struct {
	Tier flux.Ref
	// Parents are the tiers that contain it, in the order in which they were
	// built. More than one is a mistake: they fight over the object. A root
	// that nothing contains has none.
	Parents []flux.Ref
	// Kustomization is the tier itself, as its first parent would apply it; of a
	// live cluster as it is there.
	Kustomization *unstructured.Unstructured
	// Result is nil when Outside or Err is set.
	Result *Result
	// Outside is the source that the tier builds from, when there is no tree of
	// it. What the tier applies is then not known.
	Outside *flux.Ref
	// Err is why the tier does not build.
	Err error
}

// maxRounds bounds how often a tier is built again because an object that its
// variables come from turned up. Two tiers can feed each other for ever.
const maxRounds = 8

// Follow builds the roots, the tiers that they contain, and so on. A tier that
// cannot be built is in the answer with the reason, and does not stop the
// others; the error is for a done context and for a tree that cannot be had.
//
// Variables are read from the ConfigMaps and Secrets that the tiers apply,
// whichever tier that is, and then from b.Variables. Values that the tree holds
// encrypted are replaced by a placeholder (Result.Unknown).
func (b Builder) Follow(ctx context.Context, trees Trees, roots ...*unstructured.Unstructured) ([]Followed, error) {
	f := &follower{builder: b, trees: trees, vars: newTreeVariables(b.Variables, b.Live), at: map[string]int{}}
	f.builder.Variables = f.vars
	for _, root := range roots {
		f.add(root, nil)
	}
	f.roots = len(f.nodes)
	for round := 0; ; round++ {
		for next := 0; next < len(f.nodes); next++ {
			if !f.nodes[next].stale {
				continue
			}
			if err := f.build(ctx, next); err != nil {
				return nil, err
			}
		}
		if round == maxRounds || !f.refresh() {
			break
		}
	}
	all := make([]Followed, len(f.nodes))
	for i, n := range f.nodes {
		all[i] = n.Followed
	}
	return all, nil
}

type follower struct {
	builder Builder
	trees   Trees
	vars    *treeVariables
	nodes   []node
	// roots is how many of the nodes were given, the first ones.
	roots int
	// at finds a node by namespace/name. It is what guards against cycles: a
	// tier is built once, however often it is met.
	at map[string]int
}

type node struct {
	Followed
	// stale is true until the tier is built, and again when a variable that it
	// lacked was found.
	stale   bool
	missing map[varKey]bool
}

// add enters a tier that is met for the first time, and its parent.
func (f *follower) add(tier *unstructured.Unstructured, parent *flux.Ref) {
	ref := refOf(tier)
	i, known := f.at[ref.Key()]
	if !known {
		i = len(f.nodes)
		f.at[ref.Key()] = i
		f.nodes = append(f.nodes, node{stale: true, Followed: Followed{Tier: ref, Kustomization: tier}})
	}
	if parent == nil || *parent == ref || slices.Contains(f.nodes[i].Parents, *parent) {
		return // flux-system usually applies its own Kustomization
	}
	n := &f.nodes[i]
	root := i < f.roots && f.builder.Live
	if !root && (len(n.Parents) == 0 || n.Parents[0] == *parent) {
		// A root is given as somebody knows it; its parent, when there is one,
		// decides what it is. It was built already, so it is built again.
		n.stale = n.stale || !sameSpec(n.Kustomization, tier)
		n.Kustomization = tier
	}
	n.Parents = append(n.Parents, *parent)
}

// build builds one tier and enters its children.
func (f *follower) build(ctx context.Context, i int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	n := &f.nodes[i]
	n.stale, n.Result, n.Err, n.Outside = false, nil, nil, nil
	source := SourceOf(n.Kustomization)
	tree, err := f.trees(ctx, source)
	if err != nil {
		return fmt.Errorf("kustomization %s: %w", n.Tier.Key(), err)
	}
	if tree == nil {
		n.Outside = &source
		return nil
	}
	n.Result, n.missing, n.Err = f.builder.build(ctx, n.Kustomization, tree)
	if n.Err != nil {
		return ctx.Err()
	}
	f.vars.add(n.Result.Objects)
	parent := n.Tier
	for _, child := range n.Result.Children() {
		f.add(child.Unstructured, &parent)
	}
	return nil
}

// refresh marks the tiers that lacked a variable which is there now.
func (f *follower) refresh() bool {
	again := false
	for i := range f.nodes {
		n := &f.nodes[i]
		for key := range n.missing {
			n.stale = n.stale || f.vars.has(key)
		}
		again = again || n.stale
	}
	return again
}

func sameSpec(a, b *unstructured.Unstructured) bool {
	return fmt.Sprint(a.Object["spec"]) == fmt.Sprint(b.Object["spec"]) // maps print sorted
}
