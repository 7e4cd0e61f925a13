// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/standup/config"
)

const (
	fromMap    = "{postBuild: {substituteFrom: [{kind: ConfigMap, name: vars}]}}"
	fromSecret = "{postBuild: {substituteFrom: [{kind: Secret, name: keys}]}}"
)

// TestVariablesAreResolvedAsFluxDoes: the later reference wins, what is
// spelled out wins over all, and newlines go.
func TestVariablesAreResolvedAsFluxDoes(t *testing.T) {
	p := lookingAtBuilds(
		builtTier(t, "a", `{postBuild: {substitute: {SPELLED: "x\ny"}, substituteFrom: [{kind: ConfigMap, name: vars}, {kind: Secret, name: keys}, {kind: ConfigMap, name: gone, optional: true}]}}`),
		builtTier(t, "none", "{postBuild: {}}"), builtTier(t, "later", "{postBuild: {substituteFrom: [{kind: Secret, name: keys}]}}",
			"{apiVersion: v1, kind: ConfigMap, metadata: {name: brought, namespace: flux-system}, data: {B: git}}",
			"{apiVersion: v1, kind: Secret, metadata: {name: sealed, namespace: flux-system}, data: {S: RU5D}, sops: {mac: x}}"),
		builtTier(t, "b", "{postBuild: {substituteFrom: [{kind: ConfigMap, name: brought}, {kind: Secret, name: sealed}]}}"),
	)
	p.built.variables = fakeVariables{
		"ConfigMap/flux-system/vars": {"A": "map", "BOTH": "map", "SPELLED": "map"},
		"Secret/flux-system/keys":    {"BOTH": "key\n"},
	}
	all, err := p.variables(t.Context())
	if err != nil || len(all) != 3 {
		t.Fatalf("%+v, %v", all, err)
	}
	for _, tt := range []struct {
		tier, name, value, from string
		secret, fails           bool
	}{
		{"a", "A", "map", "ConfigMap/flux-system/vars", false, false},
		{"a", "BOTH", "key", "Secret/flux-system/keys", true, false},
		{"a", "SPELLED", "xy", "Kustomization/flux-system/a", false, false},
		{"b", "B", "git", "ConfigMap/flux-system/brought", false, false},
		{"b", "S", "ENC", "Secret/flux-system/sealed", true, true},
	} {
		for i := range all {
			if all[i].tier.Tier.Name != tt.tier {
				continue
			}
			v, ok, err := all[i].find(tt.name)
			if !ok || v.value != tt.value || v.from.String() != tt.from || v.secret != tt.secret || (err != nil) != tt.fails {
				t.Errorf("%+v: got %+v, %t, %v", tt, v, ok, err)
			}
		}
	}
}

// TestAssertedVariables: incident 8, and that nothing which could not be said
// counts as well.
func TestAssertedVariables(t *testing.T) {
	required := config.Variable{Name: "NAME", Required: true}
	forbidden := config.Variable{Name: "NAME", Forbid: []string{"other", "prod*"}}
	placeholder := config.Variable{Name: "NAME", Placeholder: "TBD-*", Blocks: []string{"a", "nobody"}, Degrades: []string{"ks/b"}}
	const vars, keys = "ConfigMap/flux-system/vars", "Secret/flux-system/keys"
	for name, tt := range map[string]struct {
		variable config.Variable
		vars     fakeVariables
		spec     string
		rules    string
		says     string
		blocks   bool
	}{
		"it has a value":          {required, fakeVariables{vars: {"NAME": "x"}}, fromMap, "[]", "", false},
		"it has none":             {required, fakeVariables{vars: {"OTHER": "x"}}, fromMap, "[variable-missing]", "has no value in Kustomization/flux-system/a", true},
		"it is empty":             {required, fakeVariables{vars: {"NAME": ""}}, fromMap, "[variable-missing]", "has no value", true},
		"it is a newline":         {required, fakeVariables{vars: {"NAME": "\n"}}, fromMap, "[variable-missing]", "has no value", true},
		"no tier has variables":   {required, nil, "{}", "[variable-missing]", "no tier is substituted", true},
		"nobody may look":         {required, fakeVariables{vars: nil}, fromMap, "[variables-unread variable-unresolved]", "could not be read", true},
		"the object is not there": {required, fakeVariables{}, fromMap, "[variables-absent variable-unresolved]", "no tier builds it", true},
		"it is not required":      {config.Variable{Name: "NAME"}, fakeVariables{vars: {}}, fromMap, "[]", "", false},

		"it is not forbidden": {forbidden, fakeVariables{vars: {"NAME": "staging-prod"}}, fromMap, "[]", "", false},
		"it is forbidden":     {forbidden, fakeVariables{vars: {"NAME": "prod-1"}}, fromMap, "[variable-forbidden]", `variable NAME is "prod-1" in ConfigMap/flux-system/vars, which standup.yaml forbids (prod*)`, true},
		"it is forbidden, and secret": {
			forbidden, fakeVariables{keys: {"NAME": "prod-hidden"}}, fromSecret, "[variable-forbidden]", "has a value in Secret/flux-system/keys that standup.yaml forbids (prod*)", true,
		},
		"it may be forbidden": {forbidden, fakeVariables{vars: nil}, fromMap, "[variables-unread variable-unresolved]", "cannot be said", true},

		"a placeholder":       {placeholder, fakeVariables{vars: {"NAME": "TBD-x"}}, fromMap, "[variable-placeholder]", "it blocks Kustomization/flux-system/a; it degrades Kustomization/flux-system/b", false},
		"no placeholder":      {placeholder, fakeVariables{vars: {"NAME": "s3.example.org"}}, fromMap, "[]", "", false},
		"perhaps one":         {placeholder, fakeVariables{vars: nil}, fromMap, "[variables-unread variable-unresolved]", "whether variable NAME is still a placeholder cannot be said", true},
		"a misspelt tier":     {placeholder, fakeVariables{vars: {"NAME": "TBD-x"}}, fromMap, "[variable-placeholder]", "no tier is called nobody", false},
		"optional and absent": {required, fakeVariables{}, "{postBuild: {substituteFrom: [{kind: ConfigMap, name: vars, optional: true}]}}", "[variable-missing]", "has no value", true},
	} {
		t.Run(name, func(t *testing.T) {
			p := lookingAtBuilds(builtTier(t, "a", tt.spec), builtTier(t, "b", "{}"))
			p.env.File.Variables = []config.Variable{tt.variable}
			if tt.vars != nil {
				p.built.variables = tt.vars
			}
			c, err := p.asserted(t.Context())
			if err != nil || fmt.Sprint(rules(c)) != tt.rules {
				t.Fatalf("got %v, %v", rules(c), err)
			}
			var said string
			for _, f := range c.Findings {
				said += text(f) + "\n"
				if f.Blocks != tt.blocks || f.Fix == "" {
					t.Errorf("got %+v", f)
				}
			}
			if !strings.Contains(said, tt.says) || strings.Contains(said, "hidden") {
				t.Errorf("it says\n%s", said)
			}
		})
	}
}

// TestVariablesThatComeLater: with whom, and whether in time.
func TestVariablesThatComeLater(t *testing.T) {
	const brought = "{apiVersion: v1, kind: ConfigMap, metadata: {name: vars, namespace: flux-system}, data: {NAME: x}}"
	const dependsOnMaker = "{dependsOn: [{name: maker}], postBuild: {substituteFrom: [{kind: ConfigMap, name: vars}]}}"
	for name, tt := range map[string]struct {
		maker, user, rule string
		alone             bool // the user builds it itself
	}{
		"an edge":         {"{}", dependsOnMaker, "variables-later", false},
		"no edge":         {"{}", fromMap, "variables-race", false},
		"the wrong edge":  {"{dependsOn: [{name: user}]}", fromMap, "variables-deadlock", false},
		"the tier itself": {"{}", fromMap, "variables-deadlock", true},
	} {
		maker, user := builtTier(t, "maker", tt.maker, brought), builtTier(t, "user", tt.user)
		if tt.alone {
			maker, user = builtTier(t, "maker", "{}"), builtTier(t, "user", tt.user, brought)
		}
		c, err := lookingAtBuilds(maker, user).asserted(t.Context())
		if err != nil || fmt.Sprint(rules(c)) != "["+tt.rule+"]" {
			t.Errorf("%s: got %+v, %v", name, c.Findings, err)
		}
	}
}

// TestLiterals is incident 11, and no cry of wolf.
func TestLiterals(t *testing.T) {
	object := func(text string) string {
		return "{apiVersion: v1, kind: ConfigMap, metadata: {name: literal, namespace: x, annotations: {note: plain}}, data: {a: '" + text + "'}}"
	}
	for name, tt := range map[string]struct {
		object, spec string
		want         string
	}{
		"a known name":           {object("${NAME}"), "{}", "${NAME} ships"},
		"with a default":         {object("x ${NAME:=y} z"), "{}", "${NAME} ships"},
		"two names":              {object("${NAME} ${CONFIGURED}"), "{}", "${CONFIGURED}, ${NAME} ships"},
		"an unknown name":        {object("${HOME}"), "{}", ""},
		"escaped":                {object("$${NAME}"), "{}", ""},
		"not in braces":          {object("$NAME"), "{}", ""},
		"the tier has variables": {object("${NAME}"), fromMap, ""},
		"empty variables":        {object("${NAME}"), "{postBuild: {substitute: {}}}", "${NAME} ships"},
		"always":                 {object("${NAME}"), "{postBuild: {substituteStrategy: Always}}", ""},
		"meant so":               {strings.Replace(object("${NAME}"), "note: plain", "kustomize.toolkit.fluxcd.io/substitute: disabled", 1), "{}", ""},
		"the patch of a child": {
			"{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: kid, namespace: x}, spec: {patches: [{patch: '${NAME}'}]}}", "{}", "",
		},
		"the path of a child": {
			"{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: kid, namespace: x}, spec: {path: './${NAME}'}}", "{}", "${NAME} ships",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := lookingAtBuilds(builtTier(t, "known", fromMap), builtTier(t, "tested", tt.spec, tt.object))
			p.built.variables = fakeVariables{"ConfigMap/flux-system/vars": {"NAME": "x"}}
			p.env.File.Variables = []config.Variable{{Name: "CONFIGURED"}}
			c, err := p.asserted(t.Context())
			switch {
			case err != nil:
				t.Fatal(err)
			case tt.want == "" && len(c.Findings) != 0:
				t.Errorf("found %+v", c.Findings)
			case tt.want != "":
				if f := one(t, c.Findings, "variable-literal"); !strings.Contains(f.Message, tt.want) || f.Tier.Name != "tested" {
					t.Errorf("found %+v", f)
				}
			}
		})
	}
}

// TestPlaceholderVariables is what resume and verify read.
func TestPlaceholderVariables(t *testing.T) {
	p := lookingAtBuilds(builtTier(t, "a", fromMap,
		"{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {name: cold, namespace: apps}}"))
	p.built.variables = fakeVariables{"ConfigMap/flux-system/vars": {"X": "TBD-1", "Y": "good"}}
	p.env.File.Variables = []config.Variable{
		{Name: "X", Placeholder: "TBD-*", Blocks: []string{"hr/cold", "a"}, Degrades: []string{"z"}},
		{Name: "Y", Placeholder: "TBD-*", Blocks: []string{"a"}},
		{Name: "X", Required: true},
	}
	found, err := p.placeholders(t.Context())
	if err != nil || len(found) != 1 {
		t.Fatalf("%+v, %v", found, err)
	}
	h := found[0]
	if fmt.Sprint(h.Blocks) != "[HelmRelease/apps/cold Kustomization/flux-system/a]" || fmt.Sprint(h.Unknown) != "[z]" ||
		h.Unread != nil || fmt.Sprint(h.From) != "[ConfigMap/flux-system/vars]" {
		t.Errorf("%+v", h)
	}
	// Nobody can say: it may be one.
	p.built.variables = fakeVariables{"ConfigMap/flux-system/vars": nil}
	if found, err = p.placeholders(t.Context()); err != nil || len(found) != 2 || found[1].Unread == nil || len(found[1].Blocks) != 1 {
		t.Errorf("%+v, %v", found, err)
	}
}

func TestEarlier(t *testing.T) {
	a, b, c := builtTier(t, "a", "{}"), builtTier(t, "b", "{dependsOn: [{name: a}]}"), builtTier(t, "c", "{}")
	c.Parents = []flux.Ref{ks("b")}
	loop := builtTier(t, "loop", "{dependsOn: [{name: loop2}]}")
	loop2 := builtTier(t, "loop2", "{dependsOn: [{name: loop}, {name: a, namespace: other}]}")
	p := lookingAtBuilds(a, b, c, loop, loop2)
	e := p.earlier(p.built)
	for _, tt := range []struct {
		tier, before string
		want         bool
	}{
		{"b", "a", true},
		{"c", "b", true},
		{"c", "a", true},
		{"a", "c", false},
		{"a", "a", false},
		{"loop", "loop2", true},
		{"loop2", "loop", true},
		{"loop", "a", false},
	} {
		if got := e.than(ks(tt.tier), ks(tt.before)); got != tt.want {
			t.Errorf("%+v: got %t", tt, got)
		}
	}
}
