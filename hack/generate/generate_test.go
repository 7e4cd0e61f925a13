// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/kubestandup/kubestandup/pkg/coldstart"
	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/lint"
	"github.com/kubestandup/kubestandup/pkg/printers"
	"github.com/kubestandup/kubestandup/pkg/tiers"
)

func TestFilesDoNotDependOnWhoMakesThem(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	here, err := generate(root)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", t.TempDir())
	there, err := generate(root)
	if err != nil {
		t.Fatal(err)
	}
	for name := range here {
		if !bytes.Equal(here[name], there[name]) {
			t.Errorf("%s is another in another home", name)
		}
	}
}

func TestCompare(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	files := map[string][]byte{"docs/kubectl_a.md": []byte("a"), "docs/schemas/b.json": []byte("b"), "docs/kubectl_c.md": []byte("c")}
	write("docs/kubectl_a.md", "a")
	write("docs/schemas/b.json", "changed by hand")
	write("docs/kubectl_gone.md", "x")
	write("docs/guide.md", "written by a person")
	err := compare(root, files)
	const want = "docs/kubectl_c.md, docs/kubectl_gone.md (nothing generates it: delete it), docs/schemas/b.json"
	if err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestPagesNameEveryCommandAndNothingHidden(t *testing.T) {
	pages := pages()
	if got := slices.Sorted(maps.Keys(pages)); !slices.Equal(got, []string{
		"kubectl_options.md", "kubectl_standup.md", "kubectl_tiers.md", "kubectl_unwedge.md",
	}) {
		t.Errorf("got %q", got)
	}
	page := pages["kubectl_tiers.md"]
	for _, want := range []string{
		"\n# kubectl tiers\n", "\n## kubectl tiers why\n", "\n## kubectl tiers lint\n", "| `--fail-on` | `error` |", "kubectl tiers why NAME [options]", "| `-o`, `--output` |", "`--expect-server`",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page of tiers lacks %q", want)
		}
	}
	for _, not := range []string{"--kubeconfig`", "kubectl tiers options", "__complete", "\n ", " \n"} {
		if strings.Contains(page, not) {
			t.Errorf("the page of tiers holds %q", not)
		}
	}
	if options := pages[optionsPage]; !strings.Contains(options, "`--kubeconfig`") || strings.Contains(options, "--expect-server") {
		t.Errorf("the page of kubectl's options is\n%s", options)
	}
}

// validate holds a report against the schema that is generated for it.
func validate(t *testing.T, kind string, report any) error {
	t.Helper()
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	files, err := schemas(root)
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(files[strings.ToLower(kind)+".json"]))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	if err := compiler.AddResource("file:///schema.json", document); err != nil {
		t.Fatal(err)
	}
	compiled, err := compiler.Compile("file:///schema.json")
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return compiled.Validate(value)
}

func TestSchemasFitReports(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	ref := flux.Ref{APIVersion: "kustomize.toolkit.fluxcd.io/v1", Kind: "Kustomization", Namespace: "flux-system", Name: "apps"}
	list := &tiers.List{
		TypeMeta: printers.TypeMeta("TierList"),
		Server:   tiers.Server{URL: "https://127.0.0.1:6443"},
		Items:    []tiers.Item{{Object: ref, Ready: "False", State: tiers.Retrying, RetryAt: &now, BlockedBy: []flux.Ref{ref}}},
		Cycles:   [][]flux.Ref{{ref, ref}},
	}
	if err := validate(t, "TierList", list); err != nil {
		t.Error(err)
	}
	found := &finding.Finding{Rule: "CS001", Severity: finding.Error, Message: "m", Object: &ref, Missing: []finding.Missing{{APIVersion: "v1", Kind: "A"}}}
	if err := validate(t, "Finding", found); err != nil {
		t.Error(err)
	}
	report := &lint.Report{
		TypeMeta: printers.TypeMeta("LintReport"),
		Entries: []lint.Entry{{
			Entry: "clusters/prod", Tiers: 1, Verdicts: lint.Counts{Never: 1}, Kinds: lint.KindCounts{Missing: 1},
			Outside: []lint.Outside{{Source: ref, Tiers: []flux.Ref{ref}}}, Opaque: []lint.Opaque{{Object: ref}},
		}},
		Summary:  lint.Summary{Tiers: 1, Errors: 1},
		Findings: []finding.Finding{*found},
		Kinds: []lint.Kind{{
			Tier: ref, APIVersion: "v1", Kind: "A", RegisteredBy: lint.Registrar{How: lint.ViaTrigger, Object: &ref, File: "a.yaml", Line: 1},
			Order: lint.SecondOrder, Confidence: lint.ByRun, When: coldstart.Missing,
		}},
		Loose:    []lint.Loose{{Tier: ref, File: "b.yaml", Line: 1}},
		Verdicts: map[string]coldstart.Verdict{"flux-system/apps": coldstart.Never},
	}
	if err := validate(t, "LintReport", report); err != nil {
		t.Error(err)
	}
	report.Kinds[0].RegisteredBy.How = "magic"
	if validate(t, "LintReport", report) == nil {
		t.Error("the schema knows a way that is none")
	}
	if err := validate(t, "LintReport", &lint.Report{TypeMeta: printers.TypeMeta("LintReport"), Entries: []lint.Entry{}, Findings: []finding.Finding{}}); err != nil {
		t.Errorf("a report of nothing: %v", err)
	}
}

func TestSchemasRefuseWhatIsNoReport(t *testing.T) {
	item := map[string]any{
		"level": 0, "object": map[string]any{"kind": "Kustomization", "name": "apps"}, "ready": "True", "state": "ready",
		"gate": map[string]any{"kind": "wait"}, "gates": 0,
	}
	list := func(change func(list, item map[string]any)) map[string]any {
		i := maps.Clone(item)
		l := map[string]any{
			"apiVersion": printers.APIVersion, "kind": "TierList",
			"server": map[string]any{"url": "https://a"}, "items": []any{i},
		}
		change(l, i)
		return l
	}
	if err := validate(t, "TierList", list(func(_, _ map[string]any) {})); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(l, i map[string]any){
		"another kind":         func(l, _ map[string]any) { l["kind"] = "List" },
		"another version":      func(l, _ map[string]any) { l["apiVersion"] = "v1" },
		"no items":             func(l, _ map[string]any) { delete(l, "items") },
		"a state that is none": func(_, i map[string]any) { i["state"] = "stuck" },
		"a time that is none":  func(_, i map[string]any) { i["retryAt"] = "soon" },
		"an object as text":    func(_, i map[string]any) { i["object"] = "apps" },
	} {
		t.Run(name, func(t *testing.T) {
			if err := validate(t, "TierList", list(change)); err == nil {
				t.Error("the schema lets it through")
			}
		})
	}
}

func TestSchemaNamesWhatItCannotSay(t *testing.T) {
	r := &reflector{source: newSource(t.TempDir()), defs: map[string]*schema{}}
	for name, of := range map[string]reflect.Type{
		"has no form in JSON": reflect.TypeFor[struct {
			F func() `json:"f"`
		}](),
		"has no name in JSON": reflect.TypeFor[struct{ Name string }](),
	} {
		if _, err := r.object(of); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("got %v, want an error that says %q", err, name)
		}
	}
}
