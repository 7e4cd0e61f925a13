// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"
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
	// Result is nil when Outside or Err is set. Of a tier with remote bases it may
	// be what the tree holds (Builder.UnknownBases), and Err says what is missing.
	Result *Result
	// Remote is true when what it applies goes to another cluster: its own
	// spec.kubeConfig says so, or that of every tier that contains it.
	Remote bool
	// Outside is the source that the tier builds from, when there is no tree of
	// it. What the tier applies is then not known.
	Outside *flux.Ref
	// Err is why the tier does not build.
	Err error
}

// Whole is true where all that the tier applies is known.
func (f *Followed) Whole() bool { return f.Result != nil && f.Err == nil }

// maxRounds bounds how often a tier is built again because an object that its
// variables come from turned up. Two tiers can feed each other for ever.
const maxRounds = 8

// Follow builds the roots, the tiers that they contain, and so on, as many at
// the same time as there are processors. A tier that cannot be built is in the
// answer with the reason, and does not stop the others; the error is for a done
// context and for a tree that cannot be had. The answer is the same each time.
//
// Variables are read from the ConfigMaps and Secrets that the tiers apply,
// whichever tier that is, and then from b.Variables. Values that the tree holds
// encrypted are replaced by a placeholder (Result.Unknown).
func (b Builder) Follow(ctx context.Context, trees Trees, roots ...*unstructured.Unstructured) ([]Followed, error) {
	f := &follower{builder: b, trees: trees, vars: newTreeVariables(b.Variables, b.Live, b.UnknownVariables), at: map[string]int{}}
	f.builder.Variables = f.vars
	for _, root := range roots {
		f.add(root, nil)
	}
	f.roots = len(f.nodes)
	for rounds := 0; rounds <= maxRounds; {
		wave := f.stale(ctx)
		if len(wave) == 0 {
			if again, err := f.refresh(ctx); err != nil {
				return nil, err
			} else if !again {
				break
			}
			rounds++
			continue
		}
		if err := f.build(ctx, wave); err != nil {
			return nil, err
		}
	}
	return f.reached(), nil
}

type follower struct {
	builder Builder
	trees   Trees
	vars    *treeVariables
	nodes   []*node
	// roots is how many of the nodes were given, the first ones.
	roots int
	// at finds a node by namespace/name. It is what guards against cycles: a
	// tier is built once, however often it is met.
	at map[string]int
}

type node struct {
	Followed
	// stale is true until the tier is built, and again when a variable of its
	// has changed.
	stale bool
	// waiting is true while a variable that the tier needs may yet turn up in
	// another one, final once it has not.
	waiting, final bool
	vars           *varReader
	// builds counts how often it was built: two tiers can contain each other,
	// each making another one of the other.
	builds int
}

// add enters a tier that is met for the first time, and its parent.
func (f *follower) add(tier *unstructured.Unstructured, parent *node) {
	ref := refOf(tier)
	remote := isRemoteTier(tier) || parent != nil && parent.Remote
	i, known := f.at[ref.Key()]
	if !known {
		i = len(f.nodes)
		f.at[ref.Key()] = i
		f.nodes = append(f.nodes, &node{stale: true, Followed: Followed{Tier: ref, Kustomization: tier, Remote: remote}})
	}
	n := f.nodes[i]
	given := i < f.roots && f.builder.Live
	switch {
	case parent == nil, parent.Remote && !n.Remote:
		// Another cluster has a tier of the same name.
		return
	case parent == n:
		// flux-system usually applies its own Kustomization, and its next
		// attempt is made with what that says.
		if !given {
			n.become(tier, remote)
		}
		return
	case n.Remote && !parent.Remote && !isRemoteTier(n.Kustomization):
		n.Parents = nil // those of the other cluster's
	}
	if !given && (len(n.Parents) == 0 || n.Parents[0].Key() == parent.Tier.Key()) {
		// A root is given as somebody knows it; its parent, when there is one,
		// decides what it is. It was built already, so it is built again.
		n.become(tier, remote)
	}
	if !slices.Contains(n.Parents, parent.Tier) {
		n.Parents = append(n.Parents, parent.Tier)
	}
}

// become makes the tier what was met last.
func (n *node) become(tier *unstructured.Unstructured, remote bool) {
	n.stale = n.stale || !sameSpec(n.Kustomization, tier)
	n.Kustomization, n.Remote = tier, remote
}

// stale are the tiers to be built next. What needs a variable that nobody has
// comes last, when everything else is built.
func (f *follower) stale(ctx context.Context) []*node {
	var wave, waiting []*node
	for _, n := range f.nodes {
		n.stale = n.stale && n.builds <= maxRounds
		switch {
		case n.stale && !n.waiting:
			wave = append(wave, n)
		case n.waiting:
			waiting = append(waiting, n)
		}
	}
	if len(wave) > 0 {
		return wave
	}
	for _, n := range waiting {
		if n.vars = newVarReader(f.builder.Variables); !n.vars.lacks(ctx, n.Kustomization) {
			wave = append(wave, n)
		}
	}
	if len(wave) == 0 {
		wave = waiting
	}
	for _, n := range wave {
		n.waiting, n.final = false, true
	}
	return wave
}

// build builds tiers side by side, and then enters their children in order.
func (f *follower) build(ctx context.Context, wave []*node) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, n := range wave {
		group.Go(func() error { return f.one(ctx, n) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, n := range wave {
		if n.Result == nil {
			continue
		}
		if !n.Remote {
			f.vars.add(n.Result.Objects)
		}
		if f.builder.Built != nil {
			f.builder.Built(n.Result)
		}
		for _, child := range n.Result.Children() {
			f.add(child.Unstructured, n)
		}
	}
	return nil
}

// one builds one tier, unless a variable that it needs is not there yet.
func (f *follower) one(ctx context.Context, n *node) error {
	if err := ctx.Err(); err != nil {
		return err
	}
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
	n.vars = newVarReader(f.builder.Variables)
	if !n.final && n.vars.lacks(ctx, n.Kustomization) {
		n.stale, n.waiting = true, true
		return ctx.Err()
	}
	if n.builds++; n.final {
		n.vars = newVarReader(f.builder.Variables) // one that tolerates what is absent
	}
	n.Result, n.Err = f.builder.build(ctx, n.Kustomization, tree, n.vars)
	if remote := (*RemoteBaseError)(nil); f.builder.UnknownBases && errors.As(n.Err, &remote) {
		local := f.builder
		local.withoutRemote = true
		// Where nothing can be built without them, nothing is known.
		n.Result, _ = local.build(ctx, n.Kustomization, tree, n.vars)
	}
	return ctx.Err()
}

// refresh marks the tiers that would be built otherwise now: a variable turned
// up or changed, or the source that they are built from.
func (f *follower) refresh(ctx context.Context) (again bool, err error) {
	for _, n := range f.nodes {
		switch {
		case n.Outside != nil:
			tree, err := f.trees(ctx, *n.Outside)
			if err != nil {
				return false, fmt.Errorf("kustomization %s: %w", n.Tier.Key(), err)
			}
			n.stale = tree != nil
		case n.vars != nil:
			n.stale = f.vars.changed(n.vars)
		}
		again = again || n.stale
	}
	return again, nil
}

func sameSpec(a, b *unstructured.Unstructured) bool {
	return fmt.Sprint(a.Object["spec"]) == fmt.Sprint(b.Object["spec"]) // maps print sorted
}
