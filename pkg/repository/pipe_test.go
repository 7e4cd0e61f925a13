// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package repository

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestRemotesOfPipes: who opens a pipe that nobody writes to does not come back.
func TestRemotesOfPipes(t *testing.T) {
	dir := write(t, map[string]string{"common/.git": "gitdir: in\n"})
	for _, pipe := range []string{"itself/.git", "config/.git/config", "common/in/commondir"} {
		path := filepath.Join(dir, filepath.FromSlash(pipe))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		root, _, _ := strings.Cut(pipe, "/")
		if got := remotes(filepath.Join(dir, root)); len(got) > 0 {
			t.Errorf("%s: got %v", pipe, got)
		}
	}
}
