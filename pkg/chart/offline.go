// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	helmchart "helm.sh/helm/v4/pkg/chart/v2"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// OfflineOptions say how charts are found without a cluster.
type OfflineOptions struct {
	// Cache is where charts come from that are not in the repository; nil for
	// nowhere.
	Cache *Cache
}

// Offline finds charts without a cluster. HelmReleases, the sources of their
// charts, ConfigMaps and Secrets are what find has, which is what the tiers of a
// repository apply. Charts are in the trees of their sources; what is not there
// is a *RemoteError, unless the options have a cache that holds it.
//
// Nothing that is not known is in the way: values that are encrypted, or that
// nothing in the repository makes, are left out and named in Chart.Unknown.
func Offline(find Find, trees build.Trees, o OfflineOptions) *Charts {
	return &Charts{authored: find, offline: &offline{trees: trees, cache: o.Cache}}
}

type offline struct {
	trees build.Trees
	cache *Cache
}

// tree is the one of the source, nil where there is none or a cluster.
func (c *Charts) tree(ctx context.Context, source flux.Ref) (*build.Tree, error) {
	if c.offline == nil || c.offline.trees == nil {
		return nil, nil // as build.Trees
	}
	return c.offline.trees(ctx, source)
}

// RemoteError says that the chart of a HelmRelease, or a dependency of it, is
// not in the repository and was not had from elsewhere. The fields are as the
// HelmRelease or its source writes them, and empty where nobody says so.
type RemoteError struct {
	Release flux.Ref
	// Chart is its name; of an OCIRepository the last part of the URL.
	Chart string
	// Version may be a range.
	Version string
	// URL is without credentials.
	URL string
	// Key is empty for the release's own chart. Of a dependency it is the key
	// of the values that are the dependency's own.
	Key string
	// Err is why it could not be fetched, nil where nobody tried.
	Err error
}

func (e *RemoteError) Error() string {
	what := "a chart"
	if e.Chart != "" {
		what = strings.TrimSpace("chart " + e.Chart + " " + e.Version)
	}
	if e.Key != "" {
		what = "its dependency, " + what + ","
	}
	if e.URL != "" {
		what += " of " + e.URL
	}
	if e.Err == nil {
		return what + " is not in this repository"
	}
	return fmt.Sprintf("%s is not in this repository: %v", what, e.Err)
}

func (e *RemoteError) Unwrap() error { return e.Err }

// remoteOf completes a *RemoteError below err with the release.
func remoteOf(release flux.Ref, err error) error {
	if remote, ok := errors.AsType[*RemoteError](err); ok {
		remote.Release = release
	}
	return err
}

// request is what tells one chart from another.
type request struct {
	URL    string `json:"url"`
	Chart  string `json:"chart"`
	Wanted string `json:"wanted"`
	// More is what else decides, of an OCIRepository.
	More string `json:"more,omitempty"`
}

// obtain fetches what is wanted, or takes it out of the cache; without a cluster
// every failure is a *RemoteError.
func (c *Charts) obtain(ctx context.Context, q request, fetch func(context.Context) (*packed, error)) (*packed, error) {
	if c.offline == nil {
		return fetch(ctx)
	}
	remote := &RemoteError{Chart: q.Chart, Version: q.Wanted, URL: withoutUser(q.URL)}
	if c.offline.cache == nil {
		return nil, remote
	}
	p, err := c.offline.cache.get(ctx, q, fetch)
	if err == nil || ctx.Err() != nil {
		return p, err
	}
	remote.Err = err
	return nil, remote
}

// unnamed is a *RemoteError for a chart of a source that is itself not in the
// repository: its name may be all that is known.
func (c *Charts) unnamed(err error, chart, wanted string) error {
	var missing *NotFoundError
	if c.offline == nil || !errors.As(err, &missing) {
		return err
	}
	return &RemoteError{Chart: chart, Version: wanted, Err: err}
}

// outsideGit is a chart in another repository, which is not fetched.
func outsideGit(at flux.Ref, from string, want *sourcev1.HelmChart) error {
	return &RemoteError{
		Chart: path.Base(want.Spec.Chart), URL: withoutUser(from),
		Err: fmt.Errorf("%s is another repository, and charts are fetched from Helm repositories and registries alone", at),
	}
}

// remoteDependency is a dependency that does not lie beside its chart
// (source-controller internal/helm/chart dependency_manager.go addRemoteDependency,
// which takes the credentials of a HelmRepository with the same URL; here access
// is public).
func (c *Charts) remoteDependency(ctx context.Context, d *helmchart.Dependency) (*helmchart.Chart, error) {
	base, err := url.Parse(d.Repository)
	if err != nil || base.Host == "" {
		return nil, &RemoteError{Chart: d.Name, Version: d.Version, Err: errors.New("it does not lie in charts/, and no URL says where it is")}
	}
	p, err := c.obtain(ctx, request{URL: d.Repository, Chart: d.Name, Wanted: d.Version}, func(ctx context.Context) (*packed, error) {
		var a account
		if base.Scheme == sourcev1.HelmRepositoryTypeOCI {
			return pullChart(ctx, a, base.Host+base.JoinPath(d.Name).Path, false, d.Version)
		}
		repository := &sourcev1.HelmRepository{Spec: sourcev1.HelmRepositorySpec{URL: d.Repository}}
		want := &sourcev1.HelmChart{Spec: sourcev1.HelmChartSpec{Chart: d.Name, Version: d.Version}}
		return c.download(ctx, a, flux.Ref{}, repository, want)
	})
	if err != nil {
		return nil, err
	}
	loaded, err := load(p.raw)
	if err != nil {
		return nil, fmt.Errorf("its dependency %s is no chart: %w", d.Name, err)
	}
	return loaded, nil
}
