// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"fmt"
	"io"

	securejoin "github.com/cyphar/filepath-securejoin"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

// Raw returns the source's artifact as it is served, not unpacked: a packaged
// chart, or the index of a Helm repository. It comes by the ways of Fetch, is
// verified as there, and fails with the same errors. It is not kept.
func (f *Fetcher) Raw(ctx context.Context, source flux.Source) ([]byte, error) {
	if source.Artifact == nil {
		return nil, fmt.Errorf("source %s: %w", source.Ref, ErrNoArtifact)
	}
	raw, err := fetch(ctx, f, *source.Artifact, func(a archive) ([]byte, error) { return io.ReadAll(a.file) })
	if err != nil {
		return nil, fmt.Errorf("source %s: %w", source.Ref, err)
	}
	return raw, nil
}

// Path is where a file or a folder of the tree lies on this machine, never
// outside of the tree. It is for reading, and gone with the tree.
func (t *Tree) Path(name string) (string, error) {
	path, err := securejoin.SecureJoin(t.root, name)
	if err != nil {
		return "", fmt.Errorf("path %s: %w", name, t.readable(err))
	}
	return path, nil
}
