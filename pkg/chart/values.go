// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"context"
	"errors"
	"fmt"
	"slices"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/chartutil"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

// fillValues composes the values with helm-controller's own code. What came out
// of Secrets is hidden from errors.
func (c *Charts) fillValues(ctx context.Context, into *Chart) (err error) {
	hr := into.object
	reader := &valuesReader{charts: c, by: into.Release, hide: &into.hidden}
	from := hr.Spec.ValuesFrom
	if c.offline != nil {
		if from, err = c.knownValues(ctx, into); err != nil {
			return err
		}
	}
	into.values, err = chartutil.ChartValuesFromReferences(ctx, logr.Discard(), reader, hr.Namespace, hr.GetValues(), from...)
	var bad *chartutil.ErrValuesReference
	switch {
	case err == nil:
		return nil
	case errors.As(err, &bad):
		// The chain below it quotes values. The reason is one of a few words.
		return fmt.Errorf("values of %s: %s %s, key %q: %w", into.Release, bad.Kind, bad.Name, bad.Key, bad.Reason)
	}
	return into.hidden.redact(fmt.Errorf("values of %s: %w", into.Release, err))
}

// Values are those that Flux installs the chart of the HelmRelease
// namespace/name with, but for the chart's own, which need not be had. unknown
// are the ConfigMaps and Secrets of spec.valuesFrom that are not among them, as
// in Chart.
func (c *Charts) Values(ctx context.Context, namespace, name string) (values map[string]any, unknown []flux.Ref, err error) {
	out := &Chart{Release: ref(flux.HelmReleaseKind, namespace, name), object: &helmv2.HelmRelease{}}
	if err := c.read(ctx, out.Release, flux.Ref{}, out.object); err != nil {
		return nil, nil, err
	}
	if err := c.fillValues(ctx, out); err != nil {
		return nil, nil, err
	}
	return out.values, out.Unknown, nil
}

// knownValues are the entries of valuesFrom that the repository knows the values
// of. What is optional and not there is left to helm-controller's code, which
// goes on without it.
func (c *Charts) knownValues(ctx context.Context, into *Chart) ([]meta.ValuesReference, error) {
	var known []meta.ValuesReference
	for _, entry := range into.object.Spec.ValuesFrom {
		at := ref(entry.Kind, into.object.Namespace, entry.Name)
		if entry.Kind != configMapKind && entry.Kind != secretKind {
			known = append(known, entry) // it is refused
			continue
		}
		err := c.read(ctx, at, into.Release, &struct{}{})
		var missing *NotFoundError
		var sealed *encryptedError
		var why string
		switch {
		case err == nil, errors.As(err, &missing) && entry.Optional:
			known = append(known, entry)
			continue
		case errors.As(err, &missing):
			why = "no tier of the repository applies it"
		case errors.As(err, &sealed):
			why = "it is encrypted"
		default:
			return nil, into.hidden.redact(fmt.Errorf("values of %s: %w", into.Release, err))
		}
		if !slices.Contains(into.Unknown, at) {
			into.Unknown = append(into.Unknown, at)
			into.Notes = append(into.Notes, fmt.Sprintf("the values that %s takes from %s are not known, because %s", into.Release, at, why))
		}
	}
	return known, nil
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
