// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
		if why := content.IsPathSegmentName(d.Name); len(why) > 0 {
			return fmt.Errorf("document %d of the manifest has a name that no object can have: it %s", d.Index, why[0])
		}
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
	lost := newLoss(c, served, r)
	for i := range r.Owned {
		if o := &r.Owned[i]; o.Live != nil {
			if o.Lost, err = lost.with(ctx, o); err != nil {
				return err
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
	return nil
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
	switch ks := m.Labels[flux.KustomizeGroup+"/name"]; {
	case ks != "":
		return "Kustomization/" + m.Labels[flux.KustomizeGroup+"/namespace"] + "/" + ks
	case name == "":
		return "nobody that Helm has marked"
	case name != r.Key.Name || namespace != r.Record.ReleaseNamespace:
		return "release " + namespace + "/" + name
	}
	return ""
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
