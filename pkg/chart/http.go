// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"sigs.k8s.io/yaml"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

const (
	// maxIndex and maxChart are in bytes. source-controller's own limits are
	// 50 MiB and 10 MiB (flags --helm-index-max-size, --helm-chart-max-size);
	// who has raised them there must not be stopped here.
	maxIndex = 256 << 20
	maxChart = 64 << 20
)

// fromRepository takes the chart out of a Helm repository.
func (c *Charts) fromRepository(ctx context.Context, at flux.Ref, repository *sourcev1.HelmRepository, want *sourcev1.HelmChart) (*found, error) {
	base, err := url.Parse(repository.Spec.URL)
	if err != nil || base.Host == "" {
		return nil, fmt.Errorf("%s has a URL that is none", at)
	}
	var secretRef, certSecretRef string
	if r := repository.Spec.SecretRef; r != nil {
		secretRef = r.Name
	}
	if r := repository.Spec.CertSecretRef; r != nil {
		certSecretRef = r.Name
	}
	oci := repository.Spec.Type == sourcev1.HelmRepositoryTypeOCI || base.Scheme == sourcev1.HelmRepositoryTypeOCI
	p, err := c.obtain(ctx, request{URL: repository.Spec.URL, Chart: want.Spec.Chart, Wanted: want.Spec.Version}, func(ctx context.Context) (*packed, error) {
		a, err := c.account(ctx, at, base.Host, secretRef, certSecretRef)
		if err != nil {
			return nil, err
		}
		if !oci {
			return c.download(ctx, a, at, repository, want)
		}
		if err := c.withoutProvider(at, repository.Spec.Provider, secretRef); err != nil {
			return nil, err
		}
		return pullChart(ctx, a, base.Host+base.JoinPath(want.Spec.Chart).Path, repository.Spec.Insecure, want.Spec.Version)
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", at, err)
	}
	out := &found{origin: p.Origin}
	if out.chart, err = load(p.raw); err != nil {
		return nil, fmt.Errorf("%s: %s is no chart: %w", at, p.Origin, err)
	}
	if err := mergeFiles(out.chart, want, fileOf(out.chart)); err != nil {
		return nil, fmt.Errorf("chart %s of %s: %w", want.Spec.Chart, at, err)
	}
	return out, revise(out.chart, want, "")
}

// packed is a chart as a repository or a registry holds it.
type packed struct {
	raw []byte
	// Version is the one that was chosen, Origin where it lies.
	Version, Origin string
	// Digest is that of a registry's manifest.
	Digest string
}

// withoutProvider: the credentials of a cloud are those of source-controller's
// own pod.
func (c *Charts) withoutProvider(at flux.Ref, provider, secretRef string) error {
	// Without a cluster nobody has made it anyway, and it may be public.
	if c.offline != nil || provider == "" || provider == sourcev1.GenericOCIProvider || secretRef != "" {
		return nil
	}
	return fmt.Errorf("%s logs in as source-controller's pod (provider %s), which nobody else can, and it has made no chart yet: "+
		"let it (flux resume or reconcile the HelmRelease), then run this again", at, provider)
}

// index is what is read of a repository's index.yaml.
type index struct {
	APIVersion string               `json:"apiVersion"`
	Entries    map[string][]offered `json:"entries"`
}

// download takes the chart from an HTTP repository: the version by the index
// that source-controller has, else by the repository's own.
func (c *Charts) download(ctx context.Context, a account, at flux.Ref, repository *sourcev1.HelmRepository, want *sourcev1.HelmChart) (*packed, error) {
	base := repository.Spec.URL
	fetch := func() (*index, error) {
		raw, err := a.get(ctx, strings.TrimSuffix(base, "/")+"/index.yaml", base, repository.Spec.PassCredentials, maxIndex)
		if err != nil {
			return nil, err
		}
		return readIndex(raw)
	}
	artifact := repository.Status.Artifact
	var list *index
	var err error
	switch {
	case c.offline != nil:
		list, err = c.offline.cache.index(base+" "+a.username, fetch)
	case artifact != nil && repository.Generation == repository.Status.ObservedGeneration:
		var raw []byte
		if raw, err = c.artifacts.Raw(ctx, sourceOf(at, artifact)); err == nil {
			list, err = readIndex(raw)
		}
	default:
		list, err = fetch()
	}
	if err != nil {
		return nil, err
	}
	p, err := a.chosen(ctx, list, base, repository.Spec.PassCredentials, want.Spec.Chart, want.Spec.Version)
	if err != nil || c.offline == nil {
		return p, err
	}
	// source-controller does not compare them, and what is kept has to be right.
	if sum := strings.TrimPrefix(p.Digest, "sha256:"); len(sum) == len(digestOf(nil)) && !strings.EqualFold(sum, digestOf(p.raw)) {
		return nil, fmt.Errorf("%s is not what the index of its repository describes: the SHA-256 differs", p.Origin)
	}
	p.Digest = ""
	return p, nil
}

func readIndex(raw []byte) (*index, error) {
	var list index
	if err := yaml.Unmarshal(raw, &list); err != nil || list.APIVersion == "" {
		return nil, errors.New("its index.yaml is no index of charts")
	}
	return &list, nil
}

// chosen fetches the version of the chart that source-controller would.
func (a account) chosen(ctx context.Context, list *index, base string, everywhere bool, chart, wanted string) (*packed, error) {
	chosen, err := choose(list.Entries[chart], wanted)
	if err != nil {
		return nil, fmt.Errorf("chart %s: %w", chart, err)
	}
	if len(chosen.URLs) == 0 {
		return nil, fmt.Errorf("chart %s %s: the index says of no place where it is", chart, chosen.Version)
	}
	target, err := resolve(base, chosen.URLs[0])
	if err != nil {
		return nil, fmt.Errorf("chart %s %s: %w", chart, chosen.Version, err)
	}
	raw, err := a.get(ctx, target, base, everywhere, maxChart)
	if err != nil {
		return nil, err
	}
	return &packed{raw: raw, Version: chosen.Version, Origin: withoutUser(target), Digest: chosen.Digest}, nil
}

// resolve is the URL of a chart, which the index may give relative to itself
// (helm pkg/repo ResolveReferenceURL).
func resolve(base, target string) (string, error) {
	r, err := url.Parse(target)
	if err != nil {
		return "", errors.New("the index gives a URL that is none")
	}
	if r.IsAbs() {
		return r.String(), nil
	}
	b, err := url.Parse(base)
	if err != nil {
		return "", errors.New("the repository's URL is none")
	}
	b.RawPath = strings.TrimSuffix(b.RawPath, "/") + "/"
	b.Path = strings.TrimSuffix(b.Path, "/") + "/"
	out := b.ResolveReference(r)
	if out.RawQuery == "" {
		out.RawQuery = b.RawQuery
	}
	return out.String(), nil
}

// get reads a file. The credentials go to the host of the repository alone,
// unless the repository says otherwise (helm pkg/getter httpgetter.go).
func (a account) get(ctx context.Context, target, base string, everywhere bool, limit int64) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be asked for", withoutUser(target))
	}
	home, err := url.Parse(base)
	if err == nil && a.username != "" && (everywhere || atHome(request.URL, home)) {
		request.SetBasicAuth(a.username, a.password)
	}
	response, err := a.client(everywhere).Do(request)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err // its URL may hold credentials
		}
		return nil, a.unreachable(withoutUser(target), err)
	}
	defer func() { _ = response.Body.Close() }() // all of it has been read, or is not wanted
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answered %s", withoutUser(target), response.Status)
	}
	raw, err := io.ReadAll(io.LimitReader(response.Body, limit+1))
	if err != nil {
		return nil, fmt.Errorf("%s: the transfer failed: %w", withoutUser(target), err)
	}
	if int64(len(raw)) > limit {
		return nil, fmt.Errorf("%s is larger than %d MiB", withoutUser(target), limit>>20)
	}
	return raw, nil
}

// unreachable says that nobody answers.
func (a account) unreachable(target string, err error) error {
	if a.cluster {
		return fmt.Errorf("%s cannot be fetched from here, and source-controller has not made the chart yet: %w", target, err)
	}
	return fmt.Errorf("%s cannot be fetched from here: %w", target, err)
}

// withoutUser is a URL as it may be printed: without user, password and query.
func withoutUser(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "its URL"
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}
