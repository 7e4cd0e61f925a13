// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package draft

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// holdAnnotation is the reason why somebody wants a tier to stay suspended.
const holdAnnotation = "kubestandup.dev/hold"

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// tierOf is what Kustomizations and HelmReleases have in common. What has
// another shape than the API server lets in is passed over.
func tierOf(o *unstructured.Unstructured) Tier {
	t := Tier{
		Ref:  flux.Ref{APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName()},
		Hold: o.GetAnnotations()[holdAnnotation],
	}
	if owner := o.GetLabels()[flux.KustomizeGroup+"/name"]; owner != "" {
		t.Owner = flux.Ref{Kind: flux.KustomizationKind, Namespace: o.GetLabels()[flux.KustomizeGroup+"/namespace"], Name: owner}
	}
	if t.Suspended, _, _ = unstructured.NestedBool(o.Object, "spec", "suspend"); t.Suspended {
		t.suspender(o.GetManagedFields())
	}
	return t
}

// suspender finds who owns spec.suspend, as pkg/flux does: what git says
// outlasts what anybody else has said since.
func (t *Tier) suspender(managers []metav1.ManagedFieldsEntry) {
	const git = "kustomize-controller"
	for _, m := range managers {
		if m.FieldsV1 == nil || !bytes.Contains(m.FieldsV1.GetRawBytes(), []byte(`"f:suspend"`)) || t.SuspendedBy == git {
			continue
		}
		since := metav1.Time{}
		if m.Time != nil {
			since = *m.Time
		}
		if m.Manager == git || !since.Time.Before(t.SuspendedSince) {
			t.SuspendedBy, t.SuspendedSince = m.Manager, since.UTC()
		}
	}
}

func kustomization(o *unstructured.Unstructured) Tier {
	t := tierOf(o)
	folder, _, _ := unstructured.NestedString(o.Object, "spec", "path")
	t.Path = build.InTree(folder)
	t.Inline, _, _ = unstructured.NestedStringMap(o.Object, "spec", "postBuild", "substitute")
	refs, _, _ := unstructured.NestedSlice(o.Object, "spec", "postBuild", "substituteFrom")
	for _, ref := range refs {
		r, _ := ref.(map[string]any)
		kind, _ := r["kind"].(string)
		name, _ := r["name"].(string)
		if (kind == configMapKind || kind == secretKind) && name != "" {
			t.From = append(t.From, Set{kind, t.Ref.Namespace, name})
		}
	}
	return t
}

func helmRelease(o *unstructured.Unstructured) Tier {
	t := tierOf(o)
	t.Values, _, _ = unstructured.NestedMap(o.Object, "spec", "values")
	policy, _, _ := unstructured.NestedString(o.Object, "spec", "install", "crds")
	t.SkipsCRDs = policy == "Skip"
	from, _, _ := unstructured.NestedSlice(o.Object, "spec", "valuesFrom")
	t.MoreValues = len(from) > 0
	return t
}

func node(o *unstructured.Unstructured) Node {
	n := Node{Name: o.GetName()}
	n.Kernel, _, _ = unstructured.NestedString(o.Object, "status", "nodeInfo", "kernelVersion")
	n.Kubelet, _, _ = unstructured.NestedString(o.Object, "status", "nodeInfo", "kubeletVersion")
	memory, _, _ := unstructured.NestedString(o.Object, "status", "capacity", "memory")
	if q, err := resource.ParseQuantity(memory); err == nil {
		n.Memory = q.Value()
	}
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, condition := range conditions {
		c, _ := condition.(map[string]any)
		if c["type"] == string(corev1.NodeReady) {
			n.Ready = c["status"] == string(corev1.ConditionTrue)
		}
	}
	return n
}

func ingressHosts(o *unstructured.Unstructured) []string {
	hosts := fieldOfEach(o, "host", "spec", "rules")
	entries, _, _ := unstructured.NestedSlice(o.Object, "spec", "tls")
	for _, entry := range entries {
		e, _ := entry.(map[string]any)
		names, _, _ := unstructured.NestedStringSlice(e, "hosts")
		hosts = append(hosts, names...)
	}
	return hosts
}

func gatewayHosts(o *unstructured.Unstructured) []string {
	return fieldOfEach(o, "hostname", "spec", "listeners")
}

func certificateHosts(o *unstructured.Unstructured) []string {
	names, _, _ := unstructured.NestedStringSlice(o.Object, "spec", "dnsNames")
	return names
}

// fieldOfEach is a string of every entry of a list.
func fieldOfEach(o *unstructured.Unstructured, field string, list ...string) []string {
	var values []string
	entries, _, _ := unstructured.NestedSlice(o.Object, list...)
	for _, entry := range entries {
		e, _ := entry.(map[string]any)
		if value, _ := e[field].(string); value != "" {
			values = append(values, value)
		}
	}
	return values
}

// managedKeys are the keys of a Secret's data, as those who wrote them own
// them; sorted.
func managedKeys(managers []metav1.ManagedFieldsEntry) []string {
	keys := map[string]bool{}
	for _, m := range managers {
		if m.FieldsV1 == nil {
			continue
		}
		var owned struct {
			Data       map[string]json.RawMessage `json:"f:data"`
			StringData map[string]json.RawMessage `json:"f:stringData"`
		}
		if json.Unmarshal(m.FieldsV1.GetRawBytes(), &owned) != nil {
			continue
		}
		for _, fields := range []map[string]json.RawMessage{owned.Data, owned.StringData} {
			for field := range fields {
				if key, ok := strings.CutPrefix(field, "f:"); ok {
					keys[key] = true
				}
			}
		}
	}
	return sortedKeys(keys)
}
