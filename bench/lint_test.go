// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/lint"
)

const (
	// lintFiles and lintTiers are the size of the repository of MISSION.md.
	lintFiles, lintTiers = 1300, 160
	// lintRatio is how many times the time of building all tiers once a lint may
	// take, lintMiB how much memory.
	lintRatio, lintMiB = 1.5, 500
)

// BenchmarkLint lints a repository of 1,300 YAML files with 160 Kustomizations,
// beside a build of the same tiers. The plugin itself runs for the memory that
// it takes.
func BenchmarkLint(b *testing.B) {
	dir := largeRepository(b)
	tiers := buildPlugin(b, "kubectl-tiers")
	// Once, so that kustomize's schema is parsed for neither.
	buildOnce(b, dir)
	var linted, built, whole []measured
	for b.Loop() {
		built = append(built, measured{took: buildOnce(b, dir)})
		began := time.Now()
		report, err := lint.Run(b.Context(), lint.Options{Path: dir})
		if err != nil || report.Summary.Tiers != lintTiers {
			b.Fatal(report, err)
		}
		linted = append(linted, measured{took: time.Since(began)})
		whole = append(whole, lintPlugin(b, tiers, dir))
	}
	us, once, plugin := median(linted), median(built), median(whole)
	ratio := us.took.Seconds() / once.took.Seconds()
	b.ReportMetric(us.took.Seconds(), "s/lint")
	b.ReportMetric(once.took.Seconds(), "s/build")
	b.ReportMetric(ratio, "times-a-build")
	b.ReportMetric(plugin.took.Seconds(), "s/plugin")
	b.ReportMetric(plugin.mib, "MiB")
	b.ReportMetric(0, "ns/op")
	if ratio > lintRatio {
		b.Errorf("lint takes %.2f times as long as the build, want at most %.1f", ratio, lintRatio)
	}
	if plugin.mib > lintMiB {
		b.Errorf("lint takes %.0f MiB, want at most %d", plugin.mib, lintMiB)
	}
}

// buildOnce builds every tier of the repository.
func buildOnce(b *testing.B, dir string) time.Duration {
	b.Helper()
	began := time.Now()
	tree, err := build.OpenDir(b.Context(), dir, "")
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := tree.Close(); err != nil {
			b.Error(err)
		}
	}()
	var root unstructured.Unstructured
	if err := yaml.Unmarshal([]byte(kustomization("flux-system", "./clusters/prod")), &root.Object); err != nil {
		b.Fatal(err)
	}
	source := flux.Ref{Kind: "GitRepository", Namespace: "flux-system", Name: "flux-system"}
	all, err := build.Builder{}.Follow(b.Context(), build.Only(source, tree), &root)
	if err != nil || len(all) != lintTiers {
		b.Fatal(len(all), err)
	}
	took := time.Since(began)
	for _, t := range all {
		if t.Err != nil {
			b.Fatal(t.Err)
		}
	}
	return took
}

// lintPlugin runs the plugin.
func lintPlugin(b *testing.B, program, dir string) measured {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "lint", dir)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.TempDir()}
	began := time.Now()
	out, err := cmd.CombinedOutput()
	took := time.Since(began)
	const findings = 3
	if err != nil && cmd.ProcessState.ExitCode() != findings {
		b.Fatalf("%s: %v\n%s", program, err, out)
	}
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		b.Fatal("this system does not tell how much memory a process took")
	}
	return measured{took, float64(usage.Maxrss) / 1024}
}

func kustomization(name, path string, spec ...string) string {
	return "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata:\n  name: " + name + "\n  namespace: flux-system\n" +
		"spec:\n  interval: 10m0s\n  retryInterval: 2m\n  path: " + path + "\n  prune: true\n  wait: true\n  sourceRef:\n    kind: GitRepository\n    name: flux-system\n" + strings.Join(spec, "")
}

// largeRepository writes a repository of the usual kind: a cluster, whose tiers
// are applications of seven files with patches and variables, and one tier of
// CRDs before them.
func largeRepository(b *testing.B) string {
	b.Helper()
	dir, files := b.TempDir(), 0
	write := func(name, content string) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			b.Fatal(err)
		}
		files++
	}
	write("clusters/prod/flux-system/gotk-sync.yaml", "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata:\n  name: flux-system\n  namespace: flux-system\n"+
		"spec:\n  interval: 1m0s\n  url: ssh://git@github.com/example/fleet\n---\n"+kustomization("flux-system", "./clusters/prod"))
	write("clusters/prod/flux-system/kustomization.yaml", "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n- gotk-sync.yaml\n")
	write("clusters/prod/settings.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\n  namespace: flux-system\ndata:\n  DOMAIN: example.com\n  REPLICAS: \"2\"\n")
	write("clusters/prod/crds.yaml", kustomization("crds", "./crds"))
	for i := range lintTiers - 2 {
		name := fmt.Sprintf("app-%03d", i)
		on := "crds"
		if i > 10 {
			on = fmt.Sprintf("app-%03d", i-10)
		}
		write("clusters/prod/"+name+".yaml", kustomization(name, "./apps/"+name,
			"  dependsOn:\n  - name: "+on+"\n  postBuild:\n    substituteFrom:\n    - kind: ConfigMap\n      name: settings\n"))
		application(write, name, i)
	}
	for i := 0; files < lintFiles; i++ {
		write(fmt.Sprintf("crds/crd-%03d.yaml", i), definition(i))
	}
	return dir
}

func application(write func(name, content string), name string, i int) {
	at := "apps/" + name + "/"
	write(at+"kustomization.yaml", "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nnamespace: "+name+
		"\nresources:\n- namespace.yaml\n- deployment.yaml\n- service.yaml\n- config.yaml\n- widget.yaml\n- account.yaml\n"+
		"labels:\n- pairs: {app.kubernetes.io/part-of: "+name+"}\npatches:\n- target: {kind: Deployment}\n  patch: |\n    - {op: replace, path: /spec/replicas, value: 3}\n")
	object := func(file, apiVersion, kind, rest string) {
		write(at+file, "apiVersion: "+apiVersion+"\nkind: "+kind+"\nmetadata:\n  name: "+name+"\n"+rest)
	}
	object("namespace.yaml", "v1", "Namespace", "")
	object("account.yaml", "v1", "ServiceAccount", "")
	object("deployment.yaml", "apps/v1", "Deployment", "spec:\n  replicas: ${REPLICAS}\n  selector: {matchLabels: {app: "+name+"}}\n  template:\n    metadata: {labels: {app: "+name+
		"}}\n    spec:\n      containers:\n      - name: main\n        image: example.com/"+name+":v1\n        env:\n        - name: HOST\n          value: "+name+".${DOMAIN}\n"+
		"        resources: {requests: {cpu: 10m, memory: 32Mi}, limits: {memory: 64Mi}}\n        ports: [{name: http, containerPort: 8080}]\n")
	object("service.yaml", "v1", "Service", "spec:\n  selector: {app: "+name+"}\n  ports: [{name: http, port: 80, targetPort: http}]\n")
	object("config.yaml", "v1", "ConfigMap", "data:\n  config.ini: |\n    [server]\n"+strings.Repeat("    key = value of ${DOMAIN}\n", 20))
	object("widget.yaml", fmt.Sprintf("group-%02d.example.com/v1", i%20), "Widget", "spec:\n  size: 1\n")
}

// definition is a CRD of some 20 KB, as most are.
func definition(i int) string {
	group := fmt.Sprintf("group-%02d.example.com", i)
	text := "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: widgets." + group + "\nspec:\n  group: " + group +
		"\n  names: {kind: Widget, listKind: WidgetList, plural: widgets, singular: widget}\n  scope: Namespaced\n  versions:\n  - name: v1\n    served: true\n    storage: true\n" +
		"    schema:\n      openAPIV3Schema:\n        type: object\n        properties:\n          spec:\n            type: object\n            properties:\n"
	for n := range 120 {
		text += fmt.Sprintf("              field%d:\n                type: string\n                description: What field %d of the widget is for, in a sentence or two, as they are written.\n", n, n)
	}
	return text
}
