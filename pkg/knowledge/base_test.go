// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package knowledge_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/kubestandup/kubestandup/pkg/knowledge"
)

func builtin(t *testing.T) *knowledge.Base {
	t.Helper()
	base, err := knowledge.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	return base
}

func ids(relations []knowledge.Relation) string {
	var all []string
	for _, r := range relations {
		all = append(all, r.ID)
	}
	return strings.Join(all, " ")
}

func TestCreators(t *testing.T) {
	base := builtin(t)
	tests := []struct{ group, kind, want string }{
		{"cdi.kubevirt.io", "StorageProfile", "cdi"}, // incident 2
		{"cdi.kubevirt.io", "DataVolume", "cdi"},
		{"forklift.cdi.kubevirt.io", "OvirtVolumePopulator", "cdi"},
		{"kubevirt.io", "VirtualMachine", "kubevirt"},
		{"template.kubevirt.io", "VirtualMachineTemplate", "kubevirt"},
		{"upload.cdi.kubevirt.io", "UploadTokenRequest", "cdi-upload"},
		{"constraints.gatekeeper.sh", "K8sRequiredLabels", "gatekeeper"},
		{"kro.run", "WebApplication", "kro"},
		{"k8s.cni.cncf.io", "NetworkAttachmentDefinition", "cnao"},
		{"apiextensions.crossplane.io", "CompositeResourceDefinition", "crossplane-core"},
		{"pkg.crossplane.io", "Provider", "crossplane-core"},
		{"cilium.io", "CiliumNetworkPolicy", "cilium"},
		{"crd.projectcalico.org", "IPPool", "tigera-start"},
		{"projectcalico.org", "GlobalNetworkPolicy", "tigera-apiserver"},
		{"gateway.networking.k8s.io", "HTTPRoute", "tigera-gatewayapi"},
		{"serving.knative.dev", "Service", "knative-serving"},
		{"tekton.dev", "Pipeline", "tekton"},
		{"cluster.x-k8s.io", "Cluster", "capi-core"},
		{"cluster.open-cluster-management.io", "ManagedCluster", "ocm-hub"},
		{"management.cattle.io", "Setting", "rancher"},
		{"upgrade.cattle.io", "Plan", "rancher system-upgrade-controller"},
		{"openebs.io", "DiskPool", "mayastor"},
		{"acid.zalan.do", "postgresql", "zalando-postgres"},
		{"argoproj.io", "Workflow", "argo-workflows"},
		{"helm.cattle.io", "HelmChart", "k3s"},
		{"talos.dev", "ServiceAccount", "talos"},
		{"helm.toolkit.fluxcd.io", "HelmRelease", "flux-operator"},
		{"submariner.io", "Gateway", "submariner"},
		// In another API server.
		{"policy.karmada.io", "PropagationPolicy", ""},
		// An installer's, by all that is known.
		{"cert-manager.io", "Certificate", ""},
		{"monitoring.coreos.com", "ServiceMonitor", ""},
		{"longhorn.io", "Volume", ""},
		// First-order: an installer's.
		{"cdi.kubevirt.io", "CDI", ""},
		{"kubevirt.io", "KubeVirt", ""},
		{"templates.gatekeeper.sh", "ConstraintTemplate", ""},
		{"example.com", "StorageProfile", ""},
		{"", "ConfigMap", ""},
	}
	for _, tt := range tests {
		if got := ids(base.Creators(schema.GroupKind{Group: tt.group, Kind: tt.kind})); got != tt.want {
			t.Errorf("%s.%s: got %q, want %q", tt.kind, tt.group, got, tt.want)
		}
	}
}

func TestByTrigger(t *testing.T) {
	base := builtin(t)
	tests := []struct{ group, kind, want string }{
		{"cdi.kubevirt.io", "CDI", "cdi cdi-upload"},
		{"kubevirt.io", "KubeVirt", "kubevirt"},
		{"helm.toolkit.fluxcd.io", "HelmRelease", "flux-helmrelease"},
		{"templates.gatekeeper.sh", "ConstraintTemplate", "gatekeeper"},
		{"hco.kubevirt.io", "HyperConverged", "hco"},
		{"networkaddonsoperator.network.kubevirt.io", "NetworkAddonsConfig", "cnao"},
		{"apiextensions.crossplane.io", "CompositeResourceDefinition", "crossplane-xrd"},
		{"pkg.crossplane.io", "Provider", "crossplane-provider"},
		{"pkg.crossplane.io", "Configuration", "crossplane-configuration"},
		{"kro.run", "ResourceGraphDefinition", "kro"},
		{"platform.kratix.io", "Promise", "kratix"},
		{"platform.kratix.io", "PromiseRelease", "kratix-release"},
		{"operator.cluster.x-k8s.io", "CoreProvider", "capi-core"},
		{"operator.cluster.x-k8s.io", "InfrastructureProvider", "capi-providers"},
		{"operators.coreos.com", "Subscription", "olm-v0"},
		{"olm.operatorframework.io", "ClusterExtension", "olm-v1"},
		{"operator.open-cluster-management.io", "Klusterlet", "ocm-klusterlet"},
		{"operator.tigera.io", "APIServer", "tigera-apiserver"},
		{"operator.tekton.dev", "TektonConfig", "tekton"},
		{"fluxcd.controlplane.io", "FluxInstance", "flux-operator"},
		{"kustomize.toolkit.fluxcd.io", "Kustomization", ""}, // the simulation's own
		{"cdi.kubevirt.io", "StorageProfile", ""},
	}
	for _, tt := range tests {
		if got := ids(base.ByTrigger(schema.GroupKind{Group: tt.group, Kind: tt.kind})); got != tt.want {
			t.Errorf("%s.%s: got %q, want %q", tt.kind, tt.group, got, tt.want)
		}
	}
}

// TestCDI is the row that the breaker lives on.
func TestCDI(t *testing.T) {
	cdi := builtin(t).ByTrigger(schema.GroupKind{Group: "cdi.kubevirt.io", Kind: "CDI"})[0]
	var crds []string
	for _, k := range cdi.Creates {
		crds = append(crds, k.CRD())
	}
	want := []string{
		"cdiconfigs.cdi.kubevirt.io", "dataimportcrons.cdi.kubevirt.io", "datasources.cdi.kubevirt.io", "datavolumes.cdi.kubevirt.io",
		"objecttransfers.cdi.kubevirt.io", "storageprofiles.cdi.kubevirt.io", "volumeclonesources.cdi.kubevirt.io",
		"volumeimportsources.cdi.kubevirt.io", "volumeuploadsources.cdi.kubevirt.io",
		"openstackvolumepopulators.forklift.cdi.kubevirt.io", "ovirtvolumepopulators.forklift.cdi.kubevirt.io",
	}
	if !slices.Equal(crds, want) {
		t.Errorf("got %q, want %q", crds, want)
	}
	if got := cdi.Triggers[0].CRD(); got != "cdis.cdi.kubevirt.io" {
		t.Errorf("the trigger's own CRD is %s", got)
	}
	if cdi.Operator == nil || cdi.Operator.Deployment != "cdi-operator" || cdi.Operator.Labels["name"] != "cdi-operator" {
		t.Errorf("the operator is %+v", cdi.Operator)
	}
}

func TestKubeVirtCount(t *testing.T) {
	kubevirt := builtin(t).ByTrigger(schema.GroupKind{Group: "kubevirt.io", Kind: "KubeVirt"})[0]
	since := map[string]int{}
	for _, k := range kubevirt.Creates {
		since[k.Since]++
	}
	// 16 in v1.4 to v1.7, 18 in v1.8, 19 in v1.9, and 2 behind a feature gate.
	if since[""] != 16 || since["v1.8.0"] != 4 || since["v1.9.0"] != 1 {
		t.Errorf("got %v", since)
	}
}

// object is made of manifests, each laid over the one before.
func object(t *testing.T, manifests ...string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	for _, manifest := range manifests {
		layer := map[string]any{}
		if err := yaml.Unmarshal([]byte(manifest), &layer); err != nil {
			t.Fatal(err)
		}
		merge(&o.Object, layer)
	}
	return o
}

func merge(into *map[string]any, layer map[string]any) {
	if *into == nil {
		*into = map[string]any{}
	}
	for key, value := range layer {
		below, isMap := (*into)[key].(map[string]any)
		above, alsoMap := value.(map[string]any)
		if isMap && alsoMap {
			merge(&below, above)
			value = below
		}
		(*into)[key] = integers(value)
	}
}

// integers makes numbers what a decoder of the API makes of them.
func integers(value any) any {
	switch v := value.(type) {
	case float64:
		return int64(v)
	case map[string]any:
		for key := range v {
			v[key] = integers(v[key])
		}
	}
	return value
}

const head = "apiVersion: kubestandup.dev/v1alpha1\nkind: Knowledge\n"

// TestExtend: a file of one's own adds, and replaces by id.
func TestExtend(t *testing.T) {
	before := builtin(t)
	after, err := before.Extend("mine.yaml", []byte(head+`
lists:
  widgets:
  - {group: example.com, kind: Widget, plural: widgets, scope: Namespaced}
relations:
- id: cdi
  system: CDI of ours
  class: none
  registers: [{group: cdi.kubevirt.io, kind: StorageProfile, plural: storageprofiles, scope: Cluster}]
  confidence: memory
  sources: [us]
- id: widgets
  system: Widgets
  class: start
  creates: [{list: widgets}, {group: example.com, kind: Gadget, plural: gadgets, scope: Cluster, since: v1.2.3}]
  confidence: memory
  sources: [us]
`))
	if err != nil {
		t.Fatal(err)
	}
	for gk, want := range map[schema.GroupKind][2]string{
		{Group: "cdi.kubevirt.io", Kind: "StorageProfile"}: {"cdi", ""},
		{Group: "example.com", Kind: "Widget"}:             {"", "widgets"},
		{Group: "example.com", Kind: "Gadget"}:             {"", "widgets"},
		{Group: "kubevirt.io", Kind: "VirtualMachine"}:     {"kubevirt", "kubevirt"},
	} {
		if got := [2]string{ids(before.Creators(gk)), ids(after.Creators(gk))}; got != want {
			t.Errorf("%s: got %q, want %q", gk, got, want)
		}
	}
}

func TestExtendErrors(t *testing.T) {
	// relation is a good one, into which each row puts one mistake.
	relation := func(change ...string) string {
		text := head + `relations:
- id: a-b
  system: A
  class: cr
  triggers: [{group: example.com, kind: A, plural: as, scope: Cluster}]
  creates: [{group: example.com, kind: B, plural: bs, scope: Cluster}]
  confidence: memory
  sources: [us]
`
		return strings.NewReplacer(change...).Replace(text)
	}
	tests := []struct{ name, content, want string }{
		{"good", relation(), ""},
		{"unknown field", relation("sources:", "source:"), `unknown field "relations[0].source"`},
		{"no YAML", "{", "did not find expected node content"},
		{"another file", "apiVersion: v1\nkind: ConfigMap\n", "it is ConfigMap of v1, not Knowledge of kubestandup.dev/v1alpha1"},
		{"empty", "", "it is nothing of nothing, not Knowledge"},
		{"id", relation("id: a-b", "id: A b"), `relation 1: id "A b" is not lower-case words joined by -`},
		{"twice", relation() + strings.SplitAfter(relation(), "relations:\n")[1], "relation a-b: it is there twice"},
		{"system", relation("system: A", "system: ''"), "relation a-b: system is empty"},
		{"class", relation("class: cr", "class: crd"), `relation a-b: class "crd" is unknown`},
		{"confidence", relation("memory", "sure"), `confidence "sure" is unknown`},
		{"sources", relation("[us]", "[]"), "sources are empty: say where it was read"},
		{"triggers", relation("triggers: [{group: example.com, kind: A, plural: as, scope: Cluster}]", "triggers: []"), "triggers are empty, which class cr must have"},
		{"creates", relation("creates: [{group: example.com, kind: B, plural: bs, scope: Cluster}]", "creates: []"), "creates and chain are empty"},
		{"derive", relation("confidence:", "derive: [{group: {constant: a.b}, kind: {path: a}, plural: {path: a}}]\n  confidence:"), "derive is set, which only class cr-dynamic may have"},
		{"core group", relation("example.com, kind: B", "'', kind: B"), `creates: kind "B": group "" is not one of a CRD`},
		{"plural for kind", relation("kind: B", "kind: bs"), `creates: group example.com: kind "bs" is not the name of a kind`},
		{"plural", relation("plural: bs", "plural: Bs"), `creates: kind B: plural "Bs" is not the name of a resource`},
		{"scope", relation("bs, scope: Cluster", "bs, scope: cluster"), `creates: kind B: scope "cluster" is neither Cluster nor Namespaced`},
		{"release", relation("bs, scope: Cluster", "bs, scope: Cluster, since: '1.2'"), `creates: kind B: since "1.2" is not a release, as v1.2.3`},
		{"trigger's scope", relation("as, scope: Cluster", "as, scope: All"), `triggers: kind A: scope "All"`},
		{"ready of another group", relation("as, scope: Cluster", "as, scope: Cluster, ready: {apiVersion: other.com/v1, current: 'true'}"), "triggers: A: ready needs current, and an apiVersion of group example.com"},
		{"no such list", relation("{group: example.com, kind: B, plural: bs, scope: Cluster}", "{list: all}"), "creates: list all: there is no list of that name here"},
		{"list and kind", "apiVersion: kubestandup.dev/v1alpha1\nkind: Knowledge\nlists: {all: []}\n" + strings.TrimPrefix(relation("group: example.com, kind: B", "list: all, kind: B"), head), "nothing else may be set beside a list"},
		{"list of lists", "apiVersion: kubestandup.dev/v1alpha1\nkind: Knowledge\nlists: {all: [{list: all}]}\nrelations: []\n", "list all: list all: there is no list of that name here"},
		{"value", relation("class: cr", "class: cr-dynamic", "confidence:", "derive: [{group: {constant: a.b, path: a}, kind: {path: a}, plural: {path: a}}]\n  confidence:"), "derive: group: one of constant and path must be set"},
		{"path", relation("class: cr", "class: cr-dynamic", "confidence:", "derive: [{group: {constant: a.b}, kind: {path: '.a'}, plural: {path: a}}]\n  confidence:"), `derive: kind: path ".a" is not names joined by dots`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := (&knowledge.Base{}).Extend("mine.yaml", []byte(tt.content))
			if (err != nil) != (tt.want != "") || err != nil && (!strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "knowledge file mine.yaml: ")) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}
