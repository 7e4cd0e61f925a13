// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package suggest

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kubestandup/kubestandup/pkg/coldstart"
)

// kinds are all needs of kinds, anything all needs.
func kinds(n coldstart.Need) bool    { return n.Kind.Kind != "" }
func anything(n coldstart.Need) bool { return true }

const (
	onGadgets  = "  dependsOn:\n    - name: gadgets\n"
	namespaced = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: media}\n"
	namespace  = "apiVersion: v1\nkind: Namespace\nmetadata: {name: media}\n"
)

// TestEdge lets tiers wait for what they need: the race is gone, and nothing
// else changes.
func TestEdge(t *testing.T) {
	gadgets := "-- gadgets/a.yaml --\n" + gadgeteer + "-- apps/a.yaml --\n" + gadget
	cdis := "-- cdi/a.yaml --\n" + definition + "---\n" + cdi + "-- apps/a.yaml --\n" + profile
	for _, test := range []struct {
		layout
		tier  string
		which func(coldstart.Need) bool
	}{{
		layout: layout{
			name:  "a kind of a trigger: the edge and the gate",
			files: "-- clusters/test/a.yaml --\n" + tierYAML("cdi", "cdi", waits) + "---\n" + tierYAML("apps", "apps", "") + cdis,
			want: map[string]string{"clusters/test/a.yaml": waits + "  healthCheckExprs:\n    - apiVersion: cdi.kubevirt.io/v1beta1\n      kind: CDI\n      current: has(status.phase) && status.phase == 'Deployed'\n---\n" +
				tierYAML("apps", "apps", "  dependsOn:\n    - name: cdi\n")},
			notes: []string{"Edge: apps depends on cdi now, which brings StorageProfile.", "Gate: cdi is Ready only once CDI/cdi is reconciled. It holds 1 tier."},
		}, tier: "apps", which: kinds,
	}, {
		layout: layout{
			name:  "a CRD of git needs no gate",
			files: "-- clusters/test/a.yaml --\n" + tierYAML("cdi", "cdi", "") + "---\n" + tierYAML("apps", "apps", "  dependsOn: [{name: z}]\n") + "---\n" + tierYAML("z", "z", "") + "-- z/a.yaml --\n" + configMap("z") + "-- cdi/a.yaml --\n" + definition + "-- apps/a.yaml --\n" + cdi,
			want:  map[string]string{"clusters/test/a.yaml": tierYAML("cdi", "cdi", "") + "---\n" + tierYAML("apps", "apps", "  dependsOn: [{name: cdi}, {name: z}]\n")},
		}, tier: "apps", which: kinds,
	}, {
		layout: layout{
			name:  "health checks on CRDs",
			files: "-- clusters/test/a.yaml --\n" + tierYAML("gadgets", "gadgets", "") + "---\n" + tierYAML("apps", "apps", "") + gadgets,
			want:  map[string]string{"clusters/test/a.yaml": "  healthChecks:\n    - apiVersion: apiextensions.k8s.io/v1\n      kind: CustomResourceDefinition\n      name: gadgets.gadgets.example.com\n"},
		}, tier: "apps", which: kinds,
	}, {
		layout: layout{
			name: "a loop: what needs the other tier moves down",
			files: "-- clusters/test/a.yaml --\n" + tierYAML("cdi", "cdi", waits+"  dependsOn: [{name: base}]\n") + "---\n" + tierYAML("base", "base", "  dependsOn: [{name: apps}]\n") + "---\n" + tierYAML("apps", "apps", "") +
				cdis + "---\n" + configMap("apps") + "-- base/a.yaml --\n" + configMap("base"),
			want: map[string]string{"clusters/test/a.yaml": "  dependsOn:\n    - name: apps\n    - name: cdi\n", "apps-cdi/a.yaml": profile},
		}, tier: "apps",
	}, {
		layout: layout{
			name:  "a Namespace of another tier",
			files: "-- clusters/test/a.yaml --\n" + tierYAML("namespaces", "namespaces", "") + "---\n" + tierYAML("apps", "apps", "") + "-- namespaces/a.yaml --\n" + namespace + "-- apps/a.yaml --\n" + namespaced,
			want:  map[string]string{"clusters/test/a.yaml": tierYAML("apps", "apps", "  dependsOn:\n    - name: namespaces\n")},
		}, tier: "apps", which: anything,
	}, {
		layout: layout{
			name:  "JSON",
			files: "-- clusters/test/kustomization.yaml --\nresources: [flux-system/gotk-sync.yaml, a.json, b.yaml]\n-- clusters/test/a.json --\n{\n  \"apiVersion\": \"kustomize.toolkit.fluxcd.io/v1\", \"kind\": \"Kustomization\",\n  \"metadata\": {\"name\": \"apps\", \"namespace\": \"flux-system\"},\n  \"spec\": {\n    \"interval\": \"10m\", \"path\": \"./apps\", \"prune\": true,\n    \"sourceRef\": {\"kind\": \"GitRepository\", \"name\": \"flux-system\"}\n  }\n}\n-- clusters/test/b.yaml --\n" + tierYAML("cdi", "cdi", waits) + cdis,
			want:  map[string]string{"clusters/test/a.json": "  \"spec\": {\"dependsOn\":[{\"name\":\"cdi\"}], \n    \"interval\": \"10m\""},
		}, tier: "apps", which: kinds,
	}} {
		t.Run(test.name, func(t *testing.T) {
			dir := test.repository(t)
			before := look(t, dir)
			d := before.Fresh()
			var err error
			switch {
			case test.which != nil:
				err = d.Edge(0, tier(test.tier), test.which)
			case slices.Contains(verdicts(before), test.tier+" never"):
				err = d.Split(0, tier(test.tier))
			default:
				t.Fatalf("the fixture is no loop: %v", verdicts(before))
			}
			if err != nil {
				t.Fatal(err)
			}
			patch := d.Patch()
			Apply(t, dir, patch.Diff)
			test.check(t, dir, patch)
			after := look(t, dir)
			for _, v := range verdicts(after) {
				if !strings.HasSuffix(v, " "+string(coldstart.AtOnce)) {
					t.Errorf("after the patch: %s\n%s", v, patch.Diff)
				}
			}
			sameObjects(t, before, after, patch)
			if err := after.Fresh().Edge(0, tier(test.tier), anything); err == nil {
				t.Error("it is suggested again")
			}
		})
	}
}

// TestNoLoop: every way in which tiers wait for each other is seen.
func TestNoLoop(t *testing.T) {
	release := func(name, more string) string {
		return "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: " + name + ", namespace: flux-system}\nspec: {interval: 10m, chart: {spec: {chart: x, sourceRef: {kind: HelmRepository, name: x}}}" + more + "}\n"
	}
	for _, test := range []struct {
		name, files string
		want        bool
	}{
		{"nothing", "-- a/a.yaml --\n" + configMap("a") + "-- b/a.yaml --\n" + configMap("b"), false},
		{"releases", "-- a/a.yaml --\n" + release("a", "") + "-- b/a.yaml --\n" + release("b", ", dependsOn: [{name: m}]") + "---\n" + release("m", ", dependsOn: [{name: a}]"), true},
		{"a child that waits", "-- a/a.yaml --\n" + configMap("a") + "-- b/a.yaml --\n" + tierYAML("c", "c", "  dependsOn: [{name: a}]\n") + "-- c/a.yaml --\n" + configMap("c"), true},
		{"its own parent", "-- a/a.yaml --\n" + configMap("a") + "-- b/a.yaml --\n" + strings.ReplaceAll(tierYAML("a", "a", ""), "---\n", ""), true},
	} {
		own := tierYAML("a", "a", "") + "---\n"
		if test.name == "its own parent" {
			own = ""
		}
		for _, wait := range []bool{true, false} {
			spec := ""
			if wait {
				spec = waits
			}
			in := look(t, Unpack(t, root+"-- clusters/test/a.yaml --\n"+own+tierYAML("b", "b", spec)+test.files))
			if got := in.clusters[0].closes("flux-system/a", "flux-system/b"); got != (test.want && wait) {
				t.Errorf("%s, wait: %v: an edge closes a loop: %v", test.name, wait, got)
			}
		}
	}
	in := look(t, Unpack(t, root+"-- clusters/test/a.yaml --\n"+tierYAML("gadgets", "gadgets", "  dependsOn: [{name: apps}]\n")+"---\n"+tierYAML("apps", "apps", "")+"-- gadgets/a.yaml --\n"+configMap("a")+"-- apps/a.yaml --\n"+configMap("b")))
	d := in.Fresh()
	if err := d.step(func() error { return d.addEdge(d.clusters[0], tier("apps"), tier("gadgets")) }); err == nil || !strings.Contains(err.Error(), "would close a loop") || d.Patch().Diff != "" {
		t.Errorf("%v\n%s", err, d.Patch().Diff)
	}
	if err := in.Fresh().Edge(0, tier("apps"), anything); err == nil {
		t.Error("there is nothing to wait for")
	}
}

func TestNamespace(t *testing.T) {
	for _, test := range []struct {
		name, files, file, want, because string
	}{
		{"a folder", "-- apps/a.yaml --\n" + namespaced, "apps/namespace.yaml", "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: media\n", ""},
		{"a list", "-- apps/kustomization.yaml --\nresources:\n- a.yaml # first\n\n# the end\n-- apps/a.yaml --\n" + namespaced, "apps/kustomization.yaml", "resources:\n- a.yaml # first\n- namespace.yaml\n\n# the end\n", ""},
		{"a file of that name", "-- apps/a.yaml --\n" + namespaced + "-- apps/namespace.yaml --\n" + configMap("x"), "apps/namespace-media.yaml", "name: media\n", ""},
		{"set by kustomize", "-- apps/kustomization.yaml --\nnamespace: media\nresources: [a.yaml]\n-- apps/a.yaml --\n" + configMap("x"), "apps/kustomization.yaml", "resources: [namespace.yaml, a.yaml]\n", ""},
		{"a cluster that has it", "-- apps/a.yaml --\n" + namespaced + other() + "-- clusters/other/a.yaml --\n" + tierYAML("x", "apps", "") + "-- clusters/other/n.yaml --\n" + namespace, "", "", "apps is built by flux-system/x of clusters/other too, where flux-system creates Namespace media"},
		{"a cluster that has it not", "-- apps/a.yaml --\n" + namespaced + other() + "-- clusters/other/a.yaml --\n" + tierYAML("x", "apps", ""), "apps/namespace.yaml", "name: media\n", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := Unpack(t, root+"-- clusters/test/a.yaml --\n"+tierYAML("apps", "apps", "")+test.files)
			in := look(t, dir)
			d := in.Fresh()
			var user coldstart.Need
			for _, n := range in.clusters[0].outcome(tier("apps")).Needs {
				if n.Object.Kind == "Namespace" {
					user = n
				}
			}
			if len(user.Users) == 0 {
				t.Fatal("the fixture lacks no Namespace")
			}
			err := d.Namespace(0, tier("apps"), user.Users[0].Ref())
			if test.because != "" {
				if err == nil || !strings.Contains(err.Error(), test.because) {
					t.Errorf("it says %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			patch := d.Patch()
			Apply(t, dir, patch.Diff)
			if got := read(t, dir)[test.file]; !strings.Contains(got, test.want) {
				t.Errorf("%s is\n%s\nwithout\n%s", test.file, got, test.want)
			}
			after := look(t, dir)
			for i := range after.clusters {
				for _, o := range after.clusters[i].Prediction.Outcomes {
					if o.Verdict != coldstart.AtOnce {
						t.Errorf("%s is %s in %s\n%s", o.Tier.Name, o.Verdict, after.clusters[i].Name, patch.Diff)
					}
				}
			}
		})
	}
	// Two tiers, one of which creates it and lets the other one wait.
	dir := Unpack(t, root+"-- clusters/test/a.yaml --\n"+tierYAML("a", "a", "")+"---\n"+tierYAML("b", "b", "")+"-- a/a.yaml --\n"+namespaced+"-- b/a.yaml --\n"+strings.ReplaceAll(namespaced, "name: a,", "name: b,"))
	d := look(t, dir).Fresh()
	for _, name := range []string{"a", "b"} {
		user := d.clusters[0].followed(tier(name)).Result.Objects[0].Ref()
		if err := d.Namespace(0, tier(name), user); err != nil {
			t.Fatal(err)
		}
	}
	Apply(t, dir, d.Patch().Diff)
	if _, err := os.Stat(filepath.Join(dir, "b/namespace.yaml")); err == nil || !slices.Equal(verdicts(look(t, dir)), []string{"a at-once", "b at-once", "flux-system at-once"}) {
		t.Errorf("%v\n%s", verdicts(look(t, dir)), d.Patch().Diff)
	}
}

// TestTogether: steps add up in one diff with one part for each file, and one
// that is refused leaves nothing behind.
func TestTogether(t *testing.T) {
	files := config(waits, edge) + everything + "-- clusters/test/more.yaml --\n" + tierYAML("more", "more", waits) + "---\n" + tierYAML("late", "late", "") +
		"-- more/all.yaml --\n" + gadgeteer + "---\n" + gadget + "-- late/a.yaml --\n" + strings.ReplaceAll(profile, "longhorn", "late")
	in := look(t, Unpack(t, root+files))
	d := in.Fresh()
	if err := d.Split(0, tier("config")); err != nil {
		t.Fatal(err)
	}
	first := d.Patch()
	if strings.Count(first.Diff, "diff --git a/clusters/test/more.yaml ") != 1 || !strings.Contains(first.Diff, "+  dependsOn:\n+    - name: config\n") {
		t.Errorf("late, which never came up for want of the CDI, does not wait for config now:\n%s", first.Diff)
	}
	var refusal *Refusal
	if err := d.Split(0, tier("late")); !errors.As(err, &refusal) || d.Patch().Diff != first.Diff {
		t.Errorf("%v:\n%s", err, d.Patch().Diff)
	}
	if err := d.Split(0, tier("more")); err != nil {
		t.Fatal(err)
	}
	both := d.Patch().Diff
	if strings.Count(both, "diff --git a/clusters/test/more.yaml ") != 1 {
		t.Errorf("a file has two parts:\n%s", both)
	}
	dir := Unpack(t, root+files)
	Apply(t, dir, both)
	for _, v := range verdicts(look(t, dir)) {
		if !strings.HasSuffix(v, " at-once") && v != "more-gadgets by-retry" {
			t.Errorf("%s\n%s", v, both)
		}
	}
}
