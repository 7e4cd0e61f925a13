// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package crds

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// Served is what an API server serves, as discovery tells it. A group whose
// discovery failed (an aggregated API that is down) is unknown, which is not
// the same as absent.
type Served struct {
	kinds   map[schema.GroupVersionKind]Resource
	unknown map[schema.GroupVersion]error
}

// Resource is how a kind is reached.
type Resource struct {
	Plural     string
	Namespaced bool
	// Listable is false for what has no list, such as a review.
	Listable bool
}

// ServedKind is one kind in one version.
type ServedKind struct {
	Kind schema.GroupVersionKind
	Resource
}

// Discover asks the server, uncached: a cache would hide what has appeared a
// second ago. With aggregated discovery it takes two requests.
func Discover(ctx context.Context, client discovery.DiscoveryInterface) (*Served, error) {
	_, lists, err := discovery.ToDiscoveryInterfaceWithContext(client).ServerGroupsAndResourcesWithContext(ctx)
	s := &Served{kinds: map[schema.GroupVersionKind]Resource{}, unknown: map[schema.GroupVersion]error{}}
	var partial *discovery.ErrGroupDiscoveryFailed
	if errors.As(err, &partial) {
		s.unknown = partial.Groups
	} else if err != nil {
		return nil, fmt.Errorf("discover the served kinds: %w", err)
	}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue // no kind of ours has a version that does not parse
		}
		for _, r := range list.APIResources {
			if !strings.Contains(r.Name, "/") { // not a subresource
				s.kinds[gv.WithKind(r.Kind)] = Resource{r.Name, r.Namespaced, slices.Contains(r.Verbs, "list")}
			}
		}
	}
	return s, nil
}

// Resource finds a kind in exactly that version.
func (s *Served) Resource(gvk schema.GroupVersionKind) (Resource, bool) {
	r, ok := s.kinds[gvk]
	return r, ok
}

// Versions are those in which a kind is served, sorted.
func (s *Served) Versions(gk schema.GroupKind) []string {
	var versions []string
	for gvk := range s.kinds {
		if gvk.GroupKind() == gk {
			versions = append(versions, gvk.Version)
		}
	}
	slices.Sort(versions)
	return versions
}

// Unknown is why it cannot be said whether a kind of that version is served;
// nil when it can.
func (s *Served) Unknown(gv schema.GroupVersion) error { return s.unknown[gv] }

// Kinds are all kinds in all versions that are served, sorted.
func (s *Served) Kinds() []ServedKind {
	all := make([]ServedKind, 0, len(s.kinds))
	for gvk, res := range s.kinds {
		all = append(all, ServedKind{gvk, res})
	}
	slices.SortFunc(all, func(a, b ServedKind) int { return strings.Compare(a.Kind.String(), b.Kind.String()) })
	return all
}
