// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package suggest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// preserved are texts as people write them.
func preserved() []layout {
	anchored := strings.Replace(strings.Replace(profile, "spec:\n", "spec:\n  a: &a {b: c}\n  d: *a\n", 1), "\n# How", "# How", 1)
	jsonTier := "{\n  \"apiVersion\": \"kustomize.toolkit.fluxcd.io/v1\",\n  \"kind\": \"Kustomization\",\n  \"metadata\": {\"name\": \"config\", \"namespace\": \"flux-system\"},\n" +
		"  \"spec\": {\"interval\": \"10m\", \"path\": \"./config\", \"prune\": true, \"wait\": true, \"sourceRef\": {\"kind\": \"GitRepository\", \"name\": \"flux-system\"}}\n}\n"
	patched := func(target string) string {
		return config(waits, edge) + everything + "-- clusters/test/kustomization.yaml --\nresources:\n# bootstrap\n- flux-system/gotk-sync.yaml\n- platform.yaml\npatches:\n  - target: {kind: Kustomization" + target + "}\n    patch: |-\n      - op: add\n        path: /spec/timeout\n        value: 5m\n"
	}
	return []layout{{
		name:  "anchors inside of what moves, and of what stays",
		files: config(waits, edge) + "-- config/all.yaml --\n# head\n" + strings.Replace(definition, "metadata: {", "metadata: &m {", 1) + "---\n" + cdi + "---\n" + anchored,
		want:  map[string]string{"config-cdi/all.yaml": anchored, "config/all.yaml": "# head\n"},
	}, {
		name:  "anchors in the Kustomization",
		files: strings.ReplaceAll(config(waits, edge), "  interval: 10m # slow\n  retryInterval: 2m\n", "  interval: &i 10m\n  retryInterval: *i\n") + everything,
		want:  map[string]string{"clusters/test/platform.yaml": "  interval: &i 10m\n  retryInterval: *i\n"},
	}, {
		name:  "the Kustomization is JSON: the new one is a file beside it",
		files: "-- clusters/test/kustomization.yaml --\nresources: [flux-system/gotk-sync.yaml, config.json]\n-- clusters/test/config.json --\n" + jsonTier + everything,
		want: map[string]string{
			"clusters/test/config.json":        `"spec": {"healthCheckExprs":[{"apiVersion":"cdi.kubevirt.io/v1beta1","current":"has(status.phase) && status.phase == 'Deployed'","kind":"CDI"}], "interval"`,
			"clusters/test/config-cdi.yaml":    "name: ",
			"clusters/test/kustomization.yaml": "config-cdi.yaml",
		},
	}, {
		name: "what moves is JSON",
		files: config(waits, edge) + "-- config/kustomization.yaml --\nresources: [crd.yaml, profile.json]\n-- config/crd.yaml --\n" + definition + "---\n" + cdi +
			"-- config/profile.json --\n{\"apiVersion\": \"cdi.kubevirt.io/v1beta1\", \"kind\": \"StorageProfile\", \"metadata\": {\"name\": \"longhorn\"}}\n",
		want:   map[string]string{"config-cdi/profile.json": `"StorageProfile"`, "config/kustomization.yaml": "resources: [crd.yaml]\n"},
		absent: []string{"config/profile.json"},
	}, {
		name:  "all Kustomizations are patched alike",
		files: patched(""),
		want:  map[string]string{"clusters/test/kustomization.yaml": "resources:\n# bootstrap\n- flux-system/gotk-sync.yaml\n- platform.yaml\npatches:\n"},
	}, {
		name:  "a patch of another object, inline",
		files: config(waits, edge) + everything + "-- config/kustomization.yaml --\nresources:\n- all.yaml\npatches:\n- patch: |\n    apiVersion: cdi.kubevirt.io/v1beta1\n    kind: CDI\n    metadata:\n      name: cdi\n    spec:\n      a: b # why\n",
		want:  map[string]string{"config/kustomization.yaml": "      a: b # why\n", "config-cdi/kustomization.yaml": "resources:\n- all.yaml\n"},
	}, {
		name: "the namespace of a kustomization file, and that of the tier",
		files: config(waits+"  targetNamespace: default\n", edge) + everything + "-- config/kustomization.yaml --\nnamespace: kube-system\nlabels:\n- pairs: {a: b}\nresources: [all.yaml]\n" +
			"-- clusters/test/z.yaml --\n" + configMap("z"),
		want: map[string]string{"config-cdi/kustomization.yaml": "namespace: kube-system\nlabels:\n"},
	}}
}

// TestPreserved: what is not meant to change is there as it was.
func TestPreserved(t *testing.T) {
	for _, l := range preserved() {
		for _, crlf := range []bool{false, true} {
			t.Run(l.name, func(t *testing.T) {
				l := l
				if l.crlf = crlf; crlf {
					want := map[string]string{}
					for name, text := range l.want {
						want[name] = strings.ReplaceAll(text, "\n", "\r\n")
					}
					l.want = want
				}
				dir := l.repository(t)
				before := look(t, dir)
				old := read(t, dir)
				patch, err := before.Split(tier("config"))
				if err != nil {
					t.Fatal(err)
				}
				Apply(t, dir, patch.Diff)
				l.crlf = false
				l.check(t, dir, patch)
				now := read(t, dir)
				for name, text := range old {
					for line := range strings.Lines(text) {
						moved := strings.HasPrefix(name, "config/") || strings.Contains(line, "resources: [") || strings.Contains(line, `"spec"`)
						if !moved && !strings.Contains(now[name], line) {
							t.Errorf("%s has lost %q:\n%s", name, line, now[name])
						}
					}
				}
				for name, text := range now {
					if crlf && strings.Count(text, "\n") != strings.Count(text, "\r\n") && !strings.HasSuffix(name, "config-cdi.yaml") {
						t.Errorf("%s has both line endings: %q", name, text)
					}
				}
				after := look(t, dir)
				for _, v := range verdicts(after) {
					if !strings.HasSuffix(v, " at-once") {
						t.Errorf("after the patch: %s\n%s", v, patch.Diff)
					}
				}
				sameObjects(t, before, after, patch)
			})
		}
	}
}

// TestNotPreserved: what would not be the same is refused.
func TestNotPreserved(t *testing.T) {
	of := func(more string) string {
		return config(waits, edge) + everything + "-- config/kustomization.yaml --\nresources: [all.yaml]\n" + more
	}
	for _, test := range []struct{ name, files, because string }{
		{"a patch that names the tier", preserved()[4].files + "  - target: {kind: Kustomization, name: config|x}\n    patch: |-\n      - {op: add, path: /spec/force, value: false}\n", "spec.timeout of config is set by a patch that names it"},
		{"a patch of what moves that changes nothing", of("patches:\n- patch: |\n    {apiVersion: cdi.kubevirt.io/v1beta1, kind: StorageProfile, metadata: {name: longhorn}}\n"), "a patch of config/kustomization.yaml names StorageProfile/longhorn"},
		{"a replacement from it", of("replacements:\n- source: {kind: StorageProfile, name: longhorn, fieldPath: metadata.name}\n  targets: [{select: {kind: CDI}, fieldPaths: [\"metadata.annotations.a\"], options: {create: true}}]\n"), "replacements of config/kustomization.yaml names"},
		{"another namespace from an overlay", strings.ReplaceAll(config(waits, edge), "./config", "./over") + "-- over/kustomization.yaml --\nnamespace: over\nresources: [../config]\n" +
			"-- config/kustomization.yaml --\nnamespace: under\nresources: [all.yaml]\n-- config/all.yaml --\n" + gadgeteer + "---\n" + gadget, "is changed on its way"},
	} {
		t.Run(test.name, func(t *testing.T) {
			patch, err := look(t, Unpack(t, root+test.files)).Split(tier("config"))
			if err == nil || !strings.Contains(err.Error(), test.because) || patch.Diff != "" {
				t.Errorf("it says %v, want %q\n%s", err, test.because, patch.Diff)
			}
		})
	}
}

// TestLinks: an artifact of source-controller holds no links, and neither does a
// build; nothing is edited through one.
func TestLinks(t *testing.T) {
	link := func(t *testing.T, dir, name, target string) {
		t.Helper()
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, name); err != nil {
			t.Fatal(err)
		}
	}
	dir := Unpack(t, root+config(waits, edge)+everything)
	link(t, dir, "shared", "clusters/test")
	link(t, dir, "again/all.yaml", "../config/all.yaml")
	link(t, dir, "out", "/etc")
	link(t, dir, "loop", "loop")
	tree := newTree(os.DirFS(dir))
	for name, want := range map[string]string{
		"shared/platform.yaml": "clusters/test/platform.yaml", "again/all.yaml": "config/all.yaml", "config/all.yaml": "config/all.yaml",
		"out/passwd": "out/passwd", "loop/x": "loop/x", "absent/x": "absent/x", ".": ".", "shared": "clusters/test",
	} {
		if got := tree.real(name); got != want {
			t.Errorf("%s leads to %s, want %s", name, got, want)
		}
	}
	if _, err := tree.open("again/all.yaml"); err == nil || !strings.Contains(err.Error(), "symbolic link") {
		t.Errorf("a link is edited: %v", err)
	}
	write(t, dir, "clusters/test/b.yaml", tierYAML("b", "b", ""))
	write(t, dir, "b/b.yaml", configMap("b"))
	link(t, dir, "b/all.yaml", "../config/all.yaml")
	in := look(t, dir)
	if uses := in.built["config/all.yaml"]; len(uses) != 1 || len(in.built["b/all.yaml"]) != 0 {
		t.Errorf("a link is taken for a file: %+v", in.built)
	}
	patch, err := in.Split(tier("config"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(patch.Diff, "b/all.yaml") || strings.Contains(patch.Diff, "shared/") || !strings.Contains(patch.Diff, "diff --git a/clusters/test/platform.yaml ") {
		t.Errorf("it goes through a link:\n%s", patch.Diff)
	}
}
