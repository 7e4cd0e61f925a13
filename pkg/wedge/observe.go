// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	typedappsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/kubestandup/kubestandup/pkg/crds"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/knowledge"
	"github.com/kubestandup/kubestandup/pkg/tiers"
)

// pageSize bounds what one answer of the API server holds.
const pageSize = 500

// Cluster is one cluster whose wedges are found and repaired.
type Cluster struct {
	cfg       *rest.Config
	dynamic   dynamic.Interface
	metadata  metadata.Interface
	discovery discovery.DiscoveryInterface
	core      typedcorev1.CoreV1Interface
	apps      typedappsv1.AppsV1Interface
	crds      *crds.Cluster
	book      *knowledge.Base
}

// New makes clients from a guarded configuration.
func New(cfg *rest.Config, deadlocks *crds.Cluster, book *knowledge.Base) (*Cluster, error) {
	c := &Cluster{cfg: cfg, crds: deadlocks, book: book}
	var err [5]error
	c.dynamic, err[0] = dynamic.NewForConfig(cfg)
	c.metadata, err[1] = metadata.NewForConfig(cfg)
	c.discovery, err[2] = discovery.NewDiscoveryClientForConfig(cfg)
	c.core, err[3] = typedcorev1.NewForConfig(protobuf(cfg))
	c.apps, err[4] = typedappsv1.NewForConfig(cfg)
	if err := errors.Join(err[:]...); err != nil {
		return nil, fmt.Errorf("client for %s: %w", cfg.Host, err)
	}
	return c, nil
}

// HasNamespace is false for a Namespace that the server says does not exist.
func (c *Cluster) HasNamespace(ctx context.Context, name string) bool {
	_, err := c.core.Namespaces().Get(ctx, name, metav1.GetOptions{})
	return !apierrors.IsNotFound(err)
}

// protobuf is how records are read: they are hundreds of kilobytes, which JSON
// decodes twice as slowly.
func protobuf(cfg *rest.Config) *rest.Config {
	c := rest.CopyConfig(cfg)
	c.ContentType = "application/vnd.kubernetes.protobuf"
	c.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	return c
}

// Observe reads all that the verdicts need. What may not be read is a gap of
// the world; the error is for a cluster of which nothing can be said.
func (c *Cluster) Observe(ctx context.Context, choices Choices) (*World, error) {
	w := &World{Choices: choices}
	var err error
	if w.Served, err = crds.Discover(ctx, c.discovery); err != nil {
		return nil, err
	}
	w.Flux, err = flux.Read(ctx, c.cfg)
	var absent *flux.NotInstalledError
	switch {
	case errors.As(err, &absent):
		// The rest is looked at, but nobody shall take that for all.
		w.Gaps = append(w.Gaps, Gap{Why: absent.Error()})
	case err != nil:
		return nil, err
	default:
		w.Graph = tiers.Build(w.Flux, tiers.Options{})
	}
	w.asked = c.narrow(ctx, w)
	if w.Flux != nil {
		w.Gaps = append(w.Gaps, c.untilShown(ctx, w)...)
	}
	w.Now = time.Now()
	var group errgroup.Group
	var gaps [3][]Gap
	for i, part := range []func(context.Context, *World) []Gap{c.observeFlux, c.observeAPI, c.observeReleases} {
		group.Go(func() error {
			gaps[i] = part(ctx, w)
			return nil
		})
	}
	_ = group.Wait()
	for _, g := range gaps {
		w.Gaps = append(w.Gaps, g...)
	}
	return w, ctx.Err()
}
