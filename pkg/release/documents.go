// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

const (
	keepAnnotation = "helm.sh/resource-policy"
	// maxNesting bounds lists within lists.
	maxNesting = 8
)

// Document is one object of a manifest.
type Document struct {
	APIVersion, Kind string
	// Namespace is as written: empty means the release's, or none.
	Namespace, Name string
	// Keep: an uninstall leaves the object behind. Helm does so whatever the
	// value of the annotation helm.sh/resource-policy, and looks only at a List's
	// own (pkg/action/resource_policy.go); here an item's counts too.
	Keep bool
	// Index counts the documents of the manifest that are objects, from 0. The
	// items of a List share theirs.
	Index int
}

// DocumentError is a document that is not an object. It never quotes it.
type DocumentError struct {
	// Index counts as Document.Index does.
	Index  int
	Reason string
}

func (e *DocumentError) Error() string {
	return fmt.Sprintf("document %d of the manifest: %s", e.Index, e.Reason)
}

// Documents are the objects of the record's manifest, in its order. The error
// is a *DocumentError.
func (r *Record) Documents() ([]Document, error) { return documents(r.Manifest) }

// Documents are the objects of the hook's manifest; Helm makes it one.
func (h Hook) Documents() ([]Document, error) { return documents(h.Manifest) }

// object is what is decoded of a document. The rest, which may be secret, is
// passed over.
type object struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name        string         `json:"name"`
		Namespace   string         `json:"namespace"`
		Annotations map[string]any `json:"annotations"`
	} `json:"metadata"`
	// Items make an object a list, whatever its kind, even when they are null,
	// as for Helm's builder (apimachinery, unstructuredJSONScheme).
	Items json.RawMessage `json:"items"`
}

func documents(manifest string) ([]Document, error) {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(manifest)))
	var all []Document
	for index := 0; ; {
		text, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, &DocumentError{index, "the line that separates it from the next has more than a comment after the hyphens"}
		}
		o, reason := parseObject(text)
		if reason == "" && o != nil {
			all, reason = o.append(all, index, false, 0)
		}
		if reason != "" {
			return nil, &DocumentError{index, reason}
		}
		if o != nil {
			index++
		}
	}
}

// without is a manifest without some of its documents.
func without(manifest string, drop func(index int) bool) (string, error) {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(manifest)))
	var kept strings.Builder
	for index := 0; ; {
		text, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return kept.String(), nil
		}
		if err != nil {
			return "", &DocumentError{index, "the line that separates it from the next has more than a comment after the hyphens"}
		}
		o, reason := parseObject(text)
		if reason != "" {
			return "", &DocumentError{index, reason}
		}
		if o != nil {
			index++
		}
		if o == nil || !drop(index-1) {
			kept.WriteString("---\n" + strings.TrimSpace(string(text)) + "\n")
		}
	}
}

// parseObject decodes one document; nil when there is nothing in it. A reason
// has the line at most, since the parser quotes what it stumbles over.
func parseObject(text []byte) (o *object, reason string) {
	data, err := yaml.YAMLToJSON(text)
	if err != nil {
		line := regexp.MustCompile(`line \d+`).FindString(err.Error())
		return nil, strings.TrimSuffix("it is not YAML: "+line, ": ")
	}
	if s := string(data); s == "null" || s == "{}" {
		return nil, ""
	}
	o = &object{}
	if err := json.Unmarshal(data, o); err != nil {
		return nil, "it is not an object of Kubernetes"
	}
	return o, ""
}

func (o *object) append(all []Document, index int, keep bool, depth int) (_ []Document, reason string) {
	_, annotated := o.Metadata.Annotations[keepAnnotation]
	keep = keep || annotated
	switch {
	case o.APIVersion == "" || o.Kind == "":
		return nil, "it has no apiVersion or no kind"
	case o.Items != nil && depth == maxNesting:
		return nil, "it is a list within too many lists"
	case o.Items != nil:
		var items []object
		if json.Unmarshal(o.Items, &items) != nil {
			return nil, "its items are not objects of Kubernetes"
		}
		for i := range items {
			item := &items[i]
			// The items of a RoleList are Roles without saying so.
			if kind, typed := strings.CutSuffix(o.Kind, "List"); typed && kind != "" && item.Kind == "" {
				item.APIVersion, item.Kind = o.APIVersion, kind
			}
			if all, reason = item.append(all, index, keep, depth+1); reason != "" {
				return nil, reason
			}
		}
		return all, ""
	case o.Metadata.Name == "":
		return nil, "it has no name"
	}
	return append(all, Document{
		APIVersion: o.APIVersion, Kind: o.Kind,
		Namespace: o.Metadata.Namespace, Name: o.Metadata.Name,
		Keep: keep, Index: index,
	}), ""
}

// UninstallOrder returns the documents in the order in which Helm 4 deletes
// them: by kind, those of kinds that it does not know last, by the kind's name
// (pkg/release/v1/util/kind_sorter.go); else as they were. Helm 3's is the same
// but for webhook configurations, which it does not know. Within a List Helm
// keeps the items' order, and here they are sorted too.
func UninstallOrder(documents []Document) []Document {
	rank := map[string]int{}
	for i, kind := range uninstallKinds() {
		rank[kind] = i
	}
	at := func(kind string) int {
		if i, known := rank[kind]; known {
			return i
		}
		return len(rank)
	}
	sorted := slices.Clone(documents)
	slices.SortStableFunc(sorted, func(a, b Document) int {
		if order := cmp.Compare(at(a.Kind), at(b.Kind)); order != 0 || at(a.Kind) < len(rank) {
			return order
		}
		return strings.Compare(a.Kind, b.Kind)
	})
	return sorted
}

// uninstallKinds is Helm 4's UninstallOrder. Importing it brings the whole of
// chartutil along; a test compares it with Helm 3's.
func uninstallKinds() []string {
	return []string{
		"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration",
		"APIService", "Ingress", "IngressClass", "Service",
		"CronJob", "Job", "StatefulSet", "HorizontalPodAutoscaler", "Deployment",
		"ReplicaSet", "ReplicationController", "Pod", "DaemonSet",
		"RoleBindingList", "RoleBinding", "RoleList", "Role",
		"ClusterRoleBindingList", "ClusterRoleBinding", "ClusterRoleList", "ClusterRole",
		"CustomResourceDefinition", "PersistentVolumeClaim", "PersistentVolume", "StorageClass",
		"ConfigMap", "SecretList", "Secret", "ServiceAccount",
		"PodDisruptionBudget", "PodSecurityPolicy", "LimitRange", "ResourceQuota",
		"NetworkPolicy", "Namespace", "PriorityClass",
	}
}
