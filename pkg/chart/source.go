// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	helmchart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

// found is a chart and where it came from.
type found struct {
	chart  *helmchart.Chart
	origin string
	// missing are dependencies that lie elsewhere, by name or alias.
	missing map[string]*RemoteError
	// lies is where it lies in the tree of a source; nil for one that is packed.
	lies *lies
}

// find is the chart that the HelmRelease names, from what source-controller
// has made of it, else from where source-controller would take it.
func (c *Charts) find(ctx context.Context, hr *helmv2.HelmRelease) (*found, error) {
	by := ref(flux.HelmReleaseKind, hr.Namespace, hr.Name)
	if r := hr.Spec.ChartRef; r != nil {
		return c.findRef(ctx, by, ref(r.Kind, cmp.Or(r.Namespace, hr.Namespace), r.Name))
	}
	want := wanted(hr)
	at := ref(helmChart, want.Namespace, want.Name)
	var made sourcev1.HelmChart
	err := c.read(ctx, at, by, &made)
	var missing *NotFoundError
	switch {
	case errors.As(err, &missing):
		return c.source(ctx, at, want)
	case err != nil:
		return nil, err
	case !sameSpec(made.Spec, want.Spec):
		// helm-controller has not told source-controller yet: it is suspended,
		// waits for a dependency, or is not there.
		want.Generation = made.Generation + 1
		return c.source(ctx, at, want)
	}
	return c.findChart(ctx, at, &made)
}

// wanted is the HelmChart that helm-controller makes (helm-controller
// internal/reconcile helmchart_template.go buildHelmChartFromTemplate).
func wanted(hr *helmv2.HelmRelease) *sourcev1.HelmChart {
	t := hr.Spec.Chart.Spec
	return &sourcev1.HelmChart{
		ObjectMeta: metav1.ObjectMeta{Name: hr.GetHelmChartName(), Namespace: hr.Spec.Chart.GetNamespace(hr.Namespace), Generation: 1},
		Spec: sourcev1.HelmChartSpec{
			Chart: t.Chart, Version: t.Version,
			SourceRef:         sourcev1.LocalHelmChartSourceReference{Kind: t.SourceRef.Kind, Name: t.SourceRef.Name},
			ReconcileStrategy: t.ReconcileStrategy, ValuesFiles: t.ValuesFiles, IgnoreMissingValuesFiles: t.IgnoreMissingValuesFiles,
		},
	}
}

// sameSpec compares what decides which chart is made.
func sameSpec(a, b sourcev1.HelmChartSpec) bool {
	plain := func(s sourcev1.HelmChartSpec) sourcev1.HelmChartSpec {
		return sourcev1.HelmChartSpec{
			Chart: s.Chart, Version: cmp.Or(s.Version, "*"),
			SourceRef:         sourcev1.LocalHelmChartSourceReference{Kind: s.SourceRef.Kind, Name: s.SourceRef.Name},
			ReconcileStrategy: cmp.Or(s.ReconcileStrategy, sourcev1.ReconcileStrategyChartVersion),
			ValuesFiles:       s.ValuesFiles, IgnoreMissingValuesFiles: s.IgnoreMissingValuesFiles,
		}
	}
	return equality.Semantic.DeepEqual(plain(a), plain(b))
}

// findRef follows spec.chartRef.
func (c *Charts) findRef(ctx context.Context, by, at flux.Ref) (*found, error) {
	switch at.Kind {
	case helmChart:
		var made sourcev1.HelmChart
		if err := c.read(ctx, at, by, &made); err != nil {
			return nil, c.unnamed(err, "", "")
		}
		return c.findChart(ctx, at, &made)
	case ociRepository:
		if tree, err := c.tree(ctx, at); err != nil || tree != nil {
			return c.fromRoot(ctx, at, tree, err)
		}
		var repository sourcev1.OCIRepository
		if err := c.read(ctx, at, by, &repository); err != nil {
			return nil, c.unnamed(err, "", "")
		}
		if !reconciled(repository.Generation, repository.Status.ObservedGeneration, repository.Status.Conditions, repository.Status.Artifact) {
			return c.pullRepository(ctx, at, &repository)
		}
		return c.fromArtifact(ctx, at, repository.Status.Artifact, true)
	case externalArtifact:
		if tree, err := c.tree(ctx, at); err != nil || tree != nil {
			return c.fromRoot(ctx, at, tree, err)
		}
		if c.offline != nil {
			return nil, &RemoteError{Err: fmt.Errorf("only the controller of %s knows its chart", at)}
		}
		var external sourcev1.ExternalArtifact
		if err := c.read(ctx, at, by, &external); err != nil {
			return nil, err
		}
		a := external.Status.Artifact
		if a == nil {
			return nil, fmt.Errorf("%s has no artifact yet, and only its own controller can make one: see kubectl -n %s describe externalartifact %s",
				at, at.Namespace, at.Name)
		}
		return c.fromArtifact(ctx, at, a, strings.Contains(a.Revision, ":"))
	}
	return nil, fmt.Errorf("%s refers to a %s, which is no source of charts", by, at.Kind)
}

// findChart is what source-controller has made of the HelmChart, else the
// chart from its source.
func (c *Charts) findChart(ctx context.Context, at flux.Ref, made *sourcev1.HelmChart) (*found, error) {
	if !reconciled(made.Generation, made.Status.ObservedGeneration, made.Status.Conditions, made.Status.Artifact) {
		return c.source(ctx, at, made)
	}
	return c.fromArtifact(ctx, at, made.Status.Artifact, false)
}

// reconciled is helm-controller's test (internal/controller
// helmrelease_controller.go isReady).
func reconciled(generation, observed int64, conditions []metav1.Condition, artifact *meta.Artifact) bool {
	return generation == observed && artifact != nil && !apimeta.IsStatusConditionTrue(conditions, meta.StalledCondition)
}

// fromArtifact loads the artifact as helm-controller does: an archive with the
// chart's folder in it, whether source-controller has packed it or passed it on.
func (c *Charts) fromArtifact(ctx context.Context, at flux.Ref, a *meta.Artifact, revised bool) (*found, error) {
	raw, err := c.artifacts.Raw(ctx, sourceOf(at, a))
	if err != nil {
		return nil, err
	}
	loaded, err := load(raw)
	if err != nil {
		return nil, fmt.Errorf("the artifact of %s is no chart: %w", at, err)
	}
	if revised {
		if loaded.Metadata.Version, err = withRevision(loaded.Metadata.Version, a.Revision); err != nil {
			return nil, fmt.Errorf("the artifact of %s: %w", at, err)
		}
	}
	return &found{chart: loaded, origin: fmt.Sprintf("the artifact of %s", at)}, nil
}

func sourceOf(at flux.Ref, a *meta.Artifact) flux.Source {
	return flux.Source{Ref: at, Artifact: &flux.Artifact{URL: a.URL, Digest: a.Digest, Revision: a.Revision}}
}

func load(raw []byte) (*helmchart.Chart, error) {
	loaded, err := loader.LoadArchive(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	return loaded, loaded.Validate()
}

// source takes the chart from where source-controller would: nobody has made
// the HelmChart yet, or it is behind.
func (c *Charts) source(ctx context.Context, by flux.Ref, want *sourcev1.HelmChart) (*found, error) {
	at := ref(want.Spec.SourceRef.Kind, by.Namespace, want.Spec.SourceRef.Name)
	if tree, err := c.tree(ctx, at); err != nil {
		return nil, err
	} else if tree != nil && (at.Kind == gitRepository || at.Kind == bucket) {
		return c.fromFolder(ctx, at, tree, "", want)
	}
	switch at.Kind {
	case helmRepository:
		var repository sourcev1.HelmRepository
		if err := c.read(ctx, at, by, &repository); err != nil {
			return nil, c.unnamed(err, path.Base(want.Spec.Chart), want.Spec.Version)
		}
		return c.fromRepository(ctx, at, &repository, want)
	case gitRepository:
		var repository sourcev1.GitRepository
		if err := c.read(ctx, at, by, &repository); err != nil {
			return nil, c.unnamed(err, path.Base(want.Spec.Chart), want.Spec.Version)
		}
		if c.offline != nil {
			return nil, outsideGit(at, repository.Spec.URL, want)
		}
		return c.fromTree(ctx, at, repository.Status.Artifact, want)
	case bucket:
		var b sourcev1.Bucket
		if err := c.read(ctx, at, by, &b); err != nil {
			return nil, c.unnamed(err, path.Base(want.Spec.Chart), want.Spec.Version)
		}
		if c.offline != nil {
			return nil, outsideGit(at, b.Spec.Endpoint+"/"+b.Spec.BucketName, want)
		}
		return c.fromTree(ctx, at, b.Status.Artifact, want)
	}
	return nil, fmt.Errorf("%s refers to a %s, which is no source of charts", by, at.Kind)
}
