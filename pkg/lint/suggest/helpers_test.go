// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package suggest

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	yamlv3 "go.yaml.in/yaml/v3"
	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/coldstart"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/knowledge"
)

// root is what every repository of these tests has.
const root = `
-- clusters/test/flux-system/gotk-sync.yaml --
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata:
  name: flux-system
  namespace: flux-system
spec:
  interval: 10m0s
  path: ./clusters/test
  prune: true
  sourceRef:
    kind: GitRepository
    name: flux-system
`

func source() flux.Ref {
	return flux.Ref{Kind: "GitRepository", Namespace: "flux-system", Name: "flux-system"}
}

func tier(name string) flux.Ref {
	return flux.Ref{APIVersion: "kustomize.toolkit.fluxcd.io/v1", Kind: "Kustomization", Namespace: "flux-system", Name: name}
}

// Unpack writes a repository into a directory of its own.
func Unpack(t testing.TB, text string) string {
	t.Helper()
	dir := t.TempDir()
	for _, f := range txtar.Parse([]byte(text)).Files {
		write(t, dir, f.Name, string(f.Data))
	}
	return dir
}

func write(t testing.TB, dir, name, content string) {
	t.Helper()
	name = filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// read is what a directory holds, by path.
func read(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		all[name] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Input is a repository of which the first cluster is looked at.
type Input struct {
	*Draft
	World      *coldstart.Cluster
	Prediction *coldstart.Prediction
}

// Split and Gate take one step of a fresh draft.
func (in Input) Split(tier flux.Ref) (Patch, error) {
	d := in.Fresh()
	err := d.Split(0, tier)
	return d.Patch(), err
}

func (in Input) Gate(tier flux.Ref) (Patch, error) {
	d := in.Fresh()
	err := d.Gate(0, tier)
	return d.Patch(), err
}

// predict predicts the first cluster again, after its World was changed.
func (in *Input) predict() {
	in.Prediction = coldstart.Predict(in.World)
	in.clusters[0].Prediction = in.Prediction
}

// look builds the repository and predicts its clusters, as lint does.
func look(t testing.TB, dir string) Input {
	t.Helper()
	tree, err := build.OpenDir(t.Context(), dir, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tree.Close() })
	var clusters []Cluster
	for _, name := range []string{"test", "other"} {
		entry := "clusters/" + name + "/flux-system/gotk-sync.yaml"
		if _, err := os.Stat(filepath.Join(dir, entry)); err != nil && name == "other" {
			continue
		}
		all := follow(t, dir, tree, entry)
		world := &coldstart.Cluster{Tiers: all, Charts: map[flux.Ref]coldstart.Chart{}, Book: book(t)}
		locate := func(tier, object flux.Ref) build.Position {
			for _, f := range all {
				if f.Result == nil || !same(f.Tier, tier) {
					continue
				}
				for _, o := range f.Result.Objects {
					if same(o.Ref(), object) {
						position, _ := f.Result.Locate(o)
						return position
					}
				}
			}
			return build.Position{}
		}
		clusters = append(clusters, Cluster{Name: "clusters/" + name, World: world, Prediction: coldstart.Predict(world), Locate: locate})
	}
	return Input{New(os.DirFS(dir), clusters), clusters[0].World, clusters[0].Prediction}
}

func follow(t testing.TB, dir string, tree *build.Tree, entry string) []build.Followed {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, entry))
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	if err := yaml.Unmarshal(content, &object); err != nil {
		t.Fatal(err)
	}
	all, err := build.Builder{}.Follow(t.Context(), build.Only(source(), tree), &unstructured.Unstructured{Object: object})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		if f.Err != nil {
			t.Fatal(f.Err)
		}
	}
	return all
}

func book(t testing.TB) *knowledge.Base {
	t.Helper()
	b, err := knowledge.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	b, err = b.Extend("test.yaml", []byte(`
apiVersion: kubestandup.dev/v1alpha1
kind: Knowledge
relations:
- id: gadgets
  system: Gadgets
  class: cr
  triggers:
  - {group: gadgets.example.com, kind: Gadgeteer, plural: gadgeteers, scope: Cluster}
  creates:
  - {group: gadgets.example.com, kind: Gadget, plural: gadgets, scope: Namespaced, versions: [v1]}
  sources: [test]
  confidence: run
- id: levels
  system: Levels
  class: cr
  triggers:
  - {group: cdi.kubevirt.io, kind: StorageProfile, plural: storageprofiles, scope: Cluster, ready: {apiVersion: cdi.kubevirt.io/v1beta1, current: has(status.level)}}
  creates:
  - {group: levels.example.com, kind: Level, plural: levels, scope: Namespaced, versions: [v1]}
  sources: [test]
  confidence: run
`))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// run runs a tool in a directory.
func run(t testing.TB, dir, stdin, tool string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath(tool); err != nil {
		t.Fatalf("%s is not installed: apt-get install %s", tool, tool)
	}
	cmd := exec.CommandContext(t.Context(), tool, args...)
	cmd.Dir = dir
	cmd.Stdin = strings.NewReader(stdin)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %s: %v\n%s\n%s", tool, strings.Join(args, " "), err, out.String(), stdin)
	}
	return out.String()
}

// Apply applies the patch with git and with patch, and takes it back with both:
// they agree, and nothing is lost.
func Apply(t testing.TB, dir string, diff string) {
	t.Helper()
	before := read(t, dir)
	run(t, dir, diff, "git", "apply", "--whitespace=nowarn", "-")
	byGit := read(t, dir)
	run(t, dir, diff, "git", "apply", "-R", "--whitespace=nowarn", "-")
	if back := read(t, dir); !maps.Equal(before, back) {
		t.Errorf("git apply -R leaves another tree:\n%s", diff)
	}
	run(t, dir, diff, "patch", "-p1", "--no-backup-if-mismatch", "--fuzz=0")
	if byPatch := read(t, dir); !maps.Equal(byGit, byPatch) {
		t.Errorf("patch and git apply do not agree on\n%s\n%v\n%v", diff, byGit, byPatch)
	}
}

// applied is every object that the tiers apply, without what tells the tiers
// apart. Of Kustomizations only the name is left.
func applied(in Input) map[string]string {
	all := map[string]string{}
	for _, f := range in.World.Tiers {
		if f.Result == nil {
			continue
		}
		for _, o := range f.Result.Objects {
			labels := o.GetLabels()
			maps.DeleteFunc(labels, func(k, _ string) bool { return strings.HasPrefix(k, flux.KustomizeGroup) })
			copied := o.DeepCopy()
			copied.SetLabels(labels)
			if o.GetKind() == flux.KustomizationKind {
				copied.Object["spec"] = nil
			}
			all[o.Ref().String()] = fmt.Sprint(copied.Object)
		}
	}
	return all
}

// verdicts are one line for each tier, sorted.
func verdicts(in Input) []string {
	var lines []string
	for _, o := range in.Prediction.Outcomes {
		lines = append(lines, fmt.Sprintf("%s %s", o.Tier.Name, o.Verdict))
	}
	slices.Sort(lines)
	return lines
}

// hollow are the gates of the prediction that prove nothing.
func hollow(in Input) []flux.Ref {
	var gates []flux.Ref
	for _, o := range in.Prediction.Outcomes {
		for _, n := range o.Needs {
			for _, p := range n.Providers {
				if p.Reach == coldstart.Hollow && n.When == coldstart.Late && !slices.Contains(gates, p.GateTier()) {
					gates = append(gates, p.GateTier())
				}
			}
		}
	}
	return gates
}

// bare is the object without comments and styles.
func bare(node *yamlv3.Node) *yamlv3.Node {
	copied := *node
	copied.HeadComment, copied.LineComment, copied.FootComment, copied.Style = "", "", "", 0
	copied.Content = nil
	for _, child := range node.Content {
		copied.Content = append(copied.Content, bare(child))
	}
	return &copied
}
