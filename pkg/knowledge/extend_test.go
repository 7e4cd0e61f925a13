// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package knowledge_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubestandup/kubestandup/pkg/knowledge"
)

const whole = head + `lists:
  widgets:
  - {group: example.com, kind: Widget, plural: widgets, scope: Namespaced}
relations:
- id: widgets
  system: Widgets
  class: start
  creates: [{list: widgets}]
  operator: {labels: {app: widgets}, images: [example/widgets]}
  confidence: memory
  sources: [us]
charts:
- name: widgets
  repositories: [charts.example.com]
  versions: ">=2.0.0"
  registers: [{list: widgets}]
  groups: [widgets.example.com]
  switches: [{path: crds.enabled, default: true}]
  parts:
  - groups: [gadgets.example.com]
    switches: [{path: gadgets}]
  separate: widgets-crds
  relations: [widgets, cdi]
  confidence: memory
  sources: [us]
effects:
- group: example.com
  kind: Widget
  ready: {apiVersion: example.com/v1, current: has(status.done)}
  why: nothing works
  confidence: memory
  sources: [us]
`

// TestExtendWithChartsAndEffects: a file may name what the base knows, and
// replaces what has the same id, name or kind.
func TestExtendWithChartsAndEffects(t *testing.T) {
	before := builtin(t)
	base, err := before.Extend("mine.yaml", []byte(whole))
	if err != nil {
		t.Fatal(err)
	}
	widget := schema.GroupKind{Group: "example.com", Kind: "Widget"}
	if got := ids(base.Creators(widget)); got != "widgets" {
		t.Errorf("creators: %q", got)
	}
	if e := base.Effect(widget); e == nil || e.Why != "nothing works" {
		t.Errorf("got %+v", e)
	}
	if c := base.ChartAt("widgets", "https://charts.example.com", "2.1.0"); !holds(c, widget) || base.ChartAt("widgets", "https://charts.example.com", "1.9.0") != nil {
		t.Errorf("got %+v", c)
	}
	if got := ids(base.OperatorOf(workload(t, "Deployment", "registry.example.com/example/widgets:v1", "{}"))); got != "widgets" {
		t.Errorf("operator of %q", got)
	}
	// Again, over itself and over ours.
	again, err := base.Extend("other.yaml", []byte(strings.NewReplacer("nothing works", "little works", "has(status.done)", "'true'").Replace(whole)+`
- group: cdi.kubevirt.io
  kind: StorageProfile
  ready: {apiVersion: cdi.kubevirt.io/v1beta1, current: "true"}
  why: ours
  confidence: memory
  sources: [us]
`))
	if err != nil {
		t.Fatal(err)
	}
	if len(again.Charts()) != len(base.Charts()) || len(again.Relations()) != len(base.Relations()) {
		t.Errorf("%d charts and %d relations, then %d and %d", len(base.Charts()), len(base.Relations()), len(again.Charts()), len(again.Relations()))
	}
	profile := schema.GroupKind{Group: "cdi.kubevirt.io", Kind: "StorageProfile"}
	if again.Effect(widget).Why != "little works" || again.Effect(profile).Why != "ours" || before.Effect(profile).Why == "ours" {
		t.Errorf("got %+v, %+v", again.Effect(widget), again.Effect(profile))
	}
	// The lists of files before can be named, ours among them.
	third, err := base.Extend("third.yaml", []byte(head+"charts: [{name: third, registers: [{list: widgets}, {list: cdi}], confidence: memory, sources: [us]}]"))
	if err != nil {
		t.Fatal(err)
	}
	if c := third.Chart("third", ""); !holds(c, widget) || !holds(c, profile) {
		t.Errorf("got %+v", c)
	}
}

// TestExtendSaysWhere: the message names the file, what it is about, the field
// and the line.
func TestExtendSaysWhere(t *testing.T) {
	for _, tt := range []struct{ name, from, to, want string }{
		{"chart's name", "- name: widgets\n", "- name: Widgets!\n", `line 15: chart 1: name "Widgets!" is not one of a chart`},
		{"chart's sources", "  relations: [widgets, cdi]\n  confidence: memory\n  sources: [us]", "  relations: [widgets, cdi]\n  confidence: memory\n  sources: []", "line 27: chart widgets: sources are empty"},
		{"chart's confidence", "  relations: [widgets, cdi]\n  confidence: memory", "  relations: [widgets, cdi]\n  confidence: high", `line 26: chart widgets: confidence "high" is unknown`},
		{"repositories", "[charts.example.com]", "[charts.example.com, '']", "line 16: chart widgets: repositories: one is empty"},
		{"versions", `">=2.0.0"`, `"a while ago"`, `line 17: chart widgets: versions "a while ago" is not a range`},
		{"registers", "  registers: [{list: widgets}]", "  registers: [{list: gadgets}]", "line 18: chart widgets: registers: list gadgets: there is no list of that name here"},
		{"groups", "[widgets.example.com]", "[widgets]", `line 19: chart widgets: groups: "widgets" is not one of a CRD`},
		{"path", "path: crds.enabled", "path: crds..enabled", `line 20: chart widgets: switches: path "crds..enabled" is not names of values joined by dots`},
		{"path with .Values", "path: crds.enabled", "path: '{{ .Values.crds }}'", "is not names of values"},
		{"switch twice", "[{path: gadgets}]", "[{path: gadgets}, {path: gadgets}]", "line 23: chart widgets: parts: switches: gadgets is there twice"},
		{"part of nothing", "  - groups: [gadgets.example.com]\n    switches", "  - switches", "line 22: chart widgets: parts: registers and groups are empty"},
		{"switch of nothing", "  registers: [{list: widgets}]\n  groups: [widgets.example.com]\n", "", "line 15: chart widgets: registers and groups are empty, and switches or folder is set: say of which kinds"},
		{"separate", "separate: widgets-crds", "separate: widgets", "line 24: chart widgets: separate is the chart itself"},
		{"relation", "[widgets, cdi]", "[widgets, cdx]", "line 25: chart widgets: relations: there is no relation cdx"},
		{"chart twice", "effects:", "- {name: widgets, repositories: [b.example.com, charts.example.com], versions: '>=2.0.0', groups: [a.b], confidence: memory, sources: [us]}\neffects:", "line 28: chart widgets: it is there twice, for the same repository and all versions"},
		{"chart unknown field", "  separate:", "  apart:", `line 24: unknown field "charts[0].apart"`},
		{"effect's kind", "  kind: Widget\n  ready", "  kind: '1'\n  ready", `line 30: effect of 1: kind "1" is not the name of a kind`},
		{"effect's ready", "apiVersion: example.com/v1, current", "apiVersion: v1, current", "line 31: effect of Widget: ready needs current, and an apiVersion of group example.com"},
		{"effect's why", "why: nothing works", "why: ''", "line 32: effect of Widget: why is empty"},
		{"image with a registry", "[example/widgets]", "[quay.io/example/widgets]", `line 11: relation widgets: operator: image "quay.io/example/widgets" is not a repository without registry`},
		{"image with a tag", "[example/widgets]", "['example/widgets:v1']", "operator: image"},
		{"image with a digest", "[example/widgets]", "['example/widgets@sha256:0']", "operator: image"},
		{"list's kind", "kind: Widget, plural", "kind: widgets, plural", "line 5: list widgets: group example.com: kind \"widgets\" is not the name of a kind"},
		{"class", "class: start", "class: never", `line 9: relation widgets: class "never" is unknown`},
		{"creates without", "class: start", "class: none", "line 10: relation widgets: creates is set, which class none cannot have"},
		{"before with a trigger", "class: start", "class: before\n  triggers: [{group: a.b, kind: A, plural: as, scope: Cluster}]", "triggers are set, which class before cannot have"},
		{"before without kinds", "class: start\n  creates: [{list: widgets}]", "class: before", "creates is empty, which class before must have"},
		{"mistyped", "default: true", "default: maybe", "charts.switches.default is a string, not a bool"},
		{"mistyped word", "class: start", "class: 1", "relations.class is a number, not a string"},
		{"mistyped list", "[charts.example.com]", "charts.example.com", "charts.repositories is a string, not a list"},
		{"mistyped whole", whole, "[]", "it is a list"},
		{"no YAML", "effects:", "effects: [", "yaml: line"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			content := strings.Replace(whole, tt.from, tt.to, 1)
			if content == whole {
				t.Fatal("nothing was changed")
			}
			_, err := builtin(t).Extend("mine.yaml", []byte(content))
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "knowledge file mine.yaml: ") {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

// TestLimits: what multiplies, or is large, is refused, not worked at.
func TestLimits(t *testing.T) {
	bomb := "a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1]\n"
	for c := 'b'; c < 'k'; c++ {
		bomb += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c, ", c-1), 9), ", "))
	}
	kind := "{group: example.com, kind: Widget, plural: widgets, scope: Cluster}"
	many := head + "lists:\n  all: [" + strings.TrimSuffix(strings.Repeat(kind+", ", 500), ", ") + "]\nrelations:\n"
	for i := range 300 {
		many += fmt.Sprintf("- {id: r%d, system: A, class: start, creates: [{list: all}], confidence: memory, sources: [us]}\n", i)
	}
	for name, tt := range map[string]struct{ content, want string }{
		"too long":       {head + "# " + strings.Repeat("x", 4<<20), "it has 4194359 bytes, and the most that is read is 4194304: split it"},
		"alias bomb":     {bomb, "excessive aliasing"},
		"deep":           {strings.Repeat("[", 1<<20), "exceeded max depth"},
		"lists of lists": {many, "its lists stand for more than 100000 kinds"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := (&knowledge.Base{}).Extend("mine.yaml", []byte(tt.content))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %.300v, want %s", err, tt.want)
			}
		})
	}
}

func FuzzExtend(f *testing.F) {
	f.Add(whole)
	f.Add(head + "relations: [{id: a, derive: [{group: {path: a}}]}]")
	f.Add(head + "lists: {a: [{list: b}]}\nrelations: [{id: a, creates: [{list: a}], kind: ''}]")
	f.Add(head + "charts: [{name: a, versions: '>=1 <2 || ~3', switches: [{path: a.b}], folder: true}]")
	f.Add("a: &a [*a]\n")
	names, err := filepath.Glob("data/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(content))
	}
	f.Fuzz(func(t *testing.T, content string) {
		base, err := (&knowledge.Base{}).Extend("f", []byte(content))
		if err != nil {
			if !strings.HasPrefix(err.Error(), "knowledge file f: ") {
				t.Errorf("the message does not say of which file: %v", err)
			}
			return
		}
		nothing := &unstructured.Unstructured{Object: map[string]any{}}
		for _, r := range base.Relations() {
			_, _ = r.Derived(nothing)
			if got, known := base.Relation(r.ID); !known || got.ID != r.ID {
				t.Errorf("relation %s is lost", r.ID)
			}
			for _, k := range r.Creates {
				if k.List != "" || r.Second() && len(base.Creators(k.GroupKind())) == 0 {
					t.Errorf("%s does not create %+v", r.ID, k)
				}
			}
		}
		for _, c := range base.Charts() {
			on, off := c.Split(map[string]any{"a": map[string]any{"b": nil}}, false)
			if on == nil || off != nil && len(off.Switches) == 0 {
				t.Errorf("chart %s: %+v, %+v", c.Name, on, off)
			}
			url := strings.Join(c.Repositories, "")
			if c.Versions == "" && base.Chart(c.Name, url) == nil {
				t.Errorf("chart %s is lost", c.Name)
			}
		}
	})
}

// FuzzChartAt: versions are what people write.
func FuzzChartAt(f *testing.F) {
	for _, version := range []string{"", "1.2.3", "v1", "3.31.x", ">=1 <2", "99999999999999999999.1", "~", "^0", "1.2.3-alpha+b", "${V}"} {
		f.Add(version)
	}
	base, err := knowledge.Builtin()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, version string) {
		if c := base.ChartAt("tigera-operator", "", version); c != nil && c.Name != "tigera-operator" {
			t.Errorf("got %+v", c)
		}
	})
}
