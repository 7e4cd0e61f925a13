// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// Locate is where an object of a tier is written: a file relative to the root
// of the repository, and a line. The zero Ref as tier is for what stands at the
// beginning: the roots and their source, or the FluxInstance that they are made
// of. It is the zero Position for what is generated, for what several files
// write, and for an object of a tier that does not build. It is cheap, and safe
// for concurrent use; the Repository must be open.
func (c *Cluster) Locate(tier, object flux.Ref) build.Position {
	if tier == (flux.Ref{}) {
		for _, list := range [][]*manifest{c.entry.roots, c.entry.sources} {
			for _, m := range list {
				if ref := m.ref(); ref.Kind == object.Kind && ref.Key() == object.Key() {
					return m.Position
				}
			}
		}
		return build.Position{}
	}
	t := c.Tier(tier)
	if t == nil || t.Result == nil {
		return build.Position{}
	}
	at, found := t.Result.LocateRef(object)
	if !found {
		return build.Position{}
	}
	at.File = c.original(t, at.File)
	return at
}

// LocateField is the line of a field of the object: LocateField(tier, object,
// "spec", "dependsOn"). Where the object does not write it, it is the last field
// on the way that it does write, or the object. The file is parsed again.
func (c *Cluster) LocateField(tier, object flux.Ref, field ...string) build.Position {
	at := c.Locate(tier, object)
	if at == (build.Position{}) {
		return at
	}
	return c.repository.survey.tree.LocateField(at, field...)
}

// Where is where a tier itself is written: among the files of the first tier
// that contains it and writes it, or, of a root, at the beginning.
func (c *Cluster) Where(tier flux.Ref) build.Position {
	t := c.Tier(tier)
	if t == nil {
		return build.Position{}
	}
	for _, parent := range append([]flux.Ref{{}}, t.Parents...) {
		if at := c.Locate(parent, tier); at != (build.Position{}) {
			return at
		}
	}
	return build.Position{}
}

// Tier is the tier of that name, nil where the cluster has none.
func (c *Cluster) Tier(tier flux.Ref) *build.Followed {
	i, known := c.at[tier.Key()]
	if !known {
		return nil
	}
	return &c.Tiers[i]
}

// Mistake is where the reason is that a tier does not build, as far as it is
// known, and else where the tier is written.
func (c *Cluster) Mistake(tier flux.Ref) build.Position {
	t := c.Tier(tier)
	if t == nil {
		return build.Position{}
	}
	if at, found := build.PositionOf(t.Err); found {
		at.File = c.original(t, at.File)
		return at
	}
	return c.Where(tier)
}
