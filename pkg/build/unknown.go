// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"fmt"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/envsubst"
	generator "github.com/fluxcd/pkg/kustomize"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kustomize/api/resource"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

// What stands for a value that is not known begins with one of these, and ends
// with the name of the variable, so that two of them differ. No name of an
// object holds either.
const (
	// opaqueValue stands for a value that the tree holds encrypted.
	opaqueValue = "ENCRYPTED_"
	// absentValue stands for a value of an object that is nowhere.
	absentValue = "UNKNOWN_"
)

// IsUnknown is true of a text that holds a placeholder for the value of a
// variable: a name, a namespace, a path or a host that only the cluster knows.
func IsUnknown(text string) bool {
	return strings.Contains(text, opaqueValue) || strings.Contains(text, absentValue)
}

// UnknownError says that a tier did not build, and that its own spec holds a
// placeholder: on a cluster it is another one.
type UnknownError struct {
	// Field is the field of the tier that holds it, for example spec.path.
	Field string
	Err   error
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("%s depends on a variable whose value the repository does not hold: %v", e.Field, e.Err)
}

// Unwrap is why the tier does not build with the placeholder.
func (e *UnknownError) Unwrap() error { return e.Err }

// unknownIn is the first field of the tier that holds a placeholder and decides
// what is built.
func unknownIn(tier *unstructured.Unstructured) (string, bool) {
	spec, _, _ := unstructured.NestedMap(tier.Object, "spec")
	fields := make([]string, 0, len(spec))
	for name, value := range spec {
		if IsUnknown(fmt.Sprint(value)) {
			fields = append(fields, "spec."+name)
		}
	}
	if len(fields) == 0 {
		return "", false
	}
	return slices.Min(fields), true
}

func emptyObject(key varKey) client.Object {
	if key.kind == "ConfigMap" {
		return &corev1.ConfigMap{}
	}
	return &corev1.Secret{}
}

// pretend gives an object that is nowhere the values that the tier asked for.
func (r *varReader) pretend(into client.Object) {
	switch into := into.(type) {
	case *corev1.ConfigMap:
		into.Data = map[string]string{}
		for name, value := range r.placeholders {
			into.Data[name] = value
		}
	case *corev1.Secret:
		into.Data = map[string][]byte{}
		for name, value := range r.placeholders {
			into.Data[name] = []byte(value)
		}
	}
}

// prepare finds out which variables of the object only an absent ConfigMap or
// Secret can set: the ones that Flux would fail for, in strict mode, and that
// have no default.
func (r *varReader) prepare(ctx context.Context, spec *kustomizev1.Kustomization, typed unstructured.Unstructured, res *resource.Resource) error {
	if !r.tolerant || len(spec.Spec.PostBuild.SubstituteFrom) == 0 {
		return nil
	}
	vars, err := generator.LoadVariables(ctx, r, typed)
	if err != nil || len(r.absent) == 0 {
		return err
	}
	for name, value := range spec.Spec.PostBuild.Substitute {
		vars[name] = value
	}
	if len(vars) == 0 && len(r.absentRefs(spec)) == 0 && !isInjected(spec) && spec.GetSubstituteStrategy() != kustomizev1.SubstituteStrategyAlways {
		return nil // optional, all of them: then nothing is substituted
	}
	content, err := res.AsYAML()
	if err != nil {
		return err
	}
	for {
		var last string
		_, err := envsubst.Eval(string(content), func(name string) (string, bool) {
			last = name
			value, set := vars[name]
			return value, set
		})
		if _, set := vars[last]; err == nil || last == "" || set {
			break // what is wrong is not a variable: Flux says what it is
		}
		vars[last] = absentValue + last
		r.placeholders[last] = vars[last]
	}
	if len(vars) == 0 {
		// The object is there, on a cluster, and holds something: defaults apply.
		r.placeholders["KUBESTANDUP"] = absentValue
	}
	return nil
}

// absentRefs are the references that led nowhere and are not optional.
func (r *varReader) absentRefs(spec *kustomizev1.Kustomization) []flux.Ref {
	var all []flux.Ref
	if spec.Spec.PostBuild == nil {
		return nil
	}
	for _, from := range spec.Spec.PostBuild.SubstituteFrom {
		ref := flux.Ref{APIVersion: "v1", Kind: from.Kind, Namespace: spec.GetNamespace(), Name: from.Name}
		if !from.Optional && from.Name != injectedName && slices.Contains(r.absent, varKey{from.Kind, ref.Namespace, ref.Name}) {
			all = append(all, ref)
		}
	}
	return all
}

// lacks is true when the controller would fail for want of an object that
// substituteFrom names. What it read is not read again.
func (r *varReader) lacks(ctx context.Context, tier *unstructured.Unstructured) bool {
	references, _, _ := unstructured.NestedSlice(tier.Object, "spec", "postBuild", "substituteFrom")
	lacks := false
	for _, reference := range references {
		from, _ := reference.(map[string]any)
		kind, _ := from["kind"].(string)
		name, _ := from["name"].(string)
		optional, _ := from["optional"].(bool)
		if kind != "ConfigMap" && kind != "Secret" || optional {
			continue
		}
		key := varKey{kind, tier.GetNamespace(), name}
		if _, err := r.read(ctx, key); err != nil && r.missing[key] {
			lacks = true
		}
	}
	return lacks
}

// injectedName stands for where the variables come from that something on the
// cluster adds to a tier. No object can have that name.
const injectedName = "INJECTED"

// inject lets the tier read variables of which nothing is known, before its
// own. It answers the tier as it is then.
func inject(spec *kustomizev1.Kustomization) (unstructured.Unstructured, error) {
	if spec.Spec.PostBuild == nil {
		spec.Spec.PostBuild = &kustomizev1.PostBuild{}
	}
	from := []kustomizev1.SubstituteReference{{Kind: "ConfigMap", Name: injectedName}}
	spec.Spec.PostBuild.SubstituteFrom = append(from, spec.Spec.PostBuild.SubstituteFrom...)
	typed, err := runtime.DefaultUnstructuredConverter.ToUnstructured(spec)
	if err != nil {
		return unstructured.Unstructured{}, fmt.Errorf("decode: %w", err)
	}
	return unstructured.Unstructured{Object: typed}, nil
}

func isInjected(spec *kustomizev1.Kustomization) bool {
	return slices.ContainsFunc(spec.Spec.PostBuild.SubstituteFrom, func(from kustomizev1.SubstituteReference) bool { return from.Name == injectedName })
}

// onlyInjected is true of a tier that has no variables of its own.
func onlyInjected(spec *kustomizev1.Kustomization) bool {
	return isInjected(spec) && len(spec.Spec.PostBuild.SubstituteFrom) == 1 && len(spec.Spec.PostBuild.Substitute) == 0
}
