// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

const (
	// secretType is what Helm 3 and Helm 4 give their records.
	secretType = "helm.sh/release.v1"
	// dataKey is the key of a record's payload.
	dataKey = "release"
	// pageSize bounds what one answer of the API server holds.
	pageSize = 500
	// onlyMetadata keeps the payloads, up to 1 MiB each, at the server.
	onlyMetadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
)

// List reads the metadata of all records, of the cluster or of the namespace
// that is named, and returns a History per release, sorted. It sends one LIST
// per 500 records. The release and the revision come from the Secret's name,
// since its labels can be edited; a Secret that is not named as Helm names its
// records is left out. The error is the API server's own.
func List(ctx context.Context, cfg *rest.Config, namespace string) ([]History, error) {
	c := rest.CopyConfig(cfg)
	c.AcceptContentTypes, c.ContentType = onlyMetadata, "application/json"
	c.NegotiatedSerializer = scheme.Codecs.WithoutConversion() // for the server's errors; objects are decoded here
	server, err := rest.UnversionedRESTClientFor(c)
	if err != nil {
		return nil, fmt.Errorf("client for %s: %w", cfg.Host, err)
	}
	where := "all namespaces"
	if namespace != "" {
		where = "namespace " + namespace
	}
	var revisions []Revision
	for token := ""; ; {
		page, err := listPage(ctx, server, namespace, token)
		if token != "" && apierrors.IsResourceExpired(err) {
			// The list outlived its token: start over, as client-go's pager does.
			revisions, token = revisions[:0], ""
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list the records of releases in %s: %w", where, err)
		}
		for i := range page.Items {
			if r, ok := page.Items[i].revision(); ok {
				revisions = append(revisions, r)
			}
		}
		if token = page.Metadata.Continue; token == "" {
			return histories(revisions), nil
		}
	}
}

// page is what is kept of an answer; of the managedFields, most of it, only the
// times are even decoded.
type page struct {
	Metadata struct {
		Continue string `json:"continue"`
	} `json:"metadata"`
	Items []struct {
		metadata `json:"metadata"`
	} `json:"items"`
}

type metadata struct {
	Namespace       string       `json:"namespace"`
	Name            string       `json:"name"`
	UID             types.UID    `json:"uid"`
	ResourceVersion string       `json:"resourceVersion"`
	Created         metav1.Time  `json:"creationTimestamp"`
	Deleted         *metav1.Time `json:"deletionTimestamp"`
	Labels          struct {
		Status string `json:"status"`
	} `json:"labels"`
	Writes []write `json:"managedFields"`
}

type write struct {
	Time metav1.Time `json:"time"`
}

func listPage(ctx context.Context, server rest.Interface, namespace, token string) (*page, error) {
	req := server.Get().AbsPath("/api/v1/secrets")
	if namespace != "" {
		req = server.Get().AbsPath("/api/v1/namespaces", namespace, "secrets")
	}
	req = req.Param("limit", strconv.Itoa(pageSize)).
		Param("fieldSelector", "type="+secretType).
		Param("labelSelector", "owner=helm")
	if token != "" {
		req = req.Param("continue", token)
	}
	result := req.Do(ctx)
	if err := result.Error(); err != nil {
		return nil, err
	}
	raw, err := result.Raw()
	if err != nil {
		return nil, err
	}
	p := &page{}
	if err := json.Unmarshal(raw, p); err != nil {
		return nil, fmt.Errorf("answer is not a list: %w", err)
	}
	return p, nil
}

func (m *metadata) revision() (Revision, bool) {
	name, version, ok := parseSecret(m.Name)
	if !ok {
		return Revision{}, false
	}
	r := Revision{
		Key: Key{m.Namespace, name}, Version: version, Label: Status(m.Labels.Status),
		UID: m.UID, ResourceVersion: m.ResourceVersion, Created: m.Created.Time, Modified: m.Created.Time,
	}
	for _, w := range m.Writes {
		if w.Time.After(r.Modified) {
			r.Modified = w.Time.Time
		}
	}
	if m.Deleted != nil {
		r.Deleted = m.Deleted.Time
	}
	return r, true
}

// Get reads and decodes one record. What it returns is pinned to the Secret as
// it is now: the Record's Revision is read anew. The error is the API server's
// own (NotFound when the record is gone), or an *UnreadableError when the
// payload cannot be decoded.
func Get(ctx context.Context, secrets typedcorev1.SecretsGetter, r Revision) (*Record, error) {
	secret, err := secrets.Secrets(r.Namespace).Get(ctx, r.Secret(), metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("get Secret %s/%s: %w", r.Namespace, r.Secret(), err)
	}
	return FromSecret(secret)
}

// FromSecret decodes the record that a Secret is. The error is an
// *UnreadableError.
func FromSecret(secret *corev1.Secret) (*Record, error) {
	m := metadata{
		Namespace: secret.Namespace, Name: secret.Name, UID: secret.UID, ResourceVersion: secret.ResourceVersion,
		Created: secret.CreationTimestamp, Deleted: secret.DeletionTimestamp,
	}
	m.Labels.Status = secret.Labels["status"]
	for _, f := range secret.ManagedFields {
		if f.Time != nil {
			m.Writes = append(m.Writes, write{*f.Time})
		}
	}
	revision, named := m.revision()
	if !named {
		return nil, &UnreadableError{Secret: secret.Namespace + "/" + secret.Name, Reason: "its name is not that of a release's record"}
	}
	record, err := decode(secret.Data[dataKey])
	if err != nil {
		err.Secret = secret.Namespace + "/" + secret.Name
		return nil, err
	}
	record.Revision = revision
	return record, nil
}
