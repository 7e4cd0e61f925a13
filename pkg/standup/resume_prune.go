// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/metadata"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/tiers"
)

// unknownPruneError says that nobody can say here what a prune would delete.
type unknownPruneError struct{ error }

func (e *unknownPruneError) Unwrap() error { return e.error }

// pruned are the objects that the next reconcile of a Kustomization deletes: in
// its inventory, not in its build, on the cluster, and still its own
// (kustomize-controller internal/controller prune and deleteObjects, v1.9.6). A
// tier that was suspended for long may have fallen behind many commits. The
// error is an *unknownPruneError where that cannot be told.
func (l *look) pruned(ctx context.Context, n *tiers.Node) ([]flux.Ref, error) {
	if n.Ref.Kind != flux.KustomizationKind || !n.Prune {
		return nil, nil
	}
	entries, err := l.inventoryOf(ctx, n.Ref)
	if err != nil || len(entries) == 0 {
		return nil, err
	}
	b, err := l.builds(ctx)
	if err != nil {
		return nil, err
	}
	f := b.of(n.Ref)
	switch {
	case f == nil:
		return nil, &unknownPruneError{fmt.Errorf("%s was not built", n.Ref)}
	case f.Result == nil:
		return nil, &unknownPruneError{b.why(f)}
	}
	var gone []flux.Ref
	for _, e := range entries {
		ref, err := e.ref()
		if err != nil {
			return nil, &unknownPruneError{err}
		}
		if keeps(f.Result, ref) {
			continue
		}
		if own, err := l.owns(ctx, n, ref); err != nil {
			return nil, err
		} else if own {
			gone = append(gone, ref)
		}
	}
	slices.SortFunc(gone, flux.Ref.Compare)
	return gone, nil
}

func (l *look) inventoryOf(ctx context.Context, ref flux.Ref) ([]entry, error) {
	all, err := l.objects(ctx, ref.Kind)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(all, func(u *unstructured.Unstructured) bool {
		return u.GetNamespace() == ref.Namespace && u.GetName() == ref.Name
	})
	if at < 0 {
		return nil, nil
	}
	entries, _ := inventory(all[at])
	return entries, nil
}

// keeps is true when a build still has an object. The inventory has no namespace
// for one of cluster scope, whatever its manifest says; and the name that
// kustomize generates for an encrypted Secret is another one here than in Flux.
func keeps(r *build.Result, ref flux.Ref) bool {
	suffix := regexp.MustCompile(`-[a-z0-9]{10}$`)
	bare := func(name string) string { return suffix.ReplaceAllString(name, "") }
	return slices.ContainsFunc(r.Objects, func(o build.Object) bool {
		has := o.Ref()
		switch {
		case o.Ignored || has.Group() != ref.Group() || has.Kind != ref.Kind:
			return false
		case has.Namespace != ref.Namespace && ref.Namespace != "":
			return false
		}
		return has.Name == ref.Name || o.Encrypted && bare(has.Name) == bare(ref.Name)
	})
}

// owns is true when an object is on the cluster and a prune of the tier takes it:
// it has the tier's labels, and nothing on it says to leave it.
func (l *look) owns(ctx context.Context, n *tiers.Node, ref flux.Ref) (bool, error) {
	if n.Remote {
		return true, nil // it is on another cluster: take it for there
	}
	served, err := l.served(ctx)
	if err != nil {
		return false, err
	}
	gvk := ref.GroupVersionKind()
	versions := served.Served.Versions(gvk.GroupKind())
	if len(versions) == 0 {
		return false, nil // then Flux cannot delete it either
	}
	if !slices.Contains(versions, gvk.Version) {
		gvk.Version = versions[0]
	}
	res, _ := served.Served.Resource(gvk)
	client, err := metadata.NewForConfig(l.env.Config)
	if err != nil {
		return false, fmt.Errorf("client for %s: %w", l.env.Config.Host, err)
	}
	live, err := client.Resource(gvk.GroupVersion().WithResource(res.Plural)).Namespace(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case apierrors.IsForbidden(err):
		return true, nil // it cannot be looked at: take it for there
	case err != nil:
		return false, fmt.Errorf("get %s: %w", ref, err)
	}
	return prunes(n.Ref, live), nil
}

func prunes(tier flux.Ref, live *metav1.PartialObjectMetadata) bool {
	if live.Labels[flux.KustomizeGroup+"/name"] != tier.Name || live.Labels[flux.KustomizeGroup+"/namespace"] != tier.Namespace {
		return false
	}
	for name, value := range map[string]string{"prune": "disabled", "reconcile": "disabled", "ssa": "Ignore"} {
		at := flux.KustomizeGroup + "/" + name
		if strings.EqualFold(live.Labels[at], value) || strings.EqualFold(live.Annotations[at], value) {
			return false
		}
	}
	return true
}
