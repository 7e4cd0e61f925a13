// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// substitution is what Flux would substitute one tier with
// (fluxcd/pkg/kustomize kustomize_varsub.go LoadVariables, v1.41.0).
type substitution struct {
	tier   *build.Followed
	values map[string]variable
	refs   []reference
}

// variable is one value. That of a Secret must not be shown.
type variable struct {
	value string
	// from is the ConfigMap or Secret, or the tier that spells the value out.
	from   flux.Ref
	secret bool
	// sealed is true when the value is encrypted in git and not on the cluster
	// yet: nobody can say here what it is.
	sealed bool
}

// reference is one entry of spec.postBuild.substituteFrom.
type reference struct {
	object   flux.Ref
	optional bool
	// absent is true when the cluster does not have the object.
	absent bool
	// builtBy is the tier that will bring an absent object, nil when none does.
	builtBy *build.Followed
	// err is why the object could not be read, although it may be there.
	err error
}

// unresolved is true when Flux gets no variables from the reference, and
// fails.
func (r *reference) unresolved() bool {
	return r.err != nil || r.absent && r.builtBy == nil && !r.optional
}

// unresolved is why nobody can say what the tier is substituted with, nil when
// it can be said.
func (s *substitution) unresolved() error {
	for i := range s.refs {
		r := &s.refs[i]
		switch {
		case !r.unresolved():
		case r.err != nil:
			return fmt.Errorf("%s could not be read: %w", r.object, r.err)
		default:
			return fmt.Errorf("%s does not exist, and no tier builds it", r.object)
		}
	}
	return nil
}

// find looks a variable up. The error is for one of which nobody can say here
// whether it has a value, or which.
func (s *substitution) find(name string) (v variable, ok bool, err error) {
	v, ok = s.values[name]
	if v.from == s.tier.Tier { // spelled out, which wins over every reference
		return v, ok, nil
	}
	if err := s.unresolved(); err != nil {
		return v, ok, err
	}
	if v.sealed {
		return v, ok, fmt.Errorf("its value in %s is encrypted in git, and the cluster does not have it yet", v.from)
	}
	return v, ok, nil
}

// variables are what the Kustomizations are substituted with, those that are
// not on the cluster yet included. One without spec.postBuild is not among
// them. The requests are one GET for each distinct reference, most of which the
// builds have sent already.
func (l *look) variables(ctx context.Context) ([]substitution, error) {
	b, err := l.builds(ctx)
	if err != nil {
		return nil, err
	}
	var all []substitution
	for i := range b.all {
		f := &b.all[i]
		if post, found, _ := unstructured.NestedMap(f.Kustomization.Object, "spec", "postBuild"); found && len(post) > 0 {
			all = append(all, b.substitution(ctx, f, post))
		}
	}
	return all, ctx.Err()
}

func (b *builds) substitution(ctx context.Context, f *build.Followed, post map[string]any) substitution {
	s := substitution{tier: f, values: map[string]variable{}}
	refs, _, _ := unstructured.NestedSlice(post, "substituteFrom")
	for _, entry := range refs {
		m, _ := entry.(map[string]any)
		kind, _ := m["kind"].(string)
		name, _ := m["name"].(string)
		r := reference{object: flux.Ref{APIVersion: "v1", Kind: kind, Namespace: f.Tier.Namespace, Name: name}}
		r.optional, _ = m["optional"].(bool)
		for name, value := range b.load(ctx, &r) {
			s.values[name] = value
		}
		s.refs = append(s.refs, r)
	}
	inline, _, _ := unstructured.NestedStringMap(post, "substitute")
	for name, value := range inline {
		s.values[name] = variable{value: oneLine(value), from: f.Tier}
	}
	return s
}

// load reads what a reference names: from the cluster, else from the build of
// the tier that will bring it.
func (b *builds) load(ctx context.Context, r *reference) map[string]variable {
	var data map[string]string
	var err error
	switch r.object.Kind {
	case "ConfigMap":
		data, err = b.variables.ConfigMap(ctx, r.object.Namespace, r.object.Name)
	case "Secret":
		var raw map[string][]byte
		raw, err = b.variables.Secret(ctx, r.object.Namespace, r.object.Name)
		data = make(map[string]string, len(raw))
		for name, value := range raw {
			data[name] = string(value)
		}
	default:
		err = fmt.Errorf("%q is no kind that Flux reads variables from", r.object.Kind)
	}
	sealed := false
	switch {
	case apierrors.IsNotFound(err):
		r.absent = true
		o, ok := b.authored(r.object)
		if !ok {
			return nil
		}
		r.builtBy, sealed = o.tier, o.Encrypted
		data = authoredData(o.Object)
	case err != nil:
		r.err = err
		return nil
	}
	values := make(map[string]variable, len(data))
	for name, value := range data {
		values[name] = variable{value: oneLine(value), from: r.object, secret: r.object.Kind == "Secret", sealed: sealed}
	}
	return values
}

// oneLine is what Flux makes of a value.
func oneLine(value string) string { return strings.ReplaceAll(value, "\n", "") }

// authoredData are the values of a ConfigMap or a Secret in git. SOPS leaves
// the names in the clear.
func authoredData(o build.Object) map[string]string {
	values := map[string]string{}
	for _, field := range []string{"data", "stringData"} {
		data, _, _ := unstructured.NestedMap(o.Object, field)
		for name, value := range data {
			text, _ := value.(string)
			if o.GetKind() == "Secret" && field == "data" {
				decoded, _ := base64.StdEncoding.DecodeString(text)
				text = string(decoded)
			}
			values[name] = text
		}
	}
	return values
}
