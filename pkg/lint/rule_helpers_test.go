// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/coldstart"
	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/knowledge"
	"github.com/kubestandup/kubestandup/pkg/tiers"
)

func book(t testing.TB) *knowledge.Base {
	t.Helper()
	b, err := knowledge.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func ks(name string) flux.Ref {
	return flux.Ref{APIVersion: "kustomize.toolkit.fluxcd.io/v1", Kind: "Kustomization", Namespace: "flux-system", Name: name}
}

func hr(namespace, name string) flux.Ref {
	return flux.Ref{APIVersion: "helm.toolkit.fluxcd.io/v2", Kind: "HelmRelease", Namespace: namespace, Name: name}
}

// unpack writes the files of a txtar text into a directory of their own.
func unpack(t testing.TB, text string) string {
	t.Helper()
	dir := t.TempDir()
	for _, f := range txtar.Parse([]byte(text)).Files {
		path := filepath.Join(dir, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// header is what every repository of these tests has: a root that applies
// clusters/test.
const header = `
-- clusters/test/flux-system/gotk-sync.yaml --
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: flux-system, namespace: flux-system}
spec: {interval: 1m, url: "https://git.example.com/fleet.git"}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: flux-system, namespace: flux-system}
spec: {interval: 10m, path: ./clusters/test, prune: true, sourceRef: {kind: GitRepository, name: flux-system}}
`

// tierFile is a file with a Kustomization of the path of its name.
func tierFile(name, spec string) string {
	return "\n-- clusters/test/" + name + ".yaml --\n" + tierYAML(name, spec)
}

func tierYAML(name, spec string) string {
	if spec != "" {
		spec = ", " + spec
	}
	if !strings.Contains(spec, "prune:") {
		spec += ", prune: true"
	}
	return `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: ` + name + `, namespace: flux-system}
spec: {interval: 1h, path: ./` + name + `, sourceRef: {kind: GitRepository, name: flux-system}` + spec + "}\n"
}

// subject builds a repository as lint does, without a prediction.
func subject(t testing.TB, text string) *Subject {
	t.Helper()
	tree, err := build.OpenDir(t.Context(), unpack(t, header+text), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tree.Close() })
	root := ks("flux-system")
	all, err := build.Builder{}.Follow(t.Context(), build.Only(flux.Ref{Kind: "GitRepository", Namespace: "flux-system", Name: "flux-system"}, tree),
		rootOf(t))
	if err != nil {
		t.Fatal(err)
	}
	world := &coldstart.Cluster{Tiers: all, Charts: map[flux.Ref]coldstart.Chart{}, Book: book(t)}
	snapshot := &flux.Snapshot{}
	for i := range all {
		f := &all[i]
		if f.Err != nil {
			t.Fatal(f.Err)
		}
		add(t, snapshot, build.Object{Unstructured: f.Kustomization})
		if f.Result == nil {
			continue
		}
		for _, o := range f.Result.Objects {
			if isRelease(o.Ref()) {
				add(t, snapshot, o)
			}
		}
	}
	s := &Subject{
		Entry: "clusters/test", World: world, Prediction: &coldstart.Prediction{}, Book: world.Book,
		Graph: tiers.Build(snapshot, tiers.Options{}),
	}
	s.Locate = func(tier, object flux.Ref) build.Position {
		if tier.Name == "" {
			tier = root
		}
		for _, f := range all {
			if f.Tier.Key() != tier.Key() || f.Result == nil {
				continue
			}
			for _, o := range f.Result.Objects {
				if same(o.Ref(), object) {
					p, _ := f.Result.Locate(o)
					return p
				}
			}
		}
		return build.Position{}
	}
	return s
}

func add(t testing.TB, s *flux.Snapshot, o build.Object) {
	t.Helper()
	tier, err := flux.Authored(o.Unstructured)
	if err != nil {
		t.Fatal(err)
	}
	s.Tiers = append(s.Tiers, tier)
}

// outcome makes a prediction of one tier by hand, with what of it is retried
// in the tests.
func (s *Subject) outcome(t testing.TB, name string, verdict coldstart.Verdict, needs ...coldstart.Need) {
	t.Helper()
	o := coldstart.Outcome{Tier: ks(name), Verdict: verdict, Needs: needs, Retry: 3600e9, RetryIsInterval: true}
	s.Prediction.Outcomes = append(s.Prediction.Outcomes, o)
}

// need is a need of the objects of a kind in a tier.
func (s *Subject) need(t testing.TB, tier, kind string, when coldstart.When, providers ...coldstart.Provider) coldstart.Need {
	t.Helper()
	n := coldstart.Need{When: when, Providers: providers}
	for _, f := range s.World.Tiers {
		if f.Tier.Name != tier || f.Result == nil {
			continue
		}
		for _, o := range f.Result.Objects {
			if o.GetKind() == kind {
				n.Users, n.Kind, n.Stage = append(n.Users, o), o.GroupVersionKind(), o.Stage
			}
		}
	}
	if len(n.Users) == 0 {
		t.Fatalf("tier %s applies no %s", tier, kind)
	}
	return n
}

// trigger is a provider by an object of a tier.
func (s *Subject) trigger(t testing.TB, tier string, object flux.Ref, reach coldstart.Reach) coldstart.Provider {
	t.Helper()
	p := coldstart.Provider{How: coldstart.ByTrigger, Tier: ks(tier), Object: object, Stage: 4, Reach: reach}
	relations := s.Book.ByTrigger(schema.GroupKind{Group: object.Group(), Kind: object.Kind})
	if len(relations) == 0 {
		t.Fatalf("no relation has trigger %s", object)
	}
	p.Relation = &relations[0]
	return p
}

// check runs one rule.
func check(t testing.TB, s *Subject, id string) []finding.Finding {
	t.Helper()
	for _, r := range Rules() {
		if r.ID == id {
			return r.Check(s)
		}
	}
	t.Fatalf("there is no rule %s", id)
	return nil
}

// one is the only finding of a rule.
func one(t testing.TB, s *Subject, id string) finding.Finding {
	t.Helper()
	all := check(t, s, id)
	if len(all) != 1 {
		t.Fatalf("%s: %d findings, want one: %+v", id, len(all), all)
	}
	if all[0].Rule != id || all[0].Message == "" || all[0].Fix == "" {
		t.Errorf("%s: incomplete: %+v", id, all[0])
	}
	return all[0]
}

func none(t testing.TB, s *Subject, id string) {
	t.Helper()
	if all := check(t, s, id); len(all) > 0 {
		t.Errorf("%s: want none: %+v", id, all)
	}
}

// contains tells which of the words a text lacks.
func contains(t testing.TB, what, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("%s lacks %q:\n%s", what, w, text)
		}
	}
}

func causes(f finding.Finding) string { return strings.Join(f.Causes, "\n") }

func missingKinds(f finding.Finding) []string {
	var kinds []string
	for _, m := range f.Missing {
		kinds = append(kinds, m.Kind)
	}
	slices.Sort(kinds)
	return kinds
}

func rootOf(t testing.TB) *unstructured.Unstructured {
	t.Helper()
	return manifestOf(t, strings.Replace(tierYAML("flux-system", ""), "./flux-system", "./clusters/test", 1))
}

func manifestOf(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}
