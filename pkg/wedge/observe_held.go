// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"context"
	"fmt"
	"regexp"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/knowledge"
)

// phaseDeployed is how CDI and KubeVirt call a resource that is as it should be.
const phaseDeployed = "Deployed"

// pathOf is the path of all objects of a resource, or of those in a namespace.
func pathOf(gvr schema.GroupVersionResource, namespace string) []string {
	p := []string{"/apis", gvr.Group, gvr.Version}
	if gvr.Group == "" {
		p = []string{"/api", gvr.Version}
	}
	if namespace != "" {
		p = append(p, "namespaces", namespace)
	}
	return append(p, gvr.Resource)
}

// triggers reads the resources whose operator is known, one list for each kind
// that a definition registers.
func (r *apiReader) triggers(ctx context.Context) {
	if r.cluster.book == nil {
		return
	}
	var parts []func(context.Context)
	seen := map[string]bool{}
	for _, rel := range r.cluster.book.Relations() {
		if rel.Operator == nil || (rel.Class != knowledge.CR && rel.Class != knowledge.AutoCR && rel.Class != knowledge.CRDynamic) {
			continue
		}
		for _, t := range rel.Triggers {
			d := r.world.definition(t.GroupKind())
			if d == nil || seen[d.Ref.Name] || t.Group == flux.HelmGroup || t.Group == flux.KustomizeGroup || d.readable() == "" {
				continue
			}
			seen[d.Ref.Name] = true
			parts = append(parts, func(ctx context.Context) { r.trigger(ctx, d, rel) })
		}
	}
	r.together(ctx, parts...)
}

func (r *apiReader) trigger(ctx context.Context, d *Definition, rel knowledge.Relation) {
	type item struct {
		Metadata fields `json:"metadata"`
		Spec     struct {
			UninstallStrategy text `json:"uninstallStrategy"`
		} `json:"spec"`
		Status struct {
			Phase           text               `json:"phase"`
			OperatorVersion text               `json:"operatorVersion"`
			ObservedVersion text               `json:"observedVersion"`
			Conditions      []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	found, err := all(ctx, r.lister, query{path: pathOf(d.resource(), "")}, func(i *item) (*TriggerState, bool) {
		t := &TriggerState{
			Held: i.Metadata.held(d.apiVersion(), d.Defines.Kind, d.Plural), Phase: string(i.Status.Phase), Conditions: i.Status.Conditions,
			OperatorVersion: string(i.Status.OperatorVersion), ObservedVersion: string(i.Status.ObservedVersion),
			UninstallStrategy: string(i.Spec.UninstallStrategy),
		}
		t.Relation = &rel
		return t, true
	})
	if err != nil && !apierrors.IsNotFound(err) {
		r.gap(d.Defines.Kind+" in all namespaces", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.world.Triggers = append(r.world.Triggers, found...)
}

// text is a string where the field is one, else empty: of a kind that we only
// know by name any field may be anything.
type text string

// UnmarshalJSON implements json.Unmarshaler.
func (t *text) UnmarshalJSON(raw []byte) error {
	if n := len(raw); n >= 2 && raw[0] == '"' {
		*t = text(raw[1 : n-1])
	}
	return nil
}

// held reads what keeps the CRDs and the Namespaces that are being deleted.
func (r *apiReader) held(ctx context.Context) {
	var parts []func(context.Context)
	for _, d := range r.world.Definitions {
		if !d.Deleted.IsZero() && d.readable() != "" {
			parts = append(parts, func(ctx context.Context) {
				if err := r.listHeld(ctx, d.resource(), d.Defines.Kind, "", nil); err != nil {
					d.Unread = reason(err)
					r.gap(fmt.Sprintf("the objects of %s", d.Ref), err)
				}
			})
		}
	}
	parts = append(parts, r.remaining)
	r.together(ctx, parts...)
}

func (r *apiReader) listHeld(ctx context.Context, gvr schema.GroupVersionResource, kind, namespace string, rel *knowledge.Relation) error {
	found, err := all(ctx, r.lister, query{path: pathOf(gvr, namespace), metadata: true}, func(i *struct {
		Metadata fields `json:"metadata"`
	},
	) (*Held, bool) {
		h := i.Metadata.held(gvr.GroupVersion().String(), kind, gvr.Resource)
		h.Relation = rel
		return &h, len(h.Finalizers) > 0
	})
	if apierrors.IsNotFound(err) {
		err = nil // the kind is gone, and its objects with it
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, h := range found {
		if h.Relation == nil {
			h.Relation = r.relationOf(schema.GroupKind{Group: gvr.Group, Kind: kind})
		}
		same := func(o *Held) bool { return o.UID == h.UID }
		if !slices.ContainsFunc(r.world.Held, same) {
			r.world.Held = append(r.world.Held, h)
		}
	}
	return err
}

// relationOf is the system whose resource a kind is: it sets off, or is made.
func (r *apiReader) relationOf(gk schema.GroupKind) *knowledge.Relation {
	if r.cluster.book == nil {
		return nil
	}
	for _, found := range [][]knowledge.Relation{r.cluster.book.ByTrigger(gk), r.cluster.book.Creators(gk)} {
		for _, rel := range found {
			if rel.Operator != nil && rel.ID != "flux-helmrelease" {
				return &rel
			}
		}
	}
	return nil
}

// contentRemaining is how the namespace controller says what is left
// (kubernetes pkg/controller/namespace/deletion ProcessContentTotals, v1.37).
func contentRemaining() *regexp.Regexp {
	return regexp.MustCompile(`([a-z0-9-]+)\.([a-z0-9.-]*) has \d+ resource instances`)
}

// remaining reads what is left in the Namespaces that are being deleted, of
// the kinds that their conditions name.
func (r *apiReader) remaining(ctx context.Context) {
	var parts []func(context.Context)
	var known map[schema.GroupResource]schema.GroupVersionKind
	var err error
	for _, n := range r.world.Terminating {
		c := conditionNamed(n.Conditions, "NamespaceContentRemaining")
		if c == nil {
			continue
		}
		for _, m := range contentRemaining().FindAllStringSubmatch(c.Message, -1) {
			if known == nil {
				if known, err = r.kinds(ctx); err != nil {
					r.gap("the kinds that are served", err)
					return
				}
			}
			gr := schema.GroupResource{Group: m[2], Resource: m[1]}
			parts = append(parts, func(ctx context.Context) {
				gvk, ok := known[gr]
				why := ""
				switch {
				case !ok:
					why = fmt.Sprintf("%s: discovery does not tell how to read it", gr)
				default:
					if err := r.listHeld(ctx, gvk.GroupVersion().WithResource(gr.Resource), gvk.Kind, n.Ref.Name, nil); err != nil {
						why = fmt.Sprintf("%s: %s", gr, reason(err))
						r.gap(fmt.Sprintf("%s in namespace %s", gr, n.Ref.Name), err)
					}
				}
				if why != "" {
					r.mu.Lock()
					defer r.mu.Unlock()
					n.Unread = append(n.Unread, why)
				}
			})
		}
	}
	r.together(ctx, parts...)
}

// kinds maps each resource to its kind in the version that is best read: the
// one that needs no conversion where it is a CRD's, else the preferred one.
func (r *apiReader) kinds(ctx context.Context) (map[schema.GroupResource]schema.GroupVersionKind, error) {
	_, lists, err := discovery.ToDiscoveryInterfaceWithContext(r.cluster.discovery).ServerGroupsAndResourcesWithContext(ctx)
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, err
	}
	out := map[schema.GroupResource]schema.GroupVersionKind{}
	for _, l := range lists {
		gv, err := schema.ParseGroupVersion(l.GroupVersion)
		if err != nil {
			continue
		}
		for _, res := range l.APIResources {
			gr := schema.GroupResource{Group: gv.Group, Resource: res.Name}
			if _, ok := out[gr]; !ok {
				out[gr] = gv.WithKind(res.Kind)
			}
		}
	}
	for _, d := range r.world.Definitions {
		if d.readable() != "" {
			out[d.resource().GroupResource()] = d.resource().GroupVersion().WithKind(d.Defines.Kind)
		}
	}
	return out, nil
}
