// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package flux

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// pageSize bounds what one answer of the API server holds, and so what it and
// we keep in memory at once.
const pageSize = 500

// Read takes a snapshot. It sends one LIST per kind and page of 500 objects,
// all kinds side by side, one further request when a kind is not served in
// the version expected, and one GET per object that a readyExpr needs.
//
// It returns a *NotInstalledError when the cluster serves neither Kustomizations
// nor HelmReleases, and the API server's own error, with the list that failed named, otherwise.
func Read(ctx context.Context, cfg *rest.Config) (*Snapshot, error) {
	r, err := newReader(cfg)
	if err != nil {
		return nil, err
	}
	return r.read(ctx)
}

type reader struct {
	client rest.Interface
	host   string
}

func newReader(cfg *rest.Config) (*reader, error) {
	c := rest.CopyConfig(cfg)
	c.AcceptContentTypes, c.ContentType = "application/json", "application/json"
	c.NegotiatedSerializer = scheme.Codecs.WithoutConversion() // for the server's errors; objects are decoded here
	client, err := rest.UnversionedRESTClientFor(c)
	if err != nil {
		return nil, fmt.Errorf("client for %s: %w", cfg.Host, err)
	}
	return &reader{client: client, host: cfg.Host}, nil
}

func (r *reader) read(ctx context.Context) (*Snapshot, error) {
	want := resources()
	parts := make([]part, len(want))
	var group errgroup.Group
	for i, res := range want {
		group.Go(func() error {
			parts[i] = r.list(ctx, res)
			return nil
		})
	}
	_ = group.Wait()

	if err := r.retryOtherVersions(ctx, want, parts); err != nil {
		return nil, err
	}
	if !servesTiers(want, parts) {
		return nil, &NotInstalledError{Server: r.host}
	}
	s := &Snapshot{Taken: time.Now()}
	for i := range parts {
		p := &parts[i]
		switch {
		case apierrors.IsNotFound(p.err):
			continue
		case p.err != nil:
			return nil, fmt.Errorf("list %s in all namespaces: %w", want[i].Plural, p.err)
		}
		s.Served = append(s.Served, want[i])
		for j := range p.items {
			s.add(want[i], &p.items[j])
		}
		p.items = nil
	}
	s.sort()
	if err := r.fetchObjects(ctx, s); err != nil {
		return nil, err
	}
	return s, nil
}

// servesTiers is false where no kind of tier is served. One is enough: Flux may
// be installed with helm-controller and without kustomize-controller.
func servesTiers(want []Resource, parts []part) bool {
	for i := range parts {
		if want[i].IsTier() && !apierrors.IsNotFound(parts[i].err) {
			return true
		}
	}
	return false
}

// body is an answer as it came. Result.Raw alone would lose the sentence in
// which the API server says why it refuses.
func body(r rest.Result) ([]byte, error) {
	if err := r.Error(); err != nil {
		return nil, err
	}
	return r.Raw()
}

// part is the answer to one list.
type part struct {
	items []item
	err   error
}

func (r *reader) list(ctx context.Context, res Resource) part {
	var p part
	for token := ""; ; {
		req := r.client.Get().AbsPath("/apis", res.Group, res.Version, res.Plural).
			Param("limit", strconv.Itoa(pageSize))
		if token != "" {
			req = req.Param("continue", token)
		}
		raw, err := body(req.Do(ctx))
		if err != nil {
			if token != "" && apierrors.IsResourceExpired(err) {
				// The list outlived its token: start over, as client-go's pager does.
				p.items, token = p.items[:0], ""
				continue
			}
			p.err = err
			return p
		}
		var page struct {
			Metadata struct {
				Continue string `json:"continue"`
			} `json:"metadata"`
			Items []item `json:"items"`
		}
		if err := json.Unmarshal(raw, &page); err != nil {
			p.err = fmt.Errorf("answer is not a list: %w", err)
			return p
		}
		p.items = append(p.items, page.Items...)
		if token = page.Metadata.Continue; token == "" {
			return p
		}
	}
}

// retryOtherVersions lists once more the kinds that were not found in the
// version expected but are served in another one: an older Flux.
func (r *reader) retryOtherVersions(ctx context.Context, want []Resource, parts []part) error {
	var missing []int
	for i := range parts {
		if apierrors.IsNotFound(parts[i].err) {
			missing = append(missing, i)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	served, err := r.servedVersions(ctx)
	if err != nil {
		return err
	}
	for _, i := range missing {
		version, ok := served[want[i].Group+"/"+want[i].Plural]
		if !ok || version == want[i].Version {
			continue
		}
		want[i].Version = version
		parts[i] = r.list(ctx, want[i])
	}
	return nil
}

// servedVersions maps group/plural to the version that the API server prefers,
// read in one request of aggregated discovery.
func (r *reader) servedVersions(ctx context.Context) (map[string]string, error) {
	raw, err := body(r.client.Get().AbsPath("/apis").
		SetHeader("Accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"+
			"application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList").
		Do(ctx))
	if err != nil {
		return nil, fmt.Errorf("discover the served kinds: %w", err)
	}
	var doc struct {
		Items []struct {
			Metadata metav1.ObjectMeta `json:"metadata"`
			Versions []struct {
				Version   string `json:"version"`
				Resources []struct {
					Resource string `json:"resource"`
				} `json:"resources"`
			} `json:"versions"`
		} `json:"items"`
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		return nil, fmt.Errorf("discover the served kinds: %w", err)
	}
	served := map[string]string{}
	for _, g := range doc.Items {
		for _, v := range g.Versions {
			for _, res := range v.Resources {
				key := g.Metadata.Name + "/" + res.Resource
				if _, ok := served[key]; !ok { // versions come in order of preference
					served[key] = v.Version
				}
			}
		}
	}
	return served, nil
}

// fetchObjects gets the objects that readyExprs are evaluated over.
func (r *reader) fetchObjects(ctx context.Context, s *Snapshot) error {
	plurals := map[string]Resource{}
	for _, res := range s.Served {
		plurals[res.Kind] = res
	}
	for _, ref := range s.exprRefs() {
		res := plurals[ref.Kind]
		raw, err := body(r.client.Get().
			AbsPath("/apis", res.Group, res.Version, "namespaces", ref.Namespace, res.Plural, ref.Name).
			Do(ctx))
		if apierrors.IsNotFound(err) {
			continue // the graph says that it is missing
		}
		if err != nil {
			return fmt.Errorf("get %s: %w", ref, err)
		}
		if err := s.keep(ref, raw); err != nil {
			return err
		}
	}
	return nil
}

func (s *Snapshot) keep(ref Ref, raw []byte) error {
	var obj map[string]any
	if err := json.Unmarshal(raw, &obj); err != nil {
		return fmt.Errorf("%s: %w", ref, err)
	}
	if s.Objects == nil {
		s.Objects = map[Ref]map[string]any{}
	}
	s.Objects[ref] = obj
	return nil
}

// exprRefs names each object that a readyExpr reads, once.
func (s *Snapshot) exprRefs() []Ref {
	var refs []Ref
	seen := map[Ref]bool{}
	add := func(ref Ref) {
		if !seen[ref] {
			seen[ref] = true
			refs = append(refs, ref)
		}
	}
	for i := range s.Tiers {
		for _, d := range s.Tiers[i].DependsOn {
			if d.ReadyExpr != "" {
				add(s.Tiers[i].Ref)
				add(d.Ref)
			}
		}
	}
	return refs
}
