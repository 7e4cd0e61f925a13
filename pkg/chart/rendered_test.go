// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kubestandup/kubestandup/pkg/knowledge"
)

// local is the chart demo of a working tree, with more files.
func local(t *testing.T, more map[string]string, release ...string) *Chart {
	t.Helper()
	files := map[string]string{}
	for name, text := range more {
		files["charts/"+name] = text
	}
	return mustLoad(t, offlineCharts(t, objects(append([]string{helmRelease(gitRepository, release...)}, values)...), gitRepository, inTree(files), nil))
}

// refs are Kind/namespace/name.
func refs(all []*unstructured.Unstructured) []string {
	var out []string
	for _, u := range all {
		text := u.GetKind() + "/" + u.GetName()
		if u.GetNamespace() != "" {
			text = u.GetKind() + "/" + u.GetNamespace() + "/" + u.GetName()
		}
		out = append(out, text)
	}
	return out
}

func object(apiVersion, kind, metadata string) string {
	return fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {%s}\n", apiVersion, kind, metadata)
}

func hook(name, events, weight string) string {
	return object("v1", "ConfigMap", fmt.Sprintf("name: %s, annotations: {helm.sh/hook: %q, helm.sh/hook-weight: %q}", name, events, weight))
}

func TestRender(t *testing.T) {
	t.Parallel()
	clustered := strings.ReplaceAll(crd("wides"), "Namespaced", "Cluster")
	patches := func(text string) string {
		return "postRenderers: [{kustomize: {images: [{name: a, newName: b}], patches: [{target: {kind: ConfigMap, name: x}, patch: " + text + "}]}}]"
	}
	remove := patches(`"$patch: delete\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: any}"`)
	change := patches(`"- {op: replace, path: /kind, value: Secret}"`)
	two := object("v1", "ConfigMap", "name: x") + "---\n" + object("v1", "ConfigMap", "name: why")
	for _, tt := range []struct {
		name                                string
		files                               map[string]string
		release                             []string
		folders, objects, preInst, postInst []string
	}{
		{name: "nothing"},
		{"a folder, a template", map[string]string{"crds/one.yaml": crd("ones") + "---\n" + object("v1", "ConfigMap", "name: ignored"), "templates/two.yaml": crd("twos")}, nil, []string{"CustomResourceDefinition/ones.example.com"}, []string{"CustomResourceDefinition/twos.example.com"}, nil, nil},
		{"the namespace of the release", map[string]string{"templates/x.yaml": object("v1", "ConfigMap", "name: x") + "---\n" + object("v1", "ConfigMap", "name: why, namespace: own") + "---\n" + object("v1", "Namespace", "name: z") + "---\n" + object("rbac.authorization.k8s.io/v1", "ClusterRole", "name: c")}, []string{"targetNamespace: elsewhere"}, nil, []string{"ConfigMap/elsewhere/x", "ConfigMap/own/why", "Namespace/z", "ClusterRole/c"}, nil, nil},
		{"kinds of its own", map[string]string{"crds/one.yaml": crd("ones"), "templates/x.yaml": clustered + "---\n" + object("example.com/v1", "Ones", "name: x") + "---\n" + object("example.com/v1", "Wides", "name: why") + "---\n" + object("example.com/v1", "Unknown", "name: z") + "---\n" + object("example.com/v1", "Told", "name: t")}, nil, []string{"CustomResourceDefinition/ones.example.com"}, []string{"CustomResourceDefinition/wides.example.com", "Ones/apps/x", "Wides/why", "Unknown/z", "Told/apps/t"}, nil, nil},
		{"lists", map[string]string{"templates/x.yaml": "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Secret, metadata: {name: s}}\n- {apiVersion: v1, kind: ConfigMapList, items: [{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}]}\n"}, nil, nil, []string{"Secret/apps/s", "ConfigMap/apps/c"}, nil, nil},
		{"what is no object", map[string]string{"templates/NOTES.txt": "{not YAML", "templates/sub/NOTES.txt": "{nor this", "templates/_helper.yaml": "{{ define \"x\" }}{{ end }}", "templates/empty.yaml": "# nothing\n---\n# here\n---\n"}, nil, nil, nil, nil, nil},
		{"separators that lost their line", map[string]string{"templates/x.yaml": "---apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n---   \n" + object("v1", "ConfigMap", "name: why")}, nil, nil, []string{"ConfigMap/apps/x", "ConfigMap/apps/why"}, nil, nil},
		{"more than ten", map[string]string{"templates/x.yaml": strings.Repeat(object("v1", "ConfigMap", "name: x")+"---\n", 10) + object("v1", "ConfigMap", "name: last")}, nil, nil, append(slices.Repeat([]string{"ConfigMap/apps/x"}, 10), "ConfigMap/apps/last"), nil, nil},
		{"hooks", map[string]string{"templates/h.yaml": hook("late", "pre-install,pre-upgrade", "5") + "---\n" + hook("early", "Pre-Install", "-5") + "---\n" + hook("both", "pre-install, post-install", "x") + "---\n" + hook("gone", "pre-delete", "") + "---\n" + hook("tried", "test", "") + "---\n" + hook("odd", "pre-install,crd-install", "")}, nil, nil, nil, []string{"ConfigMap/apps/early", "ConfigMap/apps/both", "ConfigMap/apps/late"}, []string{"ConfigMap/apps/both"}},
		{"hooks, switched off", map[string]string{"templates/h.yaml": hook("h", "pre-install", "") + "---\n" + object("v1", "ConfigMap", "name: x")}, []string{"install: {disableHooks: true}"}, nil, []string{"ConfigMap/apps/x"}, nil, nil},
		{"a patch that deletes", map[string]string{"templates/x.yaml": two}, []string{remove}, nil, []string{"ConfigMap/apps/why"}, nil, nil},
		{"a patch that changes the kind", map[string]string{"templates/x.yaml": two}, []string{change}, nil, []string{"Secret/apps/x", "ConfigMap/apps/why"}, nil, nil},
		{"a patch of a hook", map[string]string{"templates/x.yaml": hook("x", "pre-install", "")}, []string{remove}, nil, nil, nil, nil},
		{"a patch of all but hooks", map[string]string{"templates/x.yaml": hook("x", "pre-install", "")}, []string{remove, "postRenderStrategy: nohooks"}, nil, nil, []string{"ConfigMap/apps/x"}, nil},
		{"a patch of hooks by themselves", map[string]string{"templates/x.yaml": hook("x", "pre-install", "") + "---\n" + two}, []string{remove, "postRenderStrategy: separate"}, nil, []string{"ConfigMap/apps/why"}, nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server := DefaultServer()
			server.Namespaced = map[schema.GroupKind]bool{{Group: "example.com", Kind: "Told"}: true}
			got, err := local(t, below("demo/", tt.files), tt.release...).Render(t.Context(), server)
			if err != nil {
				t.Fatal(err)
			}
			for name, each := range map[string][2][]string{
				"folders": {refs(got.Definitions), tt.folders}, "objects": {refs(got.Objects), tt.objects},
				"before": {refs(got.PreInstall), tt.preInst}, "after": {refs(got.PostInstall), tt.postInst},
			} {
				if !slices.Equal(each[0], each[1]) {
					t.Errorf("%s: got %q, want %q", name, each[0], each[1])
				}
			}
		})
	}
	_, err := local(t, map[string]string{"demo/templates/x.yaml": object("v1", "ConfigMap", "name: x")},
		`postRenderers: [{kustomize: {patches: [{patch: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: none}"}]}}]`).Render(t.Context(), DefaultServer())
	fails(t, err, "postRenderers[0]: ")
}

// TestAskedOfTheServer: crds/ folders are applied before the templates ask.
func TestAskedOfTheServer(t *testing.T) {
	t.Parallel()
	files := map[string]string{"demo/crds/one.yaml": crd("ones"), "demo/templates/x.yaml": `
{{ if .Capabilities.APIVersions.Has "example.com/v1/Ones" }}
` + object("v1", "ConfigMap", "name: ones") + `
{{ end }}
---
{{ if .Capabilities.APIVersions.Has "apps/v1/Deployment" }}
` + object("v1", "ConfigMap", "name: apps") + `
{{ end }}
---
{{ if or (.Capabilities.APIVersions.Has "policy/v1beta1") (.Capabilities.APIVersions.Has ("other/v1" )) }}
` + object("v1", "ConfigMap", "name: other") + `
{{ end }}
---
` + object("v1", "ConfigMap", `name: "v{{ .Capabilities.KubeVersion.Minor }}"`)}
	for release, want := range map[string][]string{
		"":                        {"ConfigMap/apps/ones", "ConfigMap/apps/apps"},
		"install: {crds: Create}": {"ConfigMap/apps/ones", "ConfigMap/apps/apps"},
		"install: {crds: Skip}":   {"ConfigMap/apps/apps"},
	} {
		c := local(t, files, release)
		if got, want := c.Asks(), []string{"apps/v1/Deployment", "example.com/v1/Ones", "other/v1", "policy/v1beta1"}; !slices.Equal(got, want) {
			t.Errorf("it asks for %q, want %q", got, want)
		}
		server := DefaultServer()
		kinds := len(server.Kinds)
		got, err := c.Render(t.Context(), server)
		if err != nil {
			t.Fatal(err)
		}
		minor := strings.Split(kubernetesVersion, ".")[1]
		if want := append(want, "ConfigMap/apps/v"+minor); !slices.Equal(refs(got.Objects), want) || len(got.Definitions) != 1 {
			t.Errorf("%s: got %q, want %q", release, refs(got.Objects), want)
		}
		if len(server.Kinds) != kinds {
			t.Error("the caller's kinds have changed")
		}
	}
}

// TestDefaultServer is of the version of the modules, and knows of each built-in
// kind whether it is in namespaces: the clients of client-go take one or not.
func TestDefaultServer(t *testing.T) {
	t.Parallel()
	modules, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if want := "k8s.io/api " + strings.Replace(kubernetesVersion, "v1.", "v0.", 1) + "\n"; !strings.Contains(string(modules), want) {
		t.Errorf("go.mod has another version of k8s.io/api than %s", kubernetesVersion)
	}
	kinds := map[string]bool{}
	for _, kind := range DefaultServer().Kinds {
		kinds[kind.String()] = true
	}
	for text, want := range map[string]bool{
		"/v1, Kind=Pod": true, "apps/v1, Kind=Deployment": true, "extensions/v1beta1, Kind=Ingress": false, "policy/v1beta1, Kind=PodDisruptionBudget": false,
		"apiextensions.k8s.io/v1, Kind=CustomResourceDefinition": true, "helm.toolkit.fluxcd.io/v2, Kind=HelmRelease": true,
		"/v1, Kind=PodList": false, "/v1, Kind=Status": false, "apps/v1, Kind=DeleteOptions": false,
	} {
		if kinds[text] != want {
			t.Errorf("%s: got %t", text, kinds[text])
		}
	}
	stable := 0
	clients := reflect.TypeFor[kubernetes.Interface]()
	for i := range clients.NumMethod() {
		group := clients.Method(i)
		if group.Type.NumOut() != 1 || !strings.HasSuffix(group.Name, "V1") && !strings.HasSuffix(group.Name, "V2") {
			continue
		}
		for j := range group.Type.Out(0).NumMethod() {
			getter := group.Type.Out(0).Method(j)
			if getter.Name == "RESTClient" {
				continue
			}
			create, ok := getter.Type.Out(0).MethodByName("Create")
			if !ok {
				continue
			}
			object, _ := reflect.New(create.Type.Out(0).Elem()).Interface().(runtime.Object)
			kinds, _, err := scheme.Scheme.ObjectKinds(object)
			if err != nil {
				t.Fatal(err)
			}
			stable++
			said, known := knowledge.NamespacedKind(kinds[0].GroupKind())
			if namespaced := getter.Type.NumIn() == 1; !known || namespaced != said {
				t.Errorf("%s is in namespaces: %t, and we say otherwise", kinds[0], namespaced)
			}
		}
	}
	if stable < 50 {
		t.Errorf("looked at %d kinds only", stable)
	}
}

// TestRenderEnds: an interrupt and a deadline end it.
func TestRenderEnds(t *testing.T) {
	t.Parallel()
	files := map[string]string{"demo/templates/loop.yaml": "{{ range until 1500 }}{{ range until 1500 }}{{ if eq 1 2 }}{{ end }}{{ end }}{{ end }}"}
	late, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	_, err := local(t, files).Render(late, DefaultServer())
	fails(t, err, "chart demo 1.0.0 of HelmRelease/apps/demo is not rendered after ")
	if _, ok := errors.AsType[*SlowError](err); !ok {
		t.Errorf("got %T", err)
	}
}
