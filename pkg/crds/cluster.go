// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package crds

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	typedappsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/knowledge"
)

// customResourceDefinition names the definitions themselves to a client.
func customResourceDefinition() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
}

// pageSize bounds what one answer of the API server holds.
const pageSize = 500

// Cluster is one cluster whose deadlocks are found and broken. Close it.
type Cluster struct {
	dynamic   dynamic.Interface
	discovery discovery.DiscoveryInterface
	core      typedcorev1.CoreV1Interface
	apps      typedappsv1.AppsV1Interface
	artifacts *build.Fetcher
	builder   build.Builder
	book      *knowledge.Base
}

// New makes clients from a guarded configuration. artifacts is the way to a
// source's artifact through the API server, which the guard opens.
func New(cfg *rest.Config, artifacts build.Cluster, book *knowledge.Base) (*Cluster, error) {
	c := &Cluster{book: book}
	var err [4]error
	c.dynamic, err[0] = dynamic.NewForConfig(cfg)
	c.discovery, err[1] = discovery.NewDiscoveryClientForConfig(cfg)
	c.core, err[2] = typedcorev1.NewForConfig(cfg)
	c.apps, err[3] = typedappsv1.NewForConfig(cfg)
	if err := errors.Join(err[:]...); err != nil {
		return nil, fmt.Errorf("client for %s: %w", cfg.Host, err)
	}
	c.artifacts = build.NewFetcher(c.core, artifacts)
	c.builder = build.Builder{Variables: build.ClusterVariables(c.core)}
	return c, nil
}

// Close removes what was fetched.
func (c *Cluster) Close() error { return c.artifacts.Close() }

// Diagnose builds a tier as Flux would and says why it lacks kinds. The errors
// are those of fetching its source's artifact (build.ErrNoArtifact and
// build.ErrUnreachable among them), of the build, and of the API server.
func (c *Cluster) Diagnose(ctx context.Context, s *flux.Snapshot, tier flux.Ref) (*Diagnosis, error) {
	kustomization, err := c.get(ctx, s, tier)
	if err != nil {
		return nil, err
	}
	source := findSource(s, build.SourceOf(kustomization))
	if source == nil {
		return nil, fmt.Errorf("%s: its source %s does not exist", tier, build.SourceOf(kustomization))
	}
	tree, err := c.artifacts.Fetch(ctx, *source)
	if err != nil {
		return nil, err
	}
	result, err := c.builder.Build(ctx, kustomization, tree)
	if err != nil {
		return nil, err
	}
	look, err := c.Look(ctx)
	if err != nil {
		return nil, err
	}
	return look.Judge(ctx, s, result)
}

// Artifacts fetches what the sources of the cluster serve, each once.
func (c *Cluster) Artifacts() *build.Fetcher { return c.artifacts }

// Builder builds tiers with the variables of the cluster.
func (c *Cluster) Builder() build.Builder { return c.builder }

// Look is what a cluster serves at one moment, and which triggers it holds:
// both are asked for once, however many tiers are judged.
type Look struct {
	Served  *Served
	cluster *Cluster
	live    map[schema.GroupKind][]unstructured.Unstructured
}

// Look asks the server what it serves.
func (c *Cluster) Look(ctx context.Context) (*Look, error) {
	served, err := Discover(ctx, c.discovery)
	return &Look{Served: served, cluster: c, live: map[schema.GroupKind][]unstructured.Unstructured{}}, err
}

// Judge says why a tier that was built lacks kinds. The error is the API
// server's, of listing triggers.
func (l *Look) Judge(ctx context.Context, s *flux.Snapshot, result *build.Result) (*Diagnosis, error) {
	var listErr error
	d := judge(result.Tier, result.Objects, l.Served, l.cluster.book, func(gk schema.GroupKind) []unstructured.Unstructured {
		known, ok := l.live[gk]
		if ok {
			return known
		}
		list, err := l.cluster.live(ctx, l.Served, gk)
		if err != nil {
			listErr = cmp.Or(listErr, err)
			return nil
		}
		l.live[gk] = list
		return list
	})
	d.served, d.Rejected, d.redact = s.Served, result.Rejected, result.Redact
	return d, listErr
}

func findSource(s *flux.Snapshot, ref flux.Ref) *flux.Source {
	for i := range s.Sources {
		if r := s.Sources[i].Ref; r.Kind == ref.Kind && r.Namespace == ref.Namespace && r.Name == ref.Name {
			return &s.Sources[i]
		}
	}
	return nil
}

func (c *Cluster) get(ctx context.Context, s *flux.Snapshot, tier flux.Ref) (*unstructured.Unstructured, error) {
	res, ok := flux.ResourceOf(s.Served, tier.Kind)
	if !ok {
		return nil, fmt.Errorf("%s: the cluster does not serve its kind", tier)
	}
	u, err := c.dynamic.Resource(res.GroupVersionResource()).Namespace(tier.Namespace).Get(ctx, tier.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", tier, err)
	}
	return u, nil
}

// live lists the resources of a kind, in the first version that is served.
func (c *Cluster) live(ctx context.Context, served *Served, gk schema.GroupKind) ([]unstructured.Unstructured, error) {
	versions := served.Versions(gk)
	if len(versions) == 0 {
		return nil, nil
	}
	gvk := gk.WithVersion(versions[0])
	res, _ := served.Resource(gvk)
	client := c.dynamic.Resource(gvk.GroupVersion().WithResource(res.Plural))
	var all []unstructured.Unstructured
	for page := (metav1.ListOptions{Limit: pageSize}); ; {
		list, err := client.List(ctx, page)
		if apierrors.IsNotFound(err) {
			return nil, nil // the kind went away since it was discovered
		}
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", res.Plural, err)
		}
		all = append(all, list.Items...)
		if page.Continue = list.GetContinue(); page.Continue == "" {
			return all, nil
		}
	}
}
