// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// claim is an object that claims names, and the tier that applies it.
type claim struct {
	object, tier flux.Ref
	hosts        []string
}

// claims are all names that the tiers' builds claim on this cluster.
func (b *builds) claims() []claim {
	var all []claim
	for i := range b.all {
		f := &b.all[i]
		if f.Result == nil || isRemote(f.Kustomization) {
			continue
		}
		for _, o := range f.Result.Objects {
			if hosts := hostsOf(o); len(hosts) > 0 && !o.Ignored {
				all = append(all, claim{o.Ref(), f.Tier, hosts})
			}
		}
	}
	return all
}

// hostNames is the annotation by which external-dns is told names
// (docs/annotations of external-dns).
const hostNames = "external-dns.alpha.kubernetes.io/hostname"

// hostsOf are the names that an object claims, each once, in its order.
func hostsOf(o build.Object) []string {
	var hosts []string
	add := func(names ...string) {
		for _, name := range names {
			name = strings.ToLower(strings.TrimSuffix(strings.TrimSpace(name), "."))
			if name != "" && !strings.Contains(name, "$") && !slices.Contains(hosts, name) {
				hosts = append(hosts, name)
			}
		}
	}
	add(strings.Split(o.GetAnnotations()[hostNames], ",")...)
	list := func(fields ...string) []string {
		names, _, _ := unstructured.NestedStringSlice(o.Object, fields...)
		return names
	}
	each := func(field, name string) []string {
		var names []string
		entries, _, _ := unstructured.NestedSlice(o.Object, "spec", field)
		for _, entry := range entries {
			m, _ := entry.(map[string]any)
			if text, ok := m[name].(string); ok {
				names = append(names, text)
			}
			several, _, _ := unstructured.NestedStringSlice(m, name)
			names = append(names, several...)
		}
		return names
	}
	switch gk := o.GroupVersionKind().GroupKind(); gk.String() {
	case "Certificate.cert-manager.io":
		add(list("spec", "dnsNames")...)
	case "Gateway.gateway.networking.k8s.io", "ListenerSet.gateway.networking.k8s.io", "XListenerSet.gateway.networking.x-k8s.io":
		add(each("listeners", "hostname")...)
	case "HTTPRoute.gateway.networking.k8s.io", "TLSRoute.gateway.networking.k8s.io", "GRPCRoute.gateway.networking.k8s.io":
		add(list("spec", "hostnames")...)
	case "Ingress.networking.k8s.io":
		add(each("rules", "host")...)
		add(each("tls", "hosts")...)
	case "DNSEndpoint.externaldns.k8s.io":
		add(each("endpoints", "dnsName")...)
	}
	return hosts
}

// below is true for a name at or below the domain. A wildcard is below what it
// is a wildcard of.
func below(host, domain string) bool {
	host = strings.TrimPrefix(host, "*.")
	return domain != "" && (host == domain || strings.HasSuffix(host, "."+domain))
}

// isLocal is true for names that no other cluster can see.
func isLocal(host string) bool {
	return !strings.Contains(host, ".") || slices.ContainsFunc([]string{"svc", "cluster.local", "localhost"}, func(domain string) bool {
		return below(host, domain)
	})
}

// covers is true where the name, or the wildcard, stands for the host.
func covers(name, host string) bool {
	if rest, wild := strings.CutPrefix(name, "*."); wild {
		label, domain, ok := strings.Cut(host, ".")
		return ok && label != "" && domain == rest
	}
	return name == host
}
