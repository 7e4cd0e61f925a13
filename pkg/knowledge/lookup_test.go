// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package knowledge_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubestandup/kubestandup/pkg/knowledge"
)

func workload(t *testing.T, kind, image string, labels string) *unstructured.Unstructured {
	t.Helper()
	pod := "{metadata: {labels: " + labels + "}, spec: {initContainers: [{image: 'example.com/init'}], containers: [{image: 'example.com/proxy:1'}, {image: '" + image + "'}]}}"
	if kind == "Pod" {
		return object(t, "{apiVersion: v1, kind: Pod, metadata: {name: a}}", pod)
	}
	return object(t, "{apiVersion: apps/v1, kind: "+kind+", metadata: {name: a}, spec: {template: "+pod+"}}")
}

// TestOperatorOf: an operator is known by its image, from whatever registry and
// of whatever release.
func TestOperatorOf(t *testing.T) {
	base := builtin(t)
	for _, tt := range []struct{ kind, image, labels, want string }{
		{"Deployment", "quay.io/kubevirt/cdi-operator:v1.65.0", "{}", "cdi cdi-upload"},
		{"Deployment", "quay.io/kubevirt/cdi-operator@sha256:0123", "{}", "cdi cdi-upload"},
		{"Deployment", "quay.io/kubevirt/cdi-operator:v1.65.0@sha256:0123", "{}", "cdi cdi-upload"},
		{"Deployment", "kubevirt/cdi-operator", "{}", "cdi cdi-upload"},
		{"Deployment", "registry.example.com:5000/mirror/quay.io/kubevirt/cdi-operator:v1", "{}", "cdi cdi-upload"},
		{"Deployment", "localhost/kubevirt/virt-operator", "{}", "kubevirt"},
		{"StatefulSet", "example.com/openpolicyagent/gatekeeper:v3", "{}", "gatekeeper"},
		{"DaemonSet", "example.com/cilium/operator-generic:v1", "{}", "cilium"},
		{"Pod", "example.com/crossplane/crossplane:v2", "{}", "crossplane-core crossplane-xrd crossplane-provider crossplane-configuration"},
		{"Deployment", "example.com/tektoncd/operator/operator-303303c315a48490ba6517859ef65b77:v1", "{}", "tekton"},
		{"Deployment", "example.com/fluxcd/helm-controller:v1", "{}", "flux-helmrelease"},
		// By its labels only where no image is known.
		{"Deployment", "example.com/ours", "{operator.cdi.kubevirt.io: '', name: cdi-operator}", "cdi cdi-upload"},
		{"Deployment", "example.com/kubevirt/virt-operator", "{operator.cdi.kubevirt.io: '', name: cdi-operator}", "kubevirt"},
		{"Deployment", "example.com/ours", "{name: cdi-operator}", ""},
		{"Deployment", "example.com/ours", "{operator.cdi.kubevirt.io: 'true', name: cdi-operator}", ""},
		// Others.
		{"Deployment", "quay.io/kubevirt/cdi-operator-bundle:v1", "{}", ""},
		{"Deployment", "quay.io/notkubevirt/cdi-operator:v1", "{}", ""},
		{"Deployment", "cdi-operator", "{}", ""},
		{"Deployment", "", "{}", ""},
		{"ReplicaSet", "quay.io/kubevirt/cdi-operator", "{}", ""},
	} {
		if got := ids(base.OperatorOf(workload(t, tt.kind, tt.image, tt.labels))); got != tt.want {
			t.Errorf("%s with %q and %s: got %q, want %q", tt.kind, tt.image, tt.labels, got, tt.want)
		}
	}
	for _, other := range []string{
		"{apiVersion: v1, kind: ConfigMap}", "{apiVersion: apps/v1, kind: Deployment}", "{apiVersion: apps/v1, kind: Deployment, spec: {template: nonsense}}",
		"{apiVersion: example.com/v1, kind: Deployment, spec: {template: {spec: {containers: [{image: kubevirt/cdi-operator}]}}}}",
		"{apiVersion: apps/v1, kind: Deployment, spec: {template: {spec: {containers: nonsense}}}}",
		"{apiVersion: apps/v1, kind: Deployment, spec: {template: {spec: {containers: [nonsense, {image: 1}]}}}}",
		"{apiVersion: apps/v1, kind: Deployment, spec: {template: {spec: {initContainers: [{image: kubevirt/cdi-operator}]}}}}",
	} {
		if got := base.OperatorOf(object(t, other)); got != nil {
			t.Errorf("%s: got %q", other, ids(got))
		}
	}
}

// TestOperatorOfAll: every image that is written down is found again.
func TestOperatorOfAll(t *testing.T) {
	base := builtin(t)
	for _, r := range base.Relations() {
		if r.Operator == nil {
			continue
		}
		for _, image := range r.Operator.Images {
			got := " " + ids(base.OperatorOf(workload(t, "Deployment", "registry.example.com/"+image+":v1", "{}"))) + " "
			if !strings.Contains(got, " "+r.ID+" ") {
				t.Errorf("%s of %s: got %q", image, r.ID, got)
			}
		}
	}
}

func TestBeforeAndRelation(t *testing.T) {
	base := builtin(t)
	for kind, want := range map[string]bool{
		"helm.cattle.io/HelmChart": true, "k3s.cattle.io/Addon": true, "talos.dev/ServiceAccount": true,
		"cilium.io/CiliumNetworkPolicy": true, "crd.projectcalico.org/IPPool": true, "operator.tigera.io/Installation": true, // the network
		"traefik.io/IngressRoute": false, "cdi.kubevirt.io/StorageProfile": false, "/ConfigMap": false,
	} {
		group, kind, _ := strings.Cut(kind, "/")
		if got := base.Before(schema.GroupKind{Group: group, Kind: kind}); (got != "") != want {
			t.Errorf("%s.%s: %q", kind, group, got)
		}
	}
	if r, known := base.Relation("cdi"); !known || r.System != "KubeVirt CDI" {
		t.Errorf("got %+v, %t", r, known)
	}
	if r, known := base.Relation("cdx"); known {
		t.Errorf("got %+v", r)
	}
	empty := &knowledge.Base{}
	gk := schema.GroupKind{Group: "cdi.kubevirt.io", Kind: "CDI"}
	if _, known := empty.Relation("cdi"); known || empty.Before(gk) != "" || empty.Effect(gk) != nil || empty.Chart("cilium", "") != nil ||
		empty.ChartsOf(gk) != nil || empty.Creators(gk) != nil || empty.ByTrigger(gk) != nil || empty.OperatorOf(&unstructured.Unstructured{}) != nil {
		t.Error("an empty base knows something")
	}
}

func TestBuiltinKinds(t *testing.T) {
	for kind, want := range map[string]string{
		"/ConfigMap": "builtin namespaced", "/Namespace": "builtin cluster", "/Node": "builtin cluster", "/PersistentVolume": "builtin cluster",
		"/PersistentVolumeClaim": "builtin namespaced", "apps/Deployment": "builtin namespaced", "batch/CronJob": "builtin namespaced",
		"extensions/Ingress": "builtin namespaced", "policy/PodDisruptionBudget": "builtin namespaced", "policy/PodSecurityPolicy": "builtin cluster",
		"autoscaling/HorizontalPodAutoscaler":                    "builtin namespaced",
		"rbac.authorization.k8s.io/Role":                         "builtin namespaced",
		"rbac.authorization.k8s.io/ClusterRoleBinding":           "builtin cluster",
		"apiextensions.k8s.io/CustomResourceDefinition":          "builtin cluster",
		"admissionregistration.k8s.io/ValidatingAdmissionPolicy": "builtin cluster",
		"networking.k8s.io/NetworkPolicy":                        "builtin namespaced",
		"networking.k8s.io/IngressClass":                         "builtin cluster",
		"storage.k8s.io/StorageClass":                            "builtin cluster",
		"storage.k8s.io/CSIStorageCapacity":                      "builtin namespaced",
		"scheduling.k8s.io/PriorityClass":                        "builtin cluster",
		"resource.k8s.io/ResourceClaimTemplate":                  "builtin namespaced",
		"resource.k8s.io/DeviceClass":                            "builtin cluster",
		"certificates.k8s.io/CertificateSigningRequest":          "builtin cluster",
		"authorization.k8s.io/LocalSubjectAccessReview":          "builtin namespaced",
		"coordination.k8s.io/Lease":                              "builtin namespaced",
		"helm.toolkit.fluxcd.io/HelmRelease":                     "flux namespaced",
		"source.extensions.fluxcd.io/ArtifactGenerator":          "flux namespaced",
		"fluxcd.controlplane.io/FluxInstance":                    "",
		"toolkit.fluxcd.io/HelmRelease":                          "",
		"gateway.networking.k8s.io/HTTPRoute":                    "",
		"snapshot.storage.k8s.io/VolumeSnapshot":                 "",
		"metrics.k8s.io/PodMetrics":                              "",
		"about.k8s.io/ClusterProperty":                           "",
		"cdi.kubevirt.io/CDI":                                    "",
	} {
		group, name, _ := strings.Cut(kind, "/")
		gk := schema.GroupKind{Group: group, Kind: name}
		var got []string
		if knowledge.BuiltinKind(gk) {
			got = append(got, "builtin")
		}
		if knowledge.FluxKind(gk) {
			got = append(got, "flux")
		}
		if namespaced, known := knowledge.NamespacedKind(gk); known && namespaced {
			got = append(got, "namespaced")
		} else if known {
			got = append(got, "cluster")
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got %q, want %q", kind, got, want)
		}
	}
}

// BenchmarkLookups is what a lint asks of one object.
func BenchmarkLookups(b *testing.B) {
	base, err := knowledge.Builtin()
	if err != nil {
		b.Fatal(err)
	}
	deployment := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "spec": map[string]any{"template": map[string]any{"spec": map[string]any{
			"containers": []any{map[string]any{"image": "example.com/app:v1"}},
		}}},
	}}
	gk := schema.GroupKind{Group: "example.com", Kind: "Widget"}
	b.ReportAllocs()
	for b.Loop() {
		if knowledge.BuiltinKind(gk) || base.Before(gk) != "" || base.Effect(gk) != nil || len(base.Creators(gk))+len(base.ByTrigger(gk))+len(base.OperatorOf(deployment)) > 0 {
			b.Fatal("something is known")
		}
	}
}
