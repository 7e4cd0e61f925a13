// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/version"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

// chartLayers are the media types of a chart's layer, the second from before
// Helm 3.8 (helm pkg/registry constants.go).
func chartLayers() []string {
	return []string{"application/vnd.cncf.helm.chart.content.v1.tar+gzip", "application/tar+gzip"}
}

// registry is a repository of a registry, by host/path.
func (a account) registry(name string, insecure bool) (*remote.Repository, error) {
	r, err := remote.NewRepository(name)
	if err != nil {
		return nil, fmt.Errorf("%s names no repository of a registry", name)
	}
	client := &auth.Client{Client: a.client(false), Cache: auth.NewCache()}
	client.SetUserAgent("kubestandup")
	if a.username != "" {
		client.Credential = auth.StaticCredential(r.Reference.Host(), auth.Credential{Username: a.username, Password: a.password})
	}
	r.Client, r.PlainHTTP = client, insecure
	return r, nil
}

// pullChart takes a chart from a registry as source-controller does: a whole
// version is the tag itself, anything else a range among the tags
// (source-controller internal/helm/repository oci_chart_repository.go).
func pullChart(ctx context.Context, a account, name string, insecure bool, wanted string) (*packed, error) {
	r, err := a.registry(name, insecure)
	if err != nil {
		return nil, err
	}
	chosen := wanted
	if _, err := version.ParseVersion(wanted); err != nil {
		tags, err := listTags(ctx, r)
		if err != nil {
			return nil, err
		}
		best, err := choose(tags, wanted)
		if err != nil {
			return nil, fmt.Errorf("chart %s: %w", name, err)
		}
		chosen = best.Version
	}
	// A tag cannot hold a +.
	raw, digest, err := pull(ctx, r, strings.ReplaceAll(chosen, "+", "_"), chartLayers()...)
	if err != nil {
		return nil, err
	}
	return &packed{raw: raw, Version: chosen, Origin: fmt.Sprintf("oci://%s:%s", name, chosen), Digest: digest}, nil
}

func listTags(ctx context.Context, r *remote.Repository) ([]offered, error) {
	var all []offered
	err := r.Tags(ctx, "", func(tags []string) error {
		for _, tag := range tags {
			all = append(all, offered{Version: strings.ReplaceAll(tag, "_", "+")})
		}
		return nil
	})
	if err != nil {
		return nil, registryWords(r, "", err)
	}
	return all, nil
}

// pull fetches the manifest, and of its layers the first of those media types,
// in their order; the first layer of all where no type is given. All is checked
// against the digests. digest is the manifest's.
func pull(ctx context.Context, r *remote.Repository, reference string, mediaTypes ...string) (layer []byte, digest string, err error) {
	described, raw, err := manifest(ctx, r, reference)
	if err != nil {
		return nil, "", err
	}
	var m ocispec.Manifest
	if err := json.Unmarshal(raw, &m); err != nil || len(m.Layers) == 0 {
		return nil, "", fmt.Errorf("%s:%s has no layers, so it is no chart", r.Reference.Repository, reference)
	}
	at := 0
	if len(mediaTypes) > 0 {
		at = -1
		for _, mediaType := range mediaTypes {
			if at < 0 {
				at = slices.IndexFunc(m.Layers, func(d ocispec.Descriptor) bool { return d.MediaType == mediaType })
			}
		}
	}
	if at < 0 {
		return nil, "", fmt.Errorf("%s:%s has no layer of type %s", r.Reference.Repository, reference, mediaTypes[0])
	}
	if m.Layers[at].Size > maxChart {
		return nil, "", fmt.Errorf("%s:%s is larger than %d MiB", r.Reference.Repository, reference, maxChart>>20)
	}
	layer, err = content.FetchAll(ctx, r, m.Layers[at])
	if err != nil {
		return nil, "", registryWords(r, reference, err)
	}
	return layer, described.Digest.String(), nil
}

func manifest(ctx context.Context, r *remote.Repository, reference string) (ocispec.Descriptor, []byte, error) {
	described, body, err := r.Manifests().FetchReference(ctx, reference)
	if err != nil {
		return described, nil, registryWords(r, reference, err)
	}
	defer func() { _ = body.Close() }() // it is verified by its digest
	raw, err := content.ReadAll(body, described)
	if err != nil {
		return described, nil, registryWords(r, reference, err)
	}
	return described, raw, nil
}

// registryWords never holds what was sent. Without a reference it is about the
// list of tags.
func registryWords(r *remote.Repository, reference string, err error) error {
	at := "oci://" + r.Reference.Registry + "/" + r.Reference.Repository
	if reference == "" {
		at = "list of tags of " + at
	} else {
		at += ":" + reference
	}
	var answer *errcode.ErrorResponse
	switch {
	case errors.As(err, &answer):
		said := ""
		if len(answer.Errors) > 0 {
			said = " (" + answer.Errors[0].Code + ")"
		}
		return fmt.Errorf("%s: the registry answered %d%s", at, answer.StatusCode, said)
	case errors.Is(err, errdef.ErrNotFound):
		return fmt.Errorf("%s: the registry has no such thing", at)
	case errors.Is(err, auth.ErrBasicCredentialNotFound):
		return fmt.Errorf("%s: the registry wants an account, which spec.secretRef has to name", at)
	}
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	return fmt.Errorf("%s cannot be fetched from here: %w", at, err)
}

// dockerAccount is the entry for the host of a docker configuration.
func dockerAccount(raw []byte, host string) (account, error) {
	var file struct {
		Auths map[string]struct {
			Username string `json:"username"`
			Password string `json:"password"`
			Auth     string `json:"auth"`
		} `json:"auths"`
	}
	if json.Unmarshal(raw, &file) != nil {
		return account{}, errors.New("it is no docker configuration")
	}
	for name, entry := range file.Auths {
		name = strings.TrimPrefix(strings.TrimPrefix(name, "https://"), "http://")
		if at, _, _ := strings.Cut(name, "/"); at != host {
			continue
		}
		a := account{username: entry.Username, password: entry.Password}
		if plain, err := base64.StdEncoding.DecodeString(entry.Auth); err == nil && len(plain) > 0 {
			a.username, a.password, _ = strings.Cut(string(plain), ":")
		}
		return a, nil
	}
	return account{}, fmt.Errorf("it has no entry for %s", host)
}

// pullRepository takes the chart of an OCIRepository that has no artifact
// (source-controller ocirepository_controller.go getArtifactRef, selectLayer).
func (c *Charts) pullRepository(ctx context.Context, at flux.Ref, repository *sourcev1.OCIRepository) (*found, error) {
	name, ok := strings.CutPrefix(repository.Spec.URL, "oci://")
	if !ok {
		return nil, fmt.Errorf("%s has a URL that does not begin with oci://", at)
	}
	var secretRef, certSecretRef string
	if r := repository.Spec.SecretRef; r != nil {
		secretRef = r.Name
	}
	if r := repository.Spec.CertSecretRef; r != nil {
		certSecretRef = r.Name
	}
	if err := c.withoutProvider(at, repository.Spec.Provider, secretRef); err != nil {
		return nil, err
	}
	var mediaTypes []string
	if s := repository.Spec.LayerSelector; s != nil && s.MediaType != "" {
		mediaTypes = []string{s.MediaType}
	}
	p, err := c.obtain(ctx, requestOf(repository), func(ctx context.Context) (*packed, error) {
		host, _, _ := strings.Cut(name, "/")
		a, err := c.account(ctx, at, host, secretRef, certSecretRef)
		if err != nil {
			return nil, err
		}
		r, err := a.registry(name, repository.Spec.Insecure)
		if err != nil {
			return nil, err
		}
		reference, err := referenceOf(ctx, r, repository.Spec.Reference)
		if err != nil {
			return nil, err
		}
		raw, digest, err := pull(ctx, r, reference, mediaTypes...)
		return &packed{raw: raw, Version: reference, Origin: fmt.Sprintf("oci://%s:%s", name, reference), Digest: digest}, err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", at, err)
	}
	// Whether the layer is copied or unpacked and packed again: the archive
	// that helm-controller gets holds the same chart.
	loaded, err := load(p.raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %s is no chart: %w", at, p.Origin, err)
	}
	if loaded.Metadata.Version, err = withRevision(loaded.Metadata.Version, p.Digest); err != nil {
		return nil, fmt.Errorf("%s: %w", at, err)
	}
	return &found{chart: loaded, origin: p.Origin}, nil
}

// requestOf is what an OCIRepository asks for. The chart is not named; by
// convention it is the last part of the URL.
func requestOf(repository *sourcev1.OCIRepository) request {
	q := request{URL: repository.Spec.URL, Chart: path.Base(repository.Spec.URL), Wanted: "latest"}
	if r := repository.Spec.Reference; r != nil {
		q.Wanted = cmp.Or(r.Digest, r.SemVer, r.Tag, q.Wanted)
		if r.Digest == "" && r.SemVer != "" {
			q.More = r.SemverFilter
		}
	}
	if s := repository.Spec.LayerSelector; s != nil {
		q.More += " " + s.MediaType
	}
	return q
}

// referenceOf is the tag or digest that spec.ref means: the digest before the
// range, that before the tag, and latest without any.
func referenceOf(ctx context.Context, r *remote.Repository, ref *sourcev1.OCIRepositoryRef) (string, error) {
	switch {
	case ref == nil:
		return "latest", nil
	case ref.Digest != "":
		return ref.Digest, nil
	case ref.SemVer == "" && ref.Tag != "":
		return ref.Tag, nil
	case ref.SemVer == "":
		return "latest", nil
	}
	filter, err := regexp.Compile(ref.SemverFilter)
	if err != nil {
		return "", fmt.Errorf("its semverFilter %q is no regular expression", ref.SemverFilter)
	}
	var tags []offered
	err = r.Tags(ctx, "", func(page []string) error {
		for _, tag := range page {
			if filter.MatchString(tag) {
				tags = append(tags, offered{Version: tag})
			}
		}
		return nil
	})
	if err != nil {
		return "", registryWords(r, "", err)
	}
	best, err := choose(tags, ref.SemVer)
	return best.Version, err
}
