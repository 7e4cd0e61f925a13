// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/kubestandup/kubestandup/pkg/coldstart"
	"github.com/kubestandup/kubestandup/pkg/finding"
)

// officialSchema is OASIS's own schema. It is not copied into this repository:
// a linter that hack/tools pins carries it.
func officialSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	const pinned = "github.com/securego/gosec/v2"
	cmd := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", pinned)
	cmd.Dir = filepath.Join("..", "..", "hack", "tools", "golangci-lint")
	out, err := cmd.Output()
	var module struct{ Dir string }
	if err != nil || json.Unmarshal(out, &module) != nil || module.Dir == "" {
		t.Fatalf("the SARIF schema is in module %s, which cannot be had (%v, %s): go -C hack/tools/golangci-lint mod download", pinned, err, out)
	}
	file, err := os.Open(filepath.Join(module.Dir, "report", "sarif", "testdata", "sarif-schema-2.1.0.json"))
	if err != nil {
		t.Fatalf("%v: module %s has no SARIF schema any more; name here another one that has", err, pinned)
	}
	t.Cleanup(func() { _ = file.Close() })
	document, err := jsonschema.UnmarshalJSON(file)
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	if err := compiler.AddResource("file:///sarif.json", document); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("file:///sarif.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// sarifReport holds each thing that SARIF has a word for.
func sarifReport() *Report {
	c := cluster("clusters/test")
	c.tier("a", suppressible+": it <is> so", thing("x", ""))
	c.tier("b", "", thing("x", ""))
	c.subject.Prediction.Outcomes = []coldstart.Outcome{{Tier: ks("a"), Verdict: coldstart.Never}, {Tier: ks("b"), Verdict: coldstart.AtOnce, Ready: true}}
	c.finds(suppressible, finding.Error, "a", thingRef("x"), "hidden")
	c.finds(remoteBase, finding.Error, "b", thingRef("x"), "`an` *error* of <b>")
	c.finds(remoteBase, finding.Error, "b", thingRef("x"), "another of the same place")
	c.finds("XX001", finding.Warning, "b", thingRef("a b:c#d"), "a rule that is not known")
	c.findings = append(c.findings, finding.Finding{Rule: unknownField, Severity: finding.Info, Message: "about nothing"})
	last := &c.findings[1]
	last.Causes = []string{"because of_it"}
	last.Missing = []finding.Missing{{APIVersion: "example.com/v1", Kind: "Thing", CreatedBy: "Things"}}
	last.Fix = "write\nspec:\n  wait: true\n"
	return reported(c)
}

func written(t *testing.T, r *Report) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := r.WriteSARIF(&out, "1.2.3"); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestSARIFIsWhatTheStandardSays(t *testing.T) {
	schema := officialSchema(t)
	for name, r := range map[string]*Report{"nothing": reported(), "everything": sarifReport()} {
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(written(t, r)))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(value); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A schema that takes everything would prove nothing.
	broken := bytes.Replace(written(t, sarifReport()), []byte(`"level": "error"`), []byte(`"level": "bad"`), 1)
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(broken))
	if err != nil {
		t.Fatal(err)
	}
	if schema.Validate(value) == nil {
		t.Error("the schema lets a level through that is none")
	}
}

func TestSARIFResults(t *testing.T) {
	var log sarifLog
	if err := json.Unmarshal(written(t, sarifReport()), &log); err != nil {
		t.Fatal(err)
	}
	run := log.Runs[0]
	results := run.Results
	if len(results) != 5 {
		t.Fatalf("%d results", len(results))
	}
	for i, want := range []struct {
		rule, level, uri, tier, text string
		hidden                       bool
	}{
		{remoteBase, "error", "shared/x.yaml", "Kustomization/flux-system/b", "`an` *error* of <b>\n- because of_it\n- missing: Thing example.com/v1, created by Things\nFix: write\nspec:\n  wait: true", false},
		{remoteBase, "error", "shared/x.yaml", "Kustomization/flux-system/b", "another of the same place", false},
		{"XX001", "warning", "shared/a%20b:c%23d.yaml", "Kustomization/flux-system/b", "a rule that is not known", false},
		{unknownField, "note", "", "", "about nothing", false},
		{suppressible, "error", "shared/x.yaml", "Kustomization/flux-system/a", "hidden", true},
	} {
		got := results[i]
		if got.RuleID != want.rule || got.Level != want.level || got.Message.Text != want.text || (len(got.Suppressions) > 0) != want.hidden {
			t.Errorf("%d: got %+v", i, got)
		}
		if want.uri == "" {
			if got.Locations != nil {
				t.Errorf("%d: at %+v", i, got.Locations)
			}
			continue
		}
		at := got.Locations[0]
		if at.Physical.Artifact != (sarifArtifact{URI: want.uri, Base: "%SRCROOT%"}) || at.Physical.Region.StartLine == 0 || at.Logical[0].Qualified != want.tier {
			t.Errorf("%d: at %+v", i, at)
		}
		if known := got.RuleIndex != nil; known != (want.rule != "XX001") || known && run.Tool.Driver.Rules[*got.RuleIndex].ID != want.rule {
			t.Errorf("%d: rule index %v", i, got.RuleIndex)
		}
	}
	if got := results[0].Message.Markdown; !strings.Contains(got, "\\`an\\` \\*error\\* of &lt;b>") || !strings.Contains(got, "```yaml\nspec:\n  wait: true\n```") {
		t.Errorf("markdown\n%s", got)
	}
	if s := results[4].Suppressions[0]; s != (sarifSuppression{"inSource", "accepted", "it <is> so"}) {
		t.Errorf("suppression %+v", s)
	}
	var prints []string
	for _, r := range results {
		prints = append(prints, r.Fingerprints[fingerprint])
	}
	if slices.Sort(prints); len(slices.Compact(prints)) != len(results) || prints[0] == "" {
		t.Errorf("two results have one fingerprint: %q", prints)
	}
	if got := run.Properties["clusters"]; len(got) != 1 || got[0].Verdicts != (Counts{AtOnce: 1, Never: 1}) {
		t.Errorf("properties %+v", got)
	}
}

// TestAFindingIsKnownAgain when lines have moved and messages count more.
func TestAFindingIsKnownAgain(t *testing.T) {
	tier, object := ks("a"), thingRef("x")
	f := finding.Finding{Rule: "CS001", File: "a.yaml", Line: 3, Message: "1 tier", Tier: &tier, Object: &object}
	id := identity(&f)
	moved, newer := f, thingRef("x")
	newer.APIVersion = "example.com/v2"
	moved.Line, moved.Message, moved.Severity, moved.Object = 9, "2 tiers", finding.Error, &newer
	if identity(&moved) != id {
		t.Error("it is another finding after lines have moved")
	}
	for name, change := range map[string]func(*finding.Finding){
		"rule": func(f *finding.Finding) { f.Rule = "CS002" }, "file": func(f *finding.Finding) { f.File = "b.yaml" },
		"tier": func(f *finding.Finding) { f.Tier = ptr(ks("b")) }, "object": func(f *finding.Finding) { f.Object = nil },
	} {
		other := f
		if change(&other); identity(&other) == id {
			t.Errorf("another %s is the same finding", name)
		}
	}
}

func TestSARIFIsTheSameEachTime(t *testing.T) {
	first := written(t, sarifReport())
	for range 5 {
		if !bytes.Equal(first, written(t, sarifReport())) {
			t.Fatal("the same report is written in another way")
		}
	}
}

// TestEveryRuleHasItsPage: what SARIF and the text refer to.
func TestEveryRuleHasItsPage(t *testing.T) {
	names := map[string]string{}
	for _, rule := range everyRule() {
		if other := names[rule.Name]; other != "" || rule.Name == "" || rule.Title == "" {
			t.Errorf("%s: name %q (also of %s), title %q", rule.ID, rule.Name, other, rule.Title)
		}
		names[rule.Name] = rule.ID
		file := filepath.Join("..", "..", "docs", "rules", strings.TrimPrefix(rule.Page(), docs))
		content, err := os.ReadFile(file)
		if err != nil {
			t.Errorf("%s has no page: %v", rule.ID, err)
			continue
		}
		if !bytes.Contains(content, []byte(rule.ID)) {
			t.Errorf("%s does not speak of %s", file, rule.ID)
		}
	}
	if rule, known := RuleOf(buildFailed); !known || rule.Name != "build-failed" {
		t.Errorf("got %+v, %v", rule, known)
	}
	if _, known := RuleOf("XX999"); known {
		t.Error("a rule that is none is known")
	}
}

func TestFixesArePartedIntoWordsAndManifests(t *testing.T) {
	got := FixParts("move it down\napiVersion: v1\nkind: X\nspec:\n  a: |\n    b\n\n    c\n- d\nKustomization/a/b (c.yaml:1):\nspec:\n  wait: true\n(It ignores them.)\n  healthChecks:\n")
	want := []FixPart{
		{Text: "move it down"},
		{Text: "apiVersion: v1\nkind: X\nspec:\n  a: |\n    b\n\n    c\n- d", Manifest: true},
		{Text: "Kustomization/a/b (c.yaml:1):"},
		{Text: "spec:\n  wait: true", Manifest: true},
		{Text: "(It ignores them.)"},
		{Text: "  healthChecks:", Manifest: true},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if got := FixParts("spec: is not a manifest, at the beginning"); len(got) != 1 || got[0].Manifest {
		t.Errorf("got %+v", got)
	}
	if got := FixParts(""); got != nil {
		t.Errorf("got %+v", got)
	}
}
