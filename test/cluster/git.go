// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing/fstest"
	"time"
)

// Files is a tree as a map from path to text: Files{"root/ns.yaml": "…"}.
type Files map[string]string

// Open makes a tree of Files: it is a [fs.FS].
func (f Files) Open(name string) (fs.File, error) {
	tree := fstest.MapFS{}
	for path, text := range f {
		tree[path] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
	}
	return tree.Open(name)
}

// Push makes tree the whole content of a repository's branch main, as one
// commit on top of what was there, and returns its revision as Flux writes it:
// main@sha1:HASH. A repository is made by the first push to it. Executable
// files and (of an [fs.ReadLinkFS]) symbolic links stay what they are; .git
// folders are left out.
func (c *Cluster) Push(ctx context.Context, repo string, tree fs.FS, message string) (string, error) {
	return c.git.push(ctx, repo, tree, message)
}

// RepoURL is the URL of a repository, for GitRepository.spec.url and for git.
func (c *Cluster) RepoURL(repo string) string { return c.git.url(repo) }

// gitServer serves the repositories of a folder over smart HTTP.
type gitServer struct {
	root string
	git  string // the program
	port int    // kept over stop and start

	mu     sync.Mutex
	server *http.Server
	pushes sync.Mutex
}

func newGitServer(root string) (*gitServer, error) {
	git, err := exec.LookPath("git")
	if err != nil {
		return nil, errors.New("git not found in PATH: install git")
	}
	return &gitServer{root: root, git: git}, os.MkdirAll(root, 0o700)
}

func (g *gitServer) url(repo string) string {
	return "http://127.0.0.1:" + strconv.Itoa(g.port) + "/" + repo + ".git"
}

func (g *gitServer) running() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.server != nil
}

func (g *gitServer) start() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.server != nil {
		return nil
	}
	listener, err := g.listen()
	if err != nil {
		return err
	}
	g.port = listener.Addr().(*net.TCPAddr).Port
	g.server = &http.Server{
		ReadHeaderTimeout: 10 * time.Second,
		Handler:           &cgi.Handler{Path: g.git, Args: []string{"http-backend"}, Env: append(g.environment(), "GIT_PROJECT_ROOT="+g.root, "GIT_HTTP_EXPORT_ALL=1")},
	}
	go func(s *http.Server) { _ = s.Serve(listener) }(g.server) // ends with stop
	return nil
}

func (g *gitServer) listen() (net.Listener, error) {
	if g.port != 0 {
		return net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(g.port)))
	}
	for range 10 {
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		if l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			return l, nil
		}
	}
	return nil, errClash
}

// stop cuts all connections, as a server does that goes down.
func (g *gitServer) stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.server != nil {
		_ = g.server.Close() // nothing to be done about a listener that does not close
		g.server = nil
	}
}

// environment keeps the user's git configuration, and the variables of a git
// hook that the tests may run in, away from every git that is started here.
func (g *gitServer) environment() []string {
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + g.root, "GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_CONFIG_NOSYSTEM=1"}
	for _, role := range []string{"AUTHOR", "COMMITTER"} {
		env = append(env, "GIT_"+role+"_NAME=test", "GIT_"+role+"_EMAIL=test@localhost")
	}
	return env
}

func (g *gitServer) push(ctx context.Context, repo string, tree fs.FS, message string) (string, error) {
	g.pushes.Lock()
	defer g.pushes.Unlock()
	dir := filepath.Join(g.root, repo+".git")
	exists := true
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		exists = false
		if _, err := g.run(ctx, g.root, nil, "init", "--quiet", "--bare", "--initial-branch=main", dir); err != nil {
			return "", err
		}
		// A person may git push to it as well.
		if _, err := g.run(ctx, dir, nil, "config", "http.receivepack", "true"); err != nil {
			return "", err
		}
	}
	// One process, no working tree: nothing of the machine's git settings
	// (line ends, ignored files, hooks) can touch the content.
	stream, err := importStream(tree, message, exists)
	if err != nil {
		return "", fmt.Errorf("push to %s: %w", repo, err)
	}
	hash, err := g.run(ctx, dir, stream, "fast-import", "--quiet")
	if err != nil {
		return "", err
	}
	return "main@sha1:" + hash, nil
}

func (g *gitServer) run(ctx context.Context, dir string, stdin []byte, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, g.git, args...)
	cmd.Dir, cmd.Env, cmd.Stdin = dir, g.environment(), bytes.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("git %s: %w\n%s", args[0], err, stderr.String())
	}
	return strings.TrimSpace(stdout.String()), nil
}

// importStream is the input of git fast-import that makes tree a commit.
func importStream(tree fs.FS, message string, hasParent bool) ([]byte, error) {
	var s bytes.Buffer
	data := func(content []byte) {
		fmt.Fprintf(&s, "data %d\n", len(content))
		s.Write(content)
		s.WriteByte('\n')
	}
	fmt.Fprintf(&s, "commit refs/heads/main\nmark :1\ncommitter test <test@localhost> %d +0000\n", time.Now().Unix())
	data([]byte(message))
	if hasParent {
		s.WriteString("from refs/heads/main^0\n")
	}
	s.WriteString("deleteall\n")
	err := fs.WalkDir(tree, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.Name() == ".git" {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if d.IsDir() {
			return nil
		}
		mode, content, err := gitFile(tree, path, d)
		if err != nil {
			return err
		}
		fmt.Fprintf(&s, "M %s inline %s\n", mode, strconv.Quote(path))
		data(content)
		return nil
	})
	s.WriteString("get-mark :1\n")
	return s.Bytes(), err
}

func gitFile(tree fs.FS, path string, d fs.DirEntry) (mode string, content []byte, err error) {
	if d.Type()&fs.ModeSymlink != 0 {
		target, err := fs.ReadLink(tree, path)
		return "120000", []byte(target), err
	}
	info, err := d.Info()
	if err != nil {
		return "", nil, err
	}
	mode = "100644"
	if info.Mode()&0o100 != 0 {
		mode = "100755"
	}
	content, err = fs.ReadFile(tree, path)
	return mode, content, err
}
