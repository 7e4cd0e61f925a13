// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestParallelBuilds builds tiers side by side, some of which bring a schema of
// their own: each is what it is alone.
func TestParallelBuilds(t *testing.T) {
	const tiers = 24
	schema := `{"definitions": {"w": {"type": "object", "x-kubernetes-group-version-kind": [{"group": "example.com", "kind": "Widget", "version": "v1"}], "properties": {"spec": {"type": "object", "properties": {"parts": {"type": "array", "x-kubernetes-patch-merge-key": "name", "x-kubernetes-patch-strategy": "merge", "items": {"type": "object", "properties": {"name": {"type": "string"}, "size": {"type": "integer"}}}}}}}}}}`
	files := map[string]string{"schema.json": schema}
	for i := range tiers {
		at := fmt.Sprintf("t%02d/", i)
		own := ""
		if i%6 == 5 {
			own = "openapi: {path: ../schema.json}\n"
		}
		files[at+"kustomization.yaml"] = "resources: [w.yaml]\n" + own + "patches:\n- patch: |\n    apiVersion: example.com/v1\n    kind: Widget\n    metadata: {name: w, namespace: default}\n    spec:\n      parts:\n      - {name: b, size: 3}\n"
		files[at+"w.yaml"] = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w, namespace: default}\nspec:\n  parts:\n  - {name: a, size: 1}\n  - {name: b, size: 2}\n"
		files["cluster/"+fmt.Sprintf("t%02d.yaml", i)] = manifestAt(fmt.Sprintf("t%02d", i), at)
	}
	tree := openTree(t, writeTree(t, files))
	before := runtime.GOMAXPROCS(4)
	defer runtime.GOMAXPROCS(before)
	all, err := Builder{}.Follow(t.Context(), Only(theSource, tree), tierAt(t, "flux-system", "cluster"))
	if err != nil || len(all) != tiers+1 {
		t.Fatal(len(all), err)
	}
	for i, f := range all[1:] {
		if f.Err != nil {
			t.Fatal(f.Err)
		}
		want := 1 // the list is replaced
		if i%6 == 5 {
			want = 2
		}
		parts := f.Result.Objects[0].Object["spec"].(map[string]any)["parts"].([]any)
		if f.Tier.Name != fmt.Sprintf("t%02d", i) || len(parts) != want {
			t.Errorf("%s: %d parts, want %d in tier %d", f.Tier.Name, len(parts), want, i)
		}
	}
}

// TestFollowTwice: the answer does not depend on which build ends first.
func TestFollowTwice(t *testing.T) {
	files := map[string]string{"cluster/vars.yaml": manifestAt("vars", "vars"), "vars/v.yaml": configMap("v", "V: value")}
	for i := range 12 {
		name := fmt.Sprintf("t%02d", i)
		files["cluster/"+name+".yaml"] = manifestAt(name, name, "postBuild: {substituteFrom: [{kind: ConfigMap, name: v}, {kind: ConfigMap, name: "+fmt.Sprintf("t%02d", (i+5)%12)+"}]}")
		files[name+"/a.yaml"] = configMap(name, "V: ${V}", "W: ${W:=none}") + "---\n" + manifestAt(name+"-child", "vars")
	}
	tree := openTree(t, writeTree(t, files))
	var first []string
	for range 4 {
		all, err := Builder{UnknownVariables: true}.Follow(t.Context(), Only(theSource, tree), tierAt(t, "flux-system", "cluster"))
		if err != nil {
			t.Fatal(err)
		}
		got := said(all)
		for _, f := range all {
			for _, o := range f.Result.Objects {
				content, err := yaml.Marshal(o.Object)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, string(content))
			}
		}
		if first == nil {
			first = got
		}
		if !slices.Equal(got, first) {
			t.Fatalf("got %q and then %q", first, got)
		}
	}
}

// TestTreeIsShared locates and builds from many sides at the same time.
func TestTreeIsShared(t *testing.T) {
	tree := openTree(t, writeTree(t, map[string]string{"a/a.yaml": configMap("a", "k: v") + "---\n" + configMap("b", "k: v")}))
	result, err := Builder{}.Build(t.Context(), tierAt(t, "tier", "a"), tree)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if at, found := result.Locate(result.Objects[1]); !found || at.Line != 9 {
				t.Errorf("got %v", at)
			}
			if _, err := (Builder{}).Build(t.Context(), tierAt(t, "tier", "a"), tree); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}
