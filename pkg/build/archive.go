// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	_ "crypto/sha256" // the algorithms that Flux's controllers verify
	_ "crypto/sha512"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/fluxcd/pkg/tar"
	godigest "github.com/opencontainers/go-digest"
	_ "github.com/opencontainers/go-digest/blake3" // as above
)

// checksum is a digest that can be verified.
type checksum = godigest.Digest

// parseDigest reads the digest of an artifact as kustomize-controller does
// (fluxcd/pkg/http/fetch verifyDigest): without an algorithm it is SHA-256.
func parseDigest(raw string) (checksum, error) {
	if raw == "" {
		return "", fmt.Errorf("%w: the source states no digest, so that what arrives could not be trusted", ErrUnreachable)
	}
	if !strings.Contains(raw, ":") {
		raw = "sha256:" + raw
	}
	digest, err := godigest.Parse(raw)
	if err != nil {
		return "", fmt.Errorf("%w: its digest %q: %w", ErrUnreachable, raw, err)
	}
	return digest, nil
}

// archive is a downloaded artifact whose digest is right.
type archive struct{ file *os.File }

func (a archive) remove() error { return errors.Join(a.file.Close(), os.Remove(a.file.Name())) }

// download writes the body into a temporary file and verifies it. It closes
// the body.
func download(body io.ReadCloser, digest checksum, limit limits) (a archive, err error) {
	defer func() { _ = body.Close() }() // what it brought is verified
	file, err := os.CreateTemp("", tempPrefix+"artifact-")
	if err != nil {
		return archive{}, fmt.Errorf("temporary file: %w", err)
	}
	a = archive{file: file}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.remove())
		}
	}()
	verifier := digest.Verifier()
	n, err := io.Copy(io.MultiWriter(file, verifier), io.LimitReader(body, limit.download+1))
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return a, fmt.Errorf("the transfer was cut short after %d bytes", n)
	case err != nil:
		return a, fmt.Errorf("the transfer failed after %d bytes: %w", n, err)
	case n > limit.download:
		return a, &unusableError{fmt.Errorf("its artifact is not used: %w", limit.tooLong())}
	case !verifier.Verified():
		return a, fmt.Errorf("the %d bytes that arrived do not have the digest that the source states, so they are not used", n)
	}
	_, err = file.Seek(0, io.SeekStart)
	return a, err
}

// unpack makes a tree of the archive, as kustomize-controller does
// (fluxcd/pkg/http/fetch FetchWithContext: symbolic links are left out), within
// limits.
func unpack(a archive, limit limits) (tree *Tree, err error) {
	if tree, err = newTree(); err != nil {
		return nil, err
	}
	entries := 0
	err = tar.Untar(a.file, tree.root, tar.WithSkipSymlinks(), tar.WithMaxUntarSize(int(limit.unpacked)),
		tar.WithFilter(func(string, fs.FileInfo) bool {
			entries++
			return entries > limit.files
		}))
	switch {
	case err == nil && entries > limit.files:
		err = limit.tooManyFiles()
	case err != nil && strings.Contains(err.Error(), "bigger than max archive size"):
		err = limit.tooLarge()
	case err != nil:
		err = errors.New(tree.relative(err.Error()))
	default:
		return tree, nil
	}
	return nil, errors.Join(&unusableError{fmt.Errorf("its artifact cannot be unpacked: %w", err)}, tree.Close())
}
