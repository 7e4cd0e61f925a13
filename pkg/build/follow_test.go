// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

// said is one line per tier.
func said(all []Followed) []string {
	var lines []string
	for _, f := range all {
		line := f.Tier.Key()
		for _, p := range f.Parents {
			line += " <" + p.Name
		}
		if f.Remote {
			line += " remote"
		}
		switch {
		case f.Outside != nil:
			line += " outside " + f.Outside.String()
		case f.Err != nil:
			line += " error"
		default:
			line += fmt.Sprintf(" %d", len(f.Result.Objects))
		}
		lines = append(lines, line)
	}
	return lines
}

func TestFollow(t *testing.T) {
	tests := []struct {
		name  string
		files map[string]string
		want  []string
	}{{
		name: "two levels, the root in its own path",
		files: map[string]string{
			"cluster/flux-system.yaml": manifestAt("flux-system", "cluster"),
			"cluster/platform.yaml":    manifestAt("platform", "platform"),
			"cluster/apps.yaml":        manifestAt("apps", "apps", "dependsOn: [{name: platform}]"),
			"platform/config.yaml":     manifestAt("platform-config", "config"),
			"apps/a.yaml":              configMap("a", "k: v"),
			"config/b.yaml":            configMap("b", "k: v") + "---\n" + configMap("c", "k: v"),
		},
		want: []string{"flux-system/flux-system 3", "flux-system/apps <flux-system 1", "flux-system/platform <flux-system 1", "flux-system/platform-config <platform 2"},
	}, {
		name: "a cycle",
		files: map[string]string{
			"cluster/a.yaml": manifestAt("a", "a"),
			"a/b.yaml":       manifestAt("b", "b"),
			"b/a.yaml":       manifestAt("a", "a"),
		},
		want: []string{"flux-system/flux-system 1", "flux-system/a <flux-system <b 1", "flux-system/b <a 1"},
	}, {
		name: "a child that applies the root again did not bring it",
		files: map[string]string{
			"cluster/flux-system.yaml": manifestAt("flux-system", "cluster"),
			"cluster/all.yaml":         manifestAt("all", "./"),
		},
		want: []string{"flux-system/flux-system 2", "flux-system/all <flux-system 2"},
	}, {
		name: "another source",
		files: map[string]string{
			"cluster/a.yaml": strings.ReplaceAll(manifestAt("a", "a"), "    name: flux-system\n", "    name: other\n"),
			"cluster/b.yaml": strings.ReplaceAll(manifestAt("b", "a"), "GitRepository", "OCIRepository"),
			"a/c.yaml":       configMap("c", "k: v"),
		},
		want: []string{"flux-system/flux-system 2", "flux-system/a <flux-system outside GitRepository/flux-system/other", "flux-system/b <flux-system outside OCIRepository/flux-system/flux-system"},
	}, {
		name: "a tier that does not build stops nothing",
		files: map[string]string{
			"cluster/a.yaml": manifestAt("a", "absent"),
			"cluster/b.yaml": manifestAt("b", "b"),
			"b/c.yaml":       configMap("c", "k: v"),
		},
		want: []string{"flux-system/flux-system 2", "flux-system/a <flux-system error", "flux-system/b <flux-system 1"},
	}, {
		name: "variables of a tier that is built later",
		files: map[string]string{
			"cluster/a.yaml": manifestAt("a", "a", "postBuild: {substituteFrom: [{kind: ConfigMap, name: vars}]}"),
			"cluster/b.yaml": manifestAt("b", "b"),
			"a/c.yaml":       "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '${NAME}', namespace: default}\n---\n" + manifestAt("${NAME}", "c"),
			"b/vars.yaml":    configMap("vars", "NAME: found"),
			"c/d.yaml":       configMap("d", "k: v"),
		},
		want: []string{"flux-system/flux-system 2", "flux-system/a <flux-system 2", "flux-system/b <flux-system 1", "flux-system/found <a 1"},
	}, {
		name: "another cluster has a tier of the same name",
		files: map[string]string{
			"cluster/a.yaml":    manifestAt("a", "a", "kubeConfig: {secretRef: {name: other}}"),
			"cluster/apps.yaml": manifestAt("late", "late"),
			"a/vars.yaml":       configMap("vars", "NAME: wrong"),
			"a/b.yaml":          manifestAt("late", "elsewhere") + "---\n" + manifestAt("b", "b") + "---\n" + manifestAt("deep", "elsewhere"),
			"b/c.yaml":          manifestAt("c", "c"),
			"c/c.yaml":          configMap("c", "k: v"),
			"late/d.yaml":       configMap("d", "k: v") + "---\n" + configMap("e", "k: v") + "---\n" + manifestAt("deep", "c"),
			"elsewhere/d.yaml":  configMap("d", "k: v") + "---\n" + configMap("e", "k: v") + "---\n" + configMap("f", "k: v") + "---\n" + configMap("g", "k: v"),
		},
		want: []string{"flux-system/flux-system 2", "flux-system/a <flux-system remote 4", "flux-system/late <flux-system 3", "flux-system/b <a remote 1", "flux-system/deep <late 1", "flux-system/c <b remote 1"},
	}, {
		name: "a tier that changes itself",
		files: map[string]string{
			"cluster/kustomization.yaml": "resources: [a.yaml, root.yaml]\npatches:\n- target: {kind: Kustomization}\n  patch: |\n    - {op: add, path: /spec/postBuild, value: {substitute: {NAME: new}}}\n",
			"cluster/root.yaml":          manifestAt("flux-system", "cluster"),
			"cluster/a.yaml":             "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: 'a-${NAME}', namespace: default}\n---\n" + manifestAt("'${NAME}'", "apps"),
			"apps/a.yaml":                configMap("a", "k: v"),
		},
		want: []string{"flux-system/flux-system 3", "flux-system/new <flux-system 1"},
	}, {
		name: "two tiers that make each other another",
		files: map[string]string{
			"cluster/b.yaml":         manifestAt("b", "one"),
			"one/a.yaml":             manifestAt("a", "two"),
			"two/kustomization.yaml": "resources: [b.yaml]\n",
			"two/b.yaml":             manifestAt("b", "three"),
			"three/a.yaml":           manifestAt("a", "four"),
			"four/b.yaml":            manifestAt("b", "one"),
		},
		want: []string{"flux-system/flux-system 1", "flux-system/b <flux-system <a 1", "flux-system/a <b 1"},
	}, {
		name: "variables that nothing applies",
		files: map[string]string{
			"cluster/a.yaml": manifestAt("a", "a", "postBuild: {substituteFrom: [{kind: ConfigMap, name: vars}]}"),
			"a/c.yaml":       configMap("c", "k: ${NAME}"),
		},
		want: []string{"flux-system/flux-system 1", "flux-system/a <flux-system error"},
	}, {
		name: "variables that feed each other",
		files: map[string]string{
			"cluster/a.yaml": manifestAt("a", "a", "postBuild: {substituteFrom: [{kind: ConfigMap, name: b, optional: true}]}"),
			"cluster/b.yaml": manifestAt("b", "b", "postBuild: {substituteFrom: [{kind: ConfigMap, name: a, optional: true}]}"),
			"a/c.yaml":       configMap("a", "A: ${B:=none}"),
			"b/c.yaml":       configMap("b", "B: ${A:=none}"),
		},
		want: []string{"flux-system/flux-system 2", "flux-system/a <flux-system 1", "flux-system/b <flux-system 1"},
	}}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tree := openTree(t, writeTree(t, tt.files))
			all, err := Builder{}.Follow(t.Context(), Only(theSource, tree), tierAt(t, "flux-system", "cluster"))
			if err != nil {
				t.Fatal(err)
			}
			if got := said(all); !slices.Equal(got, tt.want) {
				for _, f := range all {
					if f.Err != nil {
						t.Log(f.Err)
					}
				}
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

// TestFollowParentDecides: a root is given as it is known; what its parent
// applies is what counts.
func TestFollowParentDecides(t *testing.T) {
	tree := openTree(t, writeTree(t, map[string]string{
		"cluster/a.yaml": manifestAt("a", "new"),
		"old/a.yaml":     configMap("old", "k: v"),
		"new/a.yaml":     configMap("new", "k: v"),
	}))
	all, err := Builder{}.Follow(t.Context(), Only(theSource, tree), tierAt(t, "a", "old"), tierAt(t, "flux-system", "cluster"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := said(all), []string{"flux-system/a <flux-system 1", "flux-system/flux-system 1"}; !slices.Equal(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}
	if got := names(all[0].Result.Objects); !slices.Equal(got, []string{"ConfigMap/flux-system/new"}) {
		t.Errorf("built %q, want what the parent's manifest says", got)
	}
}

// TestFollowRoots: what a root that stands brings has its parent, and of roots
// that contain each other the first was there.
func TestFollowRoots(t *testing.T) {
	tree := openTree(t, writeTree(t, map[string]string{
		"one/two.yaml": manifestAt("two", "two"), "two/one.yaml": manifestAt("one", "one"), "three/four.yaml": manifestAt("four", "four"),
		"four/x.yaml": configMap("x", "k: v"),
	}))
	root := func(name string) *unstructured.Unstructured { return tierAt(t, name, name) }
	all, err := Builder{}.Follow(t.Context(), Only(theSource, tree), root("one"), root("two"), root("four"), root("three"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"flux-system/one 1", "flux-system/two <one 1", "flux-system/four <three 1", "flux-system/three 1"}
	if got := said(all); !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

// TestFollowLive: of a running cluster, the tiers and the variables count that
// are there; what it lacks comes from the tree.
func TestFollowLive(t *testing.T) {
	from := "postBuild: {substituteFrom: [{kind: ConfigMap, name: both}, {kind: ConfigMap, name: later}]}"
	tree := openTree(t, writeTree(t, map[string]string{
		"cluster/a.yaml":    manifestAt("a", "new", from),
		"cluster/b.yaml":    manifestAt("b", "b"),
		"cluster/vars.yaml": configMap("both", "BOTH: git") + "---\n" + configMap("later", "LATER: git"),
		"old/a.yaml":        configMap("old", "k: ${BOTH}-${LATER}"),
		"new/a.yaml":        configMap("new", "k: v"),
		"b/b.yaml":          configMap("b", "k: v"),
	}))
	live := &someVariables{configMaps: map[string]map[string]string{"both": {"BOTH": "live"}}}
	builder := Builder{Live: true, Variables: Remember(live)}
	all, err := builder.Follow(t.Context(), Only(theSource, tree), tierAt(t, "a", "old", from), tierAt(t, "flux-system", "cluster"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"flux-system/a <flux-system 1", "flux-system/flux-system 4", "flux-system/b <flux-system 1"}
	if got := said(all); !slices.Equal(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}
	built := all[0].Result.Objects[0]
	if value, _, _ := unstructured.NestedString(built.Object, "data", "k"); built.GetName() != "old" || value != "live-git" {
		t.Errorf("built %s with %q, want what the cluster has", built, value)
	}
	if reads := live.reads.Load(); reads != 2 {
		t.Errorf("%d reads of two objects", reads)
	}
}

// TestFollowEncryptedVariables: the name of an encrypted variable is in the
// clear, its value is not known.
func TestFollowEncryptedVariables(t *testing.T) {
	secret := "apiVersion: v1\nkind: Secret\nmetadata: {name: vars, namespace: flux-system}\nstringData: {TOKEN: 'ENC[AES256_GCM,data:AAAA,iv:B,tag:C,type:str]'}\nsops: {mac: 'ENC[x]', version: 3.9.0}\n"
	tree := openTree(t, writeTree(t, map[string]string{
		"cluster/vars.yaml": secret,
		"cluster/a.yaml":    manifestAt("a", "a", "postBuild: {substituteFrom: [{kind: Secret, name: vars}]}"),
		"a/c.yaml":          configMap("c", "k: ${TOKEN}"),
	}))
	all, err := Builder{}.Follow(t.Context(), Only(theSource, tree), tierAt(t, "flux-system", "cluster", "decryption: {provider: sops}"))
	if err != nil {
		t.Fatal(err)
	}
	a := all[1]
	if a.Err != nil {
		t.Fatal(a.Err)
	}
	if want := []string{"Secret/flux-system/vars: TOKEN"}; !slices.Equal(a.Result.Unknown, want) {
		t.Errorf("unknown %q, want %q", a.Result.Unknown, want)
	}
	if got := a.Result.Objects[0].Object["data"].(map[string]any)["k"]; strings.Contains(got.(string), "ENC[") {
		t.Errorf("the ciphertext %q was substituted", got)
	}
}

// TestFollowFallsBack: what the tree does not hold comes from the caller.
func TestFollowFallsBack(t *testing.T) {
	tree := openTree(t, writeTree(t, map[string]string{
		"a.yaml": configMap("c", "k: ${NAME}${TOKEN}"),
	}))
	builder := Builder{Variables: &someVariables{
		configMaps: map[string]map[string]string{"vars": {"NAME": "n"}}, secrets: map[string]map[string][]byte{"s": {"TOKEN": []byte("t")}},
	}}
	all, err := builder.Follow(t.Context(), Only(theSource, tree), tierAt(t, "a", ".", "postBuild: {substituteFrom: [{kind: ConfigMap, name: vars}, {kind: Secret, name: s}]}"))
	if err != nil || all[0].Err != nil {
		t.Fatal(err, all[0].Err)
	}
	if got := all[0].Result.Objects[0].Object["data"].(map[string]any)["k"]; got != "nt" {
		t.Errorf("got %q", got)
	}
}

func TestFollowErrors(t *testing.T) {
	broken := func(context.Context, flux.Ref) (*Tree, error) { return nil, errors.New("no way") }
	if _, err := (Builder{}).Follow(t.Context(), broken, tierAt(t, "a", ".")); err == nil || err.Error() != "kustomization flux-system/a: no way" {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (Builder{}).Follow(ctx, broken, tierAt(t, "a", ".")); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that it was interrupted", err)
	}
}

func TestLocate(t *testing.T) {
	tree := openTree(t, writeTree(t, map[string]string{
		"apps/kustomization.yaml":      "namePrefix: p-\nresources: [many.yaml, base, twice-a.yaml, twice-b.yaml]\nconfigMapGenerator: [{name: generated, literals: [a=b]}]\npatches: [{path: patch.yaml}]\n",
		"apps/many.yaml":               "# a comment\n---\n" + configMap("first", "k: v") + "---\n" + configMap("second", "k: v"),
		"apps/patch.yaml":              configMap("first", "k: patched"),
		"apps/base/kustomization.yaml": "resources: [deep.yaml]\n",
		"apps/base/deep.yaml":          "\n\n" + configMap("deep", "k: v"),
		"apps/twice-a.yaml":            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: twice, namespace: one}\n",
		"apps/twice-b.yaml":            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: twice, namespace: two}\n",
	}))
	result, err := Builder{}.Build(t.Context(), tierAt(t, "tier", "apps"), tree)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]Position{
		"ConfigMap/flux-system/p-first":  {"apps/many.yaml", 3},
		"ConfigMap/flux-system/p-second": {"apps/many.yaml", 11},
		"ConfigMap/flux-system/p-deep":   {"apps/base/deep.yaml", 3},
		"ConfigMap/one/p-twice":          {}, // renamed, twice
		"ConfigMap/two/p-twice":          {},
	}
	for _, o := range result.Objects {
		at, found := result.Locate(o)
		if strings.Contains(o.GetName(), "generated") {
			if found {
				t.Errorf("%s is found at %v", o, at)
			}
			continue
		}
		expected, ok := want[o.String()]
		if !ok || at != expected || found != (expected != Position{}) {
			t.Errorf("%s: got %v, %t, want %v", o, at, found, expected)
		}
	}
}

func TestChildren(t *testing.T) {
	tree := openTree(t, writeTree(t, map[string]string{
		"a.yaml": manifestAt("a", "a") + "---\n" + strings.ReplaceAll(manifestAt("b", "b"), "kustomize.toolkit", "other") + "---\n" + configMap("c", "k: v"),
	}))
	result, err := Builder{}.Build(t.Context(), tierAt(t, "tier", "."), tree)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := names(result.Children()), []string{"Kustomization/flux-system/a"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// BenchmarkFollow builds two thousand tiers of one tree, as lint does.
func BenchmarkFollow(b *testing.B) {
	files := map[string]string{}
	for i := range 2000 {
		name := fmt.Sprintf("t%04d", i)
		files["cluster/"+name+".yaml"] = manifestAt(name, name)
		files[name+"/a.yaml"] = configMap("a"+name, "k: v")
	}
	tree := openTree(b, writeTree(b, files))
	for b.Loop() {
		all, err := Builder{}.Follow(b.Context(), Only(theSource, tree), tierAt(b, "flux-system", "cluster"))
		if err != nil || len(all) != 2001 {
			b.Fatal(len(all), err)
		}
	}
}
