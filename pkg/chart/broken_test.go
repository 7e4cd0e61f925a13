// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"errors"
	"strings"
	"testing"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// brokenIn is what is wrong with the chart of a release in a working tree; nil
// where that is nothing, or not the chart.
func brokenIn(t *testing.T, release string, files map[string]string) *BrokenError {
	t.Helper()
	tree := treeOf(t, files)
	source := flux.Ref{Kind: gitRepository, Namespace: "flux-system", Name: "flux-system"}
	c := Offline(finder(t, release), build.Only(source, tree), OfflineOptions{})
	loaded, err := c.Load(t.Context(), "apps", "demo")
	if err == nil {
		_, err = loaded.Render(t.Context(), DefaultServer())
	}
	broken, ok := errors.AsType[*BrokenError](err)
	if !ok {
		return nil
	}
	if broken.Rendered && broken.Guess == "" {
		if broken.Guess, err = c.Doubt(t.Context(), loaded, DefaultServer()); err != nil {
			t.Fatal(err)
		}
	}
	if broken.Release.Name != "demo" || broken.Source.Name != "flux-system" {
		t.Errorf("it is of %s, and from %s", broken.Release, broken.Source)
	}
	return broken
}

func TestBroken(t *testing.T) {
	t.Parallel()
	const fails = `{{ fail "no" }}`
	release := func(spec string) string {
		return "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: demo, namespace: apps}\nspec:\n  chart: {spec: {chart: ./charts/demo, sourceRef: {kind: GitRepository, name: flux-system, namespace: flux-system}}}\n" + spec
	}
	for _, tt := range []struct {
		name, spec string
		files      map[string]string
		// what the error says, where, and on what it rests.
		says, file string
		line       int
		guess      string
	}{
		{name: "nothing is wrong", files: map[string]string{"templates/a.yaml": "# nothing"}},
		{name: "no chart", files: nil, says: "path ./charts/demo of GitRepository/flux-system/flux-system: it is not there"},
		{name: "Chart.yaml", files: map[string]string{"Chart.yaml": "version: [", "templates/a.yaml": ""}, says: "Chart.yaml", file: "charts/demo/Chart.yaml", line: 1},
		{name: "values.yaml", files: map[string]string{"values.yaml": "a: [", "templates/a.yaml": ""}, says: "values.yaml", file: "charts/demo/values.yaml", line: 1},
		{name: "a template", files: map[string]string{"templates/a.yaml": "\n\n" + fails}, says: "execution error at (demo/templates/a.yaml:3:3): no", file: "charts/demo/templates/a.yaml", line: 3},
		{
			name: "a template of a dependency", files: map[string]string{"charts/sub/Chart.yaml": metadataOf("sub"), "charts/sub/templates/a.yaml": fails, "templates/a.yaml": ""},
			says: "demo/charts/sub/templates/a.yaml:1:3", file: "charts/demo/charts/sub/templates/a.yaml", line: 1,
		},
		{name: "values that are not known", spec: "  valuesFrom: [{kind: Secret, name: nobody}]\n", files: map[string]string{"templates/a.yaml": fails}, says: "no", file: "charts/demo/templates/a.yaml", line: 1, guess: "without the values of Secret/apps/nobody, which are not known"},
		{name: "values that are encrypted", spec: "  values: {a: 'ENC[AES256_GCM,data:x]'}\n", files: map[string]string{"templates/a.yaml": fails}, says: "no", file: "charts/demo/templates/a.yaml", line: 1, guess: "with values that only the cluster has"},
		{name: "what is looked up", files: map[string]string{"templates/a.yaml": `{{ if not (lookup "v1" "Secret" "a" "b") }}` + fails + `{{ end }}`}, says: "no", file: "charts/demo/templates/a.yaml", line: 1, guess: "where nothing of what it looks up is on the cluster"},
		{name: "what is refused", files: map[string]string{"templates/a.yaml": `{{ until 2000000000 }}`}, says: "until repeats", file: "charts/demo/templates/a.yaml", line: 1, guess: "in the memory that it may take here"},
		{name: "kinds", files: map[string]string{"templates/a.yaml": `{{ if not (.Capabilities.APIVersions.Has "example.com/v1/Thing") }}` + fails + `{{ end }}`}, says: "no", file: "charts/demo/templates/a.yaml", line: 1, guess: "on this server, of which its templates ask the version and the kinds"},
		{name: "a version", files: map[string]string{"templates/a.yaml": `{{ if semverCompare ">=1.26-0" .Capabilities.KubeVersion.Version }}` + fails + `{{ end }}`}, says: "no", file: "charts/demo/templates/a.yaml", line: 1, guess: "on this server, of which its templates ask the version and the kinds"},
		{name: "any kinds", files: map[string]string{"templates/a.yaml": `{{ $c := .Capabilities }}{{ if not ($c.APIVersions.Has "a/v1") }}` + fails + `{{ end }}`}, says: "no", file: "charts/demo/templates/a.yaml", line: 1, guess: "on this server, which its templates ask what it serves"},
		{name: "whatever the server", files: map[string]string{"templates/a.yaml": `{{ if .Capabilities.APIVersions.Has "a/v1" }}a: 1{{ end }}` + fails}, says: "no", file: "charts/demo/templates/a.yaml", line: 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			files := map[string]string{"README.md": ""}
			for name, content := range tt.files {
				files["charts/demo/"+name] = content
			}
			if _, has := tt.files["Chart.yaml"]; !has && tt.files != nil {
				files["charts/demo/Chart.yaml"] = metadataOf("demo")
			}
			broken := brokenIn(t, release(tt.spec), files)
			if broken == nil || tt.says == "" {
				if broken != nil || tt.says != "" {
					t.Fatalf("got %v, want %q", broken, tt.says)
				}
				return
			}
			if !strings.Contains(broken.Err.Error(), tt.says) || broken.File != tt.file || broken.Line != tt.line || broken.Guess != tt.guess {
				t.Errorf("got %q at %s:%d, guess %q", broken.Err, broken.File, broken.Line, broken.Guess)
			}
			if broken.Absent != (tt.files == nil) {
				t.Errorf("it is absent: %t", broken.Absent)
			}
		})
	}
}

func metadataOf(name string) string { return "apiVersion: v2\nname: " + name + "\nversion: 1.0.0\n" }
