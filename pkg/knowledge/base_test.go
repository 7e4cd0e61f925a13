// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package knowledge_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
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

// TestReadyExpressions compiles what people are told to paste, and evaluates
// it over the three states that matter.
func TestReadyExpressions(t *testing.T) {
	env, err := cel.NewEnv(cel.Variable("status", cel.DynType), cel.Variable("spec", cel.DynType), cel.Variable("metadata", cel.DynType))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range builtin(t).Relations() {
		for _, trigger := range r.Triggers {
			if trigger.Ready == nil {
				continue
			}
			ast, issues := env.Compile(trigger.Ready.Current)
			if issues.Err() != nil {
				t.Fatalf("%s: %v", r.ID, issues.Err())
			}
			program, err := env.Program(ast)
			if err != nil {
				t.Fatal(err)
			}
			for phase, want := range map[string]bool{"": false, "Deploying": false, "Deployed": true} {
				status := map[string]any{}
				if phase != "" {
					status["phase"] = phase
				}
				got, _, err := program.Eval(map[string]any{"status": status})
				if err != nil || got.Value() != want {
					t.Errorf("%s: phase %q: got %v, %v, want %t", r.ID, phase, got, err, want)
				}
			}
		}
	}
}

func object(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

const head = "apiVersion: kubestandup.dev/v1alpha1\nkind: Knowledge\n"

// TestDerived: the kind is derived from the template, not from a list.
func TestDerived(t *testing.T) {
	base, err := builtin(t).Extend("xrd.yaml", []byte(head+`
relations:
- id: crossplane-xrd
  system: Crossplane
  class: cr-dynamic
  triggers: [{group: apiextensions.crossplane.io, kind: CompositeResourceDefinition, plural: compositeresourcedefinitions, scope: Cluster}]
  derive:
  - {group: {path: spec.group}, kind: {path: spec.names.kind}, plural: {path: spec.names.plural}, scope: Cluster}
  - {if: spec.claimNames, group: {path: spec.group, default: claims.example.com}, kind: {path: spec.claimNames.kind}, plural: {path: spec.claimNames.plural}, scope: Namespaced}
  confidence: source
  sources: [crossplane/crossplane-runtime pkg/xcrd/crd.go]
`))
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, manifest, want, wrong string }{
		{
			"ConstraintTemplate", `{apiVersion: templates.gatekeeper.sh/v1, kind: ConstraintTemplate, metadata: {name: a}, spec: {crd: {spec: {names: {kind: K8sRequiredLabels}}}}}`,
			"K8sRequiredLabels k8srequiredlabels.constraints.gatekeeper.sh Cluster", "",
		},
		{
			"ConstraintTemplate without a kind", `{apiVersion: templates.gatekeeper.sh/v1, kind: ConstraintTemplate, metadata: {name: a}, spec: {}}`,
			"", "ConstraintTemplate/a: spec.crd.spec.names.kind is empty",
		},
		{
			"XRD", `{apiVersion: apiextensions.crossplane.io/v1, kind: CompositeResourceDefinition, metadata: {name: a}, spec: {group: example.com, names: {kind: XDatabase, plural: xdatabases}}}`,
			"XDatabase xdatabases.example.com Cluster", "",
		},
		{
			"XRD with a claim", `{apiVersion: apiextensions.crossplane.io/v1, kind: CompositeResourceDefinition, metadata: {name: a}, spec: {group: example.com, names: {kind: XDatabase, plural: xdatabases}, claimNames: {kind: Database, plural: databases}}}`,
			"XDatabase xdatabases.example.com Cluster, Database databases.example.com Namespaced", "",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			trigger := object(t, tt.manifest)
			kinds, err := base.ByTrigger(trigger.GroupVersionKind().GroupKind())[0].Derived(trigger)
			var got []string
			for _, k := range kinds {
				got = append(got, k.Kind+" "+k.CRD()+" "+string(k.Scope))
			}
			if strings.Join(got, ", ") != tt.want || (err != nil) != (tt.wrong != "") || err != nil && err.Error() != tt.wrong {
				t.Errorf("got %q, %v, want %q, %s", got, err, tt.want, tt.wrong)
			}
		})
	}
}

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
		{"lower-case kind", relation("kind: B", "kind: b"), `creates: group example.com: kind "b" does not begin with a capital letter`},
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

func FuzzExtend(f *testing.F) {
	f.Add(head + "relations: [{id: a, derive: [{group: {path: a}}]}]")
	f.Add(head + "lists: {a: [{list: b}]}\nrelations: [{id: a, creates: [{list: a}], kind: ''}]")
	f.Fuzz(func(_ *testing.T, content string) {
		if base, err := (&knowledge.Base{}).Extend("f", []byte(content)); err == nil {
			for _, r := range base.Relations() {
				_, _ = r.Derived(&unstructured.Unstructured{Object: map[string]any{}})
			}
		}
	})
}
