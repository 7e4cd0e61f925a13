// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
)

// looseBytes is the size in bytes beyond which a file is nothing that somebody
// brings up a cluster by.
const looseBytes = 256 << 10

// looseFiles calls do with each file of the working tree that is wanted by its
// name, slashes in it, relative to dir. Such files are no manifests of Flux: what
// sources leave out of their artifacts is looked at too, and what cannot be read
// says nothing. What checks a repository, in .github, begins no cluster. The
// error is the context's.
func looseFiles(ctx context.Context, dir string, wanted func(name string) bool, do func(name string, content []byte)) error {
	return filepath.WalkDir(dir, func(file string, entry fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return nil // as above
		case entry.IsDir() && (entry.Name() == ".git" || entry.Name() == ".github" || entry.Name() == "node_modules"):
			return fs.SkipDir
		case !entry.Type().IsRegular():
			return nil
		}
		name, err := filepath.Rel(dir, file)
		if err != nil {
			return err
		}
		if name = filepath.ToSlash(name); !wanted(name) {
			return nil
		}
		if info, err := entry.Info(); err != nil || info.Size() > looseBytes {
			return nil
		}
		if content, err := os.ReadFile(file); err == nil { // of the caller's own working tree
			do(name, content)
		}
		return nil
	})
}
