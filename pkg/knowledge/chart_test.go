// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package knowledge_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/kubestandup/kubestandup/pkg/knowledge"
)

func values(t *testing.T, text string) map[string]any {
	t.Helper()
	all := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// holds is whether the chart names the kind.
func holds(c *knowledge.Chart, gk schema.GroupKind) bool {
	return c != nil && (slices.Contains(c.Kinds(), gk) || slices.Contains(c.Groups, gk.Group))
}

// TestChartsByDefault: each chart of which people are surprised that it registers
// nothing, or that it does, with its own values and with the switch the other
// way.
func TestChartsByDefault(t *testing.T) {
	base := builtin(t)
	gateway := "gateway.networking.k8s.io/HTTPRoute"
	tests := []struct {
		chart, url, kind string
		byDefault        bool
		other            string // values with which it is the other way; empty where none are
	}{
		{"cert-manager", "https://charts.example.com", "cert-manager.io/Certificate", false, "{crds: {enabled: true}}"},
		{"cert-manager", "", "acme.cert-manager.io/Order", false, "{installCRDs: true}"},
		{"crossplane", "", "pkg.crossplane.io/Provider", false, ""},
		{"tigera-operator", "", "operator.tigera.io/Installation", false, ""},
		{"tigera-operator", "", "projectcalico.org/GlobalNetworkPolicy", true, "{apiServer: {enabled: false}}"},
		{"tekton-operator", "", "operator.tekton.dev/TektonConfig", false, "{installCRDs: true}"},
		{"piraeus", "", "piraeus.io/LinstorCluster", false, "{installCRDs: true}"},
		{"gateway-crds-helm", "", gateway, false, "{crds: {gatewayAPI: {enabled: true}}}"},
		{"gateway-crds-helm", "", "gateway.envoyproxy.io/EnvoyProxy", false, "{crds: {envoyGateway: {enabled: true}}}"},
		{"gateway-helm", "", gateway, true, "{crds: {enabled: false}}"},
		{"gateway-helm", "", "gateway.envoyproxy.io/EnvoyProxy", true, "{crds: {enabled: false}}"},
		{"linkerd-crds", "", "policy.linkerd.io/Server", true, ""},
		{"linkerd-crds", "", gateway, false, "{installGatewayAPI: true}"},
		{"linkerd-crds", "", gateway, false, "{enableHttpRoutes: true}"},
		{"linkerd-crds", "", "gateway.networking.k8s.io/TCPRoute", false, "{enableTcpRoutes: true}"},
		{"linkerd-control-plane", "", "policy.linkerd.io/Server", false, ""},
		{"istiod", "", "networking.istio.io/VirtualService", false, ""},
		{"gateway", "https://istio-release.example.com/charts", "networking.istio.io/VirtualService", false, ""},
		{"base", "https://istio-release.example.com/charts", "networking.istio.io/VirtualService", true, "{base: {enableCRDTemplates: false}}"},
		{"traefik", "", "traefik.io/IngressRoute", true, ""},
		{"traefik", "", gateway, false, ""},
		{"traefik-crds", "", gateway, false, "{gatewayAPI: true}"},
		{"node-feature-discovery", "", "nfd.k8s-sigs.io/NodeFeatureRule", true, ""},
		{"node-feature-discovery", "", "topology.node.k8s.io/NodeResourceTopology", false, "{topologyUpdater: {enable: true, createCRDs: true}}"},
		{"kyverno", "", "kyverno.io/ClusterPolicy", true, "{crds: {install: false}}"},
		{"kyverno", "", "openreports.io/Report", false, "{openreports: {installCrds: true}}"},
		{"kserve-resources", "", "serving.kserve.io/InferenceService", false, ""},
		{"kserve-crd", "", "serving.kserve.io/InferenceService", true, ""},
		{"kserve-llmisvc-resources", "", "serving.kserve.io/LLMInferenceService", false, ""},
		{"kserve-llmisvc-crd", "", "serving.kserve.io/LLMInferenceService", true, ""},
		{"fleet", "", "fleet.cattle.io/GitRepo", false, ""},
		{"fleet-crd", "", "fleet.cattle.io/GitRepo", true, ""},
		{"rancher", "", "management.cattle.io/Setting", false, ""},
		{"cilium", "", "cilium.io/CiliumNetworkPolicy", false, ""},
		{"cilium", "", gateway, false, ""},
		{"spire", "", "spire.spiffe.io/ClusterSPIFFEID", false, ""},
		{"spire-crds", "", "spire.spiffe.io/ClusterSPIFFEID", true, ""},
		{"kgateway", "", "gateway.kgateway.dev/GatewayParameters", false, ""},
		{"kgateway-crds", "", "gateway.kgateway.dev/GatewayParameters", true, ""},
		{"argo-workflows", "https://argoproj.example.com/argo-helm", "argoproj.io/Workflow", true, "{crds: {install: false}}"},
		{"mariadb-operator", "", "k8s.mariadb.com/MariaDB", false, "{crds: {enabled: true}}"},
		{"mariadb-operator-crds", "", "k8s.mariadb.com/MariaDB", true, ""},
		{"prometheus", "oci://example.com/prometheus-community/charts", "monitoring.coreos.com/ServiceMonitor", false, ""},
		{"prometheus-node-exporter", "", "monitoring.coreos.com/ServiceMonitor", false, ""},
		{"kube-prometheus-stack", "", "monitoring.coreos.com/ServiceMonitor", true, "{crds: {enabled: false}}"},
		{"argo-cd", "https://argoproj.example.com/argo-helm", "argoproj.io/Application", true, "{crds: {install: false}}"},
		{"argo-cd", "https://argoproj.example.com/argo-helm", "argoproj.io/Workflow", false, ""},
		{"argo-events", "https://argoproj.example.com/argo-helm", "argoproj.io/Sensor", true, "{crds: {install: false}}"},
		{"argo-rollouts", "", "argoproj.io/Rollout", true, "{installCRDs: false}"},
		{"external-secrets", "", "external-secrets.io/ExternalSecret", true, "{installCRDs: false}"},
		{"metallb", "", "metallb.io/IPAddressPool", true, "{crds: {enabled: false}}"},
		{"keda", "", "keda.sh/ScaledObject", true, "{crds: {install: false}}"},
		{"rook-ceph", "", "ceph.rook.io/CephCluster", true, "{crds: {enabled: false}}"},
		{"rook-ceph", "", "csi.ceph.io/Driver", true, "{csi: {installCsiOperator: false}}"},
		{"opentelemetry-operator", "", "opentelemetry.io/OpenTelemetryCollector", true, "{crds: {create: false}}"},
		{"opentelemetry-kube-stack", "", "opentelemetry.io/OpenTelemetryCollector", true, "{crds: {installOtel: false}}"},
		{"opentelemetry-kube-stack", "", "monitoring.coreos.com/ServiceMonitor", true, "{crds: {installPrometheus: false}}"},
		{"opentelemetry-kube-stack", "", "monitoring.coreos.com/Prometheus", false, ""},
		{"gatekeeper", "", "templates.gatekeeper.sh/ConstraintTemplate", true, ""},
		{"longhorn", "", "longhorn.io/RecurringJob", true, ""},
		{"velero", "", "velero.io/Schedule", true, ""},
		{"strimzi-kafka-operator", "", "kafka.strimzi.io/Kafka", true, ""},
		{"camel-k", "", "camel.apache.org/Integration", true, ""},
		{"karmada-operator", "", "operator.karmada.io/Karmada", true, "{installCRDs: false}"},
		{"sail-operator", "", "networking.istio.io/VirtualService", true, ""},
		{"gpu-operator", "", "nvidia.com/ClusterPolicy", true, ""},
		{"gpu-operator", "", "nfd.k8s-sigs.io/NodeFeatureRule", true, "{nfd: {enabled: false}}"},
		{"snapshot-controller", "", "snapshot.storage.k8s.io/VolumeSnapshotClass", true, "{installCRDs: false}"},
		{"cluster-manager", "", "cluster.open-cluster-management.io/ManagedCluster", true, "{clusterManager: {create: false}}"},
		{"flux-operator", "", "fluxcd.controlplane.io/FluxInstance", true, "{installCRDs: false}"},
	}
	tested := map[string]bool{}
	for _, tt := range tests {
		t.Run(tt.chart+" "+tt.kind, func(t *testing.T) {
			tested[tt.chart] = true
			group, kind, _ := strings.Cut(tt.kind, "/")
			gk := schema.GroupKind{Group: group, Kind: kind}
			c := base.Chart(tt.chart, tt.url)
			if c == nil {
				t.Fatal("nothing is known of it")
			}
			on, off := c.Split(nil, false)
			if holds(on, gk) != tt.byDefault {
				t.Errorf("registers it by default: %t", !tt.byDefault)
			}
			if holds(off, gk) != (tt.other != "" && !tt.byDefault) {
				t.Errorf("its values keep it away by default: %t", holds(off, gk))
			}
			if tt.other == "" {
				return
			}
			on, off = c.Split(values(t, tt.other), false)
			if holds(on, gk) == tt.byDefault || holds(off, gk) != tt.byDefault {
				t.Errorf("with %s: registers it %t, keeps it away %t", tt.other, holds(on, gk), holds(off, gk))
			}
		})
	}
}

// TestSwitches: every switch of every chart decides, whatever the others say.
func TestSwitches(t *testing.T) {
	for _, c := range builtin(t).Charts() {
		for _, s := range c.Switches {
			parts := strings.Split(s.Path, ".")
			set := func(value any) map[string]any {
				for i := len(parts) - 1; i >= 0; i-- {
					value = map[string]any{parts[i]: value}
				}
				return value.(map[string]any)
			}
			if !c.On(set(true)) {
				t.Errorf("%s is off with %s", c.Name, s.Path)
			}
			if len(c.Switches) == 1 && (c.On(set(false)) || c.On(nil) != s.Default) {
				t.Errorf("%s: %s decides nothing", c.Name, s.Path)
			}
		}
	}
}

func TestOn(t *testing.T) {
	both := knowledge.Chart{Switches: []knowledge.Switch{{Path: "crds.enabled"}, {Path: "installCRDs"}}}
	on := knowledge.Chart{Switches: []knowledge.Switch{{Path: "crds.enabled", Default: true}}}
	for _, tt := range []struct {
		chart  knowledge.Chart
		values string
		want   bool
	}{
		{knowledge.Chart{}, "{}", true},
		{both, "{}", false},
		{both, "{crds: {}}", false},
		{both, "{crds: {enabled: true}}", true},
		{both, "{crds: {enabled: false}, installCRDs: true}", true},
		{both, "{crds: {enabled: 'true'}}", true},
		{both, "{crds: {enabled: 'false'}}", true}, // a template's if takes it so
		{both, "{crds: {enabled: ''}}", false},
		{both, "{crds: {enabled: 0}}", false},
		{both, "{crds: {enabled: 1}}", true},
		{both, "{crds: {enabled: {}}}", false},
		{both, "{crds: {enabled: [a]}}", true},
		{on, "{}", true},
		{on, "{crds: {other: 1}}", true},
		{on, "{crds: {enabled: false}}", false},
		{on, "{crds: {enabled: null}}", false},
		{on, "{crds: null}", false},
		{on, "{crds: nonsense}", false},
	} {
		if got := tt.chart.On(values(t, tt.values)); got != tt.want {
			t.Errorf("%v with %s: %t", tt.chart.Switches, tt.values, got)
		}
	}
}

// TestSplitSkips: spec.install.crds: Skip leaves what is in the crds/ folder, and
// nothing else.
func TestSplitSkips(t *testing.T) {
	base := builtin(t)
	feature := schema.GroupKind{Group: "nfd.k8s-sigs.io", Kind: "NodeFeature"}
	topology := schema.GroupKind{Group: "topology.node.k8s.io", Kind: "NodeResourceTopology"}
	c := base.Chart("node-feature-discovery", "")
	on, off := c.Split(values(t, "{topologyUpdater: {createCRDs: true}}"), true)
	if holds(on, feature) || !holds(on, topology) || off != nil || on.Folder {
		t.Errorf("got %+v and %+v", on, off)
	}
	on, off = c.Split(nil, false)
	if !holds(on, feature) || holds(on, topology) || !holds(off, topology) || holds(off, feature) || !on.Folder || off.Folder {
		t.Errorf("got %+v and %+v", on, off)
	}
	if len(off.Switches) != 1 || off.Switches[0].Path != "topologyUpdater.createCRDs" || off.Name != c.Name {
		t.Errorf("got %+v", off)
	}
	if !holds(c, feature) || len(c.Parts) != 1 {
		t.Errorf("the row itself was changed: %+v", c)
	}
}

func TestWebhooks(t *testing.T) {
	c := knowledge.Chart{
		Name: "c", Groups: []string{"a.example.com"}, Switches: []knowledge.Switch{{Path: "crds"}},
		Webhooks: &knowledge.Webhooks{Groups: []string{"a.example.com"}, Switches: []knowledge.Switch{{Path: "hooks", Default: true}}},
	}
	for name, tt := range map[string]struct {
		values map[string]any
		want   bool
	}{"by default": {nil, true}, "off": {map[string]any{"hooks": false}, false}, "on": {map[string]any{"crds": true, "hooks": true}, true}} {
		t.Run(name, func(t *testing.T) {
			on, off := c.Split(tt.values, false)
			if (on.Webhooks != nil) != tt.want || off != nil && off.Webhooks != nil {
				t.Errorf("on %v, off %v", on, off)
			}
		})
	}
}

func TestChartAt(t *testing.T) {
	base := builtin(t)
	installation := schema.GroupKind{Group: "operator.tigera.io", Kind: "Installation"}
	for version, want := range map[string]bool{
		"": false, "3.32.0": false, "v3.32.1": false, "3.33.0-rc.1": false, "4.x": false, "*": false, ">=3.30.0": false, "^3.30.0": false,
		"3.31.0": true, "v3.31.9": true, "3.31.*": true, "~3.30": true, "~3.31.2": true, "<3.32": true, ">=3.28 <3.32": true, "3.30.0 - 3.31.0": true,
	} {
		c := base.ChartAt("tigera-operator", "", version)
		if c == nil || holds(c, installation) != want {
			t.Errorf("%s: got %+v", version, c)
		}
	}
	for _, version := range []string{"latest", "1.2.3.4", "${VERSION}"} {
		if c := base.ChartAt("tigera-operator", "", version); c != nil {
			t.Errorf("%s: got %+v, want nothing", version, c)
		}
		if base.ChartAt("cert-manager", "", version) == nil {
			t.Errorf("%s: nothing, although no version matters", version)
		}
	}
}

func TestChartOfRepository(t *testing.T) {
	base := builtin(t)
	for _, tt := range []struct {
		name, url string
		want      bool
	}{
		{"base", "https://istio-release.example.com/charts", true},
		{"base", "https://charts.example.com", false},
		{"base", "", false}, // anybody's
		{"gateway", "oci://example.com/mirror/istio-release/charts", true},
		{"kube-prometheus-stack", "", true},
		{"kube-prometheus-stack", "oci://registry.example.com/mirror", true},
		{"unheard-of", "", false},
	} {
		if c := base.Chart(tt.name, tt.url); (c != nil) != tt.want || c != nil && c.Name != tt.name {
			t.Errorf("%s of %q: got %+v", tt.name, tt.url, c)
		}
	}
	own, other := base.Chart("external-dns", "https://kubernetes-sigs.example.com/external-dns/"), base.Chart("external-dns", "oci://example.com/bitnamicharts")
	if own == nil || other == nil || !own.Folder || other.Folder || other.On(nil) || !own.On(nil) {
		t.Errorf("got %+v and %+v", own, other)
	}
}

func TestChartsOf(t *testing.T) {
	base := builtin(t)
	for kind, want := range map[string]string{
		"cert-manager.io/Certificate":               "cert-manager",
		"gateway.networking.k8s.io/HTTPRoute":       "gateway-helm gateway-crds-helm traefik traefik-crds linkerd-crds",
		"gateway.networking.k8s.io/GatewayClass":    "gateway-helm gateway-crds-helm traefik traefik-crds",
		"monitoring.coreos.com/ServiceMonitor":      "opentelemetry-kube-stack kube-prometheus-stack prometheus-operator-crds",
		"monitoring.coreos.com/Prometheus":          "kube-prometheus-stack prometheus-operator-crds",
		"networking.istio.io/VirtualService":        "base sail-operator",
		"snapshot.storage.k8s.io/VolumeSnapshot":    "snapshot-controller",
		"cdi.kubevirt.io/StorageProfile":            "",
		"/ConfigMap":                                "",
		"topology.node.k8s.io/NodeResourceTopology": "node-feature-discovery",
	} {
		group, kind, _ := strings.Cut(kind, "/")
		var got []string
		for _, c := range base.ChartsOf(schema.GroupKind{Group: group, Kind: kind}) {
			got = append(got, c.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got %q, want %q", kind, got, want)
		}
	}
}
