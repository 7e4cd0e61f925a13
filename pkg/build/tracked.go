// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/index"
)

// tracked are the files that git has in its index, by their paths on disk: what
// was added once stays, whatever .gitignore says. None where there is no index,
// or none that can be read; .gitignore alone then decides.
func tracked(root string) map[string]bool {
	file := filepath.Join(gitDir(root), "index")
	if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	content, err := os.Open(file) // of the caller's own checkout
	if err != nil {
		return nil
	}
	defer func() { _ = content.Close() }() // it was only read
	var found index.Index
	if err := index.NewDecoder(bufio.NewReader(content)).Decode(&found); err != nil {
		return nil // as above
	}
	all := map[string]bool{}
	for _, entry := range found.Entries {
		all[filepath.Join(root, filepath.FromSlash(entry.Name))] = true
	}
	return all
}

// gitDir is where git keeps the checkout's own files: .git, or what the file
// .git of a worktree or a submodule says.
func gitDir(root string) string {
	name := filepath.Join(root, ".git")
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() {
		return name
	}
	content, _ := os.ReadFile(name) // what cannot be read leads nowhere
	dir := strings.TrimSpace(strings.TrimPrefix(string(content), "gitdir:"))
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(root, dir)
	}
	return dir
}
