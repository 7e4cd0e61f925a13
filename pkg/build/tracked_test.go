// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir, "-c", "user.name=t", "-c", "user.email=t@example.com"}, args...)...)
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// TestTrackedFilesStay: .gitignore says nothing of what was added already, in
// each version of the index, and in a worktree.
func TestTrackedFilesStay(t *testing.T) {
	contents := map[string]string{
		".gitignore": "*backup*.yaml\n/out/\n", "apps/a.yaml": "a: b", "apps/backup.yaml": "a: b", "out/b.yaml": "a: b",
	}
	want := []string{"apps/a.yaml", "apps/backup.yaml", "out/b.yaml"}
	for _, version := range []string{"2", "3", "4"} {
		dir := writeTree(t, contents)
		git(t, dir, "init", "-q")
		git(t, dir, "add", "-f", ".")
		git(t, dir, "update-index", "--index-version", version)
		if err := os.WriteFile(filepath.Join(dir, "apps", "new-backup.yaml"), []byte("a: b"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := opened(t, dir); !slices.Equal(got, want) {
			t.Errorf("index of version %s: got %q, want %q", version, got, want)
		}
		git(t, dir, "commit", "-q", "-m", "all")
		worktree := filepath.Join(t.TempDir(), "w")
		git(t, dir, "worktree", "add", "-q", worktree)
		if got := opened(t, worktree); !slices.Equal(got, want) {
			t.Errorf("worktree: got %q, want %q", got, want)
		}
	}
}

// TestUnreadableIndex: .gitignore alone decides.
func TestUnreadableIndex(t *testing.T) {
	for _, content := range []string{"", "DIRC", "DIRC\x00\x00\x00\x02\xff\xff\xff\xff", "DIRC\x00\x00\x00\x09\x00\x00\x00\x00"} {
		dir := writeTree(t, map[string]string{".git/index": content, ".gitignore": "b.yaml\n", "a.yaml": "a: b", "b.yaml": "a: b"})
		if got, want := opened(t, dir), []string{"a.yaml"}; !slices.Equal(got, want) {
			t.Errorf("index %q: got %q, want %q", content, got, want)
		}
	}
}

func opened(t *testing.T, dir string) []string {
	t.Helper()
	tree, err := OpenDir(t.Context(), dir, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tree.Close() }) // below the test's own folder
	return files(t, tree)
}
