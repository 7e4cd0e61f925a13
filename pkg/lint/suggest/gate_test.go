// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package suggest

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kubestandup/kubestandup/pkg/coldstart"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// TestGate applies each patch with the real tools: the gate proves what the
// dependant needs, and nothing else changes.
func TestGate(t *testing.T) {
	vms := "-- clusters/test/vms.yaml --\n" + tierYAML("vms", "vms", edge) + "-- vms/a.yaml --\n" + profile
	tests := []layout{{
		name:  "wait is on",
		files: config(waits, "") + vms + "-- config/a.yaml --\n" + definition + "---\n" + cdi,
		want: map[string]string{"clusters/test/platform.yaml": waits + `  healthCheckExprs:
    - apiVersion: cdi.kubevirt.io/v1beta1
      kind: CDI
      current: has(status.phase) && status.phase == 'Deployed'
---
`},
		holds: 1,
		notes: []string{"Gate: config is Ready only once CDI/cdi is reconciled. It holds 1 tier."},
	}, {
		name:  "wait is on, CRLF and no newline at the end",
		crlf:  true,
		bare:  true,
		files: "-- clusters/test/config.yaml --\n" + tierYAML("config", "config", waits) + vms + "-- config/a.yaml --\n" + definition + "---\n" + cdi,
		want: map[string]string{
			"clusters/test/config.yaml": "  wait: true\r\n  healthCheckExprs:\r\n    - apiVersion: cdi.kubevirt.io/v1beta1\r\n      kind: CDI\r\n      current: has(status.phase) && status.phase == 'Deployed'",
		},
	}, {
		name:  "wait is not set",
		files: config("", "") + vms + "-- config/a.yaml --\n" + definition + "---\n" + cdi,
		want:  map[string]string{"clusters/test/platform.yaml": "    name: flux-system\n  wait: true\n  healthCheckExprs:\n    - apiVersion: cdi.kubevirt.io/v1beta1\n"},
	}, {
		name: "wait is not set, and would wait for a claim",
		files: config("", "") + vms + "-- config/a.yaml --\n" + definition + "---\n" + cdi +
			"---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: a, namespace: default}\n",
		want: map[string]string{"clusters/test/platform.yaml": "  healthChecks:\n    - apiVersion: cdi.kubevirt.io/v1beta1\n      kind: CDI\n      name: cdi\n  healthCheckExprs:\n"},
	}, {
		name: "expressions of another kind, health checks in flow style",
		files: strings.ReplaceAll(config("  healthCheckExprs:\n  - apiVersion: a.example.com/v1\n    kind: A\n    current: |\n      has(status.a)\n\n      && true\n  # the end\n  healthChecks: [ {kind: ConfigMap, apiVersion: v1, name: a, namespace: default} ]\n", ""), "    - name", "  - name") +
			vms + "-- config/a.yaml --\n" + definition + "---\n" + cdi + "---\n" + configMap("a"),
		want: map[string]string{"clusters/test/platform.yaml": `      && true
  - apiVersion: cdi.kubevirt.io/v1beta1
    kind: CDI
    current: has(status.phase) && status.phase == 'Deployed'
  # the end
  healthChecks: [{apiVersion: cdi.kubevirt.io/v1beta1, kind: CDI, name: cdi},  {kind: ConfigMap`},
	}, {
		name:  "it is waited for, and current at once",
		files: config("  healthChecks:\n    - {kind: CDI, apiVersion: cdi.kubevirt.io/v1beta1, name: cdi}\n", "") + vms + "-- config/a.yaml --\n" + definition + "---\n" + cdi,
		want:  map[string]string{"clusters/test/platform.yaml": "    - {kind: CDI, apiVersion: cdi.kubevirt.io/v1beta1, name: cdi}\n  healthCheckExprs:\n"},
	}, {
		name:  "no expression is known",
		files: config("  wait: false\n", "") + "-- clusters/test/vms.yaml --\n" + tierYAML("vms", "vms", edge) + "-- vms/a.yaml --\n" + gadget + "-- config/a.yaml --\n" + gadgeteer,
		want:  map[string]string{"clusters/test/platform.yaml": "  wait: false\n  healthChecks:\n    - apiVersion: apiextensions.k8s.io/v1\n      kind: CustomResourceDefinition\n      name: gadgets.gadgets.example.com\n"},
	}, {
		name:  "the gate is a tier that contains the trigger's",
		files: config(waits, "") + "-- config/child.yaml --\n" + tierYAML("child", "child", "") + vms + "-- child/a.yaml --\n" + definition + "---\n" + cdi,
	}}
	for _, l := range tests {
		t.Run(l.name, func(t *testing.T) {
			dir := l.repository(t)
			before := look(t, dir)
			gates := hollow(before)
			if len(gates) == 0 {
				t.Fatalf("the fixture has no hollow gate: %v", verdicts(before))
			}
			patch, err := before.Gate(gates[0])
			if err != nil {
				t.Fatal(err)
			}
			Apply(t, dir, patch.Diff)
			l.check(t, dir, patch)
			after := look(t, dir)
			for _, v := range verdicts(after) {
				if !strings.HasSuffix(v, " "+string(coldstart.AtOnce)) {
					t.Errorf("after the patch: %s\n%s", v, patch.Diff)
				}
			}
			sameObjects(t, before, after, patch)
		})
	}
}

func TestRefusals(t *testing.T) {
	all := "-- config/all.yaml --\n" + definition + "---\n" + cdi + "---\n" + profile
	listed := "-- config/kustomization.yaml --\napiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [all.yaml]\n"
	tests := []struct{ name, files, because, byHand string }{{
		name: "patched", because: "StorageProfile/longhorn is changed on its way from config/all.yaml",
		byHand: "move StorageProfile/longhorn into a folder and a Kustomization of their own that depends on config",
		files:  config(waits, edge) + all + listed + "patches:\n- target: {kind: StorageProfile}\n  patch: |\n    - {op: add, path: /spec/x, value: y}\n",
	}, {
		name: "patched by the tier", because: "changed on its way",
		files: config(waits+"  patches:\n    - target: {kind: StorageProfile}\n      patch: |\n        - {op: add, path: /spec/x, value: y}\n", edge) + all,
	}, {
		name: "in a List", because: "StorageProfile/a is not a document of its own in config/all.yaml",
		files: config(waits, edge) + "-- config/all.yaml --\n" + definition + "---\n" + cdi +
			"---\napiVersion: v1\nkind: List\nitems:\n- {apiVersion: cdi.kubevirt.io/v1beta1, kind: StorageProfile, metadata: {name: a}}\n",
	}, {
		name: "built by two tiers", because: "StorageProfile/longhorn is applied by flux-system/config and by flux-system/b",
		files: config(waits, edge) + "-- clusters/test/b.yaml --\n" + tierYAML("b", "b", "") + "-- b/kustomization.yaml --\nresources: [../config]\n" + all + listed,
	}, {
		name: "a component", because: "config/c/all.yaml is part of a kustomize component",
		files: config(waits, edge) + strings.ReplaceAll(all, "config/all", "config/c/all") +
			"-- config/kustomization.yaml --\napiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\ncomponents: [c]\n" +
			"-- config/c/kustomization.yaml --\napiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [all.yaml]\n",
	}, {
		name: "the tier where Flux begins", because: "flux-system is where Flux begins",
		files: strings.ReplaceAll(all, "config/all", "clusters/test/all"),
	}, {
		name: "nothing would be left", because: "nothing would be left in config",
		files: config(waits, "") + "-- clusters/test/cdi.yaml --\n" + tierYAML("cdi", "cdi", edge) + "-- cdi/a.yaml --\n" + definition + "---\n" + cdi + "-- config/all.yaml --\n" + profile,
	}, {
		name: "the tier's edges are patched", because: "spec.dependsOn of apps is set by a patch",
		files: config(waits, "") + all + "-- clusters/test/kustomization.yaml --\nresources: [platform.yaml]\npatches:\n- target: {kind: Kustomization, name: apps}\n  patch: |\n    - {op: add, path: /spec/dependsOn, value: [{name: config}]}\n",
	}, {
		name: "an anchor, which moves what the parser says", because: "Kustomization/apps in clusters/test/platform.yaml is written in a way that cannot be changed line by line",
		files: config(waits, "  dependsOn: &on\n    - name: config\n") + all,
	}}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			in := look(t, Unpack(t, root+test.files))
			name := "config"
			if !slices.Contains(verdicts(in), "config never") {
				name = "flux-system"
			}
			patch, err := in.Split(tier(name))
			var refusal *Refusal
			if !errors.As(err, &refusal) || patch.Diff != "" {
				t.Fatalf("no refusal: %v\n%s", err, patch.Diff)
			}
			if !strings.Contains(refusal.Because, test.because) || !strings.Contains(refusal.ByHand, test.byHand) || refusal.ByHand == "" {
				t.Log(err)
				t.Errorf("it says %q, want %q and %q", err, test.because, test.byHand)
			}
		})
	}
}

// TestGateOfRelease: a trigger that a chart holds is proved by its HelmRelease.
func TestGateOfRelease(t *testing.T) {
	const release = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata:\n  name: cdi\n  namespace: flux-system\nspec:\n  interval: 10m\n" +
		"  chart: {spec: {chart: ./charts/cdi, sourceRef: {kind: GitRepository, name: flux-system}}}\n"
	dir := Unpack(t, root+config(waits, "")+"-- clusters/test/vms.yaml --\n"+tierYAML("vms", "vms", edge)+"-- vms/a.yaml --\n"+profile+"-- config/a.yaml --\n"+release)
	chart := func(in *Input) {
		trigger := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "CDI", "metadata": map[string]any{"name": "cdi"},
		}}
		key := flux.Ref{Kind: "HelmRelease", Namespace: "flux-system", Name: "cdi"}
		in.World.Charts[key] = coldstart.Chart{Basis: coldstart.Rendered, Definitions: []*unstructured.Unstructured{cdiDefinition(t)}, Objects: []*unstructured.Unstructured{trigger}}
		in.predict()
	}
	in := look(t, dir)
	chart(&in)
	patch, err := in.Gate(tier("config"))
	if err != nil {
		t.Fatal(err)
	}
	Apply(t, dir, patch.Diff)
	want := release + "  healthCheckExprs:\n    - apiVersion: cdi.kubevirt.io/v1beta1\n      kind: CDI\n      current: has(status.phase) && status.phase == 'Deployed'\n"
	if got := read(t, dir)["config/a.yaml"]; got != want {
		t.Errorf("it is\n%s\nwant\n%s", got, want)
	}
	in = look(t, dir)
	chart(&in)
	if _, err := in.Gate(tier("config")); err == nil {
		t.Error("the same expression is suggested again")
	}
}

func cdiDefinition(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	object := map[string]any{}
	if err := yaml.Unmarshal([]byte(definition), &object); err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: object}
}

// TestRefusedGate: under wait: true there is nothing to add where no expression
// is known.
func TestRefusedGate(t *testing.T) {
	in := look(t, Unpack(t, root+config(waits, "")+"-- clusters/test/vms.yaml --\n"+tierYAML("vms", "vms", edge)+"-- vms/a.yaml --\n"+gadget+"-- config/a.yaml --\n"+gadgeteer))
	_, err := in.Gate(tier("config"))
	want := "cannot be written as a patch because no health check expression is known that proves Gadgeteer/main reconciled, and config ignores healthChecks while it has wait: true; " +
		"do this by hand: set wait: false in config, and list in its healthChecks CustomResourceDefinition/gadgets.gadgets.example.com and whatever its wait was for"
	if err == nil || err.Error() != want {
		t.Errorf("it says\n%v\nwant\n%s", err, want)
	}
	if _, err := in.Gate(tier("vms")); err == nil || !strings.Contains(err.Error(), "is not hollow") {
		t.Errorf("a gate that is not hollow: %v", err)
	}
}
