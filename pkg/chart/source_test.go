// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/kubestandup/kubestandup/pkg/build"
)

// helmChartOf is the HelmChart that helm-controller makes, with further lines
// of its spec and a status.
func helmChartOf(spec, status string) string {
	return fmt.Sprintf(`apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmChart
metadata: {name: apps-demo, namespace: sources, generation: 2}
spec: {chart: ./charts/demo, version: ">=1.0.0", interval: 1h, sourceRef: {kind: GitRepository, name: charts}%s}
status: %s
`, spec, status)
}

func source(kind, spec, status string) string {
	return fmt.Sprintf(`apiVersion: source.toolkit.fluxcd.io/v1
kind: %s
metadata: {name: charts, namespace: sources, generation: 1}
spec: {interval: 1h%s}
status: %s
`, kind, spec, status)
}

// TestWhereTheChartComesFrom: the artifact that Flux has made of the very
// chart, else the source that Flux would make it of.
func TestWhereTheChartComesFrom(t *testing.T) {
	t.Parallel()
	s := newStored(t)
	made := s.artifact("/made.tgz", "9.0.0", archive(t, chartFiles("9.0.0")))
	tree := s.artifact("/tree.tgz", "main@sha1:0123456789abcdef0123456789abcdef01234567", archive(t, below("charts/", chartFiles("1.0.0"))))
	git := source(gitRepository, `, url: "https://git.example.com"`, "{observedGeneration: 1, artifact: "+tree+"}")
	const stalled = ", conditions: [{type: Stalled, status: \"True\", reason: x, message: x, lastTransitionTime: 2026-01-01T00:00:00Z}]"
	release := helmRelease(gitRepository)
	for _, tt := range []struct {
		name, live, authored, version, origin string
	}{
		{"made", objects(release, git, helmChartOf("", "{observedGeneration: 2, artifact: "+made+"}")), "", "9.0.0", "the artifact of HelmChart/sources/apps-demo"},
		{"made with the defaults written out", objects(release, git, helmChartOf(", reconcileStrategy: ChartVersion", "{observedGeneration: 2, artifact: "+made+"}")), "", "9.0.0", "the artifact of HelmChart"},
		{"any version, which the API writes out", objects(
			strings.Replace(release, ", version: \">=1.0.0\"", "", 1), git, strings.Replace(helmChartOf("", "{observedGeneration: 2, artifact: "+made+"}"), ">=1.0.0", "*", 1),
		), "", "9.0.0", "the artifact of HelmChart"},
		{"not made yet", objects(release, git, helmChartOf("", "{}")), "", "1.0.0", "path ./charts/demo of GitRepository/sources/charts at main@sha1:"},
		{"made of an older spec", objects(release, git, helmChartOf("", "{observedGeneration: 1, artifact: "+made+"}")), "", "1.0.0", "path ./charts/demo"},
		{"stalled", objects(release, git, helmChartOf("", "{observedGeneration: 2, artifact: "+made+stalled+"}")), "", "1.0.0", "path ./charts/demo"},
		{"not asked for yet", objects(release, git), "", "1.0.0", "path ./charts/demo"},
		{"asked for otherwise", objects(release, git, strings.Replace(helmChartOf("", "{observedGeneration: 2, artifact: "+made+"}"), ">=1.0.0", "0.9.0", 1)), "", "1.0.0", "path ./charts/demo"},
		{"the release is in git alone", git, release, "1.0.0", "path ./charts/demo"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := mustLoad(t, charts(t, tt.live, tt.authored))
			if c.Version != tt.version || c.Name != "demo" || !strings.HasPrefix(c.Origin, tt.origin) {
				t.Errorf("got %s %s from %s, want %s from %s", c.Name, c.Version, c.Origin, tt.version, tt.origin)
			}
			if got := names(t, c, on()); !slices.Equal(got, []string{"widgets.example.com"}) {
				t.Errorf("got %v", got)
			}
		})
	}
}

// TestChartRef: whatever is packed, the archive holds the chart in a folder.
func TestChartRef(t *testing.T) {
	t.Parallel()
	s := newStored(t)
	const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	release := func(kind string) string {
		return fmt.Sprintf("apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: demo, namespace: apps}\n"+
			"spec: {interval: 1h, chartRef: {kind: %s, name: charts, namespace: sources}}\n", kind)
	}
	raw := archive(t, chartFiles("1.0.0"))
	for kind, tt := range map[string]struct{ revision, version string }{
		ociRepository:    {"1.0.0@" + digest, "1.0.0+0123456789ab"},
		externalArtifact: {"1.0.0", "1.0.0"},
		helmChart:        {"1.0.0", "1.0.0"},
	} {
		c := mustLoad(t, charts(t, objects(release(kind), source(kind, "", "{observedGeneration: 1, artifact: "+s.artifact("/"+kind, tt.revision, raw)+"}")), ""))
		if c.Version != tt.version {
			t.Errorf("%s: got version %s, want %s", kind, c.Version, tt.version)
		}
		if got := names(t, c, on()); len(got) != 1 {
			t.Errorf("%s: got %v", kind, got)
		}
	}
	_, err := charts(t, objects(release(externalArtifact), source(externalArtifact, "", "{}")), "").Load(t.Context(), "apps", "demo")
	fails(t, err, "ExternalArtifact/sources/charts has no artifact yet, and only its own controller can make one")
	_, err = charts(t, release("Bucket"), "").Load(t.Context(), "apps", "demo")
	fails(t, err, "HelmRelease/apps/demo refers to a Bucket, which is no source of charts")
}

// TestChartInATree: values files, revisions and dependencies are those that
// source-controller would pack.
func TestChartInATree(t *testing.T) {
	t.Parallel()
	const revision = "main@sha1:0123456789abcdef0123456789abcdef01234567"
	lib := map[string]string{
		"lib/Chart.yaml":         "apiVersion: v2\nname: lib\nversion: 1.0.0\n",
		"lib/templates/crd.yaml": crd("libs"),
	}
	plus := func(more map[string]string) map[string]string {
		files := below("charts/", chartFiles("1.0.0"))
		maps.Copy(files, more)
		return files
	}
	loaded := func(files map[string]string, chart string) (*Chart, error) {
		s := newStored(t)
		git := source(gitRepository, `, url: "https://git.example.com"`, "{artifact: "+s.artifact("/tree.tgz", revision, archive(t, files))+"}")
		release := strings.Replace(helmRelease(gitRepository), "chart: ./charts/demo", "chart: ./charts/demo"+chart, 1)
		return charts(t, objects(release, git), "").Load(t.Context(), "apps", "demo")
	}
	overlay := map[string]string{"env/on.yaml": "crds: {install: true}\n", "env/name.yaml": "plural: gears\n"}
	dependency := map[string]string{"charts/demo/Chart.yaml": "apiVersion: v2\nname: demo\nversion: 1.0.0\ndependencies: [{name: lib, version: 1.0.0, repository: \"file://../../lib\"}]\n"}
	for _, tt := range []struct {
		name    string
		files   map[string]string
		chart   string
		version string
		want    []string
	}{
		{"the chart's own values", plus(nil), "", "1.0.0", nil},
		{"values files", plus(overlay), ", valuesFiles: [charts/demo/values.yaml, env/on.yaml, env/name.yaml]", "1.0.0+1", []string{"gears.example.com"}},
		{"values files replace the chart's own", plus(overlay), ", valuesFiles: [env/on.yaml]", "1.0.0+1", []string{".example.com"}},
		{"a missing one, ignored", plus(overlay), ", valuesFiles: [none.yaml, env/name.yaml, env/on.yaml], ignoreMissingValuesFiles: true", "1.0.0+1", []string{"gears.example.com"}},
		{"a version per revision", plus(nil), ", reconcileStrategy: Revision", "1.0.0+0123456789ab", nil},
		{"both", plus(overlay), ", reconcileStrategy: Revision, valuesFiles: [env/name.yaml, env/on.yaml]", "1.0.0+0123456789ab.1", []string{"gears.example.com"}},
		{"a dependency beside it", plus(maps.Collect(merge(lib, dependency))), "", "1.0.0", []string{"libs.example.com"}},
		{"what .helmignore names", plus(map[string]string{"charts/demo/.helmignore": "skip/\n", "charts/demo/crds/skip/x.yaml": crd("skips"), "charts/demo/crds/y.yaml": crd("kepts")}), "", "1.0.0", []string{"kepts.example.com"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := loaded(tt.files, tt.chart)
			if err != nil {
				t.Fatal(err)
			}
			if got := names(t, c, nil); !slices.Equal(got, tt.want) || c.Version != tt.version {
				t.Errorf("got %v at %s, want %v at %s", got, c.Version, tt.want, tt.version)
			}
		})
	}
	for _, tt := range []struct {
		name        string
		files       map[string]string
		chart, says string
	}{
		{"no such path", overlay, "", "path ./charts/demo of GitRepository/sources/charts: it is not there"},
		{"no chart there", map[string]string{"charts/demo/README.md": "x"}, "", "Chart.yaml file is missing"},
		{"out of the tree", plus(nil), "/../../../../../../etc", "path ./charts/demo/../../../../../../etc of GitRepository/sources/charts: it is not there"},
		{"a missing values file", plus(nil), ", valuesFiles: [none.yaml]", "its valuesFiles name none.yaml, which is not there"},
		{
			"a dependency from elsewhere", plus(map[string]string{"charts/demo/Chart.yaml": strings.Replace(dependency["charts/demo/Chart.yaml"], "file://../../lib", "https://me:"+marker+"@charts.example.com", 1)}),
			"", "it depends on chart lib of https://charts.example.com, which source-controller fetches when it packs it",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := loaded(tt.files, tt.chart)
			fails(t, err, tt.says)
			if err != nil && strings.Contains(err.Error(), "kubestandup-tree") {
				t.Errorf("this names our own copy: %v", err)
			}
		})
	}
}

func merge(all ...map[string]string) func(func(string, string) bool) {
	return func(yield func(string, string) bool) {
		for _, m := range all {
			for k, v := range m {
				if !yield(k, v) {
					return
				}
			}
		}
	}
}

// TestWhatIsInTheWay is said with the object that it is about.
func TestWhatIsInTheWay(t *testing.T) {
	t.Parallel()
	release := helmRelease(gitRepository)
	git := source(gitRepository, `, url: "https://git.example.com"`, "{}")
	s := newStored(t)
	broken := strings.Replace(s.artifact("/x.tgz", "1.0.0", archive(t, chartFiles("1.0.0"))), "sha256:", "sha256:0000", 1)
	noChart := s.artifact("/none.tgz", "1.0.0", archive(t, map[string]string{"demo/README.md": "x"}))
	for _, tt := range []struct{ name, live, authored, says string }{
		{"no release", "", "", "HelmRelease/apps/demo exists neither on the cluster nor in what a tier would apply"},
		{"no source", release, "", "GitRepository/sources/charts exists neither on the cluster nor in what a tier would apply, and HelmChart/sources/apps-demo names it"},
		{"a source without an artifact", objects(release, git), "", build.ErrNoArtifact.Error()},
		{"another cluster", helmRelease(gitRepository, "kubeConfig: {secretRef: {name: remote}}"), "", "is installed on another cluster (spec.kubeConfig)"},
		{"neither chart nor chartRef", "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: demo, namespace: apps}\nspec: {interval: 1h}\n", "", "needs one of spec.chart and spec.chartRef"},
		{"an artifact that was changed", objects(release, helmChartOf("", "{observedGeneration: 2, artifact: "+broken+"}")), "", "HelmChart/sources/apps-demo: its artifact cannot be fetched"},
		{"an artifact that is no chart", objects(release, helmChartOf("", "{observedGeneration: 2, artifact: "+noChart+"}")), "", "the artifact of HelmChart/sources/apps-demo is no chart: Chart.yaml file is missing"},
		{"a Secret that is not there", objects(helmRelease(gitRepository, "valuesFrom: [{kind: Secret, name: none}]"), madeChart(t, s)), "", `values of HelmRelease/apps/demo: Secret apps/none, key "values.yaml": resource not found`},
		{"a key that is not there", objects(helmRelease(gitRepository, "valuesFrom: [{kind: Secret, name: values, valuesKey: none}]"), madeChart(t, s), values), "", `Secret apps/values, key "none": key not found`},
		{"values that are none", objects(helmRelease(gitRepository, "valuesFrom: [{kind: Secret, name: bad}]"), madeChart(t, s), badValues), "", `Secret apps/bad, key "values.yaml": failed to read values data`},
		{"values that fit no path", objects(helmRelease(gitRepository, "valuesFrom: [{kind: Secret, name: bad, targetPath: 'a[x]'}]"), madeChart(t, s), badValues), "", `Secret apps/bad, key "values.yaml": failed to merge value`},
		{"a Secret that is encrypted in git", objects(helmRelease(gitRepository, "valuesFrom: [{kind: Secret, name: values}]"), madeChart(t, s)), strings.SplitN(values, "---", 2)[0] + "sops: {mac: x}\n", "Secret/apps/values is encrypted in git and not on the cluster yet"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := charts(t, tt.live, tt.authored).Load(t.Context(), "apps", "demo")
			fails(t, err, tt.says)
		})
	}
	_, err := charts(t, "", "").Load(t.Context(), "apps", "demo")
	if missing, ok := errors.AsType[*NotFoundError](err); !ok || missing.Ref.Name != "demo" {
		t.Errorf("got %T %v", err, err)
	}
}

// badValues is a Secret whose content is "- s3cr3t-marker: [\n".
const badValues = "apiVersion: v1\nkind: Secret\nmetadata: {name: bad, namespace: apps}\nstringData: {values.yaml: \"- " + marker + ": [\\n\"}\n"

func madeChart(t *testing.T, s *stored) string {
	t.Helper()
	return helmChartOf("", "{observedGeneration: 2, artifact: "+s.artifact("/good.tgz", "1.0.0", archive(t, chartFiles("1.0.0")))+"}")
}
