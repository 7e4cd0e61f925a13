// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package suggest

import (
	"strings"
	"testing"

	"github.com/kubestandup/kubestandup/pkg/coldstart"
)

// other is the root of a second cluster.
func other() string { return strings.ReplaceAll(root, "clusters/test", "clusters/other") }

const (
	kustomizeHead = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"
	everything    = "-- config/all.yaml --\n" + definition + "---\n" + cdi + "---\n" + profile
)

// shared are repositories of two clusters that build what moves.
func shared() []layout {
	inOther := func(text string) string { return strings.ReplaceAll(text, "clusters/test", "clusters/other") }
	overlay := func(cluster, more string) string {
		return "-- overlays/" + cluster + "/kustomization.yaml --\n" + kustomizeHead + "resources: [../../base]\n" + more
	}
	base := strings.ReplaceAll(everything, "config/all", "base/all") + "-- base/kustomization.yaml --\n" + kustomizeHead + "resources:\n  - all.yaml\n"
	listed := "-- config/kustomization.yaml --\n" + kustomizeHead + "resources: [crd.yaml, cdi.yaml, profile.yaml]\n" +
		"-- config/crd.yaml --\n" + definition + "-- config/cdi.yaml --\n" + cdi + "-- config/profile.yaml --\n" + profile
	tiers := "-- clusters/base/tiers.yaml --\n" + tierYAML("config", "config", waits) + "---\n" + tierYAML("apps", "apps", edge) + "-- apps/a.yaml --\n" + configMap("apps") +
		"-- clusters/test/kustomization.yaml --\n" + kustomizeHead + "resources: [flux-system/gotk-sync.yaml, ../base/tiers.yaml]\n" +
		"-- clusters/other/kustomization.yaml --\n" + kustomizeHead + "resources: [flux-system/gotk-sync.yaml, ../base/tiers.yaml]\n"
	return []layout{{
		name:  "a folder that both build, manifests of their own",
		files: config(waits, edge) + everything + other() + "-- clusters/other/a.yaml --\n" + tierYAML("b", "config", waits) + "---\n" + tierYAML("apps", "apps", "  dependsOn: [{name: b}]\n"),
		want: map[string]string{
			"config-cdi/all.yaml":         profile,
			"clusters/test/platform.yaml": "  name: config-cdi\n",
			"clusters/other/a.yaml":       "  name: b-cdi\n",
		},
		notes: []string{
			"In clusters/test: Moves StorageProfile/longhorn down from config into config-cdi", "In clusters/other: Moves StorageProfile/longhorn down from b into b-cdi, a tier of its own built from config-cdi, which depends on b.",
			"In clusters/other: Edges: apps depended on b,", "In clusters/other: Gate: b is Ready only once CDI/cdi is reconciled. It holds 2 tiers.",
		},
	}, {
		name:  "a file that is gone, listed once",
		files: config(waits, edge) + listed + other() + inOther(before(config(waits, ""), "-- apps")),
		want: map[string]string{
			"config/kustomization.yaml":    "resources: [crd.yaml, cdi.yaml]\n",
			"clusters/other/platform.yaml": "  name: config-cdi\n",
		},
		absent: []string{"config/profile.yaml"},
	}, {
		name:  "manifests that both share",
		files: listed + other() + tiers,
		want:  map[string]string{"clusters/base/tiers.yaml": "    - name: config\n    - name: config-cdi\n"},
		notes: []string{"In clusters/other: Edges: apps depended on config", "In clusters/test: Gate: config is Ready only once CDI/cdi is reconciled. It holds 2 tiers.", "In clusters/other: Gate: the Ready of config proves already"},
	}, {
		name: "a base below overlays",
		files: strings.ReplaceAll(config(waits, edge), "path: ./config", "path: ./overlays/test") + base + overlay("test", "") + overlay("other", "patches: [{target: {kind: CDI}, patch: \"- {op: add, path: /spec/a, value: b}\"}]\n") +
			other() + "-- clusters/other/a.yaml --\n" + tierYAML("config", "overlays/other", waits),
		want: map[string]string{
			"base-cdi/kustomization.yaml": kustomizeHead + "resources:\n  - all.yaml\n", "base-cdi/all.yaml": profile,
			"clusters/other/a.yaml": "  path: ./base-cdi\n",
		},
	}, {
		name: "the other cluster is not deadlocked",
		files: config(waits, edge) + "-- config/kustomization.yaml --\n" + kustomizeHead + "resources: [cdi.yaml, ../profiles]\n-- config/cdi.yaml --\n" + definition + "---\n" + cdi +
			"-- profiles/kustomization.yaml --\n" + kustomizeHead + "resources: [a.yaml, b.yaml]\n-- profiles/a.yaml --\n" + profile + "-- profiles/b.yaml --\n" + configMap("b") +
			other() + "-- clusters/other/a.yaml --\n" + tierYAML("cdi", "cdi", waits+"  healthCheckExprs: [{apiVersion: cdi.kubevirt.io/v1beta1, kind: CDI, current: \"has(status.phase)\"}]\n") +
			"---\n" + tierYAML("profiles", "profiles", "  dependsOn: [{name: cdi}]\n") + "-- cdi/a.yaml --\n" + definition + "---\n" + cdi,
		want: map[string]string{"clusters/other/a.yaml": "  name: profiles-cdi\n", "profiles/kustomization.yaml": "resources: [b.yaml]\n"},
	}}
}

// TestShared splits what several clusters build: none loses anything, and every
// tier of each converges at once.
func TestShared(t *testing.T) {
	for _, l := range shared() {
		t.Run(l.name, func(t *testing.T) {
			dir := l.repository(t)
			before := look(t, dir)
			patch, err := before.Split(tier("config"))
			if err != nil {
				t.Fatal(err)
			}
			Apply(t, dir, patch.Diff)
			l.check(t, dir, patch)
			after := look(t, dir)
			for i := range after.clusters {
				was := Input{World: before.clusters[i].World, Prediction: before.clusters[i].Prediction}
				is := Input{World: after.clusters[i].World, Prediction: after.clusters[i].Prediction}
				for _, v := range verdicts(is) {
					settles := strings.HasPrefix(v, "profiles-cdi ") // it was not asked to prove anything there
					if !strings.HasSuffix(v, " "+string(coldstart.AtOnce)) && !settles {
						t.Errorf("in %s: %s\n%s", after.clusters[i].Name, v, patch.Diff)
					}
				}
				sameObjects(t, was, is, patch)
			}
		})
	}
}

// TestAskedOfBothClusters: what the first has mended is mended for the second.
func TestAskedOfBothClusters(t *testing.T) {
	for _, l := range shared()[:4] {
		in := look(t, l.repository(t))
		once, err := in.Split(tier("config"))
		if err != nil {
			t.Fatal(err)
		}
		d := in.Fresh()
		for i, c := range d.clusters {
			for _, o := range c.Prediction.Outcomes {
				if o.Verdict != coldstart.Never {
					continue
				}
				if err := d.Split(i, o.Tier); err != nil {
					t.Errorf("%s: in %s: %v", l.name, c.Name, err)
				}
			}
		}
		if both := d.Patch(); both.Diff != once.Diff {
			t.Errorf("%s: it is\n%s\nand for the first alone\n%s", l.name, both.Diff, once.Diff)
		}
		if d.Fresh().Patch().Diff != "" {
			t.Errorf("%s: a fresh draft has changes", l.name)
		}
	}
}

func TestNotShared(t *testing.T) {
	for _, test := range []struct{ name, files, because string }{{
		"the other root builds it", config(waits, edge) + everything + other() + "-- clusters/other/kustomization.yaml --\n" + kustomizeHead + "resources: [flux-system/gotk-sync.yaml, ../../config/all.yaml]\n",
		"flux-system in clusters/other is where Flux begins",
	}, {
		"only some of it", config(waits, edge) + everything + "-- config/more.yaml --\n" + strings.ReplaceAll(profile, "longhorn", "ceph") +
			other() + "-- clusters/other/a.yaml --\n" + tierYAML("b", "b", "") + "-- b/kustomization.yaml --\n" + kustomizeHead + "resources: [../config/more.yaml]\n",
		"builds only some of",
	}, {
		"the other one patches it", strings.ReplaceAll(config(waits, edge), "path: ./config", "path: ./overlays/test") +
			"-- base/kustomization.yaml --\n" + kustomizeHead + "resources: [all.yaml]\n" + strings.ReplaceAll(everything, "config/all", "base/all") +
			"-- overlays/test/kustomization.yaml --\n" + kustomizeHead + "resources: [../../base]\n" +
			"-- overlays/other/kustomization.yaml --\n" + kustomizeHead + "namespace: x\nresources: [../../base]\npatches: [{target: {kind: StorageProfile}, patch: \"- {op: add, path: /spec/a, value: b}\"}]\n" +
			other() + "-- clusters/other/a.yaml --\n" + tierYAML("config", "overlays/other", ""),
		"is changed on its way from base/all.yaml to flux-system/config of clusters/other",
	}, {
		"its Kustomization is shared, and builds something else there", everything + "-- clusters/base/tiers.yaml --\n" + tierYAML("config", "config", waits) + "-- elsewhere/a.yaml --\n" + configMap("a") + other() +
			"-- clusters/test/kustomization.yaml --\n" + kustomizeHead + "resources: [flux-system/gotk-sync.yaml, ../base/tiers.yaml]\n" +
			"-- clusters/other/kustomization.yaml --\n" + kustomizeHead + "resources: [flux-system/gotk-sync.yaml, ../base/tiers.yaml]\npatches: [{target: {kind: Kustomization, name: config}, patch: \"- {op: replace, path: /spec/path, value: ./elsewhere}\"}]\n",
		"spec.path of config is set by a patch",
	}} {
		t.Run(test.name, func(t *testing.T) {
			in := look(t, Unpack(t, root+test.files))
			patch, err := in.Split(tier("config"))
			if err == nil || !strings.Contains(err.Error(), test.because) || patch.Diff != "" {
				t.Errorf("it says %v, want %q\n%s", err, test.because, patch.Diff)
			}
		})
	}
}

func before(text, mark string) string {
	text, _, _ = strings.Cut(text, mark)
	return text
}
