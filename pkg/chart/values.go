// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"context"
	"errors"
	"fmt"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/fluxcd/pkg/chartutil"
	"github.com/go-logr/logr"
	"helm.sh/helm/v4/pkg/chart/common"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

// values composes them with helm-controller's own code. What came out of
// Secrets is added to hide.
func (c *Charts) values(ctx context.Context, hr *helmv2.HelmRelease, hide *hidden) (common.Values, error) {
	by := ref(flux.HelmReleaseKind, hr.Namespace, hr.Name)
	reader := &valuesReader{charts: c, by: by, hide: hide}
	values, err := chartutil.ChartValuesFromReferences(ctx, logr.Discard(), reader, hr.Namespace, hr.GetValues(), hr.Spec.ValuesFrom...)
	var bad *chartutil.ErrValuesReference
	switch {
	case err == nil:
		return values, nil
	case errors.As(err, &bad):
		// The chain below it quotes values. The reason is one of a few words.
		return nil, fmt.Errorf("values of %s: %s %s, key %q: %w", by, bad.Kind, bad.Name, bad.Key, bad.Reason)
	}
	return nil, hide.redact(fmt.Errorf("values of %s: %w", by, err))
}

// valuesReader is the client that chartutil reads through.
type valuesReader struct {
	client.Client // nil: nothing but Get is called
	charts        *Charts
	by            flux.Ref
	hide          *hidden
}

// Get implements the one method of client.Client that
// ChartValuesFromReferences calls (fluxcd/pkg/chartutil values.go).
func (r *valuesReader) Get(ctx context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	kind := configMapKind
	if _, ok := into.(*corev1.Secret); ok {
		kind = secretKind
	}
	err := r.charts.read(ctx, ref(kind, key.Namespace, key.Name), r.by, into)
	var missing *NotFoundError
	if errors.As(err, &missing) {
		return apierrors.NewNotFound(schema.GroupResource{Resource: kind}, key.Name)
	}
	if err != nil {
		return err
	}
	if s, ok := into.(*corev1.Secret); ok {
		for name, value := range s.StringData { // of a manifest
			if s.Data == nil {
				s.Data = map[string][]byte{}
			}
			s.Data[name] = []byte(value)
		}
		for _, value := range s.Data {
			r.hide.add(value)
		}
	}
	return nil
}
