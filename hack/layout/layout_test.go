// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/kubestandup/kubestandup"

// order is the way that data flows: a package imports only packages of rows
// above its own. Those of one row do not know each other. A folder below a
// package counts as that package.
func order() [][]string {
	return [][]string{
		{"pkg/version"},
		{"pkg/guard"},
		{"pkg/flux"},
		{"pkg/finding"},
		{"pkg/tiers"},
		{"pkg/build"},
		{"pkg/knowledge"},
		{"pkg/release", "pkg/repository"},
		{"pkg/chart"},
		{"pkg/coldstart"},
		{"pkg/lint", "pkg/crds", "pkg/dnszone"},
		{"pkg/wedge"},
		{"pkg/wait"},
		{"pkg/standup"},
		{"pkg/printers"},
		{"pkg/progress"},
		{"pkg/cmd/util"},
		{"pkg/cmd/tiers", "pkg/cmd/unwedge"},
		{"pkg/cmd/standup"}, // one of its steps is unwedge
		{"cmd", "hack"},
		{"test", "bench"},
	}
}

// pure packages are functions over values: they reach no server.
func pure() []string {
	return []string{"pkg/tiers", "pkg/knowledge", "pkg/coldstart", "pkg/finding", "pkg/version"}
}

// clients are what a pure package does not import.
func clients() []string {
	return []string{"k8s.io/client-go", "k8s.io/cli-runtime", "sigs.k8s.io/controller-runtime", "net/http", "os/exec"}
}

const (
	mainLines = 25
	fileLines = 500
	header    = "// SPDX-FileCopyrightText: The kubestandup authors\n// SPDX-License-Identifier: Apache-2.0\n\n"
)

// file is one Go file of the repository; dir and name use slashes.
type file struct {
	name, dir string
	text      []byte
	ast       *ast.File
}

func (f file) test() bool  { return strings.HasSuffix(f.name, "_test.go") }
func (f file) lines() int  { return bytes.Count(f.text, []byte("\n")) }
func (f file) main() bool  { return f.ast.Name.Name == "main" }
func (f file) tools() bool { return under(f.dir, "tools") || under(f.dir, "hack/tools") }

// imports are the import paths.
func (f file) imports() []string {
	var paths []string
	for _, spec := range f.ast.Imports {
		if p, err := strconv.Unquote(spec.Path.Value); err == nil {
			paths = append(paths, p)
		}
	}
	return paths
}

func files(t *testing.T) []file {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	var all []file
	err = filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if base := entry.Name(); name != root && (strings.HasPrefix(base, ".") || base == "testdata" || base == "bin" || base == "dist") {
				return fs.SkipDir
			}
			return nil
		}
		if filepath.Ext(name) != ".go" {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		relative = filepath.ToSlash(relative)
		all = append(all, file{relative, path.Dir(relative), text, parsed})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Fatalf("no Go file below %s", root)
	}
	return all
}

// row is where a folder stands in the order, -1 when it does not.
func row(dir string) (row int, pkg string) {
	for i, packages := range order() {
		for _, p := range packages {
			if under(dir, p) {
				return i, p
			}
		}
	}
	return -1, ""
}

func under(dir, of string) bool { return dir == of || strings.HasPrefix(dir, of+"/") }

func TestDataFlowsOneWay(t *testing.T) {
	for _, f := range files(t) {
		if f.test() || f.tools() {
			continue // a test may stand on anything
		}
		at, pkg := row(f.dir)
		if at < 0 {
			t.Errorf("%s: its package has no place in the order of hack/layout: give it one", f.name)
			continue
		}
		for _, p := range f.imports() {
			dir, ours := strings.CutPrefix(p, module+"/")
			if !ours {
				continue
			}
			if to, imported := row(dir); imported != pkg && to >= at {
				t.Errorf("%s imports %s, which is not above %s in the order of hack/layout", f.name, dir, pkg)
			}
		}
	}
}

func TestProductDoesNotStandOnTests(t *testing.T) {
	for _, f := range files(t) {
		if f.test() || under(f.dir, "test") {
			continue
		}
		for _, p := range f.imports() {
			if p == "testing" || strings.HasPrefix(p, module+"/test/") {
				t.Errorf("%s imports %s", f.name, p)
			}
		}
	}
}

func TestPurePackagesKnowNoClient(t *testing.T) {
	for _, f := range files(t) {
		if f.test() || !slices.ContainsFunc(pure(), func(p string) bool { return under(f.dir, p) }) {
			continue
		}
		for _, p := range f.imports() {
			if slices.ContainsFunc(clients(), func(client string) bool { return under(p, client) }) {
				t.Errorf("%s imports %s, and its package is pure: do that at the edge", f.name, p)
			}
		}
	}
}

func TestEveryFileHasTheHeader(t *testing.T) {
	for _, f := range files(t) {
		if !bytes.HasPrefix(f.text, []byte(header)) {
			t.Errorf("%s does not begin with the two SPDX lines and an empty one", f.name)
		}
	}
}

func TestFilesAreSmall(t *testing.T) {
	for _, f := range files(t) {
		switch {
		case under(f.dir, "cmd") && f.main() && f.lines() > mainLines:
			t.Errorf("%s has %d lines, and a main has %d at most: streams, signals and the exit code", f.name, f.lines(), mainLines)
		case !f.test() && f.lines() > fileLines:
			t.Errorf("%s has %d lines, and a file has %d at most: it holds two ideas", f.name, f.lines(), fileLines)
		}
	}
}

// main alone ends the process, and nothing runs before it. (golangci-lint says
// so too; these hold where it is not at hand.)
func TestNothingRunsBeforeMainNorEndsBesideIt(t *testing.T) {
	for _, f := range files(t) {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Name.Name == "init" && n.Recv == nil {
					t.Errorf("%s has an init(): let a constructor do it", f.name)
				}
			case *ast.SelectorExpr:
				if pkg, ok := n.X.(*ast.Ident); ok && pkg.Name == "os" && n.Sel.Name == "Exit" && !f.main() && !f.test() {
					t.Errorf("%s calls os.Exit: return an error with util.Exit", f.name)
				}
			}
			return true
		})
	}
}
