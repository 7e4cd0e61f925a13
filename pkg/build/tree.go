// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/sourceignore"
	"github.com/fluxcd/pkg/sourceignore/gitignore"
)

// Tree is what a source holds, as its artifact would: a private copy that
// nothing changes any more, so that any number of tiers are built from it.
type Tree struct {
	// root is absolute and free of symbolic links.
	root    string
	library library
}

// tempPrefix begins the name of every directory and file that this package
// makes, so that what a killed process left behind can be told.
const tempPrefix = "kubestandup-"

// Close removes the copy. A Tree that a Fetcher returned is closed by it.
func (t *Tree) Close() error {
	if err := os.RemoveAll(t.root); err != nil {
		return fmt.Errorf("temporary directory %s cannot be removed: %w", t.root, err)
	}
	return nil
}

// newTree makes an empty tree, readable for this user alone: what a source
// holds may be secret.
func newTree() (*Tree, error) {
	root, err := os.MkdirTemp("", tempPrefix+"tree-")
	if err != nil {
		return nil, fmt.Errorf("temporary directory: %w", err)
	}
	// On macOS the directory for temporary files is itself behind a link,
	// which kustomize resolves and then finds outside of the root.
	resolved, err := filepath.EvalSymlinks(root)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("temporary directory: %w", err), os.RemoveAll(root))
	}
	return &Tree{root: resolved}, nil
}

// relative rewrites a text of kustomize so that it names files as they are in
// the tree. Where the copy lies is of no use to anybody.
func (t *Tree) relative(text string) string {
	text = strings.ReplaceAll(text, t.root+string(filepath.Separator), "")
	return strings.ReplaceAll(text, t.root, ".")
}

// readable is the error with the names of files as they are in the tree.
func (t *Tree) readable(err error) error {
	if text := t.relative(err.Error()); text != err.Error() {
		return errors.New(text)
	}
	return err
}

// OpenDir copies the working tree at dir as source-controller would archive it
// (fluxcd/pkg/artifact storage/archive.go): regular files only, so no symbolic
// links, without what .sourceignore files exclude and, where there is no such
// file, without Flux's default exclusions. In a git checkout, what its
// .gitignore files exclude is left out too, unless git has it in its index: it is
// never committed. ignore is the source's spec.ignore, empty for none.
//
// It fails when dir is not a directory, or holds more than an artifact may.
// The caller closes the Tree.
func OpenDir(ctx context.Context, dir, ignore string) (*Tree, error) {
	return openDir(ctx, dir, ignore, defaultLimits())
}

func openDir(ctx context.Context, dir, ignore string, limit limits) (tree *Tree, err error) {
	root, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("working tree %s: %w", dir, err)
	}
	if root, err = filepath.EvalSymlinks(root); err != nil {
		return nil, fmt.Errorf("working tree %s cannot be opened: %w", dir, err)
	}
	if info, err := os.Stat(root); err != nil {
		return nil, fmt.Errorf("working tree %s cannot be opened: %w", dir, err)
	} else if !info.IsDir() {
		return nil, fmt.Errorf("working tree %s is not a directory", dir)
	}
	excluded, err := exclusions(root, ignore)
	if err != nil {
		return nil, fmt.Errorf("working tree %s: %w", dir, err)
	}
	if tree, err = newTree(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("working tree %s: %w", dir, err), tree.Close())
			tree = nil
		}
	}()
	c := copier{ctx: ctx, from: root, to: tree.root, excluded: excluded, limit: limit, left: limit}
	return tree, filepath.WalkDir(root, c.visit)
}

// exclusions is the filter of source-controller for the directory, with the
// checkout's .gitignore files in addition.
func exclusions(root, ignore string) (func(path string, dir bool) bool, error) {
	if err := onlyRegular(root); err != nil {
		return nil, err
	}
	domain := strings.Split(root, string(filepath.Separator))
	patterns, err := sourceignore.LoadIgnorePatterns(root, domain)
	if err != nil {
		return nil, fmt.Errorf(".sourceignore: %w", err)
	}
	if ignore != "" {
		patterns = append(patterns, sourceignore.ReadPatterns(strings.NewReader(ignore), domain)...)
	}
	// With patterns of one's own the defaults do not apply, except for git's
	// files (storage/archive.go SourceIgnoreFilter).
	source := sourceignore.NewDefaultMatcher(nil, domain)
	if len(patterns) > 0 {
		source = sourceignore.NewMatcher(append(sourceignore.VCSPatterns(domain), patterns...))
	}
	git, known := sourceignore.NewMatcher(nil), map[string]bool{}
	if _, err := os.Lstat(filepath.Join(root, ".git")); err == nil {
		patterns, err := gitIgnores(root, domain)
		if err != nil {
			return nil, fmt.Errorf(".gitignore: %w", err)
		}
		git, known = sourceignore.NewMatcher(patterns), tracked(root)
	}
	return func(path string, dir bool) bool {
		segments := strings.Split(path, string(filepath.Separator))
		return source.Match(segments, dir) || !known[path] && git.Match(segments, dir)
	}, nil
}

// onlyRegular refuses files of exclusions that are no files: a pipe, or a link
// to a device, may never end.
func onlyRegular(root string) error {
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := entry.Name(); name != ".sourceignore" && name != ".gitignore" || entry.Type().IsRegular() {
			return nil
		}
		if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
			relative, _ := filepath.Rel(root, path)
			return fmt.Errorf("%s is no regular file", filepath.ToSlash(relative))
		}
		return nil // one that leads nowhere is not read either
	})
}

// gitIgnores reads the .gitignore files of the directory and below.
func gitIgnores(dir string, domain []string) ([]gitignore.Pattern, error) {
	patterns, err := sourceignore.ReadIgnoreFile(filepath.Join(dir, ".gitignore"), slices.Clone(domain))
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		if !entry.IsDir() || entry.Name() == ".git" {
			continue
		}
		below, err := gitIgnores(filepath.Join(dir, entry.Name()), append(slices.Clone(domain), entry.Name()))
		if err != nil {
			return nil, err
		}
		patterns = append(patterns, below...)
	}
	return patterns, nil
}

// copier copies what it visits, and counts down what it may.
type copier struct {
	ctx      context.Context
	from, to string
	excluded func(path string, dir bool) bool
	limit    limits
	left     limits
}

func (c *copier) visit(path string, entry fs.DirEntry, err error) error {
	if err == nil {
		err = c.ctx.Err()
	}
	if err != nil {
		return err
	}
	if path == c.from {
		return nil
	}
	if entry.Name() == ".git" {
		if entry.IsDir() {
			return filepath.SkipDir
		}
		return nil // of a worktree or a submodule
	}
	if !entry.IsDir() && !entry.Type().IsRegular() || c.excluded(path, entry.IsDir()) {
		return nil
	}
	relative, err := filepath.Rel(c.from, path)
	if err != nil {
		return err
	}
	if c.left.files--; c.left.files < 0 {
		return c.limit.tooManyFiles()
	}
	target := filepath.Join(c.to, relative)
	if entry.IsDir() {
		return os.MkdirAll(target, 0o700)
	}
	return c.file(path, target)
}

func (c *copier) file(path, target string) (err error) {
	// A directory that is excluded may hold a file that a later pattern
	// includes again.
	if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
		return err
	}
	in, err := os.Open(path) // the caller's own working tree
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	out, err := os.OpenFile(target, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) // below our own root
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	n, err := io.Copy(out, io.LimitReader(in, c.left.unpacked+1))
	if c.left.unpacked -= n; c.left.unpacked < 0 {
		return c.limit.tooLarge()
	}
	return err
}
