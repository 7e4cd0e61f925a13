// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

// Generate writes what is derived from the code: the reference page of each
// plugin, and the JSON schema of each report. With -check it writes nothing
// and fails when a file is not what it would write.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	check := flag.Bool("check", false, "write nothing; fail when a file is stale")
	flag.Parse()
	if err := run(*check); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(check bool) error {
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	files, err := generate(root)
	if err != nil {
		return err
	}
	if check {
		return compare(root, files)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, files[name], 0o644); err != nil {
			return err
		}
	}
	return nil
}

// generate is every generated file, by its path in the repository.
func generate(root string) (map[string][]byte, error) {
	files := map[string][]byte{}
	for name, page := range pages() {
		files["docs/"+name] = []byte(page)
	}
	schemas, err := schemas(root)
	if err != nil {
		return nil, err
	}
	for name, schema := range schemas {
		files["docs/schemas/"+name] = schema
	}
	return files, nil
}

// compare names the files that are stale, and those that nothing generates any
// more.
func compare(root string, files map[string][]byte) error {
	var stale []string
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(root, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if !bytes.Equal(got, want) {
			stale = append(stale, name)
		}
	}
	for _, pattern := range []string{"docs/kubectl_*.md", "docs/schemas/*.json"} {
		matches, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return err
		}
		for _, match := range matches {
			name, err := filepath.Rel(root, match)
			if err != nil {
				return err
			}
			if name = filepath.ToSlash(name); files[name] == nil {
				stale = append(stale, name+" (nothing generates it: delete it)")
			}
		}
	}
	if len(stale) == 0 {
		return nil
	}
	slices.Sort(stale)
	return fmt.Errorf("generated files are stale, run make generate: %s", strings.Join(stale, ", "))
}

// moduleRoot is the nearest folder going up that holds a go.mod.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("working directory is not in the repository: run this there")
		}
		dir = parent
	}
}
