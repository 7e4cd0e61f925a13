// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/pager"

	"github.com/kubestandup/kubestandup/pkg/crds"
)

// listers is how many kinds are listed at a time.
const listers = 8

// examiner lists the objects of kinds and judges those that are pieces. What it
// has judged it forgets: a cluster may have more objects than fit in memory.
type examiner struct {
	full     dynamic.Interface
	metadata metadata.Interface
	served   *crds.Served
	book     *checkBook
	// established are the names of the CRDs whose kinds are served, which needs
	// no look at their schemas: those take megabytes.
	established map[string]bool
}

func newExaminer(cfg *rest.Config, served *crds.Served, book *checkBook) (*examiner, error) {
	e := &examiner{served: served, book: book, established: servedCRDs(served)}
	var err [2]error
	e.full, err[0] = dynamic.NewForConfig(cfg)
	e.metadata, err[1] = metadata.NewForConfig(cfg)
	if err := errors.Join(err[:]...); err != nil {
		return nil, fmt.Errorf("client for %s: %w", cfg.Host, err)
	}
	return e, nil
}

// servedCRDs are plural.group of all that is served, which is how a CRD has to
// be named.
func servedCRDs(served *crds.Served) map[string]bool {
	names := map[string]bool{}
	for _, k := range served.Kinds() {
		names[k.Plural+"."+k.Kind.Group] = true
	}
	return names
}

// blind is a kind that could not be listed, and why.
type blind struct {
	kind *kindPieces
	why  string
}

// examine judges all pieces. A kind that the server does not let us list is no
// reason to stop: it is among the blind, and its pieces are unasked. The error
// is for a server that cannot be reached, and for a done context.
func (e *examiner) examine(ctx context.Context, kinds []*kindPieces) ([]blind, error) {
	whys := make([]string, len(kinds))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(listers)
	for i, k := range kinds {
		group.Go(func() error {
			var err error
			whys[i], err = e.kind(ctx, k)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var all []blind
	for i, why := range whys {
		if why != "" {
			all = append(all, blind{kinds[i], why})
		}
	}
	return all, nil
}

// kind judges the pieces of one kind, and says why it could not.
func (e *examiner) kind(ctx context.Context, k *kindPieces) (blindWhy string, err error) {
	gvr, listable := k.resource(e.served, e.book.versions(k.GroupKind))
	if gvr.Resource == "" {
		for _, v := range k.versions {
			if err := e.served.Unknown(schema.GroupVersion{Group: k.Group, Version: v}); err != nil {
				return k.all(unasked, "its API is down: "+firstLine(err.Error())), nil
			}
		}
		k.all(unservedKind, "")
		return "", nil
	}
	if !listable {
		return k.all(unasked, "the server has no list of it"), nil
	}
	examined := map[types.NamespacedName]proof{}
	err = e.list(ctx, k, gvr, func(u *unstructured.Unstructured) {
		at := types.NamespacedName{Namespace: u.GetNamespace(), Name: u.GetName()}
		if p := k.pieces[at]; p != nil {
			examined[at] = e.judge(ctx, k, p, u)
		}
	})
	var status apierrors.APIStatus
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case apierrors.IsNotFound(err): // it has gone since it was discovered
		k.all(unservedKind, "")
		return "", nil
	case errors.As(err, &status):
		return k.all(unasked, status.Status().Message), nil
	case err != nil:
		return "", fmt.Errorf("list %s: %w", gvr.GroupResource(), err)
	}
	for at, p := range k.pieces {
		p.proof = proof{class: absent}
		if found, ok := examined[at]; ok {
			p.proof = found
		} else if k.GroupKind == (schema.GroupKind{Group: "batch", Kind: "Job"}) {
			// One that ends takes itself away after ttlSecondsAfterFinished.
			p.proof = proof{class: mute, why: "it is gone, as a Job is that has ended and removed itself"}
		}
	}
	return "", nil
}

// all gives all pieces one class, and returns why.
func (k *kindPieces) all(c class, why string) string {
	for _, p := range k.pieces {
		p.proof = proof{class: c, why: why}
	}
	return why
}

// list gives each object of a kind, by its metadata alone where nothing else is
// looked at. It may give one twice.
func (e *examiner) list(ctx context.Context, k *kindPieces, gvr schema.GroupVersionResource, each func(*unstructured.Unstructured)) error {
	if !e.onlyMetadata(k) {
		page := func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return e.full.Resource(gvr).List(ctx, o)
		}
		return pager.New(page).EachListItem(ctx, metav1.ListOptions{}, func(o runtime.Object) error {
			each(o.(*unstructured.Unstructured))
			return nil
		})
	}
	page := func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return e.metadata.Resource(gvr).List(ctx, o)
	}
	return pager.New(page).EachListItem(ctx, metav1.ListOptions{}, func(o runtime.Object) error {
		m := o.(*metav1.PartialObjectMetadata)
		u := &unstructured.Unstructured{Object: map[string]any{}}
		u.SetGroupVersionKind(k.WithVersion(gvr.Version))
		u.SetNamespace(m.Namespace)
		u.SetName(m.Name)
		u.SetDeletionTimestamp(m.DeletionTimestamp)
		u.SetFinalizers(m.Finalizers)
		each(u)
		return nil
	})
}

// onlyMetadata is true for kinds that have no status, unless a check wants to
// look at them; always for Secrets; and for CRDs.
func (e *examiner) onlyMetadata(k *kindPieces) bool {
	if isSecret(k.GroupKind) {
		return true
	}
	checked := len(e.book.versions(k.GroupKind)) > 0
	return !checked && (statusless(k.GroupKind) || isCRD(k.GroupKind))
}

func isCRD(gk schema.GroupKind) bool {
	return gk == schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
}

func (e *examiner) judge(ctx context.Context, k *kindPieces, p *piece, u *unstructured.Unstructured) proof {
	checks := e.book.about(p)
	if !isCRD(k.GroupKind) || len(checks) > 0 || u.GetDeletionTimestamp() != nil {
		return judge(ctx, u, checks)
	}
	if e.established[u.GetName()] {
		return proof{class: wellSaid}
	}
	return proof{class: late, why: "it is not Established: its kind is not served"}
}
