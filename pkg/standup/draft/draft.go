// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

// Package draft writes the first standup.yaml of a cluster: what a live
// cluster and a working tree say, and what can be guessed from the two. Each
// guess says why it was made, and what could not be read is said too.
//
// Read and Scan look; Write is a function of what they saw. No value of a
// Secret is ever asked for: the names in it are taken from its metadata.
package draft

import (
	"slices"
	"time"

	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/guard"
)

// Live is what a cluster says. What could not be read is empty, and named in
// Unread.
type Live struct {
	Identity guard.Identity
	// Controllers is the namespace of Flux's Deployments, empty when there are
	// none.
	Controllers string
	// NoFlux is true where the cluster serves no kind of tier.
	NoFlux bool
	Tiers  []Tier
	// Known are the ConfigMaps and Secrets that tiers are substituted from.
	Known  map[Set]Names
	Nodes  []Node
	Hosts  []string
	Unread []Unread
}

// Unread is what the server did not let us see, in its own words.
type Unread struct{ What, Why string }

// Tier is what a draft needs of one tier.
type Tier struct {
	Ref flux.Ref
	// Owner is the Kustomization that applied it, the zero Ref for none.
	Owner flux.Ref
	// Path is the folder of a Kustomization, relative to the root of its source
	// and clean: "." for the root.
	Path string

	Suspended      bool
	SuspendedBy    string
	SuspendedSince time.Time
	Hold           string

	// Inline and From are spec.postBuild of a Kustomization.
	Inline map[string]string
	From   []Set

	// Values and the rest are of a HelmRelease. SkipsCRDs is spec.install.crds:
	// Skip; MoreValues is true where valuesFrom adds to Values.
	Values     map[string]any
	SkipsCRDs  bool
	MoreValues bool
}

// substituted is true for a tier in which ${NAME} means something.
func (t *Tier) substituted() bool { return len(t.Inline) > 0 || len(t.From) > 0 }

// Set names what holds variables: a ConfigMap, a Secret, or a Kustomization
// for those that stand in its own spec.
type Set struct{ Kind, Namespace, Name string }

func (s Set) ref() flux.Ref { return flux.Ref{Kind: s.Kind, Namespace: s.Namespace, Name: s.Name} }

func (s Set) String() string { return s.ref().String() }

// Names are the variables of a Set. Values is nil for a Secret.
type Names struct {
	Names  []string
	Values map[string]string
	// Missing: there is no such object. Hidden: it could not be read, or a
	// Secret does not tell which names it has.
	Missing, Hidden bool
}

// Node is what a draft needs of one node.
type Node struct {
	Name            string
	Ready           bool
	Kernel, Kubelet string
	// Memory is its capacity in bytes.
	Memory int64
}

const (
	configMapKind = "ConfigMap"
	secretKind    = "Secret"
)

// inline is the Set of what stands in the spec of the tier itself.
func (t *Tier) inline() Set { return Set{flux.KustomizationKind, t.Ref.Namespace, t.Ref.Name} }

// sets are those that the tier is substituted with, the strongest last.
func (t *Tier) sets() []Set {
	sets := slices.Clone(t.From)
	if len(t.Inline) > 0 {
		sets = append(sets, t.inline())
	}
	return sets
}

// names are those of any Set of a tier.
func (l *Live) names(s Set) Names {
	if s.Kind != flux.KustomizationKind {
		return l.Known[s]
	}
	for i := range l.Tiers {
		if t := &l.Tiers[i]; t.Ref.Kind == s.Kind && t.inline() == s {
			return Names{Names: sortedKeys(t.Inline), Values: t.Inline}
		}
	}
	return Names{Missing: true}
}
