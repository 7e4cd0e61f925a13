// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"bytes"
	"context"
	"encoding/base64"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// treeVariables are the ConfigMaps and Secrets that tiers apply, and behind
// them those of next.
type treeVariables struct {
	// live is Builder.Live: next is asked first.
	live       bool
	next       Variables
	configMaps map[varKey]map[string]string
	secrets    map[varKey]map[string][]byte
	// hidden keeps the values of Secrets that are in the clear out of builds: they
	// would turn up in names that are printed.
	hidden bool
}

func newTreeVariables(next Variables, live, hidden bool) *treeVariables {
	return &treeVariables{next: next, live: live, hidden: hidden, configMaps: map[varKey]map[string]string{}, secrets: map[varKey]map[string][]byte{}}
}

// add takes the objects of a tier that was built.
func (t *treeVariables) add(objects []Object) {
	for _, o := range objects {
		key := varKey{o.GetKind(), o.GetNamespace(), o.GetName()}
		switch {
		case o.GetAPIVersion() != "v1":
		case key.kind == "ConfigMap":
			data, _, _ := unstructured.NestedStringMap(o.Object, "data")
			for name := range data {
				if o.Encrypted {
					data[name] = opaqueValue + name
				}
			}
			t.configMaps[key] = data
		case key.kind == "Secret":
			o.Encrypted = o.Encrypted || t.hidden
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
				text = opaqueValue + name
			}
			data[name] = []byte(text)
		}
	}
	return data
}

// changed is true when a tier that read its variables before would now read
// others.
func (t *treeVariables) changed(read *varReader) bool {
	for key := range read.missing {
		_, configMap := t.configMaps[key]
		_, secret := t.secrets[key]
		if configMap || secret {
			return true
		}
	}
	if t.live {
		return false // the cluster's values win, and were asked for
	}
	for key, known := range read.known {
		switch known := known.(type) {
		case *corev1.ConfigMap:
			if data, ok := t.configMaps[key]; ok && !maps.Equal(data, known.Data) {
				return true
			}
		case *corev1.Secret:
			if data, ok := t.secrets[key]; ok && !maps.EqualFunc(data, known.Data, bytes.Equal) {
				return true
			}
		}
	}
	return false
}

func (t *treeVariables) ConfigMap(ctx context.Context, namespace, name string) (map[string]string, error) {
	var next func(context.Context, string, string) (map[string]string, error)
	if t.next != nil {
		next = t.next.ConfigMap
	}
	found, ok := t.configMaps[varKey{"ConfigMap", namespace, name}]
	return choose(ctx, t.live, next, found, ok, namespace, name, "configmaps")
}

func (t *treeVariables) Secret(ctx context.Context, namespace, name string) (map[string][]byte, error) {
	var next func(context.Context, string, string) (map[string][]byte, error)
	if t.next != nil {
		next = t.next.Secret
	}
	found, ok := t.secrets[varKey{"Secret", namespace, name}]
	return choose(ctx, t.live, next, found, ok, namespace, name, "secrets")
}

// choose takes what the tree has, or what next has where the tree has nothing;
// of a live cluster, the other way round.
func choose[V any](ctx context.Context, live bool, next func(context.Context, string, string) (map[string]V, error),
	found map[string]V, ok bool, namespace, name, resource string,
) (map[string]V, error) {
	switch {
	case ok && (!live || next == nil):
		return maps.Clone(found), nil
	case next == nil:
		return nil, notFound(resource, name)
	}
	data, err := next(ctx, namespace, name)
	if ok && apierrors.IsNotFound(err) {
		return maps.Clone(found), nil
	}
	return data, err
}
