// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package draft

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/guard"
)

const (
	pageSize = 500
	// atOnce bounds the GETs of ConfigMaps and Secrets side by side.
	atOnce = 8
	// fluxInstances selects the controllers of Flux, however it was installed.
	fluxInstances = "app.kubernetes.io/part-of=flux"
)

// Read looks at the cluster: one LIST for each kind that matters (tiers, nodes,
// Flux's Deployments, what publishes host names), one more where an older
// version of a kind is served, and one GET for each ConfigMap and Secret that a
// tier is substituted from; of a Secret the metadata alone.
//
// What the server refuses or does not serve is in Unread. The error is for a
// server that cannot be spoken to, or that does not accept the credentials.
func Read(ctx context.Context, cfg *rest.Config, identity guard.Identity) (*Live, error) {
	r := &reader{live: &Live{Identity: identity, Known: map[Set]Names{}}}
	var err [3]error
	r.dynamic, err[0] = dynamic.NewForConfig(cfg)
	r.metadata, err[1] = metadata.NewForConfig(cfg)
	r.discovery, err[2] = discovery.NewDiscoveryClientForConfig(cfg)
	if err := errors.Join(err[:]...); err != nil {
		return nil, err
	}
	group, groupCtx := errgroup.WithContext(ctx)
	for _, read := range []func(context.Context) error{r.kustomizations, r.helmReleases, r.nodes, r.controllers, r.hosts} {
		group.Go(func() error { return read(groupCtx) })
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	r.live.NoFlux = r.unserved == 2
	if err := r.variables(ctx); err != nil {
		return nil, err
	}
	r.live.sort()
	return r.live, nil
}

func (l *Live) sort() {
	slices.SortFunc(l.Tiers, func(a, b Tier) int { return a.Ref.Compare(b.Ref) })
	slices.SortFunc(l.Unread, func(a, b Unread) int { return strings.Compare(a.What, b.What) })
	slices.SortFunc(l.Nodes, func(a, b Node) int { return strings.Compare(a.Name, b.Name) })
	slices.Sort(l.Hosts)
	l.Hosts = slices.Compact(l.Hosts)
}

type reader struct {
	dynamic  dynamic.Interface
	metadata metadata.Interface
	// discovery is asked only about what may not be listed.
	discovery discovery.DiscoveryInterface

	mu       sync.Mutex
	live     *Live
	unserved int // kinds of tiers that are not served
}

func (r *reader) lock(change func(*Live)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(r.live)
}

// excuse notes what the server answered and did not give. Any other error is
// given back: without the server there is nothing to draft.
func (r *reader) excuse(what string, err error) error {
	var answered apierrors.APIStatus
	if err == nil || !errors.As(err, &answered) || apierrors.IsUnauthorized(err) {
		return err
	}
	r.lock(func(l *Live) { l.Unread = append(l.Unread, Unread{what, answered.Status().Message}) })
	return nil
}

// each lists a kind in all namespaces, in the first of the versions that is
// served, and hands over every object. A kind that is not served has none.
func (r *reader) each(ctx context.Context, group, resource string, versions []string, visit func(*unstructured.Unstructured)) (served bool, err error) {
	for _, version := range versions {
		client := r.dynamic.Resource(schema.GroupVersionResource{Group: group, Version: version, Resource: resource})
		options := metav1.ListOptions{Limit: pageSize}
		var all []unstructured.Unstructured
		for {
			page, err := client.List(ctx, options)
			if apierrors.IsNotFound(err) {
				break
			}
			if err != nil && options.Continue != "" && apierrors.IsResourceExpired(err) {
				// The list outlived its token: start over, as client-go's pager does.
				options.Continue, all = "", nil
				continue
			}
			if err != nil {
				return true, fmt.Errorf("list %s in all namespaces: %w", resource, err)
			}
			all = append(all, page.Items...)
			if options.Continue = page.GetContinue(); options.Continue == "" {
				for i := range all {
					visit(&all[i])
				}
				return true, nil
			}
		}
	}
	return false, nil
}

func (r *reader) kustomizations(ctx context.Context) error {
	return r.tiers(ctx, flux.KustomizeGroup, "kustomizations", []string{"v1", "v1beta2"}, kustomization)
}

func (r *reader) helmReleases(ctx context.Context) error {
	return r.tiers(ctx, flux.HelmGroup, "helmreleases", []string{"v2", "v2beta2", "v2beta1"}, helmRelease)
}

func (r *reader) tiers(ctx context.Context, group, resource string, versions []string, decode func(*unstructured.Unstructured) Tier) error {
	var tiers []Tier
	served, err := r.each(ctx, group, resource, versions, func(o *unstructured.Unstructured) { tiers = append(tiers, decode(o)) })
	r.lock(func(l *Live) {
		l.Tiers = append(l.Tiers, tiers...)
		if !served {
			r.unserved++
		}
	})
	return r.excuse(resource, err)
}

func (r *reader) nodes(ctx context.Context) error {
	var nodes []Node
	_, err := r.each(ctx, "", "nodes", []string{"v1"}, func(o *unstructured.Unstructured) { nodes = append(nodes, node(o)) })
	r.lock(func(l *Live) { l.Nodes = nodes })
	return r.excuse("nodes", err)
}

// controllers finds where Flux runs, by the label that each way to install it
// sets.
func (r *reader) controllers(ctx context.Context) error {
	list, err := r.metadata.Resource(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}).
		List(ctx, metav1.ListOptions{LabelSelector: fluxInstances, Limit: pageSize})
	if err != nil {
		return r.excuse("deployments", fmt.Errorf("list deployments in all namespaces: %w", err))
	}
	found := ""
	for i := range list.Items {
		// The rest of it, such as the operator that installs it, may be elsewhere.
		name, namespace := list.Items[i].Name, list.Items[i].Namespace
		if name == "kustomize-controller" || found == "" && strings.HasSuffix(name, "-controller") {
			found = namespace
		}
	}
	r.lock(func(l *Live) { l.Controllers = found })
	return nil
}

// hosts are the names that the cluster publishes.
func (r *reader) hosts(ctx context.Context) error {
	for _, kind := range []struct {
		group, resource string
		versions        []string
		names           func(*unstructured.Unstructured) []string
	}{
		{"networking.k8s.io", "ingresses", []string{"v1"}, ingressHosts},
		{"gateway.networking.k8s.io", "gateways", []string{"v1", "v1beta1"}, gatewayHosts},
		{"cert-manager.io", "certificates", []string{"v1"}, certificateHosts},
	} {
		var names []string
		_, err := r.each(ctx, kind.group, kind.resource, kind.versions, func(o *unstructured.Unstructured) {
			names = append(names, kind.names(o)...)
		})
		r.lock(func(l *Live) { l.Hosts = append(l.Hosts, names...) })
		if apierrors.IsForbidden(err) && !r.serves(kind.group) {
			continue // RBAC refuses before it is known that there is no such kind
		}
		if err := r.excuse(kind.resource, err); err != nil {
			return err
		}
	}
	return nil
}

// serves is false where discovery, which everybody may ask, knows no such group.
func (r *reader) serves(group string) bool {
	groups, err := r.discovery.ServerGroups()
	return err != nil || slices.ContainsFunc(groups.Groups, func(g metav1.APIGroup) bool { return g.Name == group })
}

// variables reads each Set that a tier is substituted from, once.
func (r *reader) variables(ctx context.Context) error {
	wanted := map[Set]bool{}
	for i := range r.live.Tiers {
		for _, s := range r.live.Tiers[i].From {
			wanted[s] = true
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for s := range wanted {
		group.Go(func() error {
			names, err := r.set(ctx, s)
			switch {
			case apierrors.IsNotFound(err):
				names, err = Names{Missing: true}, nil
			case err != nil:
				names = Names{Hidden: true}
				err = fmt.Errorf("get %s: %w", s, err)
			}
			r.lock(func(l *Live) { l.Known[s] = names })
			return r.excuse(s.String(), err)
		})
	}
	return group.Wait()
}

func (r *reader) set(ctx context.Context, s Set) (Names, error) {
	if s.Kind == secretKind {
		// The names alone, out of the metadata: the values stay where they are.
		o, err := r.metadata.Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}).
			Namespace(s.Namespace).Get(ctx, s.Name, metav1.GetOptions{})
		if err != nil {
			return Names{}, err
		}
		names := managedKeys(o.ManagedFields)
		return Names{Names: names, Hidden: len(names) == 0}, nil
	}
	o, err := r.dynamic.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).
		Namespace(s.Namespace).Get(ctx, s.Name, metav1.GetOptions{})
	if err != nil {
		return Names{}, err
	}
	values, _, err := unstructured.NestedStringMap(o.Object, "data")
	if err != nil {
		return Names{}, err
	}
	return Names{Names: sortedKeys(values), Values: values}, nil
}
