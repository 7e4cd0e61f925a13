// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"context"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// Tree is the working tree as the artifact of a source, nil for a source that is
// not this repository. It is a build.Trees, safe for concurrent use; the
// Repository closes it.
func (c *Cluster) Tree(ctx context.Context, source flux.Ref) (*build.Tree, error) {
	return c.sources.trees(ctx, source)
}
