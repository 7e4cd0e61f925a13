// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubestandup/kubestandup/pkg/crds"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// maxOwners is how long a chain of owners is followed.
const maxOwners = 6

// loss finds what would go with an object of a release, beyond what is deleted
// by itself: the resources of a CRD, what a Namespace holds, and the claims that
// the garbage collector takes with their owner (those of a StatefulSet with
// persistentVolumeClaimRetentionPolicy.whenDeleted: Delete, of a DataVolume, of
// a custom resource). It is asked when the plan is made, and once more just
// before each deletion.
type loss struct {
	cluster *Cluster
	served  *crds.Served
	release *Release
	// going are the objects of the release that are deleted one by one.
	going  map[types.UID]bool
	claims map[string][]metav1.ObjectMeta
	owners map[types.UID][]metav1.OwnerReference
}

func newLoss(c *Cluster, served *crds.Served, r *Release) *loss {
	l := &loss{
		cluster: c, served: served, release: r, going: map[types.UID]bool{},
		claims: map[string][]metav1.ObjectMeta{}, owners: map[types.UID][]metav1.OwnerReference{},
	}
	for i := range r.Owned {
		if o := &r.Owned[i]; o.Live != nil && o.kept() == "" {
			l.going[o.Live.UID] = true
		}
	}
	return l
}

func (l *loss) with(ctx context.Context, o *Owned) ([]flux.Ref, error) {
	switch o.Ref.GroupVersionKind().GroupKind() {
	case schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:
		return l.instances(ctx, o.Ref.Name)
	case schema.GroupKind{Kind: "Namespace"}:
		return l.contents(ctx, o.Ref.Name)
	}
	if o.Ref.Namespace == "" {
		return nil, nil
	}
	return l.claimsOf(ctx, o)
}

// instances are the resources of a CRD, the plural and group of which are its
// name.
func (l *loss) instances(ctx context.Context, crd string) ([]flux.Ref, error) {
	plural, group, _ := strings.Cut(crd, ".")
	for _, k := range l.served.Kinds() {
		if k.Kind.Group == group && k.Plural == plural {
			found, err := l.cluster.listMetadata(ctx, k, "")
			return l.refs(k, found, func(*metav1.ObjectMeta) bool { return true }), err
		}
	}
	return nil, nil
}

// contents are the objects in a Namespace that are not deleted by themselves,
// that nothing of those owns, and that no Namespace is born with.
func (l *loss) contents(ctx context.Context, namespace string) ([]flux.Ref, error) {
	type found struct {
		kind    crds.ServedKind
		objects []metav1.ObjectMeta
	}
	var all []found
	seen := map[schema.GroupKind]bool{}
	for _, k := range l.served.Kinds() {
		gk := k.Kind.GroupKind()
		if !k.Namespaced || !k.Listable || seen[gk] || ephemeral(gk) {
			continue
		}
		seen[gk] = true
		objects, err := l.cluster.listMetadata(ctx, k, namespace)
		if err != nil {
			return nil, err
		}
		all = append(all, found{k, objects})
		for i := range objects {
			l.owners[objects[i].UID] = objects[i].OwnerReferences
		}
	}
	var lost []flux.Ref
	for _, f := range all {
		lost = append(lost, l.refs(f.kind, f.objects, func(m *metav1.ObjectMeta) bool {
			ref := flux.Ref{APIVersion: f.kind.Kind.GroupVersion().String(), Kind: f.kind.Kind.Kind, Namespace: namespace, Name: m.Name}
			name, record := releaseOf(ref)
			return !l.going[m.UID] && !l.followed(m.OwnerReferences, maxOwners) && !inborn(ref) && !(record && name == l.release.Key.Name)
		})...)
	}
	slices.SortFunc(lost, flux.Ref.Compare)
	return lost, nil
}

// followed is true for what is owned, by whatever chain, by an object that goes
// by itself. Only owners that were listed are followed.
func (l *loss) followed(owners []metav1.OwnerReference, depth int) bool {
	for _, o := range owners {
		if l.going[o.UID] || depth > 0 && l.followed(l.owners[o.UID], depth-1) {
			return true
		}
	}
	return false
}

// claimsOf are the claims that the object owns, by whatever chain.
func (l *loss) claimsOf(ctx context.Context, o *Owned) ([]flux.Ref, error) {
	kind := crds.ServedKind{Kind: schema.GroupVersionKind{Version: "v1", Kind: "PersistentVolumeClaim"}}
	res, ok := l.served.Resource(kind.Kind)
	if !ok {
		return nil, nil
	}
	kind.Resource = res
	claims, listed := l.claims[o.Ref.Namespace]
	if !listed {
		var err error
		if claims, err = l.cluster.listMetadata(ctx, kind, o.Ref.Namespace); err != nil {
			return nil, err
		}
		l.claims[o.Ref.Namespace] = claims
	}
	var failed error
	lost := l.refs(kind, claims, func(m *metav1.ObjectMeta) bool {
		owned, err := l.leads(ctx, m.OwnerReferences, o.Ref.Namespace, o.Live.UID, maxOwners)
		if err != nil {
			failed = err
		}
		return owned
	})
	return lost, failed
}

// leads is true when a chain of owners ends at an object.
func (l *loss) leads(ctx context.Context, owners []metav1.OwnerReference, namespace string, to types.UID, depth int) (bool, error) {
	for _, owner := range owners {
		if owner.UID == to {
			return true, nil
		}
		if depth == 0 {
			continue
		}
		next, known := l.owners[owner.UID]
		if !known {
			var err error
			if next, err = l.ownersOf(ctx, owner, namespace); err != nil {
				return false, err
			}
			l.owners[owner.UID] = next
		}
		if found, err := l.leads(ctx, next, namespace, to, depth-1); found || err != nil {
			return found, err
		}
	}
	return false, nil
}

func (l *loss) ownersOf(ctx context.Context, owner metav1.OwnerReference, namespace string) ([]metav1.OwnerReference, error) {
	gvk := schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind)
	res, ok := l.served.Resource(gvk)
	if !ok {
		return nil, nil
	}
	if !res.Namespaced {
		namespace = ""
	}
	m, err := l.cluster.metadata.Resource(gvk.GroupVersion().WithResource(res.Plural)).Namespace(namespace).Get(ctx, owner.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get %s/%s: %w", owner.Kind, owner.Name, err)
	}
	return m.OwnerReferences, nil
}

func (l *loss) refs(k crds.ServedKind, objects []metav1.ObjectMeta, counts func(*metav1.ObjectMeta) bool) []flux.Ref {
	var out []flux.Ref
	for i := range objects {
		if m := &objects[i]; counts(m) {
			out = append(out, flux.Ref{APIVersion: k.Kind.GroupVersion().String(), Kind: k.Kind.Kind, Namespace: m.Namespace, Name: m.Name})
		}
	}
	return out
}

// ephemeral kinds come and go with others.
func ephemeral(gk schema.GroupKind) bool {
	switch gk.String() {
	case "Event", "Event.events.k8s.io", "Endpoints", "EndpointSlice.discovery.k8s.io", "Lease.coordination.k8s.io",
		"ControllerRevision.apps", "PodMetrics.metrics.k8s.io":
		return true
	}
	return false
}

// inborn objects are in every Namespace.
func inborn(ref flux.Ref) bool {
	return ref.APIVersion == "v1" && (ref.Kind == "ConfigMap" && ref.Name == "kube-root-ca.crt" || ref.Kind == "ServiceAccount" && ref.Name == "default")
}

// deleteOwnedStep deletes an object of a release, unless it has become somebody
// else's since, or more would go with it than the plan has said.
type deleteOwnedStep struct {
	release *Release
	owned   Owned
}

func (s deleteOwnedStep) run(ctx context.Context, x *execution, a *Action) error {
	live, err := x.get(ctx, a.Object)
	if err != nil {
		return err
	}
	if live != nil && live.GetUID() == s.owned.Live.UID {
		owner := otherOwner(&metav1.ObjectMeta{Labels: live.GetLabels(), Annotations: live.GetAnnotations()}, s.release)
		if owner != s.owned.Owner {
			return &skip{fmt.Sprintf("%s was changed since the plan: it now belongs to %s", a.Object, valueOr(nonEmpty(owner), "the release"))}
		}
		lost, err := newLoss(x.cluster, x.world.Served, s.release).with(ctx, &s.owned)
		if err != nil {
			return err
		}
		for _, ref := range lost {
			if !slices.Contains(s.owned.Lost, ref) {
				return &skip{fmt.Sprintf("%s was changed since the plan: %s would go with it", a.Object, ref)}
			}
		}
	}
	return deleteStep{}.run(ctx, x, a)
}
