// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"context"
	"errors"
	"fmt"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"helm.sh/helm/v4/pkg/chart/common"
	helmchart "helm.sh/helm/v4/pkg/chart/v2"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/release"
)

// Charts are those that the HelmReleases of one cluster name. They are safe for
// concurrent use where what they were made with is.
type Charts struct {
	// live is nil without a cluster.
	live, authored Find
	artifacts      artifacts
	// offline is nil with a cluster.
	offline *offline
}

// artifacts is what source-controller has made; a *build.Fetcher.
type artifacts interface {
	Raw(ctx context.Context, source flux.Source) ([]byte, error)
	Fetch(ctx context.Context, source flux.Source) (*build.Tree, error)
}

// New reads the objects that the cluster serves, and asks authored for what is
// not there: what tiers would apply that have not run yet. authored may be nil.
func New(cfg *rest.Config, fetcher *build.Fetcher, served []flux.Resource, authored Find) (*Charts, error) {
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("client for %s: %w", cfg.Host, err)
	}
	return &Charts{live: liveObjects(client, served), authored: authored, artifacts: fetcher}, nil
}

// Chart is the chart of a HelmRelease, ready to be rendered.
type Chart struct {
	// Release is the HelmRelease.
	Release flux.Ref
	Name    string
	Version string
	// Origin says where the chart was found, to complete "from".
	Origin string
	// Notes are what a reader of the outcome has to know.
	Notes []string
	// Unknown are the ConfigMaps and Secrets of spec.valuesFrom whose values are
	// not known without a cluster, so that they are not among the values: what
	// is rendered is then a guess.
	Unknown []flux.Ref

	object *helmv2.HelmRelease
	chart  *helmchart.Chart
	values common.Values
	hidden hidden
	// memory is what rendering it may take, in bytes.
	memory uint64
	// lies is nil for a chart of a registry, or of a source's artifact.
	lies *lies
	// missing are the dependencies that could not be had, by name or alias. They
	// are in the way when the values enable them.
	missing map[string]*RemoteError
}

// ErrElsewhere is wrapped by what Load says of a HelmRelease that is installed
// on another cluster.
var ErrElsewhere = errors.New("it is installed on another cluster (spec.kubeConfig), so the CRDs of its chart belong there")

// Load finds the chart that Flux reconciles for the HelmRelease namespace/name:
// the artifact that source-controller has made of it, and where there is none,
// the same chart from its own source. The errors name the object that is in
// the way, and hold no value of a Secret; a *NotFoundError is among them, and
// without a cluster a *RemoteError.
func (c *Charts) Load(ctx context.Context, namespace, name string) (*Chart, error) {
	out := &Chart{Release: ref(flux.HelmReleaseKind, namespace, name), object: &helmv2.HelmRelease{}, memory: heapBound}
	if err := c.read(ctx, out.Release, flux.Ref{}, out.object); err != nil {
		return nil, err
	}
	spec := &out.object.Spec
	switch {
	case spec.KubeConfig != nil:
		return nil, fmt.Errorf("%s: %w", out.Release, ErrElsewhere)
	case (spec.Chart == nil) == (spec.ChartRef == nil):
		return nil, fmt.Errorf("%s needs one of spec.chart and spec.chartRef, and helm-controller accepts nothing else", out.Release)
	}
	found, err := c.find(ctx, out.object)
	if broken, ok := errors.AsType[*BrokenError](err); ok {
		broken.Release = out.Release
		if broken.Guess == "" {
			broken.Guess = out.guess()
		}
		return nil, broken
	}
	if err != nil {
		return nil, remoteOf(out.Release, fmt.Errorf("chart of %s: %w", out.Release, err))
	}
	out.chart, out.Origin, out.missing, out.lies = found.chart, found.origin, found.missing, found.lies
	out.Name, out.Version = found.chart.Metadata.Name, found.chart.Metadata.Version
	if err := c.fillValues(ctx, out); err != nil {
		return nil, err
	}
	if len(spec.PostRenderers) > 0 && c.offline == nil {
		out.Notes = append(out.Notes, fmt.Sprintf("the postRenderers of %s are not applied to its CRDs", out.Release))
	}
	return out, nil
}

// releaseName is the name that helm-controller gives the release.
func (c *Chart) releaseName() string {
	return release.NameFor(c.object.Spec.ReleaseName, c.object.Spec.TargetNamespace, c.object.Name)
}

// Redact takes the values of Secrets out of an error: an API server quotes
// what it does not accept.
func (c *Chart) Redact(err error) error { return c.hidden.redact(err) }
