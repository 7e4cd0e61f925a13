// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"

	"github.com/kubestandup/kubestandup/pkg/crds"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/release"
)

// Helm's own marks on what it has installed (helm pkg/action/validate.go).
const (
	releaseNameMark      = "meta.helm.sh/release-name"
	releaseNamespaceMark = "meta.helm.sh/release-namespace"
)

// readOwned maps every object of the manifest and looks whether it is there,
// by its metadata alone.
func (c *Cluster) readOwned(ctx context.Context, served *crds.Served, r *Release) error {
	documents, err := r.Record.Documents()
	if err != nil {
		return err
	}
	documents = release.UninstallOrder(documents)
	owned := make([]Owned, len(documents))
	group, looking := errgroup.WithContext(ctx)
	group.SetLimit(readers)
	for i, d := range documents {
		owned[i] = Owned{Document: d, Ref: flux.Ref{APIVersion: d.APIVersion, Kind: d.Kind, Namespace: d.Namespace, Name: d.Name}}
		o := &owned[i]
		gvk := o.Ref.GroupVersionKind()
		_, o.Served = served.Resource(gvk)
		o.Unknown = !o.Served && served.Unknown(gvk.GroupVersion()) != nil
		if !o.Served {
			gvk = nowServedAs(served, gvk)
			o.Ref.APIVersion = gvk.GroupVersion().String()
		}
		res, ok := served.Resource(gvk)
		switch {
		case !ok:
			continue
		case !res.Namespaced:
			o.Ref.Namespace = ""
		case o.Ref.Namespace == "":
			o.Ref.Namespace = r.Record.ReleaseNamespace
		}
		group.Go(func() error { return c.look(looking, served, r, o) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	r.Owned = owned
	return c.readClaims(ctx, served, r)
}

// readClaims finds the PersistentVolumeClaims that the garbage collector would
// delete with an object of the release: those of a StatefulSet with
// persistentVolumeClaimRetentionPolicy.whenDeleted: Delete, of a DataVolume, of
// whatever else owns one.
func (c *Cluster) readClaims(ctx context.Context, served *crds.Served, r *Release) error {
	claims := schema.GroupVersionKind{Version: "v1", Kind: "PersistentVolumeClaim"}
	res, ok := served.Resource(claims)
	if !ok {
		return nil
	}
	owners := map[types.UID]*Owned{}
	var namespaces []string
	for i := range r.Owned {
		if o := &r.Owned[i]; o.Live != nil && o.Ref.Namespace != "" {
			owners[o.Live.UID] = o
			if !slices.Contains(namespaces, o.Ref.Namespace) {
				namespaces = append(namespaces, o.Ref.Namespace)
			}
		}
	}
	for _, ns := range namespaces {
		found, err := c.listMetadata(ctx, crds.ServedKind{Kind: claims, Resource: res}, ns)
		if err != nil {
			return err
		}
		for i := range found {
			for _, owner := range found[i].OwnerReferences {
				if o := owners[owner.UID]; o != nil {
					o.Lost = append(o.Lost, flux.Ref{APIVersion: "v1", Kind: claims.Kind, Namespace: ns, Name: found[i].Name})
				}
			}
		}
	}
	return nil
}

// nowServedAs is the version in which the objects of a kind are reached that is
// not served as it was written: an old manifest does not make them go away.
// Where there is none, it is the kind as it came.
func nowServedAs(served *crds.Served, gvk schema.GroupVersionKind) schema.GroupVersionKind {
	gk := gvk.GroupKind()
	if gk.Group == "extensions" { // emptied by Kubernetes 1.22
		switch gk.Kind {
		case "Ingress", "NetworkPolicy":
			gk.Group = "networking.k8s.io"
		case "Deployment", "DaemonSet", "ReplicaSet":
			gk.Group = "apps"
		}
	}
	versions := served.Versions(gk)
	if len(versions) == 0 {
		return gvk
	}
	return gk.WithVersion(slices.MaxFunc(versions, version.CompareKubeAwareVersionStrings))
}

func (c *Cluster) look(ctx context.Context, served *crds.Served, r *Release, o *Owned) error {
	res, _ := served.Resource(o.Ref.GroupVersionKind())
	m, err := c.metadata.Resource(o.Ref.GroupVersionKind().GroupVersion().WithResource(res.Plural)).
		Namespace(o.Ref.Namespace).Get(ctx, o.Ref.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("get %s: %w", o.Ref, err)
	}
	o.Live = observed(o.Ref, &m.ObjectMeta)
	o.Owner = otherOwner(&m.ObjectMeta, r)
	switch o.Ref.GroupVersionKind().GroupKind() {
	case schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:
		o.Lost, err = c.instances(ctx, served, o.Ref.Name)
	case schema.GroupKind{Kind: "Namespace"}:
		o.Lost, err = c.contents(ctx, served, r, o.Ref.Name)
	}
	return err
}

func observed(ref flux.Ref, m *metav1.ObjectMeta) *Observed {
	out := &Observed{
		Ref: ref, UID: m.UID, ResourceVersion: m.ResourceVersion, Generation: m.Generation,
		Created: m.CreationTimestamp.Time, Finalizers: m.Finalizers,
	}
	if m.DeletionTimestamp != nil {
		out.Deleted = m.DeletionTimestamp.Time
	}
	return out
}

// otherOwner is who has an object that this release once installed, empty
// while it is the release itself.
func otherOwner(m *metav1.ObjectMeta, r *Release) string {
	name, namespace := m.Annotations[releaseNameMark], m.Annotations[releaseNamespaceMark]
	switch {
	case name == "":
		if ks := m.Labels[flux.KustomizeGroup+"/name"]; ks != "" {
			return "Kustomization/" + m.Labels[flux.KustomizeGroup+"/namespace"] + "/" + ks
		}
		return "nobody that Helm has marked"
	case name != r.Name || namespace != r.Record.ReleaseNamespace:
		return "release " + namespace + "/" + name
	}
	return ""
}

// instances are a few resources of a CRD, the plural and group of which are its
// name.
func (c *Cluster) instances(ctx context.Context, served *crds.Served, crd string) ([]flux.Ref, error) {
	plural, group, _ := strings.Cut(crd, ".")
	for _, k := range served.Kinds() {
		if k.Kind.Group != group || k.Plural != plural {
			continue
		}
		return c.list(ctx, k, "")
	}
	return nil, nil
}

// contents are the objects in a Namespace that the release does not own and
// that no cluster is born with.
func (c *Cluster) contents(ctx context.Context, served *crds.Served, r *Release, namespace string) ([]flux.Ref, error) {
	var all []flux.Ref
	seen := map[schema.GroupKind]bool{}
	for _, k := range served.Kinds() {
		gk := k.Kind.GroupKind()
		if !k.Namespaced || !k.Listable || seen[gk] || ephemeral(gk) {
			continue
		}
		seen[gk] = true
		found, err := c.listMetadata(ctx, k, namespace)
		if err != nil {
			return nil, err
		}
		for i := range found {
			m := &found[i]
			ref := flux.Ref{APIVersion: k.Kind.GroupVersion().String(), Kind: k.Kind.Kind, Namespace: namespace, Name: m.Name}
			if len(m.OwnerReferences) > 0 || inborn(ref) || strings.HasPrefix(m.Name, "sh.helm.release.v1."+r.Name+".") ||
				m.Annotations[releaseNameMark] == r.Name && m.Annotations[releaseNamespaceMark] == r.Record.ReleaseNamespace {
				continue
			}
			all = append(all, ref)
		}
	}
	slices.SortFunc(all, flux.Ref.Compare)
	return all, nil
}

// ephemeral kinds come and go with others.
func ephemeral(gk schema.GroupKind) bool {
	switch gk.Kind {
	case "Event", "Endpoints", "EndpointSlice", "Lease", "ControllerRevision", "PodMetrics":
		return true
	}
	return false
}

// inborn objects are in every Namespace.
func inborn(ref flux.Ref) bool {
	return ref.Kind == "ConfigMap" && ref.Name == "kube-root-ca.crt" || ref.Kind == "ServiceAccount" && ref.Name == "default"
}

func (c *Cluster) list(ctx context.Context, k crds.ServedKind, namespace string) ([]flux.Ref, error) {
	found, err := c.listMetadata(ctx, k, namespace)
	if err != nil {
		return nil, err
	}
	out := make([]flux.Ref, 0, len(found))
	for i := range found {
		out = append(out, flux.Ref{APIVersion: k.Kind.GroupVersion().String(), Kind: k.Kind.Kind, Namespace: found[i].Namespace, Name: found[i].Name})
	}
	return out, nil
}

// listMetadata lists objects of a kind, by their metadata alone.
func (c *Cluster) listMetadata(ctx context.Context, k crds.ServedKind, namespace string) ([]metav1.ObjectMeta, error) {
	client := c.metadata.Resource(k.Kind.GroupVersion().WithResource(k.Plural)).Namespace(namespace)
	var all []metav1.ObjectMeta
	for page := (metav1.ListOptions{Limit: pageSize}); ; {
		list, err := client.List(ctx, page)
		switch {
		case apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err):
			return nil, nil
		case err != nil:
			return nil, fmt.Errorf("list %s: %w", k.Plural, err)
		}
		for i := range list.Items {
			all = append(all, list.Items[i].ObjectMeta)
		}
		if page.Continue = list.Continue; page.Continue == "" {
			return all, nil
		}
	}
}

func compareStrings(a, b string) int { return strings.Compare(a, b) }
