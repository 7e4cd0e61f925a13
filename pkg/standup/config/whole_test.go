// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// whole is a file with every field; the schema is held against it too.
func whole(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "whole.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestParseWhole(t *testing.T) {
	t.Parallel()
	got, err := parse([]byte(whole(t)), "f")
	if err != nil {
		t.Fatal(err)
	}
	want := &Config{
		Path:       "f",
		APIVersion: "kubestandup.dev/v1alpha1", Kind: "Standup",
		Metadata: Metadata{Name: "standup", Annotations: map[string]any{"config.kubernetes.io/local-config": "true"}},
		Cluster:  Cluster{Server: "https://api.prod.example.org:6443", UID: "3f0c1d6e-58a1-4b0e-9c57-2d1f7a8e4b11", Domain: "prod.example.org"},
		Flux:     Flux{Namespace: "flux-system", Root: "flux-system"},
		Variables: []Variable{
			{Name: "CLUSTER_NAME", Required: true, Forbid: []string{"dev", "dev-*"}},
			{Name: "_BACKUP_ENDPOINT2", Placeholder: "TBD-*", Blocks: []string{"backup", "ks/backup-system/velero"}, Degrades: []string{"hr/apps/restic"}},
		},
		Nodes: Nodes{Count: 3, MinKernel: "5.15", MinKubelet: "v1.30", MinMemory: "16Gi"},
		CRDs: CRDs{
			Expect: []string{"storageprofiles.cdi.kubevirt.io"},
			FromCharts: []FromChart{
				{HelmRelease: "kyverno/kyverno", Values: map[string]any{
					"crds":  map[string]any{"install": true, "groups": []any{"a", int64(1), 1.5, nil, "", map[string]any{}}},
					"since": "2026-10-01", "installCRDs": true,
				}},
				{HelmRelease: "cert-manager/cert-manager"},
			},
		},
		Resume: Resume{Skip: []string{"flux-system/windows"}, Timeout: 10 * time.Minute},
		Verify: Verify{Checks: []HealthCheck{{
			APIVersion: "cdi.kubevirt.io/v1beta1", Kind: "CDI", Namespace: "x", Name: "cdi",
			Current: "status.phase == 'Deployed'", InProgress: "status.phase == 'Deploying'", Failed: "status.phase == 'Error'",
		}}},
	}
	places := got.positions
	got.positions = nil
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v, want\n%+v", got, want)
	}
	for field, want := range map[string]string{
		"variables[0].forbid[1]": "f:13:19", "crds.fromCharts[0].values": "f:30:7", "resume.timeout": "f:39:12",
	} {
		if p := places[field]; p.String() != want {
			t.Errorf("%s stands at %v, want %s", field, p, want)
		}
	}
	// A field that is added to the types is to be added to the file, and so to
	// the tests of the schema.
	for field := range empties(reflect.ValueOf(*got), "") {
		t.Errorf("testdata/whole.yaml has no %s", field)
	}
}

// empties are the fields without a value in every item of a list.
func empties(v reflect.Value, at string) map[string]bool {
	missing := map[string]bool{}
	for field, value := range v.Fields() {
		name := at + "." + field.Name
		switch {
		case !field.IsExported():
		case value.Kind() == reflect.Struct:
			for name := range empties(value, name) {
				missing[name] = true
			}
		case value.Kind() == reflect.Slice && value.Type().Elem().Kind() == reflect.Struct && value.Len() > 0:
			count := map[string]int{}
			for i := range value.Len() {
				for name := range empties(value.Index(i), name) {
					count[name]++
				}
			}
			for name, n := range count {
				if n == value.Len() {
					missing[name] = true
				}
			}
		case value.IsZero():
			missing[name] = true
		}
	}
	return missing
}

// Of the right YAML, of the wrong type or meaning: each has a place and says
// what would be right.
func TestParseComplainsOfTheRest(t *testing.T) {
	t.Parallel()
	check := func(fields string) string {
		return "verify:\n  checks:\n  - {apiVersion: v1, kind: A, " + fields + "}\n"
	}
	chart := func(values string) string {
		return "crds:\n  fromCharts:\n  - helmRelease: a/b\n    values: " + values + "\n"
	}
	for text, want := range map[string]string{
		// The header.
		"kind: Standup":       `f:1:1: apiVersion must be kubestandup.dev/v1alpha1, not ""`,
		"apiVersion: v1":      `f:1:13: apiVersion must be kubestandup.dev/v1alpha1, not "v1"`,
		"metadata: {name: a}": `f:1:1: apiVersion must be kubestandup.dev/v1alpha1, not ""`,
		"apiVersion: kubestandup.dev/v1alpha1\nkind: Kustomization":                `f:2:7: kind must be Standup, not "Kustomization"`,
		"apiVersion: kubestandup.dev/v1alpha1\nkind: Standup":                      `f:1:1: metadata lacks name: add it, like standup`,
		"apiVersion: kubestandup.dev/v1alpha1\nkind: Standup\nmetadata: {name: a}": `f:3:11: metadata.annotations lacks config.kubernetes.io/local-config: "true", without which Flux would apply this file: add it`,
		// Types.
		"variables: {}":                             `f:1:12: variables must be a list, not a mapping`,
		"variables: [{name: A, required: yep}]":     `f:1:33: variables[0].required must be true or false, not a string`,
		"variables: [{name: A, forbid: dev}]":       `f:1:31: variables[0].forbid must be a list, not a string`,
		"variables: [{name: A, forbid: [1]}]":       `f:1:32: variables[0].forbid[0] must be a string, not a number: put it in quotes`,
		"variables: [~]":                            `f:1:13: variables[0] has no value: fill it in or remove the line`,
		"variables: [{name: A, nane: B}]":           `f:1:23: field "nane" is unknown: variables[0] knows blocks, degrades, forbid, name, placeholder, required`,
		"variables: [{required: true}]":             `f:1:13: variables[0] lacks name: add it`,
		"nodes: {count: 1.5}":                       `f:1:16: nodes.count must be a whole number, not a number`,
		"nodes: {count: 99999999999999999999}":      `f:1:16: nodes.count must be a whole number, not a number`,
		"nodes: {minKernel: 5.15}":                  `f:1:20: nodes.minKernel must be a string, not a number: put it in quotes`,
		"resume: {timeout: 10}":                     `f:1:19: resume.timeout must be a duration such as 90s or 10m, not a number`,
		"resume: {timeout: ten minutes}":            `f:1:19: resume.timeout must be a duration such as 90s or 10m, not "ten minutes"`,
		"resume: {timeout: 0s}":                     `f:1:19: resume.timeout must be longer than nothing, not 0s: remove the line for the default`,
		"resume: {timeout: -5m}":                    `f:1:19: resume.timeout must be longer than nothing, not -5m: remove the line for the default`,
		"resume: {timeout: {}}":                     `f:1:19: resume.timeout must be a duration such as 90s or 10m, not a mapping`,
		"crds: {fromCharts: [{}]}":                  `f:1:21: crds.fromCharts[0] lacks helmRelease: add it`,
		"verify: {checks: [{kind: A, current: a}]}": `f:1:19: verify.checks[0] lacks apiVersion: add it`,
		check("failed: a"):                          `f:3:5: verify.checks[0] lacks current: add it`,
		// Values of a chart.
		chart("[a]"):                         `f:4:13: crds.fromCharts[0].values must be a mapping, not a list`,
		chart("true"):                        `f:4:13: crds.fromCharts[0].values must be a mapping, not true or false`,
		chart(""):                            `f:4:12: crds.fromCharts[0].values has no value: fill it in or remove the line`,
		chart("{a: &x b}"):                   `f:4:17: crds.fromCharts[0].values.a uses an anchor or an alias: write the value out`,
		chart("{&x a: b}"):                   `f:4:14: crds.fromCharts[0].values uses an anchor or an alias: write the value out`,
		chart("{<<: {a: b}}"):                `f:4:14: crds.fromCharts[0].values uses an anchor or an alias: write the value out`,
		chart("{a: [{1: x}]}"):               `f:4:19: field "1" of crds.fromCharts[0].values.a[0] must be a string: put it in quotes`,
		chart("{? [a] : b}"):                 `f:4:16: field that is no word of crds.fromCharts[0].values must be a string: put it in quotes`,
		chart("{a: 1, a: 2}"):                `f:4:20: field "a" of crds.fromCharts[0].values is given twice`,
		chart("{a: .inf}"):                   `f:4:17: crds.fromCharts[0].values.a is no finite number: put it in quotes if it is text`,
		chart("{a: !mine b}"):                `f:4:17: crds.fromCharts[0].values.a must be a mapping, a list, text, a number, true or false, not !mine`,
		chart("{a: !!int x}"):                `f:4:17: crds.fromCharts[0].values.a is too large a number: put it in quotes`,
		chart("{a: !!bool x}"):               `f:4:17: crds.fromCharts[0].values.a must be a mapping, a list, text, a number, true or false, not true or false`,
		chart(deep("{a: ", "}")):             `f:4:129: crds.fromCharts[0].values` + strings.Repeat(".a", 29) + ` is nested too deeply`,
		chart("{a: " + deep("[", "]") + "}"): `f:4:45: crds.fromCharts[0].values.a` + strings.Repeat("[0]", 28) + ` is nested too deeply`,
		// Meaning.
		"cluster: {domain: \"*.example.org\"}":                         `f:1:19: cluster.domain "*.example.org" is no DNS domain: write it like prod.example.org, in lower case`,
		"flux: {namespace: Flux}":                                      `f:1:19: flux.namespace "Flux" is no name of a Namespace: write it like flux-system`,
		"flux: {root: a/b}":                                            `f:1:14: flux.root "a/b" is no name of a Kustomization: write it without its namespace, like flux-system`,
		"variables: [{name: 1A}]":                                      `f:1:20: variables[0].name "1A" is no name of a variable: letters, digits and _ alone, and no digit first`,
		"variables: [{name: a-b}]":                                     `f:1:20: variables[0].name "a-b" is no name of a variable: letters, digits and _ alone, and no digit first`,
		"variables: [{name: A}, {name: B}, {name: A}]":                 `f:1:42: variables[2].name A is that of variables[0] too: make one entry of both`,
		"variables: [{name: A, forbid: [a, \"**\"]}]":                  `f:1:35: variables[0].forbid[1] "**" stands for every value: name the values that are meant`,
		"variables: [{name: A, placeholder: \"*\"}]":                   `f:1:36: variables[0].placeholder "*" stands for every value: name the values that are meant`,
		"variables: [{name: A, blocks: [b]}]":                          `f:1:31: variables[0].blocks says what a placeholder does, and no placeholder is given: add placeholder, such as "TBD-*"`,
		"variables: [{name: A, degrades: [b]}]":                        `f:1:33: variables[0].degrades says what a placeholder does, and no placeholder is given: add placeholder, such as "TBD-*"`,
		"variables: [{name: A, placeholder: x, blocks: [b, B]}]":       `f:1:51: variables[0].blocks[1] "B" names no tier: write NAME, ks/NAME, hr/NAME, or with its namespace ks/NAMESPACE/NAME`,
		"resume: {skip: [hr/a/b/c]}":                                   `f:1:17: resume.skip[0] "hr/a/b/c" names no tier: write NAME, ks/NAME, hr/NAME, or with its namespace ks/NAMESPACE/NAME`,
		"nodes: {count: -1}":                                           `f:1:16: nodes.count must not be negative: -1`,
		"nodes: {minKubelet: \"1\"}":                                   `f:1:21: nodes.minKubelet "1" is no version: write it like "5.15"`,
		"nodes: {minKernel: new}":                                      `f:1:20: nodes.minKernel "new" is no version: write it like "5.15"`,
		"nodes: {minMemory: 16GB}":                                     `f:1:20: nodes.minMemory "16GB" is no amount of memory: write it like 16Gi`,
		"nodes: {minMemory: \"0\"}":                                    `f:1:20: nodes.minMemory "0" is no amount of memory: write it like 16Gi`,
		"crds: {expect: [StorageProfile]}":                             `f:1:17: crds.expect[0] "StorageProfile" is no name of a CRD: write PLURAL.GROUP, like storageprofiles.cdi.kubevirt.io`,
		"crds: {expect: [a.b, profiles]}":                              `f:1:22: crds.expect[1] "profiles" is no name of a CRD: write PLURAL.GROUP, like storageprofiles.cdi.kubevirt.io`,
		"crds: {fromCharts: [{helmRelease: kyverno}]}":                 `f:1:35: crds.fromCharts[0].helmRelease "kyverno" names no HelmRelease: write NAMESPACE/NAME`,
		"crds: {fromCharts: [{helmRelease: hr/a/b}]}":                  `f:1:35: crds.fromCharts[0].helmRelease "hr/a/b" names no HelmRelease: write NAMESPACE/NAME`,
		"crds: {fromCharts: [{helmRelease: a/b}, {helmRelease: a/b}]}": `f:1:55: crds.fromCharts[1].helmRelease a/b is that of crds.fromCharts[0] too: make one entry of both`,
		"verify: {checks: [{apiVersion: a/b/c, kind: A, current: a}]}": `f:1:32: verify.checks[0].apiVersion "a/b/c" is none: write VERSION or GROUP/VERSION, like apps/v1`,
		"verify: {checks: [{apiVersion: apps/, kind: A, current: a}]}": `f:1:32: verify.checks[0].apiVersion "apps/" is none: write VERSION or GROUP/VERSION, like apps/v1`,
		check("current: \"a ==\""):                                     `f:3:40: verify.checks[0].current is no CEL expression: at 1:5: Syntax error: mismatched input '<EOF>'`,
		check("current: a, failed: \"(\""):                             `f:3:51: verify.checks[0].failed is no CEL expression: at 1:2: Syntax error: `,
		check("current: a, inProgress: \"has(a)\""):                    `f:3:55: verify.checks[0].inProgress is no CEL expression: at 1:5: invalid argument to has() macro`,
	} {
		got, err := parse([]byte(text), "f")
		if err == nil {
			t.Errorf("%s\ngot %+v\nwant %s", text, got, want)
			continue
		}
		exact := !strings.Contains(want, "CEL")
		if said := err.Error(); said != want && (exact || !strings.HasPrefix(said, want) || strings.Contains(said, "\n")) {
			t.Errorf("%s\ngot  %s\nwant %s", text, said, want)
		}
	}
}

func deep(open, end string) string { return strings.Repeat(open, 40) + "x" + strings.Repeat(end, 40) }

// What a file may hold and a strict reader could be expected to refuse.
func TestParseTakes(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		Header, Header + "nodes: {}", "variables: []", "nodes: {}", "nodes: {count: 0}", "crds: {fromCharts: [{helmRelease: a/b, values: {}}]}",
		"variables: [{name: a, forbid: [\"[x]\", \"a*b?\"]}]", "resume: {timeout: 1h30m}", "nodes: {minKernel: 5.15.0-105-generic}",
		"variables: [{name: a, placeholder: <*>, blocks: []}]", "crds: {expect: [widgets.example]}",
		"verify: {checks: [{apiVersion: v1, kind: Node, current: \"status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')\"}]}",
	} {
		if _, err := parse([]byte(text), "f"); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		whole(f), "cluster:\n  server: https://h\n  uid: \"a\"\nflux: {root: x}\n", "cluster: &a {uid: *a}\n", "a: [", "---\n---\n", "\xff", "cluster:\n  <<: {uid: a}\n",
		"variables: [{name: A, forbid: [x]}, {name: A}]", "crds: {fromCharts: [{helmRelease: a/b, values: {a: [~, {}], b: .nan}}]}",
		"resume: {timeout: 1h, skip: [a/b]}", "verify: {checks: [{apiVersion: v1, kind: A, current: 'a =='}]}", "nodes: {minMemory: 1Gi, minKernel: 5.x}",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := parse([]byte(text), "f")
		if err != nil {
			var placed *Error
			if !errors.As(err, &placed) || placed.Line < 1 || placed.Path != "f" || placed.Message == "" {
				t.Fatalf("%v has no place", err)
			}
			return
		}
		for field, value := range map[string]string{
			"cluster.server": c.Cluster.Server, "cluster.uid": c.Cluster.UID, "flux.root": c.Flux.Root, "nodes.minMemory": c.Nodes.MinMemory,
		} {
			if _, ok := c.Position(field); ok != (value != "") {
				t.Fatalf("%s is %q, and has a place: %v", field, value, ok)
			}
		}
		for _, v := range c.Variables {
			for _, glob := range append(v.Forbid, v.Placeholder) {
				if Glob(glob, "") != (glob == "") {
					t.Fatalf("%s: %q stands for no value at all", v.Name, glob)
				}
			}
		}
		for _, chart := range c.CRDs.FromCharts {
			if n := depth(chart.Values); n > maxDepth {
				t.Fatalf("values are %d deep", n)
			}
		}
		if c.Resume.Timeout < 0 || c.Nodes.Count < 0 {
			t.Fatalf("got %+v", c)
		}
	})
}

func depth(value any) int {
	below := 0
	switch v := value.(type) {
	case map[string]any:
		for _, item := range v {
			below = max(below, depth(item))
		}
	case []any:
		for _, item := range v {
			below = max(below, depth(item))
		}
	default:
		return 0
	}
	return below + 1
}
