// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

// Find looks an object up, by group, kind, namespace and name: the version in
// the reference is one that the kind has. It returns nil without an error when
// there is none.
type Find func(ctx context.Context, ref flux.Ref) (*unstructured.Unstructured, error)

// Kinds that are looked up beside HelmReleases.
const (
	gitRepository    = "GitRepository"
	bucket           = "Bucket"
	helmRepository   = "HelmRepository"
	helmChart        = "HelmChart"
	ociRepository    = "OCIRepository"
	externalArtifact = "ExternalArtifact"
	secretKind       = "Secret"
	configMapKind    = "ConfigMap"
)

// ref names an object of one of the kinds that are looked up.
func ref(kind, namespace, name string) flux.Ref {
	r := flux.Ref{Kind: kind, Namespace: namespace, Name: name}
	switch kind {
	case secretKind, configMapKind:
		r.APIVersion = "v1"
	case flux.HelmReleaseKind:
		r.APIVersion = flux.HelmGroup + "/v2"
	default:
		r.APIVersion = flux.SourceGroup + "/v1"
	}
	return r
}

// NotFoundError says that an object which the chart needs is nowhere.
type NotFoundError struct {
	Ref flux.Ref
	// By is what names it, the zero Ref for what the caller asked for.
	By flux.Ref
	// offline is true when there was no cluster to look at.
	offline bool
}

func (e *NotFoundError) Error() string {
	text := fmt.Sprintf("%s exists neither on the cluster nor in what a tier would apply", e.Ref)
	if e.offline {
		text = fmt.Sprintf("%s is nothing that a tier of the repository applies", e.Ref)
	}
	if e.By != (flux.Ref{}) {
		text += fmt.Sprintf(", and %s names it", e.By)
	}
	return text
}

// live reads from a cluster, in the versions that it serves.
func liveObjects(client dynamic.Interface, served []flux.Resource) Find {
	return func(ctx context.Context, ref flux.Ref) (*unstructured.Unstructured, error) {
		var at schema.GroupVersionResource
		switch ref.Kind {
		case secretKind:
			at = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
		case configMapKind:
			at = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
		default:
			res, ok := flux.ResourceOf(served, ref.Kind)
			if !ok {
				return nil, nil
			}
			at = res.GroupVersionResource()
		}
		u, err := client.Resource(at).Namespace(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("get %s: %w", ref, err)
		}
		return u, nil
	}
}

// read decodes the object into a typed one: the live one, else the one that a
// tier would apply. It returns a *NotFoundError when there is none.
func (c *Charts) read(ctx context.Context, ref, by flux.Ref, into any) error {
	var u *unstructured.Unstructured
	var err error
	if c.live != nil {
		if u, err = c.live(ctx, ref); err != nil {
			return err
		}
	}
	if u == nil && c.authored != nil {
		if u, err = c.authored(ctx, ref); err != nil {
			return err
		}
		if u != nil && encrypted(u) {
			return &encryptedError{ref}
		}
	}
	if u == nil {
		return &NotFoundError{Ref: ref, By: by, offline: c.offline != nil}
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, into); err != nil {
		// The words of the decoder quote what they trip over.
		if ref.Kind == secretKind {
			return fmt.Errorf("%s cannot be read as one", ref)
		}
		return fmt.Errorf("%s cannot be read: %w", ref, err)
	}
	return nil
}

// encryptedError says that an object is known in its encrypted form alone.
type encryptedError struct{ ref flux.Ref }

func (e *encryptedError) Error() string {
	return fmt.Sprintf("%s is encrypted in git and not on the cluster yet, so its values are not known: "+
		"let the tier that applies it run first", e.ref)
}

// encrypted is true for what SOPS has encrypted, and for what kustomize has
// generated from an encrypted file.
func encrypted(u *unstructured.Unstructured) bool {
	if _, ok := u.Object["sops"]; ok {
		return true
	}
	for _, field := range []string{"data", "stringData"} {
		values, _ := u.Object[field].(map[string]any)
		for _, value := range values {
			text, _ := value.(string)
			if decoded, err := base64.StdEncoding.DecodeString(text); err == nil && u.GetKind() == secretKind {
				text = string(decoded)
			}
			if strings.Contains(text, cipherText) {
				return true
			}
		}
	}
	return false
}

// cipherText begins each value that SOPS has encrypted.
const cipherText = "ENC[AES256_GCM,"
