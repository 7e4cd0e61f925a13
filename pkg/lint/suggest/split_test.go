// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package suggest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kubestandup/kubestandup/pkg/coldstart"
	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// config is a deadlocked tier and a dependant, their spec as tests need it.
func config(spec, dependant string) string {
	return fmt.Sprintf(`
-- clusters/test/platform.yaml --
# The platform.
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata:
  name: config # read by people
  namespace: flux-system
  annotations:
    lint.kubestandup.dev/ignore: "CS001: not yet"
spec:
  interval: 10m # slow
  retryInterval: 2m
  path: ./config
  prune: true
  sourceRef:
    kind: GitRepository
    name: flux-system
%s---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata:
  name: apps
  namespace: flux-system
spec:
  interval: 10m
%s  path: ./apps
  prune: true
  sourceRef:
    kind: GitRepository
    name: flux-system
-- apps/config.yaml --
apiVersion: v1
kind: ConfigMap
metadata: {name: apps, namespace: default}
`, spec, dependant)
}

const (
	waits = "  wait: true\n"
	edge  = "  dependsOn:\n    - name: config\n"
	cdi   = `apiVersion: cdi.kubevirt.io/v1beta1
kind: CDI
metadata:
  name: cdi
spec: {}
`
	profile = `# How longhorn's disks are made.
apiVersion: cdi.kubevirt.io/v1beta1
kind: StorageProfile
metadata:
  name: longhorn # the class
spec:
  claimPropertySets:
  - accessModes: ["ReadWriteMany"] # for live migration
`
	definition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: cdis.cdi.kubevirt.io}
spec:
  group: cdi.kubevirt.io
  names: {kind: CDI, plural: cdis}
  scope: Cluster
  versions: [{name: v1beta1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`
)

type layout struct {
	name  string
	files string
	// crlf turns every line ending of the repository.
	crlf bool
	// bare takes the last newline of every file away.
	bare bool
	// want are parts of files after the patch, absent files that are gone.
	want   map[string]string
	absent []string
	holds  int
	notes  []string
}

func layouts() []layout {
	return []layout{{
		name:  "one file, no kustomization file",
		files: config(waits, edge) + "-- config/all.yaml --\n" + definition + "---\n" + cdi + "---\n" + profile,
		want: map[string]string{
			"config/all.yaml":     definition + "---\n" + cdi,
			"config-cdi/all.yaml": profile,
			"clusters/test/platform.yaml": `  wait: true
  healthCheckExprs:
    - apiVersion: cdi.kubevirt.io/v1beta1
      kind: CDI
      current: has(status.phase) && status.phase == 'Deployed'
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata:
  name: config-cdi
  namespace: flux-system
spec:
  interval: 10m
  retryInterval: 2m
  path: ./config-cdi
  prune: true
  sourceRef:
    kind: GitRepository
    name: flux-system
  wait: true
  dependsOn:
    - name: config
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata:
  name: apps
  namespace: flux-system
spec:
  interval: 10m
  dependsOn:
    - name: config
    - name: config-cdi
`,
		},
		holds: 2,
		notes: []string{
			"Moves StorageProfile/longhorn down from config into config-cdi, a tier of its own built from config-cdi, which depends on config.",
			"Gate: config is Ready only once CDI/cdi is reconciled. It holds 2 tiers.",
			"apps depended on config",
			"kustomize.toolkit.fluxcd.io/prune: disabled",
		},
	}, {
		name:  "the first document of several, comments between",
		files: config(waits, edge) + "-- config/all.yaml --\n" + profile + "---\n# the operator's switch\n" + cdi + "---\n# the kind\n" + definition,
		want: map[string]string{
			"config/all.yaml":     "# the operator's switch\n" + cdi + "---\n# the kind\n" + definition,
			"config-cdi/all.yaml": profile,
		},
	}, {
		name:  "separators at the head and the foot",
		files: config(waits, edge) + "-- config/all.yaml --\n---\n" + cdi + "---\n" + profile + "---\n" + definition + "---\n",
		want: map[string]string{
			"config/all.yaml":     "---\n" + cdi + "---\n" + definition + "---\n",
			"config-cdi/all.yaml": "---\n" + profile,
		},
	}, {
		name: "a file of its own, listed",
		files: config(waits, edge) + "-- config/kustomization.yaml --\napiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n  - crd.yaml\n  - profile.yaml # disks\n  - cdi.yaml\n" +
			"-- config/crd.yaml --\n" + definition + "-- config/cdi.yaml --\n" + cdi + "-- config/profile.yaml --\n" + profile,
		want: map[string]string{
			"config/kustomization.yaml":     "resources:\n  - crd.yaml\n  - cdi.yaml\n",
			"config-cdi/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n  - profile.yaml\n",
			"config-cdi/profile.yaml":       profile,
		},
		absent: []string{"config/profile.yaml"},
	}, {
		name: "two files in subfolders, lists that are not indented, a flow list",
		files: strings.ReplaceAll(config(waits, "  dependsOn: [{name: config}]\n"), "    - name", "  - name") +
			"-- config/kustomization.yaml --\nkind: Kustomization\napiVersion: kustomize.config.k8s.io/v1beta1\nnamespace: vms\ncommonAnnotations: {team: storage}\nresources: [\"crd.yaml\", a/all.yaml, 'b/all.yaml', cdi.yaml]\n" +
			"-- config/crd.yaml --\n" + definition + "-- config/cdi.yaml --\n" + cdi + "-- config/a/all.yaml --\n" + profile + "-- config/b/all.yaml --\n" + strings.ReplaceAll(profile, "longhorn", "ceph"),
		want: map[string]string{
			"config/kustomization.yaml":     "resources: [\"crd.yaml\", cdi.yaml]\n",
			"config-cdi/kustomization.yaml": "namespace: vms\ncommonAnnotations: {team: storage}\nresources:\n  - all.yaml\n  - a-all.yaml\n",
			"config-cdi/a-all.yaml":         "  name: longhorn # the class\n",
			"clusters/test/platform.yaml":   "  dependsOn: [{name: config-cdi}, {name: config}]\n",
		},
		absent: []string{"config/a/all.yaml", "config/b/all.yaml"},
	}, {
		name:  "CRLF",
		crlf:  true,
		files: config(waits, edge) + "-- config/all.yaml --\n" + definition + "---\n" + cdi + "---\n" + profile,
		want: map[string]string{
			"config/all.yaml":             strings.ReplaceAll(definition+"---\n"+cdi, "\n", "\r\n"),
			"config-cdi/all.yaml":         strings.ReplaceAll(profile, "\n", "\r\n"),
			"clusters/test/platform.yaml": "    - name: config\r\n    - name: config-cdi\r\n",
		},
	}, {
		name: "no newline at the end",
		bare: true,
		files: config(waits, edge) + "-- clusters/test/last.yaml --\n" + tierYAML("last", "last", edge) + "-- last/a.yaml --\n" + configMap("last") +
			"-- config/all.yaml --\n" + definition + "---\n" + cdi + "---\n" + profile,
		want: map[string]string{
			"clusters/test/last.yaml": edge + "    - name: config-cdi",
			"config-cdi/all.yaml":     profile,
		},
		holds: 3,
	}, {
		name: "a long Kustomization at the foot of its file, tabs and rules in block scalars, quoted keys",
		bare: true,
		files: "-- clusters/test/a.yaml --\n" + configMap("a") + "---\n" + `"apiVersion": kustomize.toolkit.fluxcd.io/v1
'kind': Kustomization
"metadata": {name: config, namespace: flux-system}
"spec":
    "interval": 10m
    'path': "config/"
    prune: false
    sourceRef: {kind: GitRepository, name: flux-system}
    wait: true
    postBuild:
        substitute:
            text: |
                a	tab
                # no comment
                --- no rule

    # the end
` + "-- config/all.yaml --\n" + definition + "---\n" + cdi + "---\n" + strings.Replace(profile, "spec:\n", "spec:\n  note: |\n    a\ttab ${text}\n    --- no rule\n", 1),
		want: map[string]string{
			"clusters/test/a.yaml": `    # the end
    healthCheckExprs:
        - apiVersion: cdi.kubevirt.io/v1beta1
          kind: CDI
          current: has(status.phase) && status.phase == 'Deployed'
---
`,
			"config-cdi/all.yaml": "    --- no rule\n",
		},
		holds: 1,
	}, {
		name: "a spec in flow style",
		files: "-- clusters/test/a.yaml --\n" + configMap("a") + `---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: config, namespace: flux-system}
spec: {interval: 10m, path: ./config, prune: true, sourceRef: {kind: GitRepository, name: flux-system}, wait: true} # dense
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: apps, namespace: flux-system}
spec: {dependsOn: [{name: config}], interval: 10m, path: ./apps, prune: true, sourceRef: {kind: GitRepository, name: flux-system}}
` + "-- apps/a.yaml --\n" + configMap("apps") + "-- config/all.yaml --\n" + definition + "---\n" + cdi + "---\n" + profile,
		want: map[string]string{
			"clusters/test/a.yaml": "spec: {dependsOn: [{name: config-cdi}, {name: config}], interval: 10m",
		},
	}, {
		name:  "wait is not set",
		files: config("", edge) + "-- config/all.yaml --\n" + definition + "---\n" + cdi + "---\n" + profile,
		want:  map[string]string{"clusters/test/platform.yaml": "  wait: true\n  healthCheckExprs:\n"},
	}, {
		name:  "wait is off",
		files: config("  wait: false\n", edge) + "-- config/all.yaml --\n" + definition + "---\n" + cdi + "---\n" + profile,
		want: map[string]string{"clusters/test/platform.yaml": `  wait: false
  healthChecks:
    - apiVersion: cdi.kubevirt.io/v1beta1
      kind: CDI
      name: cdi
  healthCheckExprs:
`},
	}, {
		name: "a health check of what moves",
		files: config("  healthChecks:\n    - {apiVersion: cdi.kubevirt.io/v1beta1, kind: StorageProfile, name: longhorn}\n", edge) +
			"-- config/all.yaml --\n" + definition + "---\n" + cdi + "---\n" + profile,
		want: map[string]string{"clusters/test/platform.yaml": "      name: cdi\n  healthCheckExprs:\n"},
	}, {
		name:  "no expression is known, and CRDs are waited for",
		files: config("", edge) + "-- config/all.yaml --\n" + gadgeteer + "---\n" + gadget,
		want: map[string]string{"clusters/test/platform.yaml": `  healthChecks:
    - apiVersion: apiextensions.k8s.io/v1
      kind: CustomResourceDefinition
      name: gadgets.gadgets.example.com
`},
	}, {
		name:  "what moves brings a kind itself",
		files: config(waits, edge) + "-- config/all.yaml --\n" + definition + "---\n" + cdi + "---\n" + level + "---\n" + profile,
		want: map[string]string{
			"config-cdi/all.yaml":    profile,
			"config-levels/all.yaml": level,
			"clusters/test/platform.yaml": `  name: config-levels
  namespace: flux-system
spec:
  interval: 10m
  retryInterval: 2m
  path: ./config-levels
  prune: true
  sourceRef:
    kind: GitRepository
    name: flux-system
  wait: true
  dependsOn:
    - name: config-cdi
---
`,
		},
	}, {
		name: "the provider is in a tier that waits for this one",
		files: config(waits, "") + "-- clusters/test/cdi.yaml --\n" + tierYAML("cdi", "cdi", edge) + "-- clusters/test/vms.yaml --\n" + tierYAML("vms", "vms", edge) +
			"-- vms/a.yaml --\n" + configMap("vms") + "-- config/all.yaml --\n" + definition + "---\n" + profile + "-- cdi/a.yaml --\n" + cdi,
		want: map[string]string{
			"clusters/test/platform.yaml": "  dependsOn:\n    - name: config\n    - name: cdi\n",
			"clusters/test/cdi.yaml":      edge + "  wait: true\n  healthCheckExprs:\n",
			"clusters/test/vms.yaml":      edge + "    - name: config-cdi\n",
		},
		notes: []string{"No edge: cdi depends on config, but config-cdi itself waits for it."},
	}, {
		name:  "names with blanks and quotes",
		files: strings.ReplaceAll(config(waits, edge), "./config", "./all of it/the \"config\"") + "-- all of it/the \"config\"/my all.yaml --\n" + definition + "---\n" + cdi + "---\n" + profile,
		want:  map[string]string{"all of it/the \"config\"-cdi/my all.yaml": profile},
	}, {
		name:  "the folder and the name are taken",
		files: config(waits, edge) + "-- clusters/test/z.yaml --\n" + tierYAML("config-cdi", "apps", "") + "-- config-cdi-2/a.yaml --\n" + configMap("a") + "-- config/all.yaml --\n" + definition + "---\n" + cdi + "---\n" + profile,
		want:  map[string]string{"config-cdi-3/all.yaml": profile, "clusters/test/platform.yaml": "  name: config-cdi-3\n"},
	}}
}

const (
	gadgeteer = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: gadgeteers.gadgets.example.com}\n" +
		"spec: {group: gadgets.example.com, names: {kind: Gadgeteer, plural: gadgeteers}, scope: Cluster, versions: [{name: v1, served: true}]}\n" +
		"---\napiVersion: gadgets.example.com/v1\nkind: Gadgeteer\nmetadata: {name: main}\n"
	gadget = "apiVersion: gadgets.example.com/v1\nkind: Gadget\nmetadata: {name: main, namespace: default}\n"
	level  = "apiVersion: levels.example.com/v1\nkind: Level\nmetadata: {name: main, namespace: default}\n"
)

func tierYAML(name, path, spec string) string {
	return "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata:\n  name: " + name + "\n  namespace: flux-system\nspec:\n" +
		"  interval: 10m\n  path: ./" + path + "\n  prune: true\n  sourceRef:\n    kind: GitRepository\n    name: flux-system\n" + spec
}

func configMap(name string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: default}\n"
}

func (l layout) repository(t testing.TB) string {
	t.Helper()
	dir := Unpack(t, root+l.files)
	for name, content := range read(t, dir) {
		if l.crlf {
			content = strings.ReplaceAll(content, "\n", "\r\n")
		}
		if l.bare {
			content = strings.TrimSuffix(strings.TrimSuffix(content, "\n"), "\r")
		}
		write(t, dir, name, content)
	}
	return dir
}

// TestSplit applies each patch with the real tools: the deadlock is gone, every
// tier converges at once, and what is applied is what was.
func TestSplit(t *testing.T) {
	for _, l := range layouts() {
		t.Run(l.name, func(t *testing.T) {
			dir := l.repository(t)
			before := look(t, dir)
			if !slices.Contains(verdicts(before), "config never") {
				t.Fatalf("the fixture is not deadlocked: %v", verdicts(before))
			}
			patch, err := before.Split(tier("config"))
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

func (l layout) check(t *testing.T, dir string, patch Patch) {
	t.Helper()
	files := read(t, dir)
	for name, want := range l.want {
		if l.crlf && !strings.Contains(want, "\r") {
			t.Fatalf("the test of %s is wrong", name)
		}
		if !strings.Contains(files[name], want) {
			t.Errorf("%s is\n%s\nwithout\n%s", name, files[name], want)
		}
	}
	for _, name := range l.absent {
		if content, there := files[name]; there {
			t.Errorf("%s is still there:\n%s", name, content)
		}
	}
	if want := "It holds " + finding.Count(l.holds, "tier"); l.holds > 0 && !strings.Contains(strings.Join(patch.Notes, "\n"), want) {
		t.Errorf("no gate holds %d tiers:\n%s", l.holds, strings.Join(patch.Notes, "\n"))
	}
	for _, want := range l.notes {
		if !strings.Contains(strings.Join(patch.Notes, "\n"), want) {
			t.Errorf("no note says %q:\n%s", want, strings.Join(patch.Notes, "\n"))
		}
	}
}

// sameObjects compares what is applied before and after: nothing but new tiers.
func sameObjects(t *testing.T, before, after Input, patch Patch) {
	t.Helper()
	old, now := applied(before), applied(after)
	for name, object := range old {
		if now[name] != object {
			t.Errorf("%s was\n%s\nand is\n%s\n%s", name, object, now[name], patch.Diff)
		}
	}
	for name := range now {
		if _, was := old[name]; !was && !strings.HasPrefix(name, flux.KustomizationKind+"/") {
			t.Errorf("%s is new\n%s", name, patch.Diff)
		}
	}
}
