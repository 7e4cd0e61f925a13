// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The rules of this file are what makes "the only place" true: they read the
// whole program.

// bannedImports open a way to a server beside the guard.
var bannedImports = []string{
	"k8s.io/client-go/tools/clientcmd",
	"k8s.io/client-go/transport",
	"k8s.io/client-go/tools/remotecommand",
	"k8s.io/client-go/tools/portforward",
	"k8s.io/kubectl/pkg/cmd/util/podcmd",
	"sigs.k8s.io/controller-runtime/pkg/client/config",
}

// bannedCalls make a rest.Config out of kubectl's flags.
var bannedCalls = []string{"ToRESTConfig", "ToRawKubeConfigLoader", "ToDiscoveryClient", "ToRESTMapper"}

// bannedNames are those of packages that make a connection, by import path.
var bannedNames = map[string][]string{
	"k8s.io/client-go/rest": {"InClusterConfig", "TransportFor", "TLSConfigFor", "HTTPWrappersForConfig"},
	"net/http":              {"DefaultClient", "DefaultTransport", "Get", "Head", "Post", "PostForm"},
}

// bannedTypes may not be made, only received.
var bannedTypes = map[string][]string{
	"k8s.io/client-go/rest": {"Config"},
	"net/http":              {"Client", "Transport"},
}

// speaksHTTP may make HTTP clients, which then hold no credentials of the
// cluster: build for the artifacts of sources, chart for what source-controller
// has not fetched yet, from the Helm repository or registry itself.
var speaksHTTP = []string{"pkg/build", "pkg/chart"}

// artifactDoor is who may call DialArtifact and GetArtifact.
var artifactDoor = []string{"pkg/build"}

func TestNobodyElseConnects(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		t.Fatalf("the repository's root is not where it was: %v", err)
	}
	read := 0
	for _, top := range []string{"pkg", "cmd"} {
		if _, err := os.Stat(filepath.Join(root, top)); os.IsNotExist(err) {
			continue
		}
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
				return err
			}
			source, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			read++
			rel, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			for _, v := range violations(t, filepath.ToSlash(rel), source) {
				t.Error(v)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if read < 20 {
		t.Errorf("only %d files were read", read)
	}
}

// violations of the rules in one file of the program.
func violations(t *testing.T, path string, source []byte) []string {
	t.Helper()
	dir := path[:strings.LastIndex(path, "/")]
	if dir == "pkg/guard" {
		return nil
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	isTest := strings.HasSuffix(path, "_test.go")
	var found []string
	report := func(n ast.Node, what string) {
		found = append(found, files.Position(n.Pos()).String()+": "+what)
	}
	imports := map[string]string{}
	for _, spec := range file.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value)
		name := imported[strings.LastIndex(imported, "/")+1:]
		if spec.Name != nil {
			name = spec.Name.Name
		}
		imports[name] = imported
		for _, banned := range bannedImports {
			if !isTest && (imported == banned || strings.HasPrefix(imported, banned+"/")) {
				report(spec, "imports "+imported+": only pkg/guard connects, get a client from guard.Server.Config")
			}
		}
		if name == "." && bannedTypes[imported] != nil {
			report(spec, "imports "+imported+" without a name, which hides who connects")
		}
	}
	named := func(e ast.Expr, names map[string][]string) string {
		s, ok := e.(*ast.SelectorExpr)
		if !ok {
			return ""
		}
		x, ok := s.X.(*ast.Ident)
		if !ok || !slices.Contains(names[imports[x.Name]], s.Sel.Name) ||
			imports[x.Name] == "net/http" && slices.Contains(speaksHTTP, dir) {
			return ""
		}
		return imports[x.Name] + "." + s.Sel.Name
	}
	made := func(n ast.Node, kind ast.Expr) {
		if name := named(kind, bannedTypes); name != "" && !isTest {
			report(n, "makes a "+name+": only pkg/guard connects, get it from guard.Server")
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			switch name := named(n, bannedNames); {
			case slices.Contains([]string{"DialArtifact", "GetArtifact"}, n.Sel.Name) && !slices.Contains(artifactDoor, dir):
				report(n, "uses "+n.Sel.Name+", which is for "+strings.Join(artifactDoor, ", ")+" alone")
			case isTest:
			case slices.Contains(bannedCalls, n.Sel.Name):
				report(n, "uses "+n.Sel.Name+": only pkg/guard reads the kubeconfig, call guard.Connect or guard.KubeconfigNames")
			case name != "":
				report(n, "uses "+name+": only pkg/guard connects, get a client from guard.Server.Config")
			}
		case *ast.CompositeLit:
			made(n, n.Type)
			if s, ok := n.Type.(*ast.SelectorExpr); ok && s.Sel.Name == "Options" && !isTest {
				if x, ok := s.X.(*ast.Ident); ok && strings.HasSuffix(imports[x.Name], "/pkg/guard") && hasKey(n, "Now") {
					report(n, "sets the guard's clock, which is for tests alone")
				}
			}
		case *ast.ValueSpec:
			made(n, n.Type)
		case *ast.Field:
			made(n, n.Type)
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.Ident); ok && f.Name == "new" && len(n.Args) == 1 {
				made(n, n.Args[0])
			}
		case *ast.AssignStmt:
			for _, left := range n.Lhs {
				if s, ok := left.(*ast.SelectorExpr); ok && s.Sel.Name == "Now" && !isTest && importsGuard(imports) {
					report(n, "sets a clock named Now; the guard's is for tests alone")
				}
			}
		}
		return true
	})
	return found
}

func hasKey(lit *ast.CompositeLit, key string) bool {
	for _, e := range lit.Elts {
		kv, ok := e.(*ast.KeyValueExpr)
		if !ok {
			return true // without keys every field is set
		}
		if k, ok := kv.Key.(*ast.Ident); ok && k.Name == key {
			return true
		}
	}
	return false
}

func importsGuard(imports map[string]string) bool {
	for _, path := range imports {
		if strings.HasSuffix(path, "/pkg/guard") {
			return true
		}
	}
	return false
}

func TestViolations(t *testing.T) {
	t.Parallel()
	const rest, web, g = `import "k8s.io/client-go/rest";`, `import "net/http";`, `import "github.com/kubestandup/kubestandup/pkg/guard";`
	for name, tt := range map[string]struct {
		path, source string
		want         int
	}{
		"clientcmd":            {"pkg/x/x.go", `import _ "k8s.io/client-go/tools/clientcmd"`, 1},
		"its types":            {"pkg/x/x.go", `import _ "k8s.io/client-go/tools/clientcmd/api"`, 1},
		"spdy":                 {"pkg/x/x.go", `import _ "k8s.io/client-go/transport/spdy"`, 1},
		"exec":                 {"pkg/x/x.go", `import _ "k8s.io/client-go/tools/remotecommand"`, 1},
		"ctrl config":          {"cmd/x/main.go", `import _ "sigs.k8s.io/controller-runtime/pkg/client/config"`, 1},
		"flags to config":      {"pkg/cmd/util/x.go", `func f(c interface{ToRESTConfig() any}) { c.ToRESTConfig() }`, 1},
		"method value":         {"pkg/cmd/util/x.go", `func f(c interface{ToRESTMapper() any}) any { return c.ToRESTMapper }`, 1},
		"in cluster":           {"pkg/x/x.go", rest + `var _, _ = rest.InClusterConfig()`, 1},
		"renamed":              {"pkg/x/x.go", `import r "k8s.io/client-go/rest"; var _, _ = r.InClusterConfig()`, 1},
		"without a name":       {"pkg/x/x.go", `import . "k8s.io/client-go/rest"; var _, _ = InClusterConfig()`, 1},
		"literal":              {"pkg/x/x.go", rest + `var _ = &rest.Config{Host: "h"}`, 1},
		"new":                  {"pkg/x/x.go", rest + `var _ = new(rest.Config)`, 1},
		"variable":             {"pkg/x/x.go", rest + `var c rest.Config`, 1},
		"field":                {"pkg/x/x.go", rest + `type t struct{ c rest.Config }`, 1},
		"transport":            {"pkg/x/x.go", rest + `var _ = rest.TransportFor`, 1},
		"a received config":    {"pkg/x/x.go", rest + `func f(c *rest.Config) { c.QPS = 1 }`, 0},
		"copied":               {"pkg/x/x.go", rest + `func f(c *rest.Config) { _ = rest.CopyConfig(c) }`, 0},
		"http client":          {"pkg/x/x.go", web + `var _ = &http.Client{}`, 1},
		"http transport":       {"pkg/x/x.go", web + `var _ = http.Transport{}`, 1},
		"http default":         {"pkg/x/x.go", web + `var _ = http.DefaultClient`, 1},
		"http get":             {"pkg/x/x.go", web + `var _, _ = http.Get("u")`, 1},
		"http words":           {"pkg/x/x.go", web + `var _ = http.StatusOK`, 0},
		"build fetches":        {"pkg/build/x.go", web + `var _ = &http.Client{}`, 0},
		"build does not dial":  {"pkg/build/x.go", rest + `var _ = &rest.Config{}`, 1},
		"build's artifact":     {"pkg/build/x.go", `func f(s interface{DialArtifact()}) { s.DialArtifact() }`, 0},
		"another's artifact":   {"pkg/wedge/x.go", `func f(s interface{DialArtifact()}) { s.DialArtifact() }`, 1},
		"another's proxy":      {"pkg/buildx/x.go", `func f(s interface{GetArtifact()}) { go s.GetArtifact() }`, 1},
		"another's test":       {"pkg/wedge/x_test.go", `func f(s interface{GetArtifact()}) { s.GetArtifact() }`, 1},
		"the clock":            {"pkg/x/x.go", g + `var _ = guard.Options{UserAgent: "x", Now: nil}`, 1},
		"the clock, unkeyed":   {"pkg/x/x.go", g + `var _ = guard.Options{"x", nil, nil}`, 1},
		"the clock, later":     {"pkg/x/x.go", g + `func f(o *guard.Options) { o.Now = nil }`, 1},
		"the clock in a test":  {"pkg/x/x_test.go", g + `var _ = guard.Options{Now: nil}`, 0},
		"options":              {"pkg/x/x.go", g + `var _ = guard.Options{UserAgent: "x"}`, 0},
		"a test's own client":  {"pkg/x/x_test.go", rest + web + `var _, _ = &rest.Config{}, http.DefaultClient`, 0},
		"the guard itself":     {"pkg/guard/x.go", rest + `var _ = &rest.Config{}`, 0},
		"nothing of the sort":  {"pkg/x/x.go", `var _ = 1`, 0},
		"another InCluster":    {"pkg/x/x.go", `import "example.org/rest"; var _ = rest.InClusterConfig`, 0},
		"a local called rest":  {"pkg/x/x.go", `func f(rest struct{InClusterConfig int}) int { return rest.InClusterConfig }`, 0},
		"several in one file":  {"pkg/x/x.go", rest + web + `var _ = http.DefaultClient; var _ rest.Config`, 2},
		"deeper than pkg/x":    {"pkg/standup/steps/x.go", rest + `var _ rest.Config`, 1},
		"build's subdirectory": {"pkg/build/x/x.go", web + `var _ = &http.Client{}`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := violations(t, tt.path, []byte("package x;"+tt.source)); len(got) != tt.want {
				t.Errorf("found %q, want %d", got, tt.want)
			}
		})
	}
}
