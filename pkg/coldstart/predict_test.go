// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package coldstart

import (
	"strings"
	"testing"
)

func TestPredict(t *testing.T) {
	const (
		wait  = "wait: true"
		cdi   = "apiVersion: cdi.kubevirt.io/v1beta1\nkind: CDI\nmetadata:\n  name: cdi\n---\n"
		sp    = "apiVersion: cdi.kubevirt.io/v1beta1\nkind: StorageProfile\nmetadata:\n  name: local\n---\n"
		gated = "wait: true\nhealthCheckExprs:\n- {apiVersion: cdi.kubevirt.io/v1beta1, kind: CDI, current: status.phase == 'Deployed'}"
		cdis  = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: cdis.cdi.kubevirt.io}\n" +
			"spec:\n  group: cdi.kubevirt.io\n  scope: Cluster\n  names: {kind: CDI, plural: cdis}\n  versions: [{name: v1beta1, served: true}]\n---\n"
		config  = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: vars, namespace: flux-system}\n---\n"
		vars    = "postBuild:\n  substituteFrom: [{kind: ConfigMap, name: vars}]"
		space   = "apiVersion: v1\nkind: Namespace\nmetadata: {name: x-apps}\n---\n"
		inside  = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: x-apps}\n---\n"
		account = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: probe, namespace: x-apps}\n---\n"
		pod     = "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: x-apps}\nspec: {serviceAccountName: probe, containers: [{name: c, image: i}]}\n---\n"
		hook    = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: maps}\n" +
			"webhooks: [{name: maps.example.com, sideEffects: None, admissionReviewVersions: [v1], clientConfig: {service: {name: hook, namespace: x-hook}}, " +
			"namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: x-apps}}, rules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}]\n---\n"
		server = "apiVersion: v1\nkind: Namespace\nmetadata: {name: x-hook}\n---\napiVersion: v1\nkind: Service\nmetadata: {name: hook, namespace: x-hook}\nspec: {selector: {app: hook}, ports: [{port: 443}]}\n---\n" +
			"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: hook, namespace: x-hook}\nspec: {template: {metadata: {labels: {app: hook}}, spec: {containers: [{name: c, image: i}]}}}\n---\n"
		class    = "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: slow}\nprovisioner: p\nvolumeBindingMode: WaitForFirstConsumer\n---\n"
		claimed  = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, namespace: x-apps}\nspec: {storageClassName: slow}\n---\n"
		mounting = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: db, namespace: x-apps}\nspec: {template: {spec: {volumes: [{name: d, persistentVolumeClaim: {claimName: data}}]}}}\n---\n"
	)
	after := func(names ...string) string {
		return "dependsOn: [{name: " + strings.Join(names, "}, {name: ") + "}]"
	}
	tests := map[string]struct {
		scene
		want string
	}{
		"CRD-02 a CRD and its resource": {
			scene{tiers: []string{"a\n---\n" + cr("Widget") + crd("Widget")}},
			"a at-once\n",
		},
		"CRD-06 trigger and resource in one stage": {
			scene{tiers: []string{"base\nwait: true\n---\n" + cdis, "config\n" + after("base") + "\n---\n" + cdi + sp, "apps\n" + after("config") + "\n---\n"}},
			"base at-once\nconfig never; StorageProfile missing trigger config same\napps blocked; by config\n",
		},
		"split, hollow": {
			scene{tiers: []string{"base\n---\n" + cdis, "config\n" + after("base") + "\n" + wait + "\n---\n" + cdi, "storage\n" + after("config") + "\n---\n" + sp}},
			"base at-once\nconfig at-once\nstorage by-retry; StorageProfile late trigger config hollow of config\n",
		},
		"split, gated": {
			scene{tiers: []string{"base\n---\n" + cdis, "config\n" + after("base") + "\n" + gated + "\n---\n" + cdi, "storage\n" + after("config") + "\n---\n" + sp}},
			"base at-once\nconfig at-once\nstorage at-once\n",
		},
		"split, gated by the CRD": {
			scene{tiers: []string{"base\n---\n" + cdis, "config\n" + after("base") + "\nhealthChecks: [{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, name: storageprofiles.cdi.kubevirt.io}]\n---\n" + cdi, "storage\n" + after("config") + "\n---\n" + sp}},
			"base at-once\nconfig at-once\nstorage at-once\n",
		},
		"split, no edge": {
			scene{tiers: []string{"base\n---\n" + cdis + cdi, "storage\n---\n" + sp}},
			"base at-once\nstorage by-retry; StorageProfile late trigger base no-path\n",
		},
		"CRD-01 a chart's CRD beside its resource": {
			scene{tiers: []string{"a\n---\n" + hr("op") + cr("Widget")}, charts: map[string]string{"op": crd("Widget")}},
			"a never; Widget missing chart a same\n",
		},
		"CRD-04 an edge without readiness": {
			scene{tiers: []string{"a\n---\n" + hr("op"), "b\n" + after("a") + "\n---\n" + cr("Widget")}, charts: map[string]string{"op": crd("Widget")}},
			"a at-once\nb by-retry; Widget late chart a hollow of a\n",
		},
		"an edge with readiness": {
			scene{tiers: []string{"a\nwait: true\n---\n" + hr("op"), "b\n" + after("a") + "\n---\n" + cr("Widget")}, charts: map[string]string{"op": crd("Widget")}},
			"a at-once\nb at-once\n",
		},
		"a health check on the release": {
			scene{tiers: []string{"a\nhealthChecks: [{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, name: op, namespace: flux-system}]\n---\n" + hr("op"), "b\n" + after("a") + "\n---\n" + cr("Widget")}, charts: map[string]string{"op": crd("Widget")}},
			"a at-once\nb at-once\n",
		},
		"the container does not wait for the child that is meant": {
			scene{tiers: []string{"p\n---\n", "p/op\nwait: true\n---\n" + hr("op"), "b\n" + after("p") + "\n---\n" + cr("Widget")}, charts: map[string]string{"op": crd("Widget")}},
			"p at-once\nop at-once\nb by-retry; Widget late chart op hollow of p\n",
		},
		"install.crds Skip": {
			scene{tiers: []string{"a\nwait: true\n---\n" + hr("op", "install: {crds: Skip}\n"), "b\n" + after("a") + "\n---\n" + cr("Widget")}, charts: map[string]string{"op": crd("Widget")}},
			"a at-once\nb never; Widget missing\n",
		},
		"a chart whose templates hold a CRD and its resource never installs": {
			scene{tiers: []string{"a\nwait: true\n---\n" + hr("op"), "b\n" + after("a") + "\n---\n"}, charts: map[string]string{"op": "\n=== templates\n" + crd("Widget") + cr("Widget")}},
			"a at-once never-ready\nb blocked; by a\n",
		},
		"a chart whose crds folder serves its templates": {
			scene{tiers: []string{"a\nwait: true\n---\n" + hr("op")}, charts: map[string]string{"op": crd("Widget") + "\n=== templates\n" + cr("Widget")}},
			"a at-once\n",
		},
		"the provider waits for the needing tier": {
			scene{tiers: []string{"a\n---\n" + cr("Widget"), "b\n" + after("a") + "\n---\n" + crd("Widget")}},
			"a never; Widget missing git b behind\nb blocked; by a\n",
		},
		"CRD-12 another version": {
			scene{tiers: []string{"a\n---\n" + crd("Widget", "v1beta1") + cr("Widget")}},
			"a never; Widget missing\n",
		},
		"nothing registers it": {
			scene{tiers: []string{"a\n---\n" + cr("Widget")}},
			"a never; Widget missing\n",
		},
		"an opaque chart elsewhere may": {
			scene{tiers: []string{"a\n---\n" + cr("Widget"), "b\n---\n" + hr("dark")}},
			"a at-once; Widget perhaps\nb at-once\n",
		},
		"the only opaque chart is in the same stage": {
			scene{tiers: []string{"a\n---\n" + cr("Widget") + hr("dark")}},
			"a never; Widget missing\n",
		},
		"CRD-03 a template and its constraint": {
			scene{tiers: []string{"a\n---\napiVersion: templates.gatekeeper.sh/v1\nkind: ConstraintTemplate\nmetadata: {name: k8srequiredlabels}\nspec: {crd: {spec: {names: {kind: K8sRequiredLabels}}}}\n---\n" +
				cr("K8sRequiredLabels", "constraints.gatekeeper.sh/v1beta1") +
				"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: constrainttemplates.templates.gatekeeper.sh}\nspec: {group: templates.gatekeeper.sh, scope: Cluster, names: {kind: ConstraintTemplate}, versions: [{name: v1, served: true}]}"}},
			"a never; K8sRequiredLabels missing trigger a same\n",
		},
		"a trigger in a chart, hollow": {
			scene{tiers: []string{"a\n---\n" + cdis, "b\n" + after("a") + "\n" + wait + "\n---\n" + hr("op"), "c\n" + after("b") + "\n---\n" + sp}, charts: map[string]string{"op": "\n=== templates\n" + cdi}},
			"a at-once\nb at-once\nc by-retry; StorageProfile late trigger b hollow of b\n",
		},
		"a trigger in a chart, gated by the release": {
			scene{tiers: []string{"a\n---\n" + cdis, "b\n" + after("a") + "\n" + wait + "\n---\n" + hr("op", "healthCheckExprs:\n- {apiVersion: cdi.kubevirt.io/v1beta1, kind: CDI, current: status.phase == 'Deployed'}\n"), "c\n" + after("b") + "\n---\n" + sp}, charts: map[string]string{"op": "\n=== templates\n" + cdi}},
			"a at-once\nb at-once\nc at-once\n",
		},
		"a trigger that may register anything": {
			scene{tiers: []string{"a\n---\n" + crd("Provider"), "b\n---\n" + cr("Provider", "pkg.crossplane.io/v1"), "c\n---\n" + cr("Bucket", "s3.aws.upbound.io/v1")}, charts: nil},
			"a at-once\nb never; Provider missing\nc never; Bucket missing\n",
		},
		"skipped by Flux": {
			scene{tiers: []string{"a\n---\n" + strings.Replace(cr("Widget"), "name: main", "name: main\n  annotations: {kustomize.toolkit.fluxcd.io/ssa: Ignore}", 1)}},
			"a at-once\n",
		},
		"a class that Flux leaves alone, and waits for": {
			scene{tiers: []string{"a\n---\n" + crd("WidgetClass") + strings.Replace(cr("WidgetClass"), "name: main", "name: main\n  annotations: {kustomize.toolkit.fluxcd.io/ssa: Ignore}", 1)}},
			"a never; WidgetClass:main missing\n",
		},
		"a class that another tier makes": {
			scene{tiers: []string{"a\n---\n" + crd("WidgetClass") + cr("WidgetClass"), "b\n" + after("a") + "\n---\n" + strings.Replace(cr("WidgetClass"), "name: main", "name: main\n  annotations: {kustomize.toolkit.fluxcd.io/ssa: Ignore}", 1)}},
			"a at-once\nb at-once\n",
		},
		"a class of a kind that somebody outside brings": {
			scene{tiers: []string{"a\n---\n" + strings.Replace(cr("WidgetClass"), "name: main", "name: main\n  annotations: {kustomize.toolkit.fluxcd.io/ssa: Ignore}", 1)}},
			"a at-once\n",
		},
		"a class beside its CRD's operator is looked at first": {
			scene{tiers: []string{"a\n---\n" + cr("WidgetClass") + hr("op")}, charts: map[string]string{"op": crd("WidgetClass")}},
			"a never; WidgetClass missing chart a same\n",
		},
		"a parent with a child's resource": {
			scene{tiers: []string{"p\n---\n" + cr("Widget") + "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: c, namespace: flux-system}\n", "p/c\n---\n" + crd("Widget")}},
			"p never; Widget missing git c behind\nc blocked; by p\n",
		},
		"a parent that registers, a child that uses": {
			scene{tiers: []string{"p\n---\n" + crd("Widget"), "p/c\n---\n" + cr("Widget")}},
			"p at-once\nc at-once\n",
		},
		"a parent that triggers, a child that uses": {
			scene{tiers: []string{"p\n---\n" + cdis + cdi, "p/c\n---\n" + sp}},
			"p at-once\nc by-retry; StorageProfile late trigger p applied\n",
		},
		"a root that waits for a child that depends on it": {
			scene{tiers: []string{"p\nwait: true\n---\napiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: c, namespace: flux-system}\n", "p/c\n" + after("p") + "\n---\n"}},
			"p at-once never-ready\nc blocked; by p\n",
		},
		"variables of a sibling": {
			scene{tiers: []string{"a\n---\n" + config, "b\n" + vars + "\n---\n"}},
			"a at-once\nb by-retry; ConfigMap:vars late git a no-path\n",
		},
		"variables of a tier that is waited for": {
			scene{tiers: []string{"a\n---\n" + config, "b\n" + vars + "\n" + after("a") + "\n---\n"}},
			"a at-once\nb at-once\n",
		},
		"variables of nobody": {
			scene{tiers: []string{"b\n" + vars + "\n---\n"}},
			"b at-once\n",
		},
		"CRD-15 no namespace": {
			scene{tiers: []string{"a\n---\n" + inside}},
			"a never; Namespace:x-apps missing\n",
		},
		"CRD-15 a namespace of a sibling": {
			scene{tiers: []string{"a\n---\n" + inside, "b\n---\n" + space}},
			"a by-retry; Namespace:x-apps late git b no-path\nb at-once\n",
		},
		"CRD-15 a namespace of its own": {
			scene{tiers: []string{"a\n---\n" + inside + space}},
			"a at-once\n",
		},
		"CRD-15 createNamespace cannot make the release's own": {
			scene{tiers: []string{"a\n---\n" + strings.Replace(hr("op", "install: {createNamespace: true}\n"), "flux-system", "x-apps", 1)}},
			"a never; Namespace:x-apps missing\n",
		},
		"suspended": {
			scene{tiers: []string{"a\nsuspend: true\n---\n" + crd("Widget"), "b\n" + after("a") + "\n---\n", "c\n---\n" + cr("Widget")}},
			"a suspended\nb blocked; by a\nc never; Widget missing git a down\n",
		},
		"a cycle": {
			scene{tiers: []string{"a\n" + after("b") + "\n---\n", "b\n" + after("a") + "\n---\n", "c\n---\n"}},
			"a blocked; by b\nb blocked; by a\nc at-once\n",
		},
		"two ways, one of them late": {
			scene{tiers: []string{"a\n---\n" + crd("Widget"), "b\n---\n" + hr("op"), "c\n" + after("b") + "\n---\n" + cr("Widget")}, charts: map[string]string{"op": crd("Widget")}},
			"a at-once\nb at-once\nc by-retry; Widget late chart b hollow of b\n",
		},
		"the edge is by another tier": {
			scene{tiers: []string{"a\nwait: true\n---\n" + hr("op"), "b\n" + after("a") + "\n---\n", "c\n" + after("b") + "\n---\n" + cr("Widget")}, charts: map[string]string{"op": crd("Widget")}},
			"a at-once\nb at-once\nc at-once\n",
		},
		"behind a deadlock, another mistake": {
			scene{tiers: []string{"a\n---\n" + hr("op") + cr("Widget"), "b\n" + after("a") + "\n---\n" + cr("Widget") + cr("Gadget"), "c\n" + after("b") + "\n---\n" + cr("Gadget")}, charts: map[string]string{"op": crd("Widget")}},
			"a never; Widget missing chart a same\nb blocked; Gadget missing; by a\nc blocked; by b\n",
		},
		"behind a cycle and what does not exist": {
			scene{tiers: []string{"a\n" + after("b") + "\n---\n", "b\n" + after("a") + "\n---\n" + cr("Gadget"), "c\n" + after("nobody") + "\n---\n" + cr("Gizmo")}},
			"a blocked; by b\nb blocked; Gadget missing; by a\nc blocked; Gizmo missing; by nobody\n",
		},
		"a Pod and its account": {
			scene{tiers: []string{"a\n---\n" + space + account + pod}},
			"a never; ServiceAccount:probe missing git a same\n",
		},
		"a Pod after its account": {
			scene{tiers: []string{"a\n---\n" + space + account, "b\n" + after("a") + "\n---\n" + pod}},
			"a at-once\nb at-once\n",
		},
		"a Pod with an account of nobody": {
			scene{tiers: []string{"a\n---\n" + space + pod}},
			"a never; ServiceAccount:probe missing\n",
		},
		"a Pod with an account of nobody, in a namespace of nobody": {
			scene{tiers: []string{"a\n---\n" + strings.ReplaceAll(pod, "x-apps", "flux-system")}},
			"a at-once\n",
		},
		"a Pod with an account of nobody, beside Flux": {
			scene{tiers: []string{"a\n---\n" + strings.ReplaceAll(space+pod, "x-apps", "flux-system")}},
			"a at-once\n",
		},
		"a Pod with an account that a chart may bring": {
			scene{tiers: []string{"a\n---\n" + space + pod, "b\n---\n" + hr("dark")}},
			"a at-once; ServiceAccount:probe perhaps\nb at-once\n",
		},
		"a webhook that is answered from its own stage": {
			scene{tiers: []string{"a\n---\n" + space + hook, "b\n" + after("a") + "\n---\n" + server + inside}},
			"a at-once\nb never; ValidatingWebhookConfiguration:maps missing git b same\n",
		},
		"a webhook that is answered from behind": {
			scene{tiers: []string{"a\n---\n" + space + hook, "b\n" + after("a") + "\n---\n" + inside, "c\n" + after("b") + "\n---\n" + server}},
			"a at-once\nb never; ValidatingWebhookConfiguration:maps missing git c behind\nc blocked; by b\n",
		},
		"a webhook that may not answer yet": {
			scene{tiers: []string{"a\n---\n" + space + hook + server, "b\n" + after("a") + "\n---\n" + inside}},
			"a at-once\nb by-retry; ValidatingWebhookConfiguration:maps late git a hollow of a\n",
		},
		"a webhook that answers": {
			scene{tiers: []string{"a\n" + wait + "\n---\n" + space + hook + server, "b\n" + after("a") + "\n---\n" + inside}},
			"a at-once\nb at-once\n",
		},
		"a webhook that may come before or after": {
			scene{tiers: []string{"s\n---\n" + space, "a\n" + after("s") + "\n---\n" + hook + server, "b\n" + after("s") + "\n---\n" + inside}},
			"s at-once\na at-once\nb by-retry; ValidatingWebhookConfiguration:maps late git a no-path\n",
		},
		"a webhook that may come before or after, answered from behind": {
			scene{tiers: []string{"s\n---\n" + space, "a\n" + after("s") + "\n---\n" + hook, "b\n" + after("s") + "\n---\n" + inside, "c\n" + after("b") + "\n---\n" + server}},
			"s at-once\na at-once\nb by-retry; ValidatingWebhookConfiguration:maps late git c no-path\nc at-once\n",
		},
		"a webhook that comes after": {
			scene{tiers: []string{"b\n---\n" + space + inside, "a\n" + after("b") + "\n---\n" + hook + server}},
			"b at-once\na at-once\n",
		},
		"a webhook that nothing answers, and lets pass": {
			scene{tiers: []string{"a\n---\n" + space + strings.Replace(hook, "sideEffects", "failurePolicy: Ignore, sideEffects", 1), "b\n" + after("a") + "\n---\n" + server + inside}},
			"a at-once\nb at-once\n",
		},
		"a webhook of other objects": {
			scene{tiers: []string{"a\n---\n" + space + strings.Replace(hook, "configmaps", "secrets", 1), "b\n" + after("a") + "\n---\n" + server + inside}},
			"a at-once\nb at-once\n",
		},
		"a webhook that somebody else answers": {
			scene{tiers: []string{"a\n---\n" + space + hook, "b\n" + after("a") + "\n---\n" + inside}},
			"a at-once\nb at-once\n",
		},
		"a webhook of a chart whose release waits": {
			scene{tiers: []string{"a\n" + wait + "\n---\n" + space + hr("op"), "b\n" + after("a") + "\n---\n" + inside}, charts: map[string]string{"op": "\n=== templates\n" + hook + server}},
			"a at-once\nb at-once\n",
		},
		"a webhook of a chart whose release does not wait": {
			scene{tiers: []string{"a\n" + wait + "\n---\n" + space + hr("op", "install: {disableWait: true}\n"), "b\n" + after("a") + "\n---\n" + inside}, charts: map[string]string{"op": "\n=== templates\n" + hook + server}},
			"a at-once\nb by-retry; ValidatingWebhookConfiguration:maps late chart a hollow of a\n",
		},
		"a webhook that the API server does not take": {
			scene{tiers: []string{"a\n---\n" + strings.Replace(hook, "None", "Some", 1)}},
			"a never; ValidatingWebhookConfiguration:maps missing\n",
		},
		"a claim that the next tier mounts": {
			scene{tiers: []string{"a\n" + wait + "\n---\n" + space + class + claimed, "b\n" + after("a") + "\n---\n" + mounting}},
			"a at-once never-ready\nb blocked; by a\n",
		},
		"a claim that its own tier mounts": {
			scene{tiers: []string{"a\n" + wait + "\n---\n" + space + class + claimed + mounting, "b\n" + after("a") + "\n---\n"}},
			"a at-once\nb at-once\n",
		},
		"a claim that another tier mounts": {
			scene{tiers: []string{"a\n" + wait + "\n---\n" + space + class + claimed, "b\n---\n" + mounting, "c\n" + after("a") + "\n---\n"}},
			"a at-once\nb by-retry; Namespace:x-apps late git a no-path\nc at-once\n",
		},
		"values of a tier below": {
			scene{tiers: []string{"a\n" + wait + "\n---\n" + hr("op", "valuesFrom: [{kind: ConfigMap, name: vars}]\n"), "b\n" + after("a") + "\n---\n" + config}, charts: map[string]string{"op": ""}},
			"a at-once never-ready\nb blocked; by a\n",
		},
		"values of a tier below, if they are there": {
			scene{tiers: []string{"a\n" + wait + "\n---\n" + hr("op", "valuesFrom: [{kind: ConfigMap, name: vars, optional: true}]\n"), "b\n" + after("a") + "\n---\n" + config}, charts: map[string]string{"op": ""}},
			"a at-once\nb at-once\n",
		},
		"releases in order": {
			scene{tiers: []string{"a\nwait: true\n---\n" + hr("op") + hr("user", "dependsOn: [{name: op}]\n")}, charts: map[string]string{"op": crd("Widget"), "user": "\n=== templates\n" + cr("Widget")}},
			"a at-once\n",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := dump(Predict(tc.cluster(t))); got != tc.want {
				t.Errorf("got\n%swant\n%s", got, tc.want)
			}
		})
	}
}
