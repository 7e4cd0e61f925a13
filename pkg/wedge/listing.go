// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

const (
	// definitionsPage is small: one CRD with its schemas can be a megabyte.
	definitionsPage = 25
	// restarts bounds how often a list that outlives its token is begun anew.
	restarts = 3
	// onlyMetadata asks for PartialObjectMetadata.
	onlyMetadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
)

// lister reads lists as JSON, so that each is decoded into just the fields
// that a verdict needs.
type lister struct{ client rest.Interface }

func newLister(cfg *rest.Config) (*lister, error) {
	c := rest.CopyConfig(cfg)
	c.AcceptContentTypes, c.ContentType = "application/json", "application/json"
	c.NegotiatedSerializer = scheme.Codecs.WithoutConversion() // for the server's errors
	client, err := rest.UnversionedRESTClientFor(c)
	if err != nil {
		return nil, fmt.Errorf("client for %s: %w", cfg.Host, err)
	}
	return &lister{client}, nil
}

// query is one list.
type query struct {
	path     []string
	selector string
	metadata bool // nothing but metadata is needed
	limit    int  // 0 is pageSize
}

// each lists all pages and gives every item to keep. A list that outlives its
// token is begun anew: reset is then called first.
func each[T any](ctx context.Context, l *lister, q query, reset func(), keep func(*T)) error {
	if q.limit == 0 {
		q.limit = pageSize
	}
	for token, tries := "", 0; ; {
		req := l.client.Get().AbsPath(q.path...).Param("limit", strconv.Itoa(q.limit))
		if q.selector != "" {
			req = req.Param("labelSelector", q.selector)
		}
		if q.metadata {
			req = req.SetHeader("Accept", onlyMetadata)
		}
		if token != "" {
			req = req.Param("continue", token)
		}
		res := req.Do(ctx)
		if err := res.Error(); err != nil {
			if token != "" && apierrors.IsResourceExpired(err) && tries < restarts {
				token, tries = "", tries+1
				reset()
				continue
			}
			return err
		}
		raw, err := res.Raw()
		if err != nil {
			return err
		}
		var page struct {
			Metadata struct {
				Continue string `json:"continue"`
			} `json:"metadata"`
			Items []T `json:"items"`
		}
		if err := json.Unmarshal(raw, &page); err != nil {
			return fmt.Errorf("answer is not a list: %w", err)
		}
		for i := range page.Items {
			keep(&page.Items[i])
		}
		if token = page.Metadata.Continue; token == "" {
			return nil
		}
	}
}

// all lists into a slice.
func all[T, R any](ctx context.Context, l *lister, q query, convert func(*T) (R, bool)) ([]R, error) {
	var out []R
	err := each(ctx, l, q, func() { out = nil }, func(item *T) {
		if r, ok := convert(item); ok {
			out = append(out, r)
		}
	})
	return out, err
}

// fields are the metadata that is decoded of an object.
type fields struct {
	Namespace         string                  `json:"namespace"`
	Name              string                  `json:"name"`
	UID               types.UID               `json:"uid"`
	ResourceVersion   string                  `json:"resourceVersion"`
	Generation        int64                   `json:"generation"`
	CreationTimestamp time.Time               `json:"creationTimestamp"`
	DeletionTimestamp time.Time               `json:"deletionTimestamp"`
	Finalizers        []string                `json:"finalizers"`
	Labels            map[string]string       `json:"labels"`
	Annotations       knownAnnotations        `json:"annotations"`
	OwnerReferences   []metav1.OwnerReference `json:"ownerReferences"`
	ManagedFields     []fieldManager          `json:"managedFields"`
}

// knownAnnotations are the few that are looked at: an object's annotations can
// be as large as the object.
type knownAnnotations struct {
	Release          string `json:"meta.helm.sh/release-name"`
	ReleaseNamespace string `json:"meta.helm.sh/release-namespace"`
	ImportPhase      string `json:"cdi.kubevirt.io/storage.pod.phase"`
}

type fieldManager struct {
	Manager  string        `json:"manager"`
	FieldsV1 ownsFinalizer `json:"fieldsV1"`
}

// ownsFinalizer is true when a manager's field set holds finalizers. The set is
// looked at in place and never copied.
type ownsFinalizer bool

// UnmarshalJSON implements json.Unmarshaler.
func (o *ownsFinalizer) UnmarshalJSON(raw []byte) error {
	*o = ownsFinalizer(bytes.Contains(raw, []byte(`"f:finalizers"`)))
	return nil
}

func (f *fields) observed(apiVersion, kind string) Observed {
	return Observed{
		Ref: flux.Ref{APIVersion: apiVersion, Kind: kind, Namespace: f.Namespace, Name: f.Name},
		UID: f.UID, ResourceVersion: f.ResourceVersion, Generation: f.Generation,
		Created: f.CreationTimestamp, Deleted: f.DeletionTimestamp, Finalizers: f.Finalizers,
	}
}

func (f *fields) owner() Owner {
	var o Owner
	for _, m := range f.ManagedFields {
		if !slices.Contains(o.Managers, m.Manager) {
			o.Managers = append(o.Managers, m.Manager)
		}
	}
	// The labels by which Flux's controllers know what they have applied
	// (fluxcd/pkg ssa SetOwnerLabels).
	for _, t := range []struct{ group, version, kind string }{
		{flux.HelmGroup, "v2", flux.HelmReleaseKind}, {flux.KustomizeGroup, "v1", flux.KustomizationKind},
	} {
		if name := f.Labels[t.group+"/name"]; name != "" {
			o.Tier = flux.Ref{APIVersion: t.group + "/" + t.version, Kind: t.kind, Namespace: f.Labels[t.group+"/namespace"], Name: name}
		}
	}
	if f.Annotations.Release != "" {
		o.Release = f.Annotations.ReleaseNamespace + "/" + f.Annotations.Release
	}
	for _, r := range f.OwnerReferences {
		if r.Controller != nil && *r.Controller {
			o.Controller = flux.Ref{APIVersion: r.APIVersion, Kind: r.Kind, Name: r.Name}
			o.ControllerUID = r.UID
		}
	}
	return o
}

func (f *fields) held(apiVersion, kind, plural string) Held {
	h := Held{Observed: f.observed(apiVersion, kind), Plural: plural, Owner: f.owner()}
	for _, m := range f.ManagedFields {
		if bool(m.FieldsV1) && !slices.Contains(h.SetBy, m.Manager) {
			h.SetBy = append(h.SetBy, m.Manager)
		}
	}
	return h
}

// reason is why a list could not be read, as short as the server says it.
func reason(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Message != "" {
		return status.Status().Message
	}
	return err.Error()
}
