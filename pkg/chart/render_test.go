// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// chartOf is the chart of a HelmRelease that lies in a HelmChart's artifact.
func chartOf(t *testing.T, files map[string]string, release ...string) *Chart {
	t.Helper()
	s := newStored(t)
	chart := `apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmChart
metadata: {name: apps-demo, namespace: sources, generation: 3}
spec: {chart: demo, version: ">=1.0.0", interval: 1h, sourceRef: {kind: HelmRepository, name: charts}}
status: {observedGeneration: 3, artifact: ` + s.artifact("/demo.tgz", "1.0.0", archive(t, files)) + "}\n"
	return mustLoad(t, charts(t, objects(append([]string{helmRelease(helmRepository, release...), chart}, values)...), ""))
}

// values are a Secret and a ConfigMap that a HelmRelease may name.
const values = `apiVersion: v1
kind: Secret
metadata: {name: values, namespace: apps}
data: {values.yaml: ` + markedBase64 + `}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: values, namespace: apps}
data: {values.yaml: "plural: gadgets\ncrds: {install: true}\n"}`

// markedBase64 is "password: s3cr3t-marker\n".
const markedBase64 = "cGFzc3dvcmQ6IHMzY3IzdC1tYXJrZXIK"

func TestWhatIsRendered(t *testing.T) {
	t.Parallel()
	sub := map[string]string{
		"demo/charts/sub/Chart.yaml":         "apiVersion: v2\nname: sub\nversion: 1.0.0\n",
		"demo/charts/sub/values.yaml":        "",
		"demo/charts/sub/crds/crd.yaml":      crd("subs"),
		"demo/charts/sub/templates/crd.yaml": crd("subtemplates"),
	}
	withSub := func(dependency string) map[string]string {
		files := chartFiles("1.0.0")
		for name, text := range sub {
			files[name] = text
		}
		files["demo/Chart.yaml"] += "dependencies: [{name: sub, version: 1.0.0, " + dependency + "}]\n"
		return files
	}
	with := func(name, text string) map[string]string {
		files := chartFiles("1.0.0")
		files[name] = text
		return files
	}
	for _, tt := range []struct {
		name     string
		files    map[string]string
		release  []string
		override map[string]any
		want     []string
	}{
		{"switched off", chartFiles("1.0.0"), nil, nil, nil},
		{"switched on", chartFiles("1.0.0"), nil, on(), []string{"widgets.example.com"}},
		{"the release's values, then the override's", chartFiles("1.0.0"), []string{"values: {plural: gears, crds: {install: false}}"}, on(), []string{"gears.example.com"}},
		{"valuesFrom", chartFiles("1.0.0"), []string{"valuesFrom: [{kind: ConfigMap, name: values}]"}, nil, []string{"gadgets.example.com"}},
		{"the values win over valuesFrom", chartFiles("1.0.0"), []string{"valuesFrom: [{kind: ConfigMap, name: values}]", "values: {plural: gears}"}, nil, []string{"gears.example.com"}},
		{"a targetPath wins over the values", chartFiles("1.0.0"), []string{"valuesFrom: [{kind: Secret, name: values, valuesKey: values.yaml, targetPath: x, literal: true}]", "values: {plural: gears}"}, on(), []string{"gears.example.com"}},
		{"optional and missing", chartFiles("1.0.0"), []string{"valuesFrom: [{kind: ConfigMap, name: none, optional: true}]"}, on(), []string{"widgets.example.com"}},
		{"the folder crds", with("demo/crds/one.yaml", crd("ones")+"---\n"+crd("twos")), nil, nil, []string{"ones.example.com", "twos.example.com"}},
		{"a hook", with("demo/templates/hook.yaml", strings.Replace(crd("hooks"), "creationTimestamp: null", "annotations: {helm.sh/hook: pre-install}", 1)), nil, nil, []string{"hooks.example.com"}},
		{"a list", with("demo/templates/list.yaml", "apiVersion: v1\nkind: List\nitems:\n- "+strings.ReplaceAll(strings.TrimSpace(crd("lists")), "\n", "\n  ")+"\n"), nil, nil, []string{"lists.example.com"}},
		{"in the text of something else", with("demo/templates/cm.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {x: CustomResourceDefinition}\n"), nil, nil, nil},
		{"in the notes", with("demo/templates/NOTES.txt", "CustomResourceDefinition: [not YAML"), nil, nil, nil},
		{"a subchart", withSub("condition: sub.enabled"), nil, nil, []string{"subs.example.com", "subtemplates.example.com"}},
		{"a subchart, off by its condition", withSub("condition: sub.enabled"), []string{"values: {sub: {enabled: false}}"}, nil, nil},
		{"a subchart, off by its tag", withSub("tags: [extra]"), []string{"values: {tags: {extra: false}}"}, nil, nil},
		{"lookup finds nothing", with("demo/templates/lookup.yaml", `{{ if not (lookup "v1" "Secret" "apps" "x") }}`+"\n"+crd("lookups")+"{{ end }}\n"), nil, nil, []string{"lookups.example.com"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := names(t, chartOf(t, tt.files, tt.release...), tt.override); !slices.Equal(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

// TestWhatTheChartIsTold: the release, the server and its kinds.
func TestWhatTheChartIsTold(t *testing.T) {
	t.Parallel()
	files := chartFiles("1.0.0")
	files["demo/templates/told.yaml"] = strings.Replace(crd("tolds"), "creationTimestamp: null", `creationTimestamp: null, namespace: x, annotations: {
  release: "{{ .Release.Name }} {{ .Release.Namespace }} {{ .Release.IsInstall }} {{ .Release.Revision }}",
  chart: "{{ .Chart.Name }}-{{ .Chart.Version }}", kube: "{{ .Capabilities.KubeVersion }}",
  has: "{{ .Capabilities.APIVersions.Has "example.com/v1/Thing" }} {{ .Capabilities.APIVersions.Has "example.com/v1" }} {{ .Capabilities.APIVersions.Has "other/v1" }}"}`, 1)
	c := chartOf(t, files, "targetNamespace: elsewhere", "postRenderers: [{kustomize: {patches: []}}]")
	all, err := c.Definitions(t.Context(), Server{Version: "v1.37.2", Kinds: []schema.GroupVersionKind{{Group: "example.com", Version: "v1", Kind: "Thing"}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{
		"release": "elsewhere-demo elsewhere true 1", "chart": "demo-1.0.0", "kube": "v1.37.2", "has": "true true false",
	} {
		if got := all[0].GetAnnotations()[key]; got != want {
			t.Errorf("%s: got %q, want %q", key, got, want)
		}
	}
	metadata, _ := all[0].Object["metadata"].(map[string]any)
	for _, field := range []string{"creationTimestamp", "namespace"} {
		if _, there := metadata[field]; there {
			t.Errorf("metadata.%s is still there", field)
		}
	}
	if _, there := all[0].Object["status"]; there {
		t.Error("status is still there")
	}
	if len(c.Notes) != 1 || !strings.Contains(c.Notes[0], "postRenderers") {
		t.Errorf("notes %q", c.Notes)
	}
}

func TestWhatCannotBeRendered(t *testing.T) {
	t.Parallel()
	const fromSecret = "valuesFrom: [{kind: Secret, name: values}]"
	for _, tt := range []struct {
		name, file, text, says string
	}{
		{"an old CRD", "demo/templates/old.yaml", strings.Replace(crd("olds"), "/v1\n", "/v1beta1\n", 1), "olds.example.com is of apiextensions.k8s.io/v1beta1"},
		{"no name", "demo/templates/none.yaml", strings.Replace(crd("nones"), "name: nones.example.com, ", "", 1), "a CustomResourceDefinition has no name"},
		{"no YAML", "demo/templates/bad.yaml", "kind: CustomResourceDefinition: {", "demo/templates/bad.yaml"},
		{"a failing template", "demo/templates/bad.yaml", `{{ fail (printf "no %s" .Values.password) }}`, "demo/templates/bad.yaml:1:3"},
		{"a required value", "demo/templates/bad.yaml", `{{ required "give it" .Values.nothing }}`, "give it"},
		{"a server that is too old", "demo/Chart.yaml", "apiVersion: v2\nname: demo\nversion: 1.0.0\nkubeVersion: \">=1.99.0\"\n", "it requires Kubernetes >=1.99.0 and the server is v1.37.2"},
		{"a schema", "demo/values.schema.json", `{"properties": {"password": {"pattern": "^[0-9]+$"}}}`, "password"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			files := chartFiles("1.0.0")
			files[tt.file] = tt.text
			_, err := chartOf(t, files, fromSecret).Definitions(t.Context(), server(), nil)
			fails(t, err, tt.says)
			fails(t, err, "of HelmRelease/apps/demo cannot be rendered: ")
		})
	}
	files := chartFiles("1.0.0")
	files["demo/values.schema.json"] = `{"properties": {"password": {"pattern": "^[0-9]+$"}}}`
	if _, err := chartOf(t, files, fromSecret, "install: {disableSchemaValidation: true}").Definitions(t.Context(), server(), nil); err != nil {
		t.Errorf("the HelmRelease asks for no validation, yet: %v", err)
	}
}

func TestSwitches(t *testing.T) {
	t.Parallel()
	files := chartFiles("1.0.0")
	files["demo/values.yaml"] = `
crds: {install: false, annotations: {x: "not shown"}, count: 3}
installCRDs: false
operator: {customResourceDefinitions: {create: false}}
password: true
`
	c := chartOf(t, files)
	if got := names(t, c, nil); len(got) != 0 {
		t.Fatalf("got %v", got)
	}
	want := []string{"crds.install: false", "installCRDs: false", "operator.customResourceDefinitions.create: false"}
	if got := c.Switches(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestHidden(t *testing.T) {
	t.Parallel()
	var h hidden
	h.add([]byte("user: admin-user\npin: 123456\nflag: true\nlist: [first-item, {deep: 'two words'}]\nx: y\n"))
	got := h.redactText("admin-user 123456 true first-item two words y words")
	if want := "***** ***** true ***** ***** y *****"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	var none hidden
	if none.redactText("as it is") != "as it is" || none.redact(nil) != nil {
		t.Error("nothing is hidden, yet it changes")
	}
}

// TestEndlessTemplate: an interrupt and a deadline end it.
func TestEndlessTemplate(t *testing.T) {
	t.Parallel()
	files := chartFiles("1.0.0")
	files["demo/templates/loop.yaml"] = "{{ range until 1500 }}{{ range until 1500 }}{{ if eq 1 2 }}{{ end }}{{ end }}{{ end }}"
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := chartOf(t, files).Definitions(interrupted, server(), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	late, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	_, err := chartOf(t, files).Definitions(late, server(), nil)
	fails(t, err, "chart demo 1.0.0 of HelmRelease/apps/demo is not rendered after ")
	if slow, ok := errors.AsType[*SlowError](err); !ok || slow.ExitCode() != 4 {
		t.Errorf("got %T", err)
	}
}
