// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"regexp"
	"strings"
	"testing"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

func TestGlob(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		pattern, value string
		want           bool
	}{
		{"dev", "dev", true},
		{"dev", "Dev", false},
		{"dev", "dev2", false},
		{"dev", "adev", false},
		{"TBD-*", "TBD-", true},
		{"TBD-*", "TBD-a/b\nc", true},
		{"TBD-*", "TBD", false},
		{"TBD-*", "xTBD-", false},
		{"*.dev.example.org", "a.b.dev.example.org", true},
		{"*.dev.example.org", "dev.example.org", false},
		{"a*b*c", "a/b/b/c", true},
		{"a*b*c", "acb", false},
		{"a*b*c", "abc", true},
		{"*a*a*a", "aa", false},
		{"<*>", "<your domain>", true},
		{"[ab]", "a", false},
		{"[ab]", "[ab]", true},
		{`a\b`, `a\b`, true},
		{"v?", "v1", true},
		{"v?", "v", false},
		{"v?", "v12", false},
		{"?", "ü", true},
		{"a?c*", "abc", true},
		{"", "", true},
		{"", "a", false},
		{"*", "", true},
		{"**?", "", false},
	} {
		if got := Glob(tt.pattern, tt.value); got != tt.want {
			t.Errorf("%q of %q: got %v", tt.pattern, tt.value, got)
		}
	}
}

// A glob is what the regular expression of it is.
func FuzzGlob(f *testing.F) {
	f.Add("a*b?c", "aXXbYc")
	f.Add("***", "")
	f.Add("*?*?", "ü\xff")
	f.Fuzz(func(t *testing.T, pattern, value string) {
		if len(pattern) > 50 || len(value) > 200 {
			return
		}
		pattern, value = strings.ToValidUTF8(pattern, "?"), strings.ToValidUTF8(value, "?")
		quoted := strings.NewReplacer(`\*`, `.*`, `\?`, `.`).Replace(regexp.QuoteMeta(strings.ReplaceAll(pattern, `\`, "/")))
		want := regexp.MustCompile(`(?s)^` + quoted + `$`).MatchString(value)
		if got := Glob(strings.ReplaceAll(pattern, `\`, "/"), value); got != want {
			t.Errorf("%q of %q: got %v", pattern, value, got)
		}
	})
}

func TestNamesTier(t *testing.T) {
	t.Parallel()
	ks := flux.Ref{APIVersion: "kustomize.toolkit.fluxcd.io/v1", Kind: "Kustomization", Namespace: "flux-system", Name: "apps"}
	hr := flux.Ref{APIVersion: "helm.toolkit.fluxcd.io/v2", Kind: "HelmRelease", Namespace: "flux-system", Name: "apps"}
	inKs := flux.Ref{Kind: "Kustomization", Namespace: "ks", Name: "apps"}
	for name, want := range map[string][]flux.Ref{
		"apps":                           {ks, hr, inKs},
		"ks/apps":                        {ks, inKs},
		"hr/apps":                        {hr},
		"flux-system/apps":               {ks, hr},
		"ks/flux-system/apps":            {ks},
		"KS/flux-system/apps":            {ks},
		"HelmRelease/apps":               {hr},
		"kustomization/flux-system/apps": {ks},
		"ks/ks/apps":                     {inKs},
		"app":                            nil, "Apps": nil, "": nil, "/": nil, "ks/": nil, "/apps": nil, "other/apps": nil, "*": nil,
		"ks/flux-system/apps/x": nil, "hr/ks/flux-system/apps": nil,
	} {
		var got []flux.Ref
		for _, ref := range []flux.Ref{ks, hr, inKs, {Kind: "ConfigMap", Namespace: "flux-system", Name: "apps"}} {
			if NamesTier(name, ref) {
				got = append(got, ref)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%q means %v, want %v", name, got, want)
			continue
		}
		for i := range got {
			if got[i] != want[i] {
				t.Errorf("%q means %v, want %v", name, got, want)
			}
		}
	}
}
