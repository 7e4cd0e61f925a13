// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode"

	generator "github.com/fluxcd/pkg/kustomize"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Variables is where spec.postBuild.substituteFrom is read. An object that is
// not there is a NotFound error of the API.
type Variables interface {
	ConfigMap(ctx context.Context, namespace, name string) (map[string]string, error)
	Secret(ctx context.Context, namespace, name string) (map[string][]byte, error)
}

// ClusterVariables reads from a cluster, as the controller does.
func ClusterVariables(core typedcorev1.CoreV1Interface) Variables { return clusterVariables{core} }

type clusterVariables struct{ core typedcorev1.CoreV1Interface }

func (c clusterVariables) ConfigMap(ctx context.Context, namespace, name string) (map[string]string, error) {
	o, err := c.core.ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return o.Data, nil
}

func (c clusterVariables) Secret(ctx context.Context, namespace, name string) (map[string][]byte, error) {
	o, err := c.core.Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return o.Data, nil
}

// Remember asks for each object once, and answers the same from then on. It is
// safe for concurrent use.
func Remember(v Variables) Variables {
	return &remembered{next: v, configMaps: map[varKey]func() (map[string]string, error){}, secrets: map[varKey]func() (map[string][]byte, error){}}
}

type remembered struct {
	next       Variables
	mu         sync.Mutex
	configMaps map[varKey]func() (map[string]string, error)
	secrets    map[varKey]func() (map[string][]byte, error)
}

func (r *remembered) ConfigMap(ctx context.Context, namespace, name string) (map[string]string, error) {
	return once(ctx, &r.mu, r.configMaps, varKey{"ConfigMap", namespace, name}, r.next.ConfigMap)
}

func (r *remembered) Secret(ctx context.Context, namespace, name string) (map[string][]byte, error) {
	return once(ctx, &r.mu, r.secrets, varKey{"Secret", namespace, name}, r.next.Secret)
}

func once[V any](ctx context.Context, mu *sync.Mutex, known map[varKey]func() (map[string]V, error), key varKey,
	ask func(context.Context, string, string) (map[string]V, error),
) (map[string]V, error) {
	mu.Lock()
	get, ok := known[key]
	if !ok {
		get = sync.OnceValues(func() (map[string]V, error) { return ask(ctx, key.namespace, key.name) })
		known[key] = get
	}
	mu.Unlock()
	data, err := get()
	return maps.Clone(data), err
}

func notFound(resource, name string) error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: resource}, name)
}

// varKey names a ConfigMap or a Secret.
type varKey struct{ kind, namespace, name string }

func (k varKey) String() string { return k.kind + "/" + k.namespace + "/" + k.name }

// varReader is the client that Flux's substitution reads through. Flux reads
// each reference again for every object of a tier; here it is read once. It
// also remembers which values came from Secrets, to keep them out of errors.
type varReader struct {
	client.Client // nil: nothing but Get is called
	variables     Variables
	known         map[varKey]client.Object
	failed        map[varKey]error
	missing       map[varKey]bool
	opaque        []string
	secrets       map[string]bool
	// tolerant is Builder.UnknownVariables: what is not there is read as an
	// object whose values are not known. placeholders stand for them, as far as
	// the tier asked.
	tolerant     bool
	absent       []varKey
	placeholders map[string]string
}

func newVarReader(v Variables) *varReader {
	return &varReader{
		variables: v, known: map[varKey]client.Object{}, failed: map[varKey]error{},
		missing: map[varKey]bool{}, secrets: map[string]bool{}, placeholders: map[string]string{},
	}
}

// Get implements the one method of client.Client that LoadVariables calls
// (fluxcd/pkg/kustomize kustomize_varsub.go).
func (r *varReader) Get(ctx context.Context, at client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	key := varKey{"ConfigMap", at.Namespace, at.Name}
	if _, secret := into.(*corev1.Secret); secret {
		key.kind = "Secret"
	}
	found, err := r.read(ctx, key)
	if err != nil {
		return err
	}
	switch into := into.(type) {
	case *corev1.ConfigMap:
		found.(*corev1.ConfigMap).DeepCopyInto(into)
	case *corev1.Secret:
		found.(*corev1.Secret).DeepCopyInto(into)
	}
	if len(r.absent) > 0 && key == r.absent[0] {
		r.pretend(into)
	}
	return nil
}

func (r *varReader) read(ctx context.Context, key varKey) (client.Object, error) {
	if found, ok := r.known[key]; ok {
		return found, nil
	}
	if err, ok := r.failed[key]; ok {
		return nil, err
	}
	found, err := r.fetch(ctx, key)
	if err != nil {
		if apierrors.IsNotFound(err) {
			r.missing[key] = true
			if r.tolerant {
				r.absent = append(r.absent, key)
				r.known[key] = emptyObject(key)
				return r.known[key], nil
			}
		}
		r.failed[key] = err
		return nil, err
	}
	r.known[key] = found
	return found, nil
}

func (r *varReader) fetch(ctx context.Context, key varKey) (client.Object, error) {
	if key.kind == "ConfigMap" {
		if r.variables == nil {
			return nil, notFound("configmaps", key.name)
		}
		data, err := r.variables.ConfigMap(ctx, key.namespace, key.name)
		if err != nil {
			return nil, err
		}
		for name, value := range data {
			if strings.HasPrefix(value, opaqueValue) {
				r.opaque = append(r.opaque, fmt.Sprintf("%s: %s", key, name))
			}
		}
		return &corev1.ConfigMap{Data: data}, nil
	}
	if r.variables == nil {
		return nil, notFound("secrets", key.name)
	}
	data, err := r.variables.Secret(ctx, key.namespace, key.name)
	if err != nil {
		return nil, err
	}
	for name, value := range data {
		if strings.HasPrefix(string(value), opaqueValue) {
			r.opaque = append(r.opaque, fmt.Sprintf("%s: %s", key, name))
		}
	}
	return &corev1.Secret{Data: data}, nil
}

// unknown are the variables that have no value here, sorted.
func (r *varReader) unknown() []string {
	slices.Sort(r.opaque)
	return r.opaque
}

// collect makes the context in which Flux says which values are of Secrets.
func (r *varReader) collect(ctx context.Context) context.Context {
	return generator.ContextWithSecretVarsCollector(ctx, func(vars map[string]string) {
		for _, value := range vars {
			if value == "" || IsUnknown(value) {
				continue
			}
			r.secrets[value] = true
			// A parser quotes the word that it tripped over, not the value.
			for _, word := range strings.FieldsFunc(value, isNoWord) {
				if len(word) >= shortestWord {
					r.secrets[word] = true
				}
			}
		}
	})
}

// shortestWord is in bytes. Anything shorter is in every text, and tells
// nothing about the value that it is part of.
const shortestWord = 4

func isNoWord(c rune) bool {
	return !unicode.IsLetter(c) && !unicode.IsDigit(c) && c != '-' && c != '_'
}

// redact takes the values of Secrets out of an error, as the controller does
// (kustomization_controller.go maskSecretValues).
func (r *varReader) redact(err error) error {
	text := err.Error()
	values := make([]string, 0, len(r.secrets))
	for value := range r.secrets {
		values = append(values, value)
	}
	// The longest first: a value may be part of another.
	slices.SortFunc(values, func(a, b string) int { return len(b) - len(a) })
	for _, value := range values {
		text = strings.ReplaceAll(text, value, "*****")
	}
	if text == err.Error() {
		return err
	}
	return errors.New(text)
}
