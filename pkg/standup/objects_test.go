// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/crds"
	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/guard"
)

func TestHostsOf(t *testing.T) {
	for manifest, want := range map[string]string{
		"{apiVersion: cert-manager.io/v1, kind: Certificate, spec: {dnsNames: [A.example.org, '*.b.example.org', a.example.org.]}}":     "[a.example.org *.b.example.org]",
		"{apiVersion: example.org/v1, kind: Certificate, spec: {dnsNames: [a.example.org]}}":                                            "[]",
		"{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, spec: {listeners: [{hostname: a.x}, {name: any}, {hostname: b.x}]}}": "[a.x b.x]",
		"{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, spec: {hostnames: [a.x]}}":                                         "[a.x]",
		"{apiVersion: gateway.networking.k8s.io/v1, kind: GRPCRoute, spec: {hostnames: [a.x]}}":                                         "[a.x]",
		"{apiVersion: gateway.networking.k8s.io/v1alpha2, kind: TLSRoute, spec: {hostnames: [a.x]}}":                                    "[a.x]",
		"{apiVersion: networking.k8s.io/v1, kind: Ingress, spec: {rules: [{host: a.x}, {http: {}}], tls: [{hosts: [b.x, a.x]}]}}":       "[a.x b.x]",
		"{apiVersion: externaldns.k8s.io/v1alpha1, kind: DNSEndpoint, spec: {endpoints: [{dnsName: a.x}]}}":                             "[a.x]",
		"{apiVersion: v1, kind: Service, metadata: {annotations: {external-dns.alpha.kubernetes.io/hostname: 'a.x, b.x'}}}":             "[a.x b.x]",
		"{apiVersion: networking.k8s.io/v1, kind: Ingress, spec: {rules: [{host: 'a.${DOMAIN}'}]}}":                                     "[]",
		"{apiVersion: networking.k8s.io/v1, kind: Ingress, spec: {rules: nonsense}}":                                                    "[]",
	} {
		if got := fmt.Sprint(hostsOf(build.Object{Unstructured: yamlObject(t, manifest)})); got != want {
			t.Errorf("%s: got %s, want %s", manifest, got, want)
		}
	}
}

func TestNamesOutsideOfTheDomain(t *testing.T) {
	ingress := func(host string) string {
		return "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: web, namespace: x}, spec: {rules: [{host: '" + host + "'}]}}"
	}
	for host, foreign := range map[string]bool{
		"prod.example.org": false, "a.prod.example.org": false, "*.prod.example.org": false, "svc": false, "web.x.svc": false,
		"web.x.svc.cluster.local": false, "localhost": false,
		"example.org": true, "xprod.example.org": true, "*.example.org": true, "staging.example.org": true,
	} {
		p := lookingAtBuilds(builtTier(t, "a", "{}", ingress(host)))
		p.env.File.Cluster.Domain = "prod.example.org"
		c, err := p.names(t.Context())
		if err != nil || (len(c.Findings) == 1) != foreign {
			t.Errorf("%s: got %+v, %v", host, c, err)
		}
		if foreign && (c.Findings[0].Rule != "name-outside-domain" || !strings.Contains(c.Findings[0].Message, "Ingress/x/web of Kustomization/flux-system/a claims "+host)) {
			t.Errorf("%s: got %+v", host, c.Findings)
		}
	}
	// What a tier applies to another cluster is claimed there; and of what was
	// not built nothing is known.
	unbuilt := builtTier(t, "unbuilt", "{}")
	unbuilt.Result = nil
	p := lookingAtBuilds(builtTier(t, "remote", "{kubeConfig: {secretRef: {name: x}}}", ingress("a.b")), unbuilt)
	p.env.File.Cluster.Domain = "prod.example.org"
	if c, err := p.names(t.Context()); err != nil || len(c.Findings) != 0 || c.Message != "0 names are below prod.example.org; of 1 nothing is known" {
		t.Errorf("got %+v, %v", c, err)
	}
	if c, err := p.encrypted(t.Context()); err != nil || c.Message != "0 encrypted objects in the tiers' builds; of 1 nothing is known" {
		t.Errorf("got %+v, %v", c, err)
	}
	if c, err := lookingAtBuilds(builtTier(t, "a", "{}", ingress("a.b"))).names(t.Context()); err != nil || len(c.Findings) != 0 {
		t.Errorf("without a domain: %+v, %v", c, err)
	}
}

// TestCredentialsOfTheClusterItself: what one logs in with must not depend on
// what is to be repaired.
func TestCredentialsOfTheClusterItself(t *testing.T) {
	route := "{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: idp, namespace: x}, spec: {hostnames: ['*.apps.example.net']}}"
	for issuer, says := range map[string]string{
		"":                                  "",
		"https://accounts.example.com":      "",
		"https://api.example.org:8443/dex":  "that is the API server's own host",
		"https://id.prod.example.org/realm": "that is below cluster.domain prod.example.org",
		"https://ID.apps.example.net":       "HTTPRoute/x/idp of Kustomization/flux-system/a claims *.apps.example.net",
		"https://a.id.apps.example.net":     "", // a wildcard is one label
	} {
		p := lookingAtBuilds(builtTier(t, "a", "{}", route))
		p.env.File.Cluster.Domain, p.env.Identity.URL = "prod.example.org", "https://api.example.org:6443"
		p.env.Credentials = guard.Credentials{Kind: guard.ByPlugin, Plugin: "kubelogin", Issuer: issuer}
		c, err := p.kubeconfig(t.Context())
		if err != nil || (len(c.Findings) == 1) != (says != "") || !strings.Contains(c.Message, "kubelogin") {
			t.Errorf("%s: got %+v, %v", issuer, c, err)
			continue
		}
		if says != "" && (!strings.Contains(text(c.Findings[0]), says) || c.Findings[0].Blocks || c.Findings[0].Severity != finding.Warning) {
			t.Errorf("%s: got %+v", issuer, c.Findings[0])
		}
	}
}

// TestObjectsInTwoInventories: of a Kustomization and of a HelmRelease.
func TestObjectsInTwoInventories(t *testing.T) {
	raw := func(kind, name string, ids ...string) *unstructured.Unstructured {
		var entries []any
		for _, id := range ids {
			entries = append(entries, map[string]any{"id": id, "v": "v1"})
		}
		return &unstructured.Unstructured{Object: map[string]any{
			"kind": kind, "metadata": map[string]any{"namespace": "flux-system", "name": name},
			"status": map[string]any{"inventory": map[string]any{"entries": entries}},
		}}
	}
	s := &flux.Snapshot{}
	for _, n := range []string{"a", "b", "prunes", "far"} {
		s.Tiers = append(s.Tiers, flux.Tier{Ref: ks(n), Prune: n == "prunes", Remote: n == "far"})
	}
	for _, n := range []string{"chart", "chart2"} {
		s.Tiers = append(s.Tiers, flux.Tier{Ref: flux.Ref{Kind: flux.HelmReleaseKind, Namespace: "flux-system", Name: n}, Helm: &flux.Helm{TargetNamespace: n}})
	}
	p := lookingAt(s)
	_, served := (&wire{}).serve(t)
	p.crdsLook = &crds.Look{Served: served}
	p.raw = map[string][]*unstructured.Unstructured{
		flux.KustomizationKind: {
			raw("Kustomization", "a", "x_one__ConfigMap", "x_two__ConfigMap", "x_alone__ConfigMap", "x_chart_apps_Deployment"),
			raw("Kustomization", "b", "x_one__ConfigMap", "x_two__ConfigMap", "nonsense"),
			raw("Kustomization", "prunes", "x_p__ConfigMap"),
			raw("Kustomization", "far", "x_alone__ConfigMap", "x_p__ConfigMap"),
		},
		flux.HelmReleaseKind: {
			raw("HelmRelease", "chart", "x_chart_apps_Deployment", "x_p__ConfigMap", "_a.x_apiextensions.k8s.io_CustomResourceDefinition",
				"_same__ConfigMap", // each is in the namespace of its own release
				"chart_role_rbac.authorization.k8s.io_ClusterRole"), // which is in no namespace, whatever the chart says
			raw("HelmRelease", "chart2", "_a.x_apiextensions.k8s.io_CustomResourceDefinition", "_same__ConfigMap", "_role_rbac.authorization.k8s.io_ClusterRole"),
		},
	}
	c, err := p.inventory(t.Context())
	if err != nil || len(c.Findings) != 5 {
		t.Fatalf("got %+v, %v", c, err)
	}
	for i, want := range []struct {
		severity finding.Severity
		object   string
		causes   int
	}{
		{finding.Warning, "ConfigMap/x/one", 2},
		{finding.Error, "Deployment/x/chart", 1},
		{finding.Error, "ConfigMap/x/p", 1},
		{finding.Info, "CustomResourceDefinition/a.x", 1},
		{finding.Error, "ClusterRole/role", 1},
	} {
		f := c.Findings[i]
		if f.Severity != want.severity || f.Object.String() != want.object || len(f.Causes) != want.causes || (f.Rule == "crd-in-two-releases") != (want.severity == finding.Info) {
			t.Errorf("got %+v, want %+v", f, want)
		}
	}
}

// TestCiphertext is the second half of incident 11.
func TestCiphertext(t *testing.T) {
	const configMap = "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: x}, sops: {mac: x}}"
	rejected := builtTier(t, "a", "{}", "{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: x}, sops: {mac: x}}")
	rejected.Result.Rejected = errors.New("Secret/x/s is SOPS encrypted")
	for name, tt := range map[string]struct {
		tier build.Followed
		rule string
		says string
	}{
		"decrypted":     {builtTier(t, "a", "{decryption: {provider: sops}}", configMap), "", ""},
		"a Secret":      {rejected, "encrypted-secret-rejected", "Kustomization/flux-system/a is not applied at all: Secret/x/s is SOPS encrypted"},
		"another kind":  {builtTier(t, "a", "{}", configMap), "encrypted-not-decrypted", "ships the ciphertext of ConfigMap/x/c"},
		"not encrypted": {builtTier(t, "a", "{}", "{apiVersion: v1, kind: Secret, metadata: {name: s}}"), "", ""},
		"meant so": {
			builtTier(t, "a", "{}", "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, annotations: {kustomize.toolkit.fluxcd.io/decrypt: disabled}}, sops: {mac: x}}"), "", "",
		},
	} {
		c, err := lookingAtBuilds(tt.tier).encrypted(t.Context())
		if err != nil || (len(c.Findings) == 1) != (tt.rule != "") {
			t.Errorf("%s: got %+v, %v", name, c, err)
			continue
		}
		if tt.rule != "" && (c.Findings[0].Rule != tt.rule || !strings.Contains(text(c.Findings[0]), tt.says) || c.Findings[0].Severity != finding.Error) {
			t.Errorf("%s: got %+v", name, c.Findings[0])
		}
	}
}
