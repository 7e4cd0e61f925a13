// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package build

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestOpenDirPipes: exclusions that never end are refused, also by way of a
// link, which git can hold. One that leads nowhere excludes nothing.
func TestOpenDirPipes(t *testing.T) {
	for _, name := range []string{".sourceignore", "apps/.sourceignore", "apps/.gitignore"} {
		dir := writeTree(t, map[string]string{".git/HEAD": "", "apps/a.yaml": "a: b"})
		pipe, link := filepath.Join(t.TempDir(), "pipe"), filepath.Join(dir, filepath.FromSlash(name))
		if err := os.Symlink(pipe, link); err != nil {
			t.Fatal(err)
		}
		tree, err := OpenDir(t.Context(), dir, "")
		if err != nil {
			t.Fatalf("%s that leads nowhere: %v", name, err)
		}
		if err := tree.Close(); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(pipe, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenDir(t.Context(), dir, ""); err == nil || !strings.Contains(err.Error(), name+" is no regular file") {
			t.Errorf("%s: got %v, want a refusal", name, err)
		}
	}
}
