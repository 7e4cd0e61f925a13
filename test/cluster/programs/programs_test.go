// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// hello is a recipe small enough to be built in a test.
func hello() recipe {
	return recipe{
		name:      "hello",
		builds:    map[string]string{"hello": ".", "writer": "./writer"},
		links:     map[string]string{"hi": "hello"},
		manifests: []manifests{{"tools/hello", "config", "crds"}},
		run:       "writer",
		takes:     time.Minute,
	}
}

func helloRepository(t *testing.T) (root string) {
	t.Helper()
	t.Setenv("KUBEBUILDER_ASSETS", "")
	root = t.TempDir()
	write(t, filepath.Join(root, "go.mod"), "module "+modulePath+"\n")
	tool := filepath.Join(root, "tools", "hello")
	write(t, filepath.Join(tool, "go.mod"), "module tools/hello\n\ngo 1.26\n")
	write(t, filepath.Join(tool, "main.go"), "package main\n\nfunc main() { println(\"hello\") }\n")
	write(t, filepath.Join(tool, "config", "crd.yaml"), "kind: CustomResourceDefinition\n")
	write(t, filepath.Join(tool, "config", "notes.txt"), "")
	write(t, filepath.Join(tool, "writer", "main.go"), `package main

import "os"

func main() {
	os.Mkdir(os.Args[1], 0o755)
	os.WriteFile(os.Args[1]+"/made.yaml", nil, 0o644)
}
`)
	return root
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestBuildOnceThenNothing(t *testing.T) {
	root := helloRepository(t)
	_, err := find(root, []recipe{hello()})
	var missing *MissingError
	if !errors.As(err, &missing) || !slices.Equal(missing.Programs, []string{"hi"}) {
		t.Fatalf("before: %v, want the missing programs", err)
	}
	if !strings.Contains(err.Error(), "run make tools") {
		t.Errorf("%q does not say what to do", err)
	}

	var out bytes.Buffer
	set, err := build(t.Context(), root, []recipe{hello()}, &out)
	if err != nil {
		t.Fatal(err)
	}
	if text := out.String(); !strings.Contains(text, "hi (about 1m the first time) …") {
		t.Errorf("said %q, want what is built and how long it takes", text)
	}
	for _, file := range []string{"bin/hello", "bin/hi", "crds/crd.yaml", "writer/made.yaml"} {
		if _, err := os.Stat(filepath.Join(set.dirs["hello"], file)); err != nil {
			t.Error(err)
		}
	}
	for _, file := range []string{"bin/writer", "crds/notes.txt"} {
		if _, err := os.Stat(filepath.Join(set.dirs["hello"], file)); err == nil {
			t.Errorf("%s is kept", file)
		}
	}

	out.Reset()
	if _, err := build(t.Context(), root, []recipe{hello()}, &out); err != nil {
		t.Fatal(err)
	}
	if out.Len() != 0 {
		t.Errorf("all was there, and it said %q", &out)
	}
}

func TestBuildTwiceAtOnce(t *testing.T) {
	root := helloRepository(t)
	// Each has its own open lock file, as two processes have.
	var outs [2]bytes.Buffer
	var work sync.WaitGroup
	for i := range outs {
		work.Go(func() {
			if _, err := build(t.Context(), root, []recipe{hello()}, &outs[i]); err != nil {
				t.Error(err)
			}
		})
	}
	work.Wait()
	built := 0
	for i := range outs {
		built += strings.Count(outs[i].String(), "first time")
	}
	if built != 1 {
		t.Errorf("built %d times:\n%s\n%s", built, &outs[0], &outs[1])
	}
	assertNoRemains(t, root)
}

func TestBuildFailureLeavesNothing(t *testing.T) {
	root := helloRepository(t)
	write(t, filepath.Join(root, "tools", "hello", "main.go"), "package main\n\nfunc main() { undefined() }\n")
	var out bytes.Buffer
	_, err := build(t.Context(), root, []recipe{hello()}, &out)
	if err == nil || !strings.Contains(err.Error(), "undefined") {
		t.Errorf("error %v, want the compiler's words", err)
	}
	if _, err := find(root, []recipe{hello()}); err == nil {
		t.Error("found what was not built")
	}
	assertNoRemains(t, root)
}

func TestBuildEndsWithItsContext(t *testing.T) {
	root := helloRepository(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("interrupted by the test"))
	if _, err := build(ctx, root, []recipe{hello()}, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "interrupted by the test") {
		t.Errorf("error %v, want the cause", err)
	}
	assertNoRemains(t, root)
}

// assertNoRemains: no temporary folder is left beside the cache's own.
func assertNoRemains(t *testing.T, root string) {
	t.Helper()
	remains, err := filepath.Glob(filepath.Join(root, ".cache", "tools", ".hello-*"))
	if err != nil || len(remains) != 0 {
		t.Errorf("left behind: %v, %v", remains, err)
	}
}

func TestBuildChangesNoModuleFile(t *testing.T) {
	root := helloRepository(t)
	// A requirement that go.mod does not have yet.
	write(t, filepath.Join(root, "tools", "hello", "main.go"), "package main\n\nimport _ \"example.com/x\"\n\nfunc main() {}\n")
	mod := filepath.Join(root, "tools", "hello", "go.mod")
	before, err := os.ReadFile(mod)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := build(t.Context(), root, []recipe{hello()}, &bytes.Buffer{}); err == nil {
		t.Error("built from module files that are not complete")
	}
	if after, err := os.ReadFile(mod); err != nil || !bytes.Equal(before, after) {
		t.Errorf("go.mod was rewritten: %s, %v", after, err)
	}
}

func TestKeyCoversWhatIsBuilt(t *testing.T) {
	root := helloRepository(t)
	module := filepath.Join(root, "tools", "hello")
	key := func(r recipe) string {
		t.Helper()
		k, err := r.key(module)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	first := key(hello())
	if key(hello()) != first {
		t.Error("the key changes by itself")
	}
	write(t, filepath.Join(module, "README.md"), "words")
	if key(hello()) != first {
		t.Error("the key covers a file that is not built")
	}
	stamped := hello()
	stamped.stamp = "x"
	if key(stamped) == first {
		t.Error("the key does not cover the recipe")
	}
	for _, file := range []string{"go.sum", "writer/more.go", "go.mod"} {
		write(t, filepath.Join(module, file), "module tools/hello\n")
		next := key(hello())
		if next == first {
			t.Errorf("the key does not cover %s", file)
		}
		first = next
	}
}

func TestAssetsOfKubebuilder(t *testing.T) {
	assets := t.TempDir()
	t.Setenv("KUBEBUILDER_ASSETS", assets)
	set, err := Find()
	var missing *MissingError
	if errors.As(err, &missing) {
		for _, program := range []string{"etcd", "kube-apiserver"} {
			if slices.Contains(missing.Programs, program) {
				t.Errorf("%s is said to be missing though KUBEBUILDER_ASSETS has it", program)
			}
		}
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	for program, want := range map[string]bool{"etcd": true, "kube-apiserver": true, "kube-controller-manager": false, "kubectl": false} {
		if got := filepath.Dir(set.Path(program)) == assets; got != want {
			t.Errorf("%s is taken from KUBEBUILDER_ASSETS: %v, want %v", program, got, want)
		}
	}
}

func TestRealPrograms(t *testing.T) {
	set, err := Find()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range recipes() {
		for _, program := range r.programs() {
			if info, err := os.Stat(set.Path(program)); err != nil || info.Mode()&0o100 == 0 {
				t.Errorf("%s: %v, %v", program, info, err)
			}
		}
	}
	crds, err := set.FluxCRDs()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"gitrepositories", "kustomizations", "helmreleases", "helmcharts"} {
		if !slices.ContainsFunc(crds, func(file string) bool { return strings.Contains(file, want) }) {
			t.Errorf("no CRD of %s among %v", want, crds)
		}
	}
	install, err := os.ReadFile(set.CDIOperatorManifest())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"kind: Namespace", "name: cdis.cdi.kubevirt.io", "kind: Deployment", "kind: ClusterRole", "value: v1."} {
		if !bytes.Contains(install, []byte(want)) {
			t.Errorf("CDI's install has no %q", want)
		}
	}
	if bytes.Contains(install, []byte("datavolumes.cdi.kubevirt.io")) {
		t.Error("CDI's install has a second-order CRD")
	}
	if _, err := os.Stat(filepath.Join(set.CDICRDs(), "storageprofile.yaml")); err != nil {
		t.Error(err)
	}
}
