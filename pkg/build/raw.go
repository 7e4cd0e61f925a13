// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"errors"
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
	raw, err := f.raw(ctx, *source.Artifact)
	if err != nil {
		return nil, fmt.Errorf("source %s: %w", source.Ref, err)
	}
	return raw, nil
}

func (f *Fetcher) raw(ctx context.Context, artifact flux.Artifact) ([]byte, error) {
	digest, err := parseDigest(artifact.Digest)
	if err != nil {
		return nil, err
	}
	at, err := parseLocation(artifact.URL)
	if err != nil {
		return nil, err
	}
	var tried []error
	for _, w := range f.ways(at) {
		raw, err := f.rawAlong(ctx, w, digest)
		if err == nil {
			return raw, nil
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnreachable, ctx.Err())
		}
		var unusable *unusableError
		if errors.As(err, &unusable) {
			return nil, err // another way brings the same
		}
		tried = append(tried, fmt.Errorf("%s: %w", w.name, err))
	}
	return nil, &unreachableError{artifact: artifact, tried: tried}
}

func (f *Fetcher) rawAlong(ctx context.Context, w way, digest checksum) (raw []byte, err error) {
	body, err := w.open(ctx)
	if err != nil {
		return nil, err
	}
	archive, err := download(body, digest, f.limit)
	if err != nil {
		return nil, w.explain(err)
	}
	defer func() { err = errors.Join(err, archive.remove()) }()
	return io.ReadAll(archive.file)
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
