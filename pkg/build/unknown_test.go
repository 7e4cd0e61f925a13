// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestUnknownVariables: what somebody makes by hand is in no repository, and
// the tier is built all the same.
func TestUnknownVariables(t *testing.T) {
	const byHand = "substituteFrom: [{kind: ConfigMap, name: by-hand}]"
	secret := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '${NAME}', namespace: default}\ndata: {a: '${A}', b: '${B:=two}', c: '${C:-three}', n: 'x${#NAME}', escaped: '$${A}'}\n"
	tests := []struct {
		name, post    string
		loose         bool
		want          string
		absent        []string
		unknown       bool
		strictMessage string
	}{
		{"absent", byHand, false, "UNKNOWN_NAME a=UNKNOWN_A b=two c=three escaped=${A} n=x12", []string{"ConfigMap/flux-system/by-hand"}, true, `configmaps "by-hand" not found`},
		{"absent, loose", byHand, true, "UNKNOWN_NAME a=UNKNOWN_A b=two c=three escaped=${A} n=x12", []string{"ConfigMap/flux-system/by-hand"}, true, `configmaps "by-hand" not found`},
		{"absent Secret", "substituteFrom: [{kind: Secret, name: by-hand}]", false, "UNKNOWN_NAME a=UNKNOWN_A b=two c=three escaped=${A} n=x12", []string{"Secret/flux-system/by-hand"}, true, `secrets "by-hand" not found`},
		{"all set inline", "substitute: {NAME: me, A: one}, " + byHand, false, "me a=one b=two c=three escaped=${A} n=x2", []string{"ConfigMap/flux-system/by-hand"}, false, `configmaps "by-hand" not found`},
		{"a later one is there", "substituteFrom: [{kind: ConfigMap, name: by-hand}, {kind: ConfigMap, name: there}]", false, "there a=UNKNOWN_A b=two c=three escaped=${A} n=x5", []string{"ConfigMap/flux-system/by-hand"}, true, `configmaps "by-hand" not found`},
		{"optional, nothing else", "substituteFrom: [{kind: ConfigMap, name: by-hand, optional: true}]", false, "${NAME} a=${A} b=${B:=two} c=${C:-three} escaped=$${A} n=x${#NAME}", nil, false, ""},
		{"optional, something inline", "substitute: {NAME: me}, substituteFrom: [{kind: ConfigMap, name: by-hand, optional: true}]", false, "me a=UNKNOWN_A b=two c=three escaped=${A} n=x2", nil, true, `variable not set (strict mode): "A"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tree := openTree(t, writeTree(t, map[string]string{"a.yaml": secret}))
			tier := tierAt(t, "tier", ".", "postBuild: {"+tt.post+"}")
			builder := Builder{LooseSubstitution: tt.loose, Variables: &someVariables{configMaps: map[string]map[string]string{"there": {"NAME": "there"}}}}
			_, err := builder.Build(t.Context(), tier, tree)
			if got := fmt.Sprint(err); tt.strictMessage != "" && !strings.Contains(got, tt.strictMessage) {
				t.Errorf("without the option: got %s, want …%s…", got, tt.strictMessage)
			}
			builder.UnknownVariables = true
			result, err := builder.Build(t.Context(), tier, tree)
			if err != nil {
				t.Fatal(err)
			}
			o := result.Objects[0]
			data, _, _ := unstructured.NestedStringMap(o.Object, "data")
			got := o.GetName()
			for _, key := range []string{"a", "b", "c", "escaped", "n"} {
				got += " " + key + "=" + data[key]
			}
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			var absent []string
			for _, ref := range result.Absent {
				absent = append(absent, ref.String())
			}
			if !slices.Equal(absent, tt.absent) {
				t.Errorf("absent %q, want %q", absent, tt.absent)
			}
			if unknown := IsUnknown(got); unknown != tt.unknown {
				t.Errorf("IsUnknown of %s is %t", got, unknown)
			}
		})
	}
}

// TestUnknownDefaults: an absent object holds something on a cluster, so that
// Flux replaces variables there even when all that are used have a default.
func TestUnknownDefaults(t *testing.T) {
	tree := openTree(t, writeTree(t, map[string]string{"a.yaml": configMap("a", "k: ${B:=two}")}))
	tier := tierAt(t, "tier", ".", "postBuild: {substituteFrom: [{kind: ConfigMap, name: by-hand}]}")
	result, err := Builder{UnknownVariables: true}.Build(t.Context(), tier, tree)
	if err != nil {
		t.Fatal(err)
	}
	if got, _, _ := unstructured.NestedString(result.Objects[0].Object, "data", "k"); got != "two" {
		t.Errorf("got %q, want the default", got)
	}
}

// TestUnknownTypes: a placeholder stands where only a number may, and the tier
// is built as Flux would build it with a word there.
func TestUnknownTypes(t *testing.T) {
	tree := openTree(t, writeTree(t, map[string]string{
		"a.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a, namespace: default}\nspec:\n  replicas: ${COUNT}\n  template:\n    spec:\n      containers:\n      - name: a\n        ports:\n        - containerPort: ${PORT}\n",
	}))
	builder := Builder{UnknownVariables: true}
	result, err := builder.Build(t.Context(), tierAt(t, "tier", ".", "postBuild: {substituteFrom: [{kind: ConfigMap, name: by-hand}]}"), tree)
	if err != nil || len(result.Objects) != 1 {
		t.Fatal(result, err)
	}
}

// TestUnknownError: a tier whose own path nobody knows is no mistake.
func TestUnknownError(t *testing.T) {
	tree := openTree(t, writeTree(t, map[string]string{
		"cluster/a.yaml":  manifestAt("a", "a", "postBuild: {substituteFrom: [{kind: ConfigMap, name: by-hand}]}"),
		"a/b.yaml":        manifestAt("b", "apps/${CLUSTER}"),
		"apps/one/c.yaml": configMap("c", "k: v"),
	}))
	all, err := Builder{UnknownVariables: true}.Follow(t.Context(), Only(theSource, tree), tierAt(t, "flux-system", "cluster"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := said(all), []string{"flux-system/flux-system 1", "flux-system/a <flux-system 1", "flux-system/b <a error"}; !slices.Equal(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}
	var unknown *UnknownError
	want := "kustomization flux-system/b: spec.path depends on a variable whose value the repository does not hold: kustomization path not found: stat apps/UNKNOWN_CLUSTER: no such file or directory"
	if !errors.As(all[2].Err, &unknown) || unknown.Field != "spec.path" || all[2].Err.Error() != want {
		t.Errorf("got %v, want %s", all[2].Err, want)
	}
}

// TestFollowForgets: what was met under a name that turned out to be another is
// not in the answer.
func TestFollowForgets(t *testing.T) {
	tree := openTree(t, writeTree(t, map[string]string{
		"cluster/a.yaml": manifestAt("a", "a", "postBuild: {substituteFrom: [{kind: ConfigMap, name: late}]}"),
		"cluster/b.yaml": manifestAt("b", "b", "postBuild: {substituteFrom: [{kind: ConfigMap, name: nowhere}]}"),
		"a/c.yaml":       manifestAt("child-of-${NAME}", "c"),
		"b/d.yaml":       manifestAt("d", "d"),
		"d/late.yaml":    configMap("late", "NAME: found"),
		"c/e.yaml":       configMap("e", "k: v"),
	}))
	all, err := Builder{UnknownVariables: true}.Follow(t.Context(), Only(theSource, tree), tierAt(t, "flux-system", "cluster"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"flux-system/flux-system 2", "flux-system/a <flux-system 1", "flux-system/b <flux-system 1", "flux-system/d <b 1", "flux-system/child-of-found <a 1"}
	if got := said(all); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// TestInjected: where a webhook adds variables to tiers, any may be set, and in
// any tier. What a tier sets itself is what it is.
func TestInjected(t *testing.T) {
	for post, want := range map[string]string{
		"":                                  "UNKNOWN_NAME UNKNOWN_A two",
		"postBuild: {substitute: {A: one}}": "UNKNOWN_NAME one two",
		"postBuild: {substituteFrom: [{kind: ConfigMap, name: there}]}": "there UNKNOWN_A two",
	} {
		tree := openTree(t, writeTree(t, map[string]string{"a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '${NAME}', namespace: default}\ndata: {a: '${A}', b: '${B:=two}'}\n"}))
		spec := []string{}
		if post != "" {
			spec = append(spec, post)
		}
		builder := Builder{UnknownVariables: true, Injected: true, Variables: &someVariables{configMaps: map[string]map[string]string{"there": {"NAME": "there"}}}}
		result, err := builder.Build(t.Context(), tierAt(t, "tier", ".", spec...), tree)
		if err != nil {
			t.Fatal(err)
		}
		o := result.Objects[0]
		data, _, _ := unstructured.NestedStringMap(o.Object, "data")
		if got := o.GetName() + " " + data["a"] + " " + data["b"]; got != want || len(result.Absent) > 0 {
			t.Errorf("%s: got %s, absent %v, want %s", post, got, result.Absent, want)
		}
	}
}
