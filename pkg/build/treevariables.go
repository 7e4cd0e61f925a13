// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"encoding/base64"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// treeVariables are the ConfigMaps and Secrets that tiers apply, and behind
// them those of next.
type treeVariables struct {
	next       Variables
	configMaps map[varKey]map[string]string
	secrets    map[varKey]map[string][]byte
}

func newTreeVariables(next Variables) *treeVariables {
	return &treeVariables{next: next, configMaps: map[varKey]map[string]string{}, secrets: map[varKey]map[string][]byte{}}
}

// add takes the objects of a tier that was built.
func (t *treeVariables) add(objects []Object) {
	for _, o := range objects {
		key := varKey{o.GetKind(), o.GetNamespace(), o.GetName()}
		switch {
		case o.GetAPIVersion() != "v1":
		case key.kind == "ConfigMap":
			data, _, _ := unstructured.NestedStringMap(o.Object, "data")
			t.configMaps[key] = data
		case key.kind == "Secret":
			t.secrets[key] = secretData(o)
		}
	}
}

// secretData are the values of a Secret. SOPS leaves the names in the clear,
// so that a variable is known to be set although its value is not known.
func secretData(o Object) map[string][]byte {
	data := map[string][]byte{}
	for _, field := range []string{"data", "stringData"} {
		values, _, _ := unstructured.NestedMap(o.Object, field)
		for name, value := range values {
			text, _ := value.(string)
			if field == "data" {
				decoded, _ := base64.StdEncoding.DecodeString(text)
				text = string(decoded)
			}
			if o.Encrypted {
				text = opaqueValue
			}
			data[name] = []byte(text)
		}
	}
	return data
}

func (t *treeVariables) has(key varKey) bool {
	_, configMap := t.configMaps[key]
	_, secret := t.secrets[key]
	return configMap || secret
}

func (t *treeVariables) ConfigMap(ctx context.Context, namespace, name string) (map[string]string, error) {
	if data, ok := t.configMaps[varKey{"ConfigMap", namespace, name}]; ok {
		return maps.Clone(data), nil
	}
	if t.next == nil {
		return nil, notFound("configmaps", name)
	}
	return t.next.ConfigMap(ctx, namespace, name)
}

func (t *treeVariables) Secret(ctx context.Context, namespace, name string) (map[string][]byte, error) {
	if data, ok := t.secrets[varKey{"Secret", namespace, name}]; ok {
		return maps.Clone(data), nil
	}
	if t.next == nil {
		return nil, notFound("secrets", name)
	}
	return t.next.Secret(ctx, namespace, name)
}
