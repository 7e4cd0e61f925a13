// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package knowledge_test

import (
	"strings"
	"testing"
)

// TestDerived: the kind is derived from the trigger, not from a list.
func TestDerived(t *testing.T) {
	base := builtin(t)
	xrd := func(version, spec string) string {
		return "{apiVersion: apiextensions.crossplane.io/" + version + ", kind: CompositeResourceDefinition, metadata: {name: a}, spec: " + spec + "}"
	}
	rgd := func(schema string) string {
		return "{apiVersion: kro.run/v1alpha1, kind: ResourceGraphDefinition, metadata: {name: a}, spec: {schema: " + schema + "}}"
	}
	promise := func(spec string) string {
		return "{apiVersion: platform.kratix.io/v1alpha1, kind: Promise, metadata: {name: a}, spec: " + spec + "}"
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
			"XRD", xrd("v1", `{group: example.com, names: {kind: XDatabase, plural: xdatabases}}`),
			"XDatabase xdatabases.example.com Cluster", "",
		},
		{
			"XRD of the old scope", xrd("v2", `{group: example.com, scope: LegacyCluster, names: {kind: XDatabase, plural: xdatabases}}`),
			"XDatabase xdatabases.example.com Cluster", "",
		},
		{
			"namespaced XRD", xrd("v2", `{group: example.com, scope: Namespaced, names: {kind: Database, plural: databases}}`),
			"Database databases.example.com Namespaced", "",
		},
		{
			"XRD with a claim", xrd("v1", `{group: example.com, names: {kind: XDatabase, plural: xdatabases}, claimNames: {kind: Database, plural: databases}}`),
			"XDatabase xdatabases.example.com Cluster, Database databases.example.com Namespaced", "",
		},
		{
			"XRD whose claim is null", xrd("v1", `{group: example.com, names: {kind: XDatabase, plural: xdatabases}, claimNames: null}`),
			"XDatabase xdatabases.example.com Cluster", "",
		},
		{"XRD without a group", xrd("v1", `{names: {kind: A, plural: as}}`), "", "CompositeResourceDefinition/a: spec.group is empty"},
		{"RGD", rgd(`{kind: WebApplication, apiVersion: v1alpha1}`), "WebApplication webapplications.kro.run Namespaced", ""},
		{"RGD of another group", rgd(`{kind: Policy, group: example.com, scope: Cluster}`), "Policy policies.example.com Cluster", ""},
		{"RGD that ends in s", rgd(`{kind: Address}`), "Address addresses.kro.run Namespaced", ""},
		{"RGD that ends in a vowel and y", rgd(`{kind: Gateway}`), "Gateway gateways.kro.run Namespaced", ""},
		{
			"Promise", promise(`{api: {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, spec: {group: example.com, scope: Namespaced, names: {kind: Redis, plural: redis}}}}`),
			"Redis redis.example.com Namespaced", "",
		},
		{"Promise without an API", promise(`{}`), "", ""},
		{"CDI", `{apiVersion: upload.cdi.kubevirt.io/v1beta1, kind: Other, metadata: {name: a}}`, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			trigger := object(t, tt.manifest)
			var got []string
			var wrong error
			for _, r := range base.ByTrigger(trigger.GroupVersionKind().GroupKind()) {
				kinds, err := r.Derived(trigger)
				for _, k := range kinds {
					got = append(got, k.Kind+" "+k.CRD()+" "+string(k.Scope))
				}
				wrong = err
			}
			if strings.Join(got, ", ") != tt.want || (wrong != nil) != (tt.wrong != "") || wrong != nil && wrong.Error() != tt.wrong {
				t.Errorf("got %q, %v, want %q, %s", got, wrong, tt.want, tt.wrong)
			}
		})
	}
}
