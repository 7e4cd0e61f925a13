// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// sources are what the tiers of one cluster are built from. It is safe for
// concurrent use.
type sources struct {
	repository *Repository
	entry      *entry
	// base is Cluster.Base.
	base string
	// working are the sources of the roots.
	working map[flux.Ref]bool

	mu sync.Mutex
	// declared are the sources as the tiers apply them; opened are the trees
	// that were made of those that are this repository.
	declared map[flux.Ref]*unstructured.Unstructured
	opened   map[flux.Ref]treeKey
	// generators are the ArtifactGenerators that the tiers apply.
	generators []*unstructured.Unstructured
}

// trees is a build.Trees.
func (s *sources) trees(ctx context.Context, source flux.Ref) (*build.Tree, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if source = key(source); source.Kind == externalArtifact {
		return s.artifact(ctx, source)
	}
	if !s.working[source] && !s.same(source) {
		return nil, nil // the contract of build.Trees
	}
	at := s.treeKey(source)
	s.opened[source] = at
	return s.repository.tree(ctx, at)
}

func (s *sources) treeKey(source flux.Ref) treeKey {
	var at treeKey
	if o := s.object(source); o != nil {
		at.ignore, _, _ = unstructured.NestedString(o.Object, "spec", "ignore")
	}
	if s.working[source] {
		at.base = s.base
	}
	return at
}

// object is the source itself, as a tier applies it or as the tree writes it.
func (s *sources) object(source flux.Ref) *unstructured.Unstructured {
	if o, known := s.declared[source]; known {
		return o
	}
	var all, here []*manifest
	for _, m := range s.repository.survey.sources {
		of := key(m.ref())
		if of == source || of.Namespace == "" && of.Kind == source.Kind && of.Name == source.Name {
			all = append(all, m)
			if inside(s.entry.name, m.File) {
				here = append(here, m)
			}
		}
	}
	switch {
	case len(here) == 1:
		return here[0].object
	case len(all) == 1:
		return all[0].object
	}
	return nil
}

// same is true of a GitRepository that names this repository: by the URL of a
// root's source, or of one of the checkout's remotes.
func (s *sources) same(source flux.Ref) bool {
	url := s.url(source)
	if url == "" {
		return false
	}
	for root := range s.working {
		if s.url(root) == url {
			return true
		}
	}
	return s.repository.remotes[url]
}

func (s *sources) url(source flux.Ref) string {
	o := s.object(source)
	if source.Kind != "GitRepository" || o == nil {
		return ""
	}
	url, _, _ := unstructured.NestedString(o.Object, "spec", "url")
	return normalURL(url)
}

// built takes the sources among the objects of a tier.
func (s *sources) built(result *build.Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range result.Objects {
		if o.GroupVersionKind().Group == flux.SourceGroup {
			s.declared[key(o.Ref())] = o.Unstructured
		}
		if o.GroupVersionKind().Group == generatorGroup {
			s.generators = slices.DeleteFunc(s.generators, func(g *unstructured.Unstructured) bool {
				return g.GetNamespace() == o.GetNamespace() && g.GetName() == o.GetName()
			})
			s.generators = append(s.generators, o.Unstructured)
		}
	}
}

// changed is true when a tree is not the one that its source would be now.
func (s *sources) changed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for source, at := range s.opened {
		now := s.treeKey(source)
		if source.Kind == externalArtifact {
			now, _, _ = s.artifactKey(source)
		}
		if now != at {
			return true
		}
	}
	return false
}
