// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/pager"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/crds"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/tiers"
)

// look is one look at a cluster, which the checks of a step share. What costs
// something is read when the first of them asks for it, and once.
type look struct {
	env      *Env
	snapshot *flux.Snapshot
	graph    *tiers.Graph

	mu       sync.Mutex
	raw      map[string][]*unstructured.Unstructured
	built    *builds
	crdsLook *crds.Look
}

// look reads all of Flux.
func (env *Env) look(ctx context.Context) (*look, error) {
	snapshot, err := flux.Read(ctx, env.Config)
	if err != nil {
		return nil, err
	}
	return &look{env: env, snapshot: snapshot, graph: tiers.Build(snapshot, tiers.Options{})}, nil
}

// objects are the Flux objects of a kind as the cluster has them. The kind need
// not be served.
func (l *look) objects(ctx context.Context, kind string) ([]*unstructured.Unstructured, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.listed(ctx, kind)
}

func (l *look) listed(ctx context.Context, kind string) ([]*unstructured.Unstructured, error) {
	if known, ok := l.raw[kind]; ok {
		return known, nil
	}
	var all []*unstructured.Unstructured
	if res, served := flux.ResourceOf(l.snapshot.Served, kind); served {
		client, err := dynamic.NewForConfig(l.env.Config)
		if err != nil {
			return nil, fmt.Errorf("client for %s: %w", l.env.Config.Host, err)
		}
		list := func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return client.Resource(res.GroupVersionResource()).List(ctx, o)
		}
		err = pager.New(list).EachListItem(ctx, metav1.ListOptions{}, func(o runtime.Object) error {
			all = append(all, o.(*unstructured.Unstructured))
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("list %s in all namespaces: %w", res.Plural, err)
		}
	}
	if l.raw == nil {
		l.raw = map[string][]*unstructured.Unstructured{}
	}
	l.raw[kind] = all
	return all, nil
}

// served is what the cluster serves.
func (l *look) served(ctx context.Context) (*crds.Look, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.crdsLook == nil {
		found, err := l.env.CRDs.Look(ctx)
		if err != nil {
			return nil, err
		}
		l.crdsLook = found
	}
	return l.crdsLook, nil
}

// builds are what every tier of the cluster would apply now, and the tiers
// that these would bring: on a cold cluster most are not there yet.
func (l *look) builds(ctx context.Context) (*builds, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.built != nil {
		return l.built, nil
	}
	roots, err := l.listed(ctx, flux.KustomizationKind)
	if err != nil {
		return nil, err
	}
	b := &builds{at: map[string]*build.Followed{}, unfetched: map[flux.Ref]error{}}
	trees := l.env.CRDs.Artifacts().Trees(l.snapshot.Sources)
	builder := l.env.CRDs.Builder()
	builder.Variables, builder.Live = build.Remember(builder.Variables), true
	b.variables = builder.Variables
	b.all, err = builder.Follow(ctx, func(ctx context.Context, source flux.Ref) (*build.Tree, error) {
		source.APIVersion = ""
		if b.unfetched[source] != nil {
			return nil, nil // one source that cannot be had does not stop the others
		}
		tree, err := trees(ctx, source)
		if err != nil && ctx.Err() == nil {
			b.unfetched[source] = err
			return nil, nil
		}
		return tree, err
	}, roots...)
	if err != nil {
		return nil, err
	}
	b.index()
	l.built = b
	return b, nil
}
