// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package knowledge

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// BuiltinKind is true for a kind of the API groups that kube-apiserver serves
// by itself (kubernetes pkg/controlplane/instance.go, and the API server's
// extension and aggregation layers). Other groups that end in k8s.io come with
// CRDs or an APIService: gateway.networking.k8s.io, snapshot.storage.k8s.io,
// metrics.k8s.io. Compared with what a kube-apiserver 1.37 serves that has all
// APIs and feature gates on.
func BuiltinKind(gk schema.GroupKind) bool {
	switch gk.Group {
	case "", "apps", "autoscaling", "batch", "extensions", "policy",
		"admissionregistration.k8s.io",
		"apiextensions.k8s.io",
		"apiregistration.k8s.io",
		"authentication.k8s.io",
		"authorization.k8s.io",
		"certificates.k8s.io",
		"coordination.k8s.io",
		"discovery.k8s.io",
		"events.k8s.io",
		"flowcontrol.apiserver.k8s.io",
		"internal.apiserver.k8s.io",
		"lifecycle.k8s.io",
		"networking.k8s.io",
		"node.k8s.io",
		"rbac.authorization.k8s.io",
		"resource.k8s.io",
		"scheduling.k8s.io",
		"storage.k8s.io",
		"storagemigration.k8s.io":
		return true
	}
	return false
}

// FluxKind is true for a kind of Flux's own controllers, which are there before
// anything is reconciled.
func FluxKind(gk schema.GroupKind) bool {
	return strings.HasSuffix(gk.Group, ".toolkit.fluxcd.io") || gk.Group == "source.extensions.fluxcd.io"
}

// NamespacedKind is the scope of a kind that is built in, or Flux's. known is false
// for any other.
func NamespacedKind(gk schema.GroupKind) (namespaced, known bool) {
	switch {
	case FluxKind(gk):
		return true, true // all that there are
	case !BuiltinKind(gk):
		return false, false
	}
	switch gk.Group {
	case "":
		return !oneOf(gk.Kind, "ComponentStatus", "Namespace", "Node", "PersistentVolume"), true
	case "admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "authentication.k8s.io",
		"flowcontrol.apiserver.k8s.io", "internal.apiserver.k8s.io", "node.k8s.io", "storagemigration.k8s.io":
		return false, true
	case "authorization.k8s.io":
		return gk.Kind == "LocalSubjectAccessReview", true
	case "certificates.k8s.io":
		return !oneOf(gk.Kind, "CertificateSigningRequest", "ClusterTrustBundle"), true
	case "extensions", "policy":
		return gk.Kind != "PodSecurityPolicy", true // of clusters before 1.25
	case "networking.k8s.io":
		return !oneOf(gk.Kind, "IPAddress", "IngressClass", "ServiceCIDR"), true
	case "rbac.authorization.k8s.io":
		return !strings.HasPrefix(gk.Kind, "Cluster"), true
	case "resource.k8s.io":
		return strings.HasPrefix(gk.Kind, "ResourceClaim"), true
	case "scheduling.k8s.io":
		return gk.Kind != "PriorityClass", true
	case "storage.k8s.io":
		return gk.Kind == "CSIStorageCapacity", true
	}
	return true, true
}

func oneOf(kind string, kinds ...string) bool {
	for _, k := range kinds {
		if k == kind {
			return true
		}
	}
	return false
}
