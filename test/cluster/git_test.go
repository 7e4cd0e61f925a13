// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package cluster

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func newTestGit(t *testing.T) *gitServer {
	t.Helper()
	// What a developer's machine, or a git hook, may have set.
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte("[core]\n\tautocrlf = true\n[user]\n\tuseConfigOnly = true\n[init]\n\tdefaultBranch = trunk\n[protocol]\n\tallow = never\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	t.Setenv("GIT_DIR", filepath.Join(home, "nowhere"))
	t.Setenv("GIT_INDEX_FILE", filepath.Join(home, "index"))

	g, err := newGitServer(filepath.Join(t.TempDir(), "git"))
	if err != nil {
		t.Fatal(err)
	}
	if err := g.start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.stop)
	return g
}

func clone(t *testing.T, g *gitServer, repo string) string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command("git", "clone", "--quiet", g.url(repo), dir)
	cmd.Env = g.environment()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("clone: %v\n%s", err, out)
	}
	return dir
}

func TestPushIsWhatIsCloned(t *testing.T) {
	g := newTestGit(t)
	source := t.TempDir()
	for name, mode := range map[string]os.FileMode{"plain.yaml": 0o644, "dir/run me.sh": 0o755, ".git/config": 0o644, ".gitignore": 0o644} {
		file := filepath.Join(source, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("*\r\n"+name), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("plain.yaml", filepath.Join(source, "link")); err != nil {
		t.Fatal(err)
	}
	revision, err := g.push(t.Context(), "fleet", os.DirFS(source), "first\n\nwith a body")
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`^main@sha1:[0-9a-f]{40}$`).MatchString(revision) {
		t.Errorf("revision %q is not as Flux writes it", revision)
	}

	dir := clone(t, g, "fleet")
	data, err := os.ReadFile(filepath.Join(dir, "plain.yaml"))
	if err != nil || string(data) != "*\r\nplain.yaml" {
		t.Errorf("plain.yaml: %q, %v", data, err)
	}
	if info, err := os.Stat(filepath.Join(dir, "dir/run me.sh")); err != nil || info.Mode()&0o100 == 0 {
		t.Errorf("run me.sh is not executable: %v, %v", info, err)
	}
	if target, err := os.Readlink(filepath.Join(dir, "link")); err != nil || target != "plain.yaml" {
		t.Errorf("link: %q, %v", target, err)
	}
	if _, err := os.Stat(filepath.Join(dir, ".gitignore")); err != nil {
		t.Errorf("a dot file is missing: %v", err)
	}
}

func TestPushReplacesTheWholeTree(t *testing.T) {
	g := newTestGit(t)
	first, err := g.push(t.Context(), "fleet", Files{"a": "1", "sub/b": "1"}, "first")
	if err != nil {
		t.Fatal(err)
	}
	second, err := g.push(t.Context(), "fleet", Files{"sub/c": "2"}, "second")
	if err != nil {
		t.Fatal(err)
	}
	same, err := g.push(t.Context(), "fleet", Files{"sub/c": "2"}, "nothing changed")
	if err != nil {
		t.Fatal(err)
	}
	if first == second || second == same {
		t.Errorf("each push is a commit: %s, %s, %s", first, second, same)
	}
	dir := clone(t, g, "fleet")
	out, err := exec.Command("git", "--git-dir", filepath.Join(dir, ".git"), "log", "--format=%s").CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "nothing changed\nsecond\nfirst" {
		t.Errorf("history: %s, %v", out, err)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 2 { // .git and sub
		t.Errorf("files of the first push are still there: %v, %v", files, err)
	}
}

func TestGitServerComesBackWhereItWas(t *testing.T) {
	g := newTestGit(t)
	if _, err := g.push(t.Context(), "fleet", Files{"a": "1"}, "first"); err != nil {
		t.Fatal(err)
	}
	url := g.url("fleet")
	g.stop()
	cmd := exec.Command("git", "ls-remote", url)
	cmd.Env = g.environment()
	if out, err := cmd.CombinedOutput(); err == nil {
		t.Errorf("stopped, it answers: %s", out)
	}
	if err := g.start(); err != nil {
		t.Fatal(err)
	}
	if g.url("fleet") != url {
		t.Errorf("moved from %s to %s", url, g.url("fleet"))
	}
	clone(t, g, "fleet")
}
