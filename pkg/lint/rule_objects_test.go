// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubestandup/kubestandup/pkg/coldstart"
	"github.com/kubestandup/kubestandup/pkg/finding"
)

const encrypted = "sops: {mac: \"ENC[AES256_GCM,data:AAAA,iv:AAAA,tag:AAAA,type:str]\"}"

func TestEncryptedValues(t *testing.T) {
	object := func(kind, more string) string {
		return "\n-- apps/all.yaml --\napiVersion: v1\nkind: " + kind + "\nmetadata: {name: token, namespace: x-a" + more +
			"}\ndata: {token: \"ENC[AES256_GCM,data:AAAA,iv:AAAA,tag:AAAA,type:str]\"}\n" + encrypted + "\n"
	}
	disabled := ", annotations: {kustomize.toolkit.fluxcd.io/decrypt: disabled}"
	for name, tc := range map[string]struct {
		files, rule string
		severity    finding.Severity
	}{
		"a Secret":                        {object("Secret", "") + tierFile("apps", ""), "CS007", finding.Error},
		"a ConfigMap":                     {object("ConfigMap", "") + tierFile("apps", ""), "CS008", finding.Error},
		"a Secret that is left alone":     {object("Secret", disabled) + tierFile("apps", ""), "CS008", finding.Warning},
		"left alone, with decryption":     {object("Secret", disabled) + tierFile("apps", "decryption: {provider: sops}"), "CS008", finding.Warning},
		"a Secret that is decrypted":      {object("Secret", "") + tierFile("apps", "decryption: {provider: sops}"), "", ""},
		"a ConfigMap that is decrypted":   {object("ConfigMap", "") + tierFile("apps", "decryption: {provider: sops}"), "", ""},
		"an object that is not applied":   {object("ConfigMap", ", annotations: {kustomize.toolkit.fluxcd.io/ssa: Ignore}") + tierFile("apps", ""), "", ""},
		"what an operator decrypts":       {strings.ReplaceAll(strings.ReplaceAll(object("SopsSecret", ""), "apiVersion: v1", "apiVersion: isindir.github.com/v1alpha3"), "\ndata:", "\nspec:") + tierFile("apps", ""), "", ""},
		"what is not encrypted in a tier": {files("apps"), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := subject(t, tc.files)
			for _, rule := range []string{"CS007", "CS008"} {
				if rule != tc.rule {
					none(t, s, rule)
					continue
				}
				f := one(t, s, rule)
				if f.Severity != tc.severity || f.File != "apps/all.yaml" {
					t.Errorf("%s at %s:%d", f.Severity, f.File, f.Line)
				}
				if text := f.Message + causes(f) + f.Fix; strings.Contains(text, "ENC[") || strings.Contains(text, "AAAA") {
					t.Errorf("it shows what is encrypted: %s", text)
				}
			}
		})
	}
}

func TestTheKeyOfOtherTiersIsProposed(t *testing.T) {
	s := subject(t, files("other: decryption: {provider: sops, secretRef: {name: fleet-key}}")+tierFile("apps", "")+
		"-- apps/all.yaml --\napiVersion: v1\nkind: Secret\nmetadata: {name: token, namespace: x-a}\ndata: {a: \"ENC[AES256_GCM,data:AAAA,iv:AAAA,tag:AAAA,type:str]\"}\n"+encrypted+"\n")
	contains(t, "fix", one(t, s, "CS007").Fix, "name: fleet-key")
}

func TestBuiltTwice(t *testing.T) {
	object := func(dir, more string) string {
		return "\n-- " + dir + "/shared.yaml --\n{apiVersion: v1, kind: ConfigMap, metadata: {name: shared, namespace: x-a" + more + "}}\n"
	}
	note := func(what string) string { return ", annotations: {kustomize.toolkit.fluxcd.io/" + what + "}" }
	both := files("a", "b: dependsOn: [{name: a}]")
	for name, tc := range map[string]struct {
		files string
		want  int
	}{
		"both prune":         {both + object("a", "") + object("b", ""), 1},
		"one prunes":         {files("a: prune: false", "b") + object("a", "") + object("b", ""), 1},
		"neither prunes":     {files("a: prune: false", "b: prune: false") + object("a", "") + object("b", ""), 0},
		"orphaned":           {files("a: deletionPolicy: Orphan", "b: deletionPolicy: Orphan") + object("a", "") + object("b", ""), 0},
		"one merges":         {both + object("a", "") + object("b", note("ssa: Merge")), 0},
		"one is told not to": {both + object("a", "") + object("b", note("ssa: Ignore")), 0},
		"not pruned":         {both + object("a", note("prune: disabled")) + object("b", note("prune: disabled")), 0},
		"another cluster's":  {files("a", "b: kubeConfig: {secretRef: {name: k}}") + object("a", "") + object("b", ""), 0},
		"two namespaces":     {both + object("a", "") + strings.Replace(object("b", ""), "x-a", "x-b", 1), 0},
		"its own manifest":   {"", 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := subject(t, tc.files)
			all := check(t, s, "DG007")
			if len(all) != tc.want {
				t.Fatalf("%d findings, want %d: %+v", len(all), tc.want, all)
			}
			if tc.want > 0 {
				contains(t, "finding", all[0].Message+causes(all[0]), "a and b both build ConfigMap/x-a/shared", "a/shared.yaml:1", "b/shared.yaml:1")
			}
		})
	}
}

func TestSelfServedSource(t *testing.T) {
	serves := func(tier, object string) string { return "-- " + tier + "/host.yaml --\n" + object + "\n" }
	ingress := "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: git, namespace: x-git}, spec: {rules: [{host: GIT.example.com}]}}"
	route := "{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: git, namespace: x-git}, spec: {hostnames: [git.example.com]}}"
	service := "{apiVersion: v1, kind: Service, metadata: {name: git, namespace: x-git}}"
	other := func(url string) string {
		return "-- clusters/test/source.yaml --\n{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {name: other, namespace: flux-system}, spec: {interval: 1m, url: \"" + url + "\"}}\n"
	}
	for name, tc := range map[string]struct {
		files string
		want  string
	}{
		"an Ingress":      {files("git") + serves("git", ingress), "GitRepository/flux-system/flux-system is fetched from git.example.com"},
		"a route":         {files("git") + serves("git", route), "HTTPRoute/x-git/git in git"},
		"another host":    {files("git") + serves("git", strings.Replace(ingress, "GIT.", "www.", 1)), ""},
		"another source":  {files("git") + serves("git", service) + other("http://git.x-git.svc/other.git"), ""},
		"with a password": {files("git") + serves("git", ingress) + other("https://user:hunter2@elsewhere.example.com/x"), "git.example.com"},
	} {
		t.Run(name, func(t *testing.T) {
			s := subject(t, tc.files)
			if tc.want == "" {
				none(t, s, "DG008")
				return
			}
			f := one(t, s, "DG008")
			contains(t, "message", f.Message, tc.want)
			if strings.Contains(f.Message+causes(f), "hunter2") {
				t.Error("it shows a password")
			}
		})
	}
	t.Run("a chart that the source serves", func(t *testing.T) {
		release := "-- git/hr.yaml --\n{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {name: zot, namespace: x-git}, spec: {interval: 1h, chart: {spec: {chart: zot, sourceRef: {kind: HelmRepository, name: zot}}}}}\n" +
			"-- git/repo.yaml --\n{apiVersion: source.toolkit.fluxcd.io/v1, kind: HelmRepository, metadata: {name: zot, namespace: x-git}, spec: {type: oci, url: \"oci://zot.x-git.svc.cluster.local:5000/charts\"}}\n"
		s := subject(t, files("git")+release)
		s.World.Charts[coldstart.Key(hr("x-git", "zot"))] = coldstart.Chart{Basis: coldstart.Rendered, Objects: []*unstructured.Unstructured{
			manifestOf(t, "{apiVersion: v1, kind: Service, metadata: {name: zot}}"),
		}}
		contains(t, "message", one(t, s, "DG008").Message, "HelmRepository/x-git/zot is fetched from zot.x-git.svc.cluster.local", "of the chart of HelmRelease/x-git/zot")
	})
}
