// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"strings"
	"testing"

	"github.com/kubestandup/kubestandup/pkg/tiers"
)

// files makes a repository of tiers, each with a ConfigMap of its own: "name"
// or "name: spec".
func files(all ...string) string {
	var b strings.Builder
	for _, one := range all {
		name, spec, _ := strings.Cut(one, ": ")
		b.WriteString(tierFile(name, spec))
		b.WriteString("-- " + name + "/own.yaml --\n{apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + ", namespace: x-a}}\n")
	}
	return b.String()
}

func TestLoops(t *testing.T) {
	child := func(name, spec string) string { return "-- parent/" + name + ".yaml --\n" + tierYAML(name, spec) }
	for name, tc := range map[string]struct {
		files string
		rule  string
		words []string // of the message and the causes
	}{
		"three tiers, from its smallest": {
			files("c: dependsOn: [{name: a}]", "a: dependsOn: [{name: b}]", "b: dependsOn: [{name: c}]"),
			"DG001",
			[]string{"a → b → c → a", "circular dependency detected"},
		},
		"what is behind it": {
			files("a: dependsOn: [{name: b}]", "b: dependsOn: [{name: a}]", "c: dependsOn: [{name: a}]", "d: dependsOn: [{name: c}]"),
			"DG001",
			[]string{"the 2 tiers below stay down"},
		},
		"itself": {files("a: dependsOn: [{name: a}]"), "DG001", []string{"a depends on itself"}},
		"a child by a path": {
			files("parent: wait: true", "other: dependsOn: [{name: parent}]") + child("kid", "dependsOn: [{name: other}]") + "-- kid/own.yaml --\n",
			"DG006",
			[]string{"parent applies kid and waits for it (wait: true)", "by way of other", "parent is never Ready"},
		},
		"a health check on a child": {
			files("parent: healthChecks: [{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, name: kid, namespace: flux-system}]") +
				child("kid", "dependsOn: [{name: parent}]") + "-- kid/own.yaml --\n",
			"DG006",
			[]string{"a health check on it", "kid depends on parent"},
		},
		"two containers": {
			files("parent: wait: true", "second: wait: true") + child("kid", "dependsOn: [{name: second}]") +
				"-- second/kid.yaml --\n" + tierYAML("late", "dependsOn: [{name: parent}]") + "-- kid/own.yaml --\n-- late/own.yaml --\n",
			"DG001",
			[]string{"each waits for the next", "has wait: true and applies kid"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := subject(t, tc.files)
			f := one(t, s, tc.rule)
			contains(t, "finding", f.Message+"\n"+causes(f), tc.words...)
			if other := map[string]string{"DG001": "DG006", "DG006": "DG001"}[tc.rule]; other != "" {
				none(t, s, other)
			}
			if f.File == "" {
				t.Error("it is found nowhere")
			}
		})
	}
}

func TestNoLoops(t *testing.T) {
	for name, text := range map[string]string{
		"a diamond":           files("a", "b: dependsOn: [{name: a}]", "c: dependsOn: [{name: a}]", "d: dependsOn: [{name: b}, {name: c}, {name: a}]"),
		"readyExpr":           files(`a: dependsOn: [{name: b, readyExpr: "true"}]`, "b: dependsOn: [{name: a}]"),
		"no wait":             files("parent") + "-- parent/kid.yaml --\n" + tierYAML("kid", "dependsOn: [{name: parent}]") + "-- kid/own.yaml --\n",
		"a suspended parent":  files("parent: wait: true, suspend: true") + "-- parent/kid.yaml --\n" + tierYAML("kid", "dependsOn: [{name: parent}]") + "-- kid/own.yaml --\n",
		"a child among them":  files("parent: wait: true") + "-- parent/kid.yaml --\n" + tierYAML("kid", "") + "---\n" + tierYAML("two", "dependsOn: [{name: kid}]") + "-- kid/own.yaml --\n-- two/own.yaml --\n",
		"two that apply it":   files("parent: wait: true, prune: false", "second: prune: false, dependsOn: [{name: parent}]") + "-- parent/kid.yaml --\n" + tierYAML("kid", "") + "-- second/kid.yaml --\n" + tierYAML("kid", "") + "-- kid/own.yaml --\n",
		"what does not exist": files("a: dependsOn: [{name: gone}]"),
	} {
		t.Run(name, func(t *testing.T) {
			s := subject(t, text)
			none(t, s, "DG001")
			none(t, s, "DG006")
		})
	}
}

func TestDependencies(t *testing.T) {
	release := "-- a/hr.yaml --\n{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {name: db, namespace: flux-system}, spec: {interval: 1h, chart: {spec: {chart: ./c, sourceRef: {kind: GitRepository, name: flux-system}}}, dependsOn: [{name: DEP}]}}\n"
	for name, tc := range map[string]struct {
		files, rule, severity string
		words                 []string
	}{
		"misspelt": {
			files("platform", "apps: dependsOn: [{name: platfom}]"), "DG002", "error",
			[]string{"no such Kustomization", "Did you mean flux-system/platform?", "- name: platform"},
		},
		"nothing near": {files("platform", "apps: dependsOn: [{name: databases}]"), "DG002", "error", []string{"Take flux-system/databases out"}},
		"perhaps outside": {
			files("apps: dependsOn: [{name: databases}]") + strings.Replace(tierFile("infra", ""), "name: flux-system},", "name: elsewhere},", 1),
			"DG002", "warning",
			[]string{"unless infra brings it"},
		},
		"a Kustomization on a release": {
			files("a", "apps: dependsOn: [{name: db}]") + strings.Replace(release, "DEP", "db", 1), "DG003", "error",
			[]string{"only a HelmRelease of that name", "- name: a", "wait: true"},
		},
		"a release on a Kustomization": {
			files("a", "base") + strings.Replace(release, "DEP", "base", 1), "DG003", "error",
			[]string{"only a Kustomization of that name"},
		},
		"suspended": {
			files("a: suspend: true", "b: dependsOn: [{name: a}]", "c: dependsOn: [{name: b}]"), "DG004", "warning",
			[]string{"b depends on a, which git suspends", "with the 1 tier below it"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := subject(t, tc.files)
			f := one(t, s, tc.rule)
			if string(f.Severity) != tc.severity {
				t.Errorf("it is a %s", f.Severity)
			}
			contains(t, "finding", f.Message+"\n"+f.Fix, tc.words...)
			if tc.rule == "DG003" {
				none(t, s, "DG002")
			}
		})
	}
}

func TestDependenciesThatAreRight(t *testing.T) {
	for name, text := range map[string]string{
		"a sibling":             files("a", "b: dependsOn: [{name: a}]"),
		"its namespace given":   files("a", "b: dependsOn: [{name: a, namespace: flux-system}]"),
		"both suspended":        files("a: suspend: true", "b: suspend: true, dependsOn: [{name: a}]"),
		"suspended, readyExpr":  files("a: suspend: true", `b: dependsOn: [{name: a, readyExpr: "true"}]`),
		"the root":              files("a: dependsOn: [{name: flux-system}]"),
		"what another one says": files("a", "b: dependsOn: [{name: a}]", "c: dependsOn: [{name: b}, {name: a}]"),
	} {
		t.Run(name, func(t *testing.T) {
			s := subject(t, text)
			for _, rule := range []string{"DG001", "DG002", "DG003", "DG004", "DG005", "DG006"} {
				none(t, s, rule)
			}
		})
	}
}

func TestDistance(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"infra", "infra", 0}, {"infra", "infar", 2}, {"apps", "app", 1}, {"a", "xyz", 3}} {
		if got := tiers.Distance(tc.a, tc.b); got != tc.want {
			t.Errorf("%q and %q: %d, want %d", tc.a, tc.b, got, tc.want)
		}
	}
}
