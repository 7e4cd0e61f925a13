// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"context"
	"errors"
	"slices"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/chart"
	"github.com/kubestandup/kubestandup/pkg/coldstart"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/knowledge"
	"github.com/kubestandup/kubestandup/pkg/repository"
)

// renderTime bounds the rendering of one chart: a template may never end. The
// largest take seconds on a busy machine.
const renderTime = time.Minute

// shelf finds the charts of one cluster.
type shelf struct {
	cluster *repository.Cluster
	charts  *chart.Charts
	book    *knowledge.Base
	server  chart.Server
	// objects are what the tiers apply.
	objects map[flux.Ref]*unstructured.Unstructured
}

func newShelf(cache *chart.Cache, cluster *repository.Cluster, book *knowledge.Base) *shelf {
	objects := map[flux.Ref]*unstructured.Unstructured{}
	server := chart.DefaultServer()
	server.Namespaced = map[schema.GroupKind]bool{}
	for i := range cluster.Tiers {
		t := &cluster.Tiers[i]
		if t.Result == nil {
			continue
		}
		for _, object := range t.Result.Objects {
			key := unversioned(object.Ref())
			if objects[key] == nil {
				objects[key] = object.Unstructured
			}
		}
	}
	for _, relation := range book.Relations() {
		for _, kind := range relation.Creates {
			server.Namespaced[kind.GroupKind()] = kind.Scope == knowledge.Namespaced
		}
	}
	find := func(_ context.Context, ref flux.Ref) (*unstructured.Unstructured, error) {
		return objects[unversioned(ref)], nil
	}
	return &shelf{
		cluster: cluster, objects: objects, book: book, server: server,
		charts: chart.Offline(find, cluster.Tree, chart.OfflineOptions{Cache: cache}),
	}
}

// unversioned keeps the group of a reference: two kinds of one name are two.
func unversioned(r flux.Ref) flux.Ref {
	r.APIVersion = r.Group()
	return r
}

// chart is what the release installs, and what is broken about it. The error is
// for what takes all memory, or cannot be stopped.
func (s *shelf) chart(ctx context.Context, release build.Object) (coldstart.Chart, *chart.BrokenError, error) {
	loaded, err := s.charts.Load(ctx, release.GetNamespace(), release.GetName())
	if err != nil {
		return s.unloaded(ctx, release, err)
	}
	out := coldstart.Chart{Name: loaded.Name, Version: loaded.Version}
	row := s.book.ChartAt(loaded.Name, "", loaded.Version)
	ctx, cancel := context.WithTimeout(ctx, renderTime)
	defer cancel()
	asks := loaded.Asks()
	rendered, err := loaded.Render(ctx, s.server)
	broken, isBroken := errors.AsType[*chart.BrokenError](err)
	if isBroken && broken.Guess == "" {
		doubt, worse := s.charts.Doubt(ctx, loaded, s.server)
		if broken.Guess = doubt; worse != nil {
			err, isBroken = worse, false
		}
	}
	switch {
	case isBroken:
		return s.broken(broken), broken, nil
	case tooMuch(err):
		return coldstart.Chart{}, nil, err
	case err != nil:
		return s.unrendered(ctx, out, release, row, err), nil, nil
	}
	out.Basis = coldstart.Rendered
	out.Definitions, out.Objects = rendered.Definitions, rendered.Objects
	out.PreInstall, out.PostInstall = rendered.PreInstall, rendered.PostInstall
	out.Gated = s.gated(ctx, release, asks, rendered)
	if row != nil {
		_, out.Off = s.split(ctx, release, row)
	}
	return out, nil, nil
}

// tooMuch is true of what ends the rendering of one chart, or of all.
func tooMuch(err error) bool {
	_, memory := errors.AsType[*chart.MemoryError](err)
	slow, isSlow := errors.AsType[*chart.SlowError](err)
	return memory || isSlow && slow.Running()
}

// broken is a chart of the repository that is not installed. Where that is a
// guess, it may bring anything.
func (s *shelf) broken(b *chart.BrokenError) coldstart.Chart {
	if s.certain(b) {
		return coldstart.Chart{Basis: coldstart.Failed, Why: b.Error(), Definitions: b.Definitions}
	}
	return coldstart.Chart{Basis: coldstart.Opaque, Why: b.Error()}
}

// unrendered is a chart that was had and does not render here: a dependency is
// missing, or values that only the cluster knows.
func (s *shelf) unrendered(ctx context.Context, out coldstart.Chart, release build.Object, row *knowledge.Chart, err error) coldstart.Chart {
	var remote *chart.RemoteError
	if row == nil && errors.As(err, &remote) && remote.Key != "" {
		// What it registers, its dependency may.
		row = s.book.ChartAt(remote.Chart, remote.URL, remote.Version)
	}
	return s.known(ctx, out, release, row, err)
}

// unloaded is a chart that cannot be had: the knowledge may have a row for it.
func (s *shelf) unloaded(ctx context.Context, release build.Object, err error) (coldstart.Chart, *chart.BrokenError, error) {
	if broken, ok := errors.AsType[*chart.BrokenError](err); ok {
		return s.broken(broken), broken, nil
	}
	var remote *chart.RemoteError
	if !errors.As(err, &remote) {
		return coldstart.Chart{Basis: coldstart.Opaque, Why: err.Error()}, nil, nil
	}
	out := coldstart.Chart{Name: remote.Chart, Version: remote.Version}
	return s.known(ctx, out, release, s.book.ChartAt(remote.Chart, remote.URL, remote.Version), err), nil, nil
}

// known is what the row says of the chart; without one it is opaque.
func (s *shelf) known(ctx context.Context, out coldstart.Chart, release build.Object, row *knowledge.Chart, err error) coldstart.Chart {
	if row == nil {
		out.Basis, out.Why = coldstart.Opaque, err.Error()
		return out
	}
	out.Basis, out.Relations = coldstart.Known, row.Relations
	var remote *chart.RemoteError
	if errors.As(err, &remote) && remote.Err != nil {
		out.Why = clause(remote.Err)
	}
	on, off := s.split(ctx, release, row)
	out.Off = off
	out.Groups = on.Groups
	if on.Webhooks != nil {
		out.Webhooks = on.Webhooks.Groups
	}
	for _, kind := range on.Registers {
		out.Registers = append(out.Registers, kind.GroupKind())
	}
	return out
}

// split divides a row by the values of the HelmRelease, wherever they come from.
// Where some of them are not known, no switch is taken to be off: they may turn
// it on.
func (s *shelf) split(ctx context.Context, release build.Object, row *knowledge.Chart) (on, off *knowledge.Chart) {
	var hr helmv2.HelmRelease
	_ = runtime.DefaultUnstructuredConverter.FromUnstructured(release.Object, &hr) // it was decoded before
	skip := hr.Spec.Install != nil && hr.Spec.Install.CRDs == helmv2.Skip
	values, unknown, err := s.charts.Values(ctx, release.GetNamespace(), release.GetName())
	if err != nil {
		values = hr.GetValues() // Helm refuses the others, and says why
	}
	on, off = row.Split(values, skip)
	if len(unknown) > 0 && on.Webhooks != nil && len(on.Webhooks.Switches) > 0 {
		on.Webhooks = nil // they may turn them off
	}
	if off == nil || len(unknown) == 0 {
		return on, off
	}
	on.Registers = append(slices.Clone(on.Registers), off.Registers...)
	on.Groups = append(slices.Clone(on.Groups), off.Groups...)
	return on, nil
}
