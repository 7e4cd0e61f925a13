// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// storedVersions are CRDs that an upgrade cannot change, or will not be able
// to, because objects may still be stored in a version that is to go.
func storedVersions(w *World) []Verdict {
	var out []Verdict
	refused := w.refusedVersions()
	for _, d := range w.Definitions {
		if !d.Deleted.IsZero() {
			continue
		}
		if v, ok := w.heldVersions(d, refused[d.Ref.Name]); ok {
			out = append(out, v)
		}
	}
	return out
}

// refusedVersion is one version that a manifest lacks and a CRD has stored.
type refusedVersion struct {
	version string
	message
}

// refusedVersions are what the tiers report that could not change a CRD, by
// the CRD (apiextensions-apiserver pkg/apis/apiextensions/validation
// ValidateCustomResourceDefinitionStoredVersions).
func (w *World) refusedVersions() map[string][]refusedVersion {
	name := regexp.MustCompile(`CustomResourceDefinition(?:\.apiextensions\.k8s\.io "|/)([a-z0-9.-]+)`)
	version := regexp.MustCompile(`status\.storedVersions\[\d+\]: Invalid value: \\?"([a-z0-9]+)\\?"`)
	out := map[string][]refusedVersion{}
	for _, m := range w.messages() {
		where := version.FindStringSubmatchIndex(m.text)
		if where == nil {
			continue
		}
		crds := name.FindAllStringSubmatch(m.text[:where[0]], -1)
		if len(crds) == 0 {
			continue
		}
		crd := crds[len(crds)-1][1]
		out[crd] = append(out[crd], refusedVersion{m.text[where[2]:where[3]], m})
	}
	return out
}

func (w *World) heldVersions(d *Definition, refused []refusedVersion) (Verdict, bool) {
	storage := d.storage()
	var old, unserved []string
	for _, s := range d.StoredVersions {
		if s != storage {
			old = append(old, s)
			if !slices.ContainsFunc(d.Versions, func(v Version) bool { return v.Name == s && v.Served }) {
				unserved = append(unserved, s)
			}
		}
	}
	v := Verdict{Cause: StoredVersions, Object: d.Ref, ResolvesItself: Never, State: "upgrade-refused"}
	v.evidence(d.Ref, "status.storedVersions", strings.Join(d.StoredVersions, ", "))
	v.evidence(d.Ref, "spec.versions (storage)", storage)
	for _, r := range refused {
		v.evidence(r.tier, r.field, r.text)
		if r.version == storage {
			return w.rolledBack(v, d, r), true
		}
	}
	switch {
	case len(old) == 0 || len(refused) == 0 && len(unserved) == 0:
		return v, false
	case len(refused) > 0:
		v.Summary = fmt.Sprintf("%s cannot be changed: the new manifest has no %s any more, and objects may still be stored in it", d.Ref, refused[0].version)
	default:
		v.State = "stored-unserved"
		v.Summary = fmt.Sprintf("%s may still have objects stored as %s, which it does not serve any more: a release that drops that version will be refused",
			d.Ref, strings.Join(unserved, ", "))
	}
	v.Why = "the API server never rewrites what it has stored, and never takes a version off status.storedVersions"
	v.Repair = fmt.Sprintf("rewrite every object as %s, then take %s off status.storedVersions, then apply. "+
		"The CRD is never deleted for this: every object of the kind would go with it", storage, strings.Join(old, ", "))
	if !slices.Contains(d.StoredVersions, storage) || d.readable() == "" {
		v.Refused = "its storage version is not among status.storedVersions, or no version is served: what is stored cannot be told"
		return v, true
	}
	if v.Refused = d.loses(); v.Refused != "" {
		return v, true
	}
	v.Actions = []Action{
		{
			Verb: Rewrite, Object: d.Ref, pin: pin{uid: d.UID, generation: d.Generation},
			step:        rewriteStep{d.resource()},
			Description: fmt.Sprintf("write every %s once more, unchanged, so that each is stored as %s", d.Defines.Kind, storage),
		},
		{
			Verb: Patch, Object: d.Ref, pin: pin{uid: d.UID, generation: d.Generation},
			step: patchStep{subresource: "status", manager: manager, ops: []op{
				{"test", "/status/storedVersions", d.StoredVersions},
				{"replace", "/status/storedVersions", []string{storage}},
			}},
			Description: fmt.Sprintf("take %s off status.storedVersions; only done when every object was rewritten", strings.Join(old, ", ")),
		},
	}
	for _, r := range refused {
		v.Actions = append(v.Actions, w.again(r.message)...)
	}
	return v, true
}

// again asks the tier to apply once more what was refused.
func (w *World) again(m message) []Action {
	for i := range w.Flux.Tiers {
		t := &w.Flux.Tiers[i]
		if t.Ref == m.tier && !t.Suspended && t.Deleted.IsZero() {
			return []Action{{
				Verb: Nudge, Object: t.Ref, pin: pin{uid: t.UID, generation: t.Generation}, step: askStep{},
				Description: "ask it to apply the CRD now",
			}}
		}
	}
	return nil
}

// gitIsOlder is the state in which nothing on the cluster is to be changed.
const gitIsOlder = "git-is-older"

// rolledBack is the opposite case: the version that is missing is the one that
// objects are stored in now, so the manifest is older than the cluster.
func (w *World) rolledBack(v Verdict, d *Definition, r refusedVersion) Verdict {
	v.State = gitIsOlder
	v.Summary = fmt.Sprintf("git is older than the cluster: %s applies a %s without %s, which is the version that objects are stored in", r.tier, d.Ref, r.version)
	v.Why = "the API server refuses a CRD that could not read what is stored"
	v.Repair = fmt.Sprintf("bring the source of %s forward to a release whose CRD has %s. Nothing on the cluster is to be changed: "+
		"neither uninstalling Flux nor deleting the CRD is a way back, both lose objects", r.tier, r.version)
	return v
}

// rewriteStep writes every object of a resource once more, unchanged. The API
// server stores what it writes in the storage version, and skips a write only
// when the stored bytes are the same (apiserver pkg/storage/etcd3
// GuaranteedUpdate), so an empty patch rewrites exactly the objects that are
// stored in an older version. An object that somebody else writes meanwhile is
// rewritten by that. The step fails when any object could not be written: then
// nothing may be taken off status.storedVersions.
type rewriteStep struct{ resource schema.GroupVersionResource }

func (s rewriteStep) run(ctx context.Context, x *execution, a *Action) error {
	definition, err := x.get(ctx, a.Object)
	switch {
	case err != nil:
		return err
	case definition == nil:
		return &skip{fmt.Sprintf("%s is gone", a.Object)}
	}
	if err := x.verify(a, definition); err != nil {
		return err
	}
	client := x.cluster.metadata.Resource(s.resource)
	written, failed := 0, 0
	var first error
	for page := (metav1.ListOptions{Limit: pageSize}); ; {
		list, err := client.List(ctx, page)
		if err != nil {
			return fmt.Errorf("list %s: %w", s.resource.GroupResource(), err)
		}
		for i := range list.Items {
			o := &list.Items[i]
			patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": o.UID, "resourceVersion": o.ResourceVersion}})
			if err != nil {
				return err
			}
			_, err = client.Namespace(o.Namespace).Patch(ctx, o.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: manager})
			switch {
			case err == nil:
				written++
			case apierrors.IsNotFound(err), apierrors.IsConflict(err):
			case ctx.Err() != nil:
				return ctx.Err()
			default:
				failed++
				if first == nil {
					first = fmt.Errorf("%s %s/%s: %w", s.resource.GroupResource(), o.Namespace, o.Name, err)
				}
			}
		}
		if page.Continue = list.Continue; page.Continue == "" {
			break
		}
	}
	if failed > 0 {
		return fmt.Errorf("%s could not be rewritten, so status.storedVersions is left as it is; the first: %w",
			counted(failed, "object", "objects"), first)
	}
	a.Message = counted(written, "object", "objects") + " rewritten"
	return nil
}
