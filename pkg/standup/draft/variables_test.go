// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package draft

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

// guess is a variable in one line: name, required, forbidden values, glob.
func guess(v *variable) string {
	line := v.name
	switch {
	case v.required && v.not == "":
		line += " required"
	case v.required:
		line += " unless " + v.not
	}
	for _, f := range v.forbid {
		line += " !" + f.value
	}
	if v.placeholder != "" {
		line += " =" + v.placeholder
	}
	return line
}

func TestGuessVariables(t *testing.T) {
	t.Parallel()
	apps := Tier{Ref: ks("apps"), Path: "apps", From: []Set{vars}}
	for name, tt := range map[string]struct {
		tiers []Tier
		known map[Set]Names
		files map[string]string
		want  []string
		plain []string
	}{
		"another environment has another value": {
			known: map[Set]Names{vars: known(map[string]string{"NAME": "prod", "SAME": "x"})},
			files: map[string]string{
				"clusters/prod/v.yaml": configMapText("cluster-vars", "NAME", "prod", "SAME", "x"),
				"clusters/dev/v.yaml":  configMapText("cluster-vars", "NAME", "dev", "SAME", "x"),
			},
			want: []string{"NAME required !dev"}, plain: []string{"SAME"},
		},
		"what is live and not yet what git says is no other environment": {
			known: map[Set]Names{vars: known(map[string]string{"NAME": "prod", "OLD": "before-1"})},
			files: map[string]string{
				"clusters/prod/v.yaml": configMapText("cluster-vars", "NAME", "prod", "OLD", "after-1"),
				"clusters/dev/v.yaml":  configMapText("cluster-vars", "NAME", "dev", "OLD", "before-1"),
			},
			tiers: []Tier{{Ref: ks("flux-system"), Path: "clusters/prod"}, apps},
			want:  []string{"NAME required !dev"}, plain: []string{"OLD"},
		},
		"one file is nothing to compare with": {
			known: map[Set]Names{vars: known(map[string]string{"NAME": "prod"})},
			files: map[string]string{"clusters/dev/v.yaml": configMapText("cluster-vars", "NAME", "dev")},
			plain: []string{"NAME"},
		},
		"no tree": {known: map[Set]Names{vars: known(map[string]string{"NAME": "prod"})}, plain: []string{"NAME"}},
		"two files of one folder": {
			known: map[Set]Names{vars: known(map[string]string{"NAME": "prod"})},
			files: map[string]string{"prod.yaml": configMapText("cluster-vars", "NAME", "prod"), "dev.yaml": configMapText("cluster-vars", "NAME", "dev")},
			want:  []string{"NAME required !dev"},
		},
		"two documents of one file and another namespace": {
			known: map[Set]Names{vars: known(map[string]string{"NAME": "prod"})},
			files: map[string]string{
				"a.yaml": configMapText("cluster-vars", "NAME", "prod") + "---\n" + configMapText("cluster-vars", "NAME", "dev") + "---\n" +
					strings.Replace(configMapText("cluster-vars", "NAME", "elsewhere"), "}", ", namespace: other}", 1) + "---\n" + configMapText("other", "NAME", "no"),
			},
			want: []string{"NAME required !dev"},
		},
		"generic values are required and none is forbidden": {
			known: map[Set]Names{vars: known(map[string]string{"N": "3", "LOG": "info", "SIZE": "10Gi", "AGE": "5m", "HA": "true", "LONG": "a"})},
			files: map[string]string{
				"prod/v.yaml": configMapText("cluster-vars", "N", "3", "LOG", "info", "SIZE", "10Gi", "AGE", "5m", "HA", "true", "LONG", "a"),
				"dev/v.yaml":  configMapText("cluster-vars", "N", "1", "LOG", "debug", "SIZE", "1Gi", "AGE", "1m", "HA", "false", "LONG", strings.Repeat("x", 300)),
			},
			want: []string{"AGE required", "HA required", "LOG required", "LONG required", "N required", "SIZE required"},
		},
		"a placeholder": {
			known: map[Set]Names{vars: known(map[string]string{"A": "TBD-x", "B": "<your domain>", "C": "todo: ask", "D": "done"})},
			want:  []string{"A =TBD-*", "B =<*>", "C =todo*"}, plain: []string{"D"},
		},
		"the placeholder of another environment is not forbidden": {
			known: map[Set]Names{vars: known(map[string]string{"A": "x-1"})},
			files: map[string]string{"prod/v.yaml": configMapText("cluster-vars", "A", "x-1"), "dev/v.yaml": configMapText("cluster-vars", "A", "TBD-x")},
			want:  []string{"A required"},
		},
		"a glob that this cluster's own value would fall under": {
			known: map[Set]Names{vars: known(map[string]string{"A": "app-1"})},
			files: map[string]string{"prod/v.yaml": configMapText("cluster-vars", "A", "app-1"), "dev/v.yaml": configMapText("cluster-vars", "A", "app-*"), "qa/v.yaml": configMapText("cluster-vars", "A", "***")},
			want:  []string{"A required"},
		},
		"not every tier knows it": {
			tiers: []Tier{apps, {Ref: ks("other"), Inline: map[string]string{"X": "1"}}},
			known: map[Set]Names{vars: known(map[string]string{"NAME": "prod"})},
			files: map[string]string{"prod/v.yaml": configMapText("cluster-vars", "NAME", "prod"), "dev/v.yaml": configMapText("cluster-vars", "NAME", "dev")},
			want:  []string{"NAME unless ks/flux-system/other !dev"}, plain: []string{"X"},
		},
		"in the spec of a tier": {
			tiers: []Tier{{Ref: ks("apps"), Path: "apps", Inline: map[string]string{"ENV": "prod"}}},
			files: map[string]string{
				"clusters/prod/apps.yaml": "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: apps, namespace: flux-system}\nspec: {postBuild: {substitute: {ENV: prod}}}\n",
				"clusters/dev/apps.yaml":  "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: apps, namespace: flux-system}\nspec: {postBuild: {substitute: {ENV: dev}}}\n",
			},
			want: []string{"ENV required !dev"},
		},
		"not yet in the cluster": {
			tiers: []Tier{{Ref: ks("flux-system"), Path: "clusters/prod"}, apps},
			known: map[Set]Names{vars: {Missing: true}},
			files: map[string]string{
				"clusters/prod/v.yaml": configMapText("cluster-vars", "NAME", "prod", "E", "TBD"),
				"clusters/dev/v.yaml":  configMapText("cluster-vars", "NAME", "dev"),
			},
			want: []string{"E =TBD*", "NAME unless ks/flux-system/apps !dev"},
		},
		"of a Secret the names alone": {
			tiers: []Tier{{Ref: ks("apps"), From: []Set{secrets}}},
			known: map[Set]Names{secrets: {Names: []string{"TOKEN", "ONLY_HERE"}}},
			files: map[string]string{"prod/s.yaml": secretText("TOKEN"), "dev/s.yaml": secretText("TOKEN")},
			want:  []string{"TOKEN required"}, plain: []string{"ONLY_HERE"},
		},
		"generated by kustomize": {
			known: map[Set]Names{vars: known(map[string]string{"NAME": "prod", "ZONE": "eu-1"})},
			files: map[string]string{
				"prod/kustomization.yaml": "configMapGenerator:\n- name: cluster-vars\n  literals: [NAME=prod]\n  envs: [zone.env]\n",
				"prod/zone.env":           "# where\nZONE=eu-1\n",
				"dev/kustomization.yaml":  "kind: Kustomization\napiVersion: kustomize.config.k8s.io/v1beta1\nconfigMapGenerator:\n- name: cluster-vars\n  literals: [\"NAME='dev'\"]\n  env: zone.env\nsecretGenerator:\n- name: cluster-secrets\n  literals: [NAME=" + secret + "]\n",
				"dev/zone.env":            "ZONE=us-1\n",
			},
			want: []string{"NAME required !dev", "ZONE required !us-1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live := &Live{Tiers: tt.tiers, Known: tt.known}
			if live.Tiers == nil {
				live.Tiers = []Tier{apps}
			}
			var tree *Tree
			if tt.files != nil {
				tree = scan(t, tt.files)
			}
			found, plain := guessVariables(live, tree)
			var got []string
			for _, v := range found {
				got = append(got, guess(v))
				if len(v.why) == 0 {
					t.Errorf("%s: no word on why", v.name)
				}
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if !slices.Equal(plain, tt.plain) {
				t.Errorf("nothing guessed about %q, want %q", plain, tt.plain)
			}
		})
	}
}

func TestUsedBy(t *testing.T) {
	t.Parallel()
	live := &Live{
		Tiers: []Tier{
			{Ref: ks("root"), Path: ".", From: []Set{vars}},
			{Ref: ks("backup"), Path: "backup", From: []Set{vars}},
			{Ref: ks("plain"), Path: "backup"},
			{Ref: ks("backup-2"), Path: "backup-2", From: []Set{vars}},
			{Ref: hr("x")},
		},
		Known: map[Set]Names{vars: known(map[string]string{"E": "TBD"})},
	}
	tree := scan(t, map[string]string{"backup/a/b.yaml": "x: ${E:-none}", "backup-2/a.yaml": "x: ${EE} $E", "a.yaml": "${E}", "backup-2/b.txt": "${E}"})
	found, _ := guessVariables(live, tree)
	if len(found) != 1 || !slices.Equal(found[0].usedBy, []string{"ks/flux-system/backup"}) {
		t.Errorf("got %+v", found)
	}
}

func TestPlaceholderOf(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"TBD": "TBD*", "TBD-backup": "TBD-*", "tbd-x": "tbd-*", "tbd": "tbd*", "CHANGEME": "CHANGEME*", "CHANGE_ME_NOW": "CHANGE_ME*", "change-me": "change-me*",
		"REPLACEWITHYOURS": "REPLACE*", "replaceme": "replaceme*", "FIXME soon": "FIXME*", "Todo": "Todo*", "<host>": "<*>", "XXXX": "XXX*", "placeholder": "placeholder*",
		"replacement": "", "todoist": "", "tbdx": "", "prod": "", "": "", "a TBD": "", "<a><b>": "", "<>": "", "x<y>": "",
	} {
		if got := placeholderOf(value); got != want {
			t.Errorf("%q: got %q, want %q", value, got, want)
		}
	}
}

func TestGuessCharts(t *testing.T) {
	t.Parallel()
	off := func(values map[string]any) Tier { return Tier{Ref: hr("a"), Values: values} }
	no := map[string]any{"enabled": false}
	for name, tt := range map[string]struct {
		tier Tier
		want map[string]any
		on   bool
	}{
		"crds.install":       {off(map[string]any{"crds": map[string]any{"install": false, "other": false}}), map[string]any{"crds": map[string]any{"install": true}}, true},
		"crds.enabled":       {off(map[string]any{"crds": no}), map[string]any{"crds": map[string]any{"enabled": true}}, true},
		"crds.create":        {off(map[string]any{"crds": map[string]any{"create": false}}), map[string]any{"crds": map[string]any{"create": true}}, true},
		"installCRDs":        {off(map[string]any{"installCRDs": false}), map[string]any{"installCRDs": true}, true},
		"createCustom":       {off(map[string]any{"createCRD": false}), map[string]any{"createCRD": true}, true},
		"crds":               {off(map[string]any{"crds": false}), map[string]any{"crds": true}, true},
		"of a sub-chart":     {off(map[string]any{"sub": map[string]any{"crds": no, "installCRDs": false}}), map[string]any{"sub": map[string]any{"crds": map[string]any{"enabled": true}, "installCRDs": true}}, true},
		"Skip":               {Tier{Ref: hr("a"), SkipsCRDs: true}, nil, true},
		"on":                 {off(map[string]any{"installCRDs": true, "crds": map[string]any{"install": true}}), nil, false},
		"text":               {off(map[string]any{"installCRDs": "false", "crds": []any{false}}), nil, false},
		"something else":     {off(map[string]any{"enabled": false, "webhook": no, "crdsKeep": false, "crds": map[string]any{"keep": false}}), nil, false},
		"a Kustomization":    {Tier{Ref: ks("a"), Values: map[string]any{"crds": no}}, nil, false},
		"deeper than values": {off(nested("x", 12, map[string]any{"installCRDs": false})), nil, false},
	} {
		charts, unread := guessCharts(&Live{Tiers: []Tier{tt.tier}}, nil)
		if (len(charts) == 1) != tt.on || len(unread) != 0 {
			t.Errorf("%s: got %+v, %v", name, charts, unread)
		} else if tt.on && !reflect.DeepEqual(charts[0].values, tt.want) {
			t.Errorf("%s: got %v", name, charts[0].values)
		}
	}
}

func nested(key string, n int, value map[string]any) map[string]any {
	for range n {
		value = map[string]any{key: value}
	}
	return value
}

// Of the working tree only those count that are not live, and can be named.
func TestGuessChartsOfTheTree(t *testing.T) {
	t.Parallel()
	release := func(name, namespace string) string {
		return "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: " + name + ", namespace: " + namespace + "}\nspec: {install: {crds: Skip}}\n---\n"
	}
	tree := scan(t, map[string]string{"a.yaml": release("live", "apps") + release("new", "apps") + release("new", "apps") + release("x", `""`) + release(`"${A}"`, "apps")})
	charts, _ := guessCharts(&Live{Tiers: []Tier{{Ref: hr("live")}}}, tree)
	if len(charts) != 1 || charts[0].release != "apps/new" || charts[0].file != "a.yaml" || charts[0].values != nil {
		t.Errorf("got %+v", charts)
	}
}

func TestGuessRoot(t *testing.T) {
	t.Parallel()
	k := func(name, owner string) Tier {
		tier := Tier{Ref: ks(name)}
		if owner != "" {
			tier.Owner = flux.Ref{Kind: "Kustomization", Namespace: "flux-system", Name: owner}
		}
		return tier
	}
	for name, tt := range map[string]struct {
		tiers  []Tier
		want   string
		others []string
	}{
		"none":              {nil, "", nil},
		"releases alone":    {[]Tier{{Ref: hr("a")}}, "", nil},
		"applies itself":    {[]Tier{k("a", "z"), k("z", "z")}, "z", nil},
		"applied by no one": {[]Tier{k("a", "z"), k("b", "a"), k("z", "")}, "z", nil},
		"the owner is gone": {[]Tier{k("a", "gone"), k("b", "a")}, "a", nil},
		"the heaviest":      {[]Tier{k("a", ""), k("b", "c"), k("c", ""), k("d", "")}, "c", []string{"flux-system/a", "flux-system/d"}},
		"a circle":          {[]Tier{k("a", "b"), k("b", "a")}, "a", []string{"flux-system/b"}},
	} {
		root, others := guessRoot(&Live{Tiers: tt.tiers})
		got := ""
		if root != nil {
			got = root.Ref.Name
		}
		if got != tt.want || !slices.Equal(others, tt.others) {
			t.Errorf("%s: got %s, %v", name, got, others)
		}
	}
}

func TestGuessNodes(t *testing.T) {
	t.Parallel()
	got := guessNodes([]Node{
		{Ready: true, Kernel: "6.8.0-45-generic", Kubelet: "v1.36.10", Memory: 700 << 20}, {Kernel: "odd", Kubelet: "v1.36.9+k3s1"}, {Kernel: "6.10.1", Memory: 8 << 30},
	})
	want := floor{
		count: 3, ready: 1, kernel: "6.8", kubelet: "1.36", memory: "700Mi",
		said: "the oldest kernel is 6.8.0, the oldest kubelet 1.36.9 and the smallest node has 700 MiB of memory",
	}
	if got != want {
		t.Errorf("got %+v", got)
	}
	if got := guessNodes([]Node{{}}); got != (floor{count: 1}) {
		t.Errorf("got %+v", got)
	}
}

func TestGuessDomain(t *testing.T) {
	t.Parallel()
	for hosts, want := range map[string]string{
		"":                                      "",
		"a.prod.example.org b.prod.example.org": "prod.example.org",
		"*.prod.example.org prod.example.org.":  "prod.example.org",
		"A.Prod.Example.org a.b.prod.example.org x.svc.cluster.local localhost": "prod.example.org",
		"web.prod.example.org":               "prod.example.org",
		"example.org":                        "example.org",
		"a.example.org b.example.com":        "",
		"xprod.example.org prod.example.org": "example.org",
		"-bad- web a_b.example.org":          "",
	} {
		if got := guessDomain(strings.Fields(hosts)); got != want {
			t.Errorf("%s: got %q, want %q", hosts, got, want)
		}
	}
}
