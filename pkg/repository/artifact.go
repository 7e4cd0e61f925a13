// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

const (
	externalArtifact = "ExternalArtifact"
	// generatorGroup is the API group of source-watcher.
	generatorGroup = "source.extensions.fluxcd.io"
)

// generated says how source-watcher makes an artifact: by copying from sources.
type generated struct {
	// of are the sources by their aliases.
	of map[string]flux.Ref
	// copies are the operations, in order.
	copies []any
}

// generatedBy finds the artifact in an ArtifactGenerator.
func generatedBy(generator *unstructured.Unstructured, artifact flux.Ref) *generated {
	if namespace := generator.GetNamespace(); namespace != "" && namespace != artifact.Namespace {
		return nil
	}
	artifacts, _, _ := unstructured.NestedSlice(generator.Object, "spec", "artifacts")
	for _, each := range artifacts {
		fields, _ := each.(map[string]any)
		if fields["name"] != artifact.Name {
			continue
		}
		g := &generated{of: map[string]flux.Ref{}}
		g.copies, _ = fields["copy"].([]any)
		sources, _, _ := unstructured.NestedSlice(generator.Object, "spec", "sources")
		for _, each := range sources {
			fields, _ := each.(map[string]any)
			text := func(name string) string { value, _ := fields[name].(string); return value }
			of := flux.Ref{Kind: text("kind"), Namespace: text("namespace"), Name: text("name")}
			if of.Namespace == "" {
				of.Namespace = artifact.Namespace
			}
			g.of[text("alias")] = of
		}
		return g
	}
	return nil
}

// source is the one source that all is copied from. False where that is more
// than one, or where the copying is more than copying: merges, archives.
func (g *generated) source() (flux.Ref, bool) {
	var only flux.Ref
	for _, each := range g.copies {
		fields, _ := each.(map[string]any)
		from, _ := fields["from"].(string)
		alias, _, _ := strings.Cut(strings.TrimPrefix(from, "@"), "/")
		of, known := g.of[alias]
		strategy, _ := fields["strategy"].(string)
		if !known || only.Kind != "" && only != of || strategy != "" && strategy != "Overwrite" || fields["exclude"] != nil || of.Kind == externalArtifact {
			return flux.Ref{}, false
		}
		only = of
	}
	return only, only.Kind != ""
}

// files are the artifact's files, by name, as they are in the source
// (source-watcher internal/builder/builder.go applyCopyOperation and
// calculateGlobDestination).
func (g *generated) files(tree *build.Tree) (map[string]string, error) {
	root, err := tree.Path(".")
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for _, each := range g.copies {
		fields, _ := each.(map[string]any)
		text := func(name string) string { value, _ := fields[name].(string); return value }
		_, pattern, _ := strings.Cut(text("from"), "/")
		to, inArtifact := strings.CutPrefix(text("to"), "@artifact/")
		if !inArtifact {
			return nil, fmt.Errorf("copy to %q: it is no place in the artifact", text("to"))
		}
		literal := !strings.ContainsAny(pattern, "*?[]")
		matches := []string{path.Clean(pattern)}
		if !literal {
			if matches, err = fs.Glob(os.DirFS(root), pattern); err != nil {
				return nil, fmt.Errorf("copy from %q: %w", text("from"), err)
			}
		}
		for _, match := range matches {
			name := path.Join(to, match)
			prefix, all := strings.CutSuffix(pattern, "/**")
			if inner, ok := strings.CutPrefix(match, prefix+"/"); ok && all {
				name = path.Join(to, inner)
			}
			if literal {
				name = literalName(root, match, to)
			}
			if err := walk(root, match, name, files); err != nil {
				return nil, fmt.Errorf("copy from %q: %w", text("from"), err)
			}
		}
	}
	return files, nil
}

// literalName is what cp makes of a file or a folder.
func literalName(root, match, to string) string {
	info, err := os.Stat(filepath.Join(root, match)) // a copy without links
	if err == nil && !info.IsDir() && to != "" && !strings.HasSuffix(to, "/") {
		return to
	}
	return path.Join(to, path.Base(match))
}

// walk enters a file, or the files below a folder.
func walk(root, from, to string, files map[string]string) error {
	if !filepath.IsLocal(from) || !filepath.IsLocal(to) {
		return fmt.Errorf("%s is outside of the source, or %s of the artifact", from, to)
	}
	return filepath.WalkDir(filepath.Join(root, from), func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		inner, err := filepath.Rel(filepath.Join(root, from), file)
		if err == nil {
			files[path.Join(to, filepath.ToSlash(inner))] = path.Join(from, filepath.ToSlash(inner))
		}
		return err
	})
}

// artifactKey is the tree that an ExternalArtifact is, false where it is not
// made of this repository alone.
func (s *sources) artifactKey(artifact flux.Ref) (treeKey, *generated, bool) {
	generators := s.generators
	if len(generators) == 0 {
		var others []*unstructured.Unstructured
		for _, m := range s.repository.survey.generators {
			if inside(s.entry.name, m.File) {
				generators = append(generators, m.object)
			} else {
				others = append(others, m.object)
			}
		}
		generators = append(generators, others...)
	}
	for _, generator := range generators {
		g := generatedBy(generator, artifact)
		if g == nil {
			continue
		}
		of, ok := g.source()
		if of = key(of); !ok || !s.working[of] && !s.same(of) {
			return treeKey{}, nil, false
		}
		at := s.treeKey(of)
		at.artifact = fmt.Sprint(g.copies)
		return at, g, true
	}
	return treeKey{}, nil, false
}

// artifact is the tree of an ExternalArtifact, nil where it is another
// repository's.
func (s *sources) artifact(ctx context.Context, artifact flux.Ref) (*build.Tree, error) {
	at, g, ok := s.artifactKey(artifact)
	if !ok {
		return nil, nil // the contract of build.Trees
	}
	s.opened[artifact] = at
	return s.repository.arranged(ctx, at, g)
}

// arranged makes the tree once.
func (r *Repository) arranged(ctx context.Context, at treeKey, g *generated) (*build.Tree, error) {
	whole, err := r.tree(ctx, treeKey{base: at.base, ignore: at.ignore})
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if tree, known := r.trees[at]; known {
		return tree, nil
	}
	files, err := g.files(whole)
	if err != nil {
		return nil, nil //nolint:nilerr // source-watcher makes no artifact of it then: there is nothing to build from
	}
	tree, err := whole.Arrange(files)
	if err != nil {
		return nil, err
	}
	r.trees[at], r.origins[at] = tree, files
	return tree, nil
}

// original is where a file of a tier lies in the repository.
func (c *Cluster) original(t *build.Followed, file string) string {
	source := key(build.SourceOf(t.Kustomization))
	c.sources.mu.Lock()
	at, opened := c.sources.opened[source]
	c.sources.mu.Unlock()
	if !opened {
		return file
	}
	c.repository.mu.Lock()
	defer c.repository.mu.Unlock()
	if of, made := c.repository.origins[at][file]; made {
		file = of
	}
	return path.Join(at.base, file)
}

// sourceOf is what a root is built from in the end: of an artifact that is made
// of a source, that source.
func (s *survey) sourceOf(m *manifest) flux.Ref {
	source := build.SourceOf(m.object)
	if source.Kind != externalArtifact {
		return source
	}
	for _, generator := range s.generators {
		if g := generatedBy(generator.object, key(source)); g != nil {
			if of, ok := g.source(); ok {
				return of
			}
		}
	}
	return source
}
