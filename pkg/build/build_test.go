// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write what is built into testdata")

// TestGolden builds the trees of testdata. That these objects are the ones of
// the real controller is proved in test/e2e.
func TestGolden(t *testing.T) {
	cases, err := filepath.Glob("testdata/*/tier.yaml")
	if err != nil || len(cases) == 0 {
		t.Fatalf("no cases in testdata: %v", err)
	}
	for _, file := range cases {
		dir := filepath.Dir(file)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			before := fingerprint(t, filepath.Join(dir, "source"))
			manifest, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			builder := Builder{Variables: &someVariables{
				configMaps: map[string]map[string]string{"cluster": {"DOMAIN": "from.configmap", "REGION": "north", "TOKEN": "overridden"}},
				secrets:    map[string]map[string][]byte{"cluster-secrets": {"TOKEN": []byte("s3cr3t\n")}},
			}}
			result, err := builder.Build(t.Context(), object(t, string(manifest)), openTree(t, filepath.Join(dir, "source")))
			if err != nil {
				t.Fatal(err)
			}
			got := render(t, result)
			golden := filepath.Join(dir, "want.yaml")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatalf("%v; write it with go test ./pkg/build -update", err)
			}
			if got != string(want) {
				t.Errorf("built:\n%s\nwant (%s):\n%s", got, golden, want)
			}
			if after := fingerprint(t, filepath.Join(dir, "source")); after != before {
				t.Error("the build changed the working tree")
			}
		})
	}
}

func render(t *testing.T, result *Result) string {
	t.Helper()
	text := fmt.Sprintf("# %s from %s\n", result, result.Source)
	if result.Rejected != nil {
		text += "# rejected: " + result.Rejected.Error() + "\n"
	}
	for _, o := range result.Objects {
		content, err := yaml.Marshal(o.Object)
		if err != nil {
			t.Fatal(err)
		}
		at, _ := result.Locate(o)
		text += fmt.Sprintf("---\n# stage %d, encrypted %t, ignored %t, %s:%d\n%s", o.Stage, o.Encrypted, o.Ignored, at.File, at.Line, content)
	}
	return text
}

// fingerprint is of all names and contents below dir.
func fingerprint(t *testing.T, dir string) string {
	t.Helper()
	sum := sha256.New()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fmt.Fprintln(sum, path, entry.Type())
		if !entry.IsDir() {
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintln(sum, string(content))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", sum.Sum(nil))
}

// TestBuildErrors has one row per sentence that a person may get to read.
func TestBuildErrors(t *testing.T) {
	tests := []struct {
		name    string
		files   map[string]string
		path    string
		spec    string
		builder Builder
		want    string
		// at is where the mistake is, empty where the tier itself says it.
		at string
	}{{
		name: "path missing",
		path: "./apps/absent",
		want: "kustomization flux-system/tier: kustomization path not found: stat apps/absent: no such file or directory",
	}, {
		name: "path climbs out",
		path: "../../../etc",
		want: "kustomization flux-system/tier: kustomization path not found: stat etc: no such file or directory",
	}, {
		name:  "manifest does not parse",
		files: map[string]string{"apps/broken.yaml": "apiVersion: v1\nkind: ConfigMap\n metadata: {\n"},
		path:  "apps",
		want:  "kustomization flux-system/tier: build: failed to decode Kubernetes YAML from apps/broken.yaml: ",
		at:    "apps/broken.yaml:3",
	}, {
		name: "listed manifest does not parse",
		files: map[string]string{
			"apps/kustomization.yaml": "resources: [broken.yaml]\n",
			"apps/broken.yaml":        "apiVersion: v1\nkind: ConfigMap\n metadata: {\n",
		},
		path: "apps",
		want: "accumulating resources from 'broken.yaml': MalformedYAMLError: ",
		at:   "apps/broken.yaml:3",
	}, {
		name:  "listed manifest missing",
		files: map[string]string{"apps/kustomization.yaml": "resources: [absent.yaml]\n"},
		path:  "apps",
		want:  "kustomization flux-system/tier: build: kustomize build failed: accumulating resources: accumulation err='accumulating resources from 'absent.yaml': open apps/absent.yaml: no such file or directory'",
		at:    "apps/kustomization.yaml:1",
	}, {
		name:  "kustomization file does not parse",
		files: map[string]string{"apps/kustomization.yaml": "resources: {\n"},
		path:  "apps",
		want:  "kustomization flux-system/tier: build: error converting YAML to JSON: yaml: line 1: did not find expected node content",
		at:    "apps/kustomization.yaml:1",
	}, {
		name:  "component outside of the repository",
		files: map[string]string{"apps/a.yaml": configMap("a", "k: v")},
		path:  "apps",
		spec:  "components: [/etc]",
		want:  "component path '/etc' must be local and relative",
	}, {
		name:  "base outside of the repository",
		files: map[string]string{"apps/kustomization.yaml": "namePrefix: a-\nresources: [../../outside]\n"},
		path:  "apps",
		want:  "kustomization flux-system/tier: build: kustomize build failed: accumulating resources: ",
		at:    "apps/kustomization.yaml:2",
	}, {
		name:  "object without a name",
		files: map[string]string{"apps/kustomization.yaml": "resources: [a.yaml]\n", "apps/a.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {}\nstringData: {password: hunter2}\n"},
		path:  "apps",
		want:  "missing metadata.name in object",
		at:    "apps/a.yaml:1",
	}, {
		name: "field that kustomize does not know",
		files: map[string]string{
			"apps/kustomization.yaml": "resources: [base]\n", "apps/base/kustomization.yaml": "resources: []\nresorces: [a.yaml]\n",
		},
		path: "apps",
		want: `unknown field "resorces"`,
		at:   "apps/base/kustomization.yaml:2",
	}, {
		name: "patch of what is not there",
		files: map[string]string{
			"apps/kustomization.yaml": "resources: [a.yaml]\npatches: [{path: patch.yaml}]\n",
			"apps/a.yaml":             configMap("a", "k: v"), "apps/patch.yaml": "# why\n" + configMap("b", "k: v"),
		},
		path: "apps",
		want: "no matches for Id ConfigMap.v1.[noGrp]/b.flux-system",
		at:   "apps/patch.yaml:2",
	}, {
		name:  "the same object twice",
		files: map[string]string{"apps/a.yaml": configMap("a", "k: v"), "apps/b.yaml": configMap("b", "k: v") + "---\n" + configMap("a", "k: v")},
		path:  "apps",
		want:  "may not add resource with an already registered id: ConfigMap.v1.[noGrp]/a.flux-system",
		at:    "apps/b.yaml:9",
	}, {
		name:  "variable not set",
		files: map[string]string{"apps/a.yaml": configMap("a", "k: ${B}")},
		path:  "apps",
		spec:  "postBuild: {substitute: {A: '1'}}",
		want:  `kustomization flux-system/tier: build: post build failed for 'ConfigMap.v1.[noGrp]/a': envsubst error: variable substitution failed: variable not set (strict mode): "B"`,
		at:    "apps/a.yaml:7",
	}, {
		name:  "variables' ConfigMap missing",
		files: map[string]string{"apps/a.yaml": configMap("a", "k: ${B}")},
		path:  "apps",
		spec:  "postBuild: {substituteFrom: [{kind: ConfigMap, name: cluster}]}",
		want:  `post build failed for 'ConfigMap.v1.[noGrp]/a': substitute from 'ConfigMap/cluster' error: configmaps "cluster" not found`,
	}, {
		name:    "variable of an illegal name that nothing uses",
		files:   map[string]string{"apps/a.yaml": configMap("a", "k: v")},
		path:    "apps",
		spec:    "postBuild: {substituteFrom: [{kind: ConfigMap, name: cluster}]}",
		builder: Builder{Variables: &someVariables{configMaps: map[string]map[string]string{"cluster": {"aks-resource-group": "x"}}}},
		want:    "'aks-resource-group' var name is invalid, must match '^[_[:alpha:]][_[:alpha:][:digit:]]*$'",
	}, {
		name:  "bash array in a script",
		files: map[string]string{"apps/a.yaml": configMap("a", "k: '${AUTH[@]}'")},
		path:  "apps",
		spec:  "postBuild: {substitute: {A: '1'}}",
		want:  "variable substitution failed: missing closing brace",
		at:    "apps/a.yaml:1",
	}, {
		name:    "source of another namespace",
		files:   map[string]string{"apps/a.yaml": configMap("a", "k: v")},
		path:    "apps",
		spec:    "sourceRef: {kind: GitRepository, name: flux-system, namespace: elsewhere}",
		builder: Builder{NoCrossNamespaceRefs: true},
		want:    "source: can't access 'GitRepository/elsewhere/flux-system', cross-namespace references have been blocked",
	}, {
		name: "wrong type in the spec",
		path: ".",
		spec: "timeout: [5m]",
		want: "kustomization flux-system/tier: decode: ",
	}}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.files == nil {
				tt.files = map[string]string{"README.md": ""}
			}
			tree := openTree(t, writeTree(t, tt.files))
			// A second sourceRef in the YAML would be a duplicate key.
			tier := tierAt(t, "tier", tt.path)
			for key, value := range object(t, "spec: {"+strings.TrimSpace(tt.spec)+"}").Object["spec"].(map[string]any) {
				tier.Object["spec"].(map[string]any)[key] = value
			}
			_, err := tt.builder.Build(t.Context(), tier, tree)
			if err == nil {
				t.Fatal("it builds")
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got  %v\nwant …%s…", err, tt.want)
			}
			got := ""
			if at, placed := PositionOf(err); placed {
				got = fmt.Sprintf("%s:%d", at.File, at.Line)
			}
			if got != tt.at {
				t.Errorf("the mistake is placed at %q, want %q: %v", got, tt.at, err)
			}
			if !strings.HasPrefix(err.Error(), "kustomization flux-system/tier: ") {
				t.Errorf("subject is not first: %v", err)
			}
			for _, leak := range []string{tree.root, os.TempDir() + "/" + tempPrefix, "hunter2"} {
				if strings.Contains(err.Error(), leak) {
					t.Errorf("the error shows %s: %v", leak, err)
				}
			}
		})
	}
}

func TestBuildNotATier(t *testing.T) {
	_, err := Builder{}.Build(t.Context(), object(t, configMap("a", "k: v")), openTree(t, t.TempDir()))
	if want := "kustomization flux-system/a: it is a ConfigMap, not a Kustomization of kustomize.toolkit.fluxcd.io"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestEmptyPath: Flux applies nothing and is Ready.
func TestEmptyPath(t *testing.T) {
	tree := openTree(t, writeTree(t, map[string]string{"apps/README.md": "nothing yet"}))
	result, err := Builder{}.Build(t.Context(), tierAt(t, "tier", "apps"), tree)
	if err != nil || len(result.Objects) != 0 {
		t.Errorf("got %v, %v, want no objects", result, err)
	}
}

// TestLooseSubstitution is SUB-01 before kustomize-controller 1.9.
func TestLooseSubstitution(t *testing.T) {
	tree := openTree(t, writeTree(t, map[string]string{"a.yaml": configMap("a", "k: x${B}x")}))
	tier := tierAt(t, "tier", ".", "postBuild: {substitute: {A: '1'}}")
	result, err := Builder{LooseSubstitution: true}.Build(t.Context(), tier, tree)
	if err != nil {
		t.Fatal(err)
	}
	if got := result.Objects[0].Object["data"].(map[string]any)["k"]; got != "xx" {
		t.Errorf("got %q, want the variable to be emptied", got)
	}
}

// TestSubstituteAlways: without a single variable, defaults apply all the same.
func TestSubstituteAlways(t *testing.T) {
	tree := openTree(t, writeTree(t, map[string]string{"a.yaml": configMap("a", "k: ${X:=default}")}))
	result, err := Builder{}.Build(t.Context(), tierAt(t, "tier", ".", "postBuild: {substituteStrategy: Always}"), tree)
	if err != nil {
		t.Fatal(err)
	}
	if got := result.Objects[0].Object["data"].(map[string]any)["k"]; got != "default" {
		t.Errorf("got %q, want the default", got)
	}
}

// TestVariablesReadOnce: Flux reads each reference once per object.
func TestVariablesReadOnce(t *testing.T) {
	files := map[string]string{}
	for i := range 20 {
		name := fmt.Sprintf("c%d", i)
		files[name+".yaml"] = configMap(name, "k: ${A}")
	}
	variables := &someVariables{configMaps: map[string]map[string]string{"cluster": {"A": "1"}}}
	tier := tierAt(t, "tier", ".", "postBuild: {substituteFrom: [{kind: ConfigMap, name: cluster}, {kind: Secret, name: absent, optional: true}]}")
	if _, err := (Builder{Variables: variables}).Build(t.Context(), tier, openTree(t, writeTree(t, files))); err != nil {
		t.Fatal(err)
	}
	if reads := variables.reads.Load(); reads != 2 {
		t.Errorf("%d reads for 20 objects and 2 references, want 2", reads)
	}
}

// TestSecretsStayOutOfErrors: the YAML parser quotes what it cannot read.
func TestSecretsStayOutOfErrors(t *testing.T) {
	for _, value := range []string{"*s3cr3t-t0k3n", "first: *s3cr3t-t0k3n", "'s3cr3t-t0k3n", "s3cr3t: t0k3n: s3cr3t"} {
		builder := Builder{Variables: &someVariables{secrets: map[string]map[string][]byte{"s": {"TOKEN": []byte(value)}}}}
		tree := openTree(t, writeTree(t, map[string]string{"a.yaml": configMap("a", "k: ${TOKEN}")}))
		tier := tierAt(t, "tier", ".", "postBuild: {substituteFrom: [{kind: Secret, name: s}]}")
		_, err := builder.Build(t.Context(), tier, tree)
		if err == nil {
			t.Fatalf("%s: broken YAML is accepted", value)
		}
		if strings.Contains(err.Error(), "s3cr3t") || strings.Contains(err.Error(), "t0k3n") {
			t.Errorf("the error shows the value of a Secret: %v", err)
		}
	}
}

// TestObjectsDoNotPrintTheirContent: a %v in some message must not show a
// Secret.
func TestObjectsDoNotPrintTheirContent(t *testing.T) {
	tree := openTree(t, writeTree(t, map[string]string{"a.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {password: hunter2}\n"}))
	result, err := Builder{}.Build(t.Context(), tierAt(t, "tier", "."), tree)
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		for _, printed := range []any{result.Objects[0], result.Objects, result} {
			if text := fmt.Sprintf(format, printed); strings.Contains(text, "hunter2") || strings.Contains(text, "aHVudGVyMg") {
				t.Errorf("%s of %T shows the value: %s", format, printed, text)
			}
		}
	}
}

// TestEncryptedWithoutDecryption is incident 11: a Secret with ciphertext in
// data stops its whole tier; with ciphertext in stringData it is applied as it
// is.
func TestEncryptedWithoutDecryption(t *testing.T) {
	secret := func(field, annotation string) string {
		return "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: default" + annotation + "}\n" + field + ": {password: 'ENC[AES256_GCM,data:AAAA,iv:BBBB,tag:CCCC,type:str]'}\nsops: {mac: 'ENC[x]', version: 3.9.0}\n"
	}
	tests := []struct{ name, manifest, rejected string }{
		{"data", secret("data", ""), "Secret/default/s is SOPS encrypted, configuring decryption is required for this secret to be reconciled"},
		{"stringData", secret("stringData", ""), ""},
		{"opted out", secret("data", ", annotations: {kustomize.toolkit.fluxcd.io/decrypt: Disabled}"), ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tree := openTree(t, writeTree(t, map[string]string{"a.yaml": tt.manifest}))
			result, err := Builder{}.Build(t.Context(), tierAt(t, "tier", "."), tree)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if result.Rejected != nil {
				got = result.Rejected.Error()
			}
			if got != tt.rejected {
				t.Errorf("rejected %q, want %q", got, tt.rejected)
			}
			if !result.Objects[0].Encrypted {
				t.Error("the object is not marked as encrypted")
			}
		})
	}
}

// TestSchemasDoNotLeak: kustomize keeps the schema that it merges by in a
// variable of its own. What one tier brings must not change another.
func TestSchemasDoNotLeak(t *testing.T) {
	widget := "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w, namespace: default}\nspec:\n  parts:\n  - {name: a, size: 1}\n  - {name: b, size: 2}\n"
	patch := "patches:\n- patch: |\n    apiVersion: example.com/v1\n    kind: Widget\n    metadata: {name: w, namespace: default}\n    spec:\n      parts:\n      - {name: b, size: 3}\n"
	tree := openTree(t, writeTree(t, map[string]string{
		"merged/kustomization.yaml":   "resources: [w.yaml]\nopenapi: {path: schema.json}\n" + patch,
		"merged/w.yaml":               widget,
		"merged/schema.json":          `{"definitions": {"w": {"type": "object", "x-kubernetes-group-version-kind": [{"group": "example.com", "kind": "Widget", "version": "v1"}], "properties": {"spec": {"type": "object", "properties": {"parts": {"type": "array", "x-kubernetes-patch-merge-key": "name", "x-kubernetes-patch-strategy": "merge", "items": {"type": "object", "properties": {"name": {"type": "string"}, "size": {"type": "integer"}}}}}}}}}}`,
		"replaced/kustomization.yaml": "resources: [w.yaml]\n" + patch,
		"replaced/w.yaml":             widget,
	}))
	for range 2 {
		for path, want := range map[string]int{"merged": 2, "replaced": 1} {
			result, err := Builder{}.Build(t.Context(), tierAt(t, "tier", path), tree)
			if err != nil {
				t.Fatal(err)
			}
			parts := result.Objects[0].Object["spec"].(map[string]any)["parts"].([]any)
			if len(parts) != want {
				t.Errorf("%s: %v, want %d parts", path, parts, want)
			}
		}
	}
}
