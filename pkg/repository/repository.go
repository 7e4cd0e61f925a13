// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// Repository is a working tree, and the clusters whose state it holds.
type Repository struct {
	// Dir is the root of the working tree, absolute: the top of the git
	// checkout, where there is one.
	Dir string
	// Clusters are one for each entry point, by Entry.
	Clusters []*Cluster
	// Narrowed is true where there may be clusters that were not asked for.
	Narrowed bool
	// Loose are the Kustomizations of the tree that no cluster holds: nothing
	// is known of them but where they are written.
	Loose []Loose

	survey *survey
	// mu guards trees and origins, which clusters share. origins say of a tree
	// that is arranged what its files are in the working tree.
	mu      sync.Mutex
	trees   map[treeKey]*build.Tree
	origins map[treeKey]map[string]string
	// remotes are the URLs that the checkout itself is known by, normalised.
	remotes map[string]bool
	options Options
	// helmfiles are what those of the tree install, nil until somebody asks.
	helmfiles *[]Installed
	// stands are the objects that its scripts create.
	stands []flux.Ref
	// injected is true where something adds variables to Kustomizations.
	injected bool
}

// Loose is a Kustomization that is in no cluster.
type Loose struct {
	Tier flux.Ref
	build.Position
}

// Cluster is the state of one cluster.
type Cluster struct {
	// Entry is the file or folder that Flux begins with, relative to the root
	// with slashes: clusters/prod.
	Entry string
	// Roots are the Kustomizations that nothing in the tree applies.
	Roots []flux.Ref
	// Source is the source that the roots are built from: the working tree.
	Source flux.Ref
	// Tiers are the Kustomizations, in the order in which they were met: a tier
	// after the first tier that contains it.
	Tiers []build.Followed
	// Outside are the sources that are not this repository, sorted.
	Outside []flux.Ref
	// Bootstrap are the charts that are installed before Flux is there.
	Bootstrap []Installed
	// Standing are the Namespaces, ConfigMaps and Secrets that scripts of the
	// repository create before Flux is there.
	Standing []flux.Ref
	// LooseSubstitution is true when a variable that is not set is empty: the
	// options say so, or the version or a feature gate of the cluster's
	// kustomize-controller, as the repository writes it.
	LooseSubstitution bool
	// Base is the folder that the artifact of Source is made from, where that is
	// not the root: nothing but a folder below which the roots' path exists, or
	// that the cluster's Kustomizations are in, says so. Empty otherwise.
	Base string

	repository *Repository
	entry      *entry
	sources    *sources
	// at finds a tier by namespace/name.
	at map[string]int
}

// Options are how a repository is read.
type Options struct {
	// Entries are the files or folders, relative to the root of the working
	// tree, that clusters begin with. None is to find them.
	Entries []string
	// LooseSubstitution and AllowRemoteBases are those of build.Builder.
	LooseSubstitution, AllowRemoteBases bool
	// Builder is the controller that the repository is built for, where it does
	// not run with its default flags.
	Builder build.Builder
}

// Open reads the repository that path is in, and builds every tier of every
// cluster that it holds. path may be the root of the working tree or a folder
// below it; then only the clusters that begin there, or have a tier there, are
// built. The root is the top of the git checkout, or else path itself.
//
// It fails where no entry point is found, and where an entry of the options
// holds none. A tier that does not build is in the answer, with the reason. The
// caller closes the Repository.
func Open(ctx context.Context, path string, options Options) (r *Repository, err error) {
	root, below, err := workingTree(path)
	if err != nil {
		return nil, err
	}
	r = &Repository{Dir: root, Narrowed: below != "." || len(options.Entries) > 0, trees: map[treeKey]*build.Tree{}, origins: map[treeKey]map[string]string{}, options: options, remotes: remotes(root)}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.Close())
			r = nil
		}
	}()
	tree, err := r.tree(ctx, treeKey{})
	if err != nil {
		return r, err
	}
	if r.survey, err = look(ctx, tree); err != nil {
		return r, err
	}
	if r.injected, err = r.injects(ctx); err != nil {
		return r, err
	}
	if r.stands, err = r.standing(ctx); err != nil {
		return r, err
	}
	if err := r.open(ctx, below); err != nil {
		return r, err
	}
	r.findLoose()
	return r, nil
}

func (r *Repository) open(ctx context.Context, below string) error {
	entries, all, err := r.entries(ctx, below)
	if err != nil {
		return err
	}
	if err := r.clusters(ctx, entries); err != nil || !all || r.narrow(below) {
		return err
	}
	// No entry point leads to this folder, but it may be one.
	if entries, err = r.folderEntry(ctx, below); err != nil {
		return err
	}
	if len(entries) == 0 {
		return fmt.Errorf("no cluster begins in %s, and none has a tier there: %w; %s", below, ErrNoEntry, r.begins())
	}
	r.Clusters = nil
	return r.clusters(ctx, entries)
}

func (r *Repository) clusters(ctx context.Context, entries []*entry) error {
	for _, e := range entries {
		c, err := r.cluster(ctx, e)
		if err != nil {
			return fmt.Errorf("cluster %s: %w", e.name, err)
		}
		r.Clusters = append(r.Clusters, c)
	}
	return nil
}

// workingTree is the root of the working tree that path is in, and where in it
// path is: "." for the root.
func workingTree(path string) (root, below string, err error) {
	dir, err := filepath.Abs(path)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return "", "", fmt.Errorf("repository %s cannot be opened: %w", path, err)
	}
	if info, err := os.Stat(dir); err != nil {
		return "", "", fmt.Errorf("repository %s cannot be opened: %w", path, err)
	} else if !info.IsDir() {
		return "", "", fmt.Errorf("repository %s is not a directory; name the folder that the repository is checked out in", path)
	}
	root = dir
	for up := dir; ; up = filepath.Dir(up) {
		if _, err := os.Lstat(filepath.Join(up, ".git")); err == nil {
			root = up
			break
		}
		if up == filepath.Dir(up) {
			break
		}
	}
	below, err = filepath.Rel(root, dir)
	if err != nil {
		return "", "", fmt.Errorf("repository %s: %w", path, err)
	}
	return root, filepath.ToSlash(below), nil
}

// Close removes what was copied. Nothing of the Repository is located after
// that.
func (r *Repository) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []error
	for _, tree := range r.trees {
		all = append(all, tree.Close())
	}
	r.trees = nil
	return errors.Join(all...)
}

// treeKey names a copy of the working tree: of one of its folders, without what
// a source ignores, and, for an artifact that is made of that, how.
type treeKey struct{ base, ignore, artifact string }

func (r *Repository) tree(ctx context.Context, key treeKey) (*build.Tree, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if tree, ok := r.trees[key]; ok {
		return tree, nil
	}
	tree, err := build.OpenDir(ctx, filepath.Join(r.Dir, filepath.FromSlash(key.base)), key.ignore)
	if err != nil {
		return nil, err
	}
	r.trees[key] = tree
	return tree, nil
}

func (r *Repository) builder() build.Builder {
	b := r.options.Builder
	b.LooseSubstitution = b.LooseSubstitution || r.options.LooseSubstitution
	b.AllowRemoteBases = b.AllowRemoteBases || r.options.AllowRemoteBases
	b.UnknownVariables, b.UnknownBases, b.Injected = true, true, r.injected
	return b
}
