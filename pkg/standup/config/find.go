// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// exitUsage is the exit code of a choice that the caller must make.
const exitUsage = 2

// SeveralError says that more than one standup.yaml could be meant.
type SeveralError struct {
	// Files are the candidates, as a person in the working directory would
	// type them.
	Files []string
}

func (e *SeveralError) Error() string {
	return fmt.Sprintf("%s of which cluster? %d are below this directory: choose one with --config, or work beside it\n  --config %s",
		FileName, len(e.Files), strings.Join(e.Files, "\n  --config "))
}

// ExitCode is that of a usage error.
func (e *SeveralError) ExitCode() int { return exitUsage }

// Find returns the standup.yaml for a command that runs in dir: the nearest
// one going up, as far as the root of the git repository; else the only one
// below dir, inside that repository. None is an empty path without an error;
// several below are a *SeveralError. Outside a repository it only goes up.
func Find(dir string) (string, error) {
	start, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("%s cannot be looked for: %w", FileName, err)
	}
	inRepository := false
	for at := start; ; {
		found, err := isFile(filepath.Join(at, FileName))
		if err != nil {
			return "", fmt.Errorf("%s cannot be looked for: %w", FileName, err)
		}
		if found {
			return filepath.Join(at, FileName), nil
		}
		if isRepository(at) {
			inRepository = true
			break
		}
		parent := filepath.Dir(at)
		if parent == at {
			break
		}
		at = parent
	}
	if !inRepository {
		return "", nil
	}
	return findBelow(start)
}

func findBelow(start string) (string, error) {
	var found []string
	err := filepath.WalkDir(start, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrPermission) && path != start:
			return fs.SkipDir // a cache of another user's is no reason to stop
		case err != nil:
			return err
		case d.IsDir() && path != start && (d.Name() == ".git" || isRepository(path)):
			return fs.SkipDir // a submodule is another repository
		case d.Name() == FileName && !d.IsDir():
			found = append(found, path)
		}
		return nil
	})
	switch {
	case err != nil:
		return "", fmt.Errorf("%s cannot be looked for: %w", FileName, err)
	case len(found) == 0:
		return "", nil
	case len(found) == 1:
		return found[0], nil
	}
	e := &SeveralError{}
	for _, path := range found {
		e.Files = append(e.Files, shown(start, path))
	}
	return "", e
}

// isRepository is true for the top of a git work tree. In a submodule and a
// linked work tree .git is a file.
func isRepository(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, ".git"))
	return err == nil
}

func isFile(path string) (bool, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return !info.IsDir(), nil
}
