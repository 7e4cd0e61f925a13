// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/fluxcd/pkg/runtime/secrets"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	helmchart "helm.sh/helm/v4/pkg/chart/v2"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

const (
	dialTimeout   = 10 * time.Second
	answerTimeout = 30 * time.Second
	// transferTimeout bounds one whole request: a server may answer and then
	// send nothing.
	transferTimeout = 5 * time.Minute
	maxRedirects    = 10
	// maxIndex and maxChart are in bytes. source-controller's own limits are
	// 50 MiB and 10 MiB (flags --helm-index-max-size, --helm-chart-max-size);
	// who has raised them there must not be stopped here.
	maxIndex = 256 << 20
	maxChart = 64 << 20
)

// account is how a repository or registry is spoken to.
type account struct {
	username, password string
	tls                *tls.Config
	// transfer bounds one whole request; zero for transferTimeout.
	transfer time.Duration
}

// account reads the Secrets that the source names (source-controller
// internal/helm/getter client_opts.go).
func (c *Charts) account(ctx context.Context, by flux.Ref, host, secretRef, certSecretRef string) (account, error) {
	var a account
	read := func(name string) (*corev1.Secret, error) {
		var s corev1.Secret
		if err := c.read(ctx, ref(secretKind, by.Namespace, name), by, &s); err != nil {
			return nil, err
		}
		for key, value := range s.StringData { // of a manifest
			if s.Data == nil {
				s.Data = map[string][]byte{}
			}
			s.Data[key] = []byte(value)
		}
		return &s, nil
	}
	if secretRef != "" {
		s, err := read(secretRef)
		if err != nil {
			return a, err
		}
		if a, err = accountFrom(ctx, s, host); err != nil {
			return a, fmt.Errorf("%s names Secret/%s/%s: %w", by, by.Namespace, secretRef, err)
		}
	}
	if certSecretRef != "" {
		s, err := read(certSecretRef)
		if err != nil {
			return a, err
		}
		if a.tls, err = secrets.TLSConfigFromSecret(ctx, s, secrets.WithSystemCertPool()); err != nil {
			return a, fmt.Errorf("%s names Secret/%s/%s, which holds no certificates that can be used", by, by.Namespace, certSecretRef)
		}
	}
	return a, nil
}

// accountFrom takes out of a Secret what is for the host.
func accountFrom(ctx context.Context, s *corev1.Secret, host string) (account, error) {
	if s.Type == corev1.SecretTypeDockerConfigJson {
		return dockerAccount(s.Data[corev1.DockerConfigJsonKey], host)
	}
	// What the error of this says could be what the Secret holds.
	methods, err := secrets.AuthMethodsFromSecret(ctx, s, secrets.WithTLSSystemCertPool())
	if err != nil {
		return account{}, errors.New("it holds no credentials that can be used; source-controller wants username and password, or tls.crt, tls.key and ca.crt")
	}
	a := account{tls: methods.TLS}
	if methods.HasBasicAuth() {
		a.username, a.password = methods.Basic.Username, methods.Basic.Password
	}
	return a, nil
}

// client makes the HTTP client. It holds nothing of the cluster's API server.
func (a account) client(everywhere bool) *http.Client {
	return &http.Client{
		Timeout: cmp.Or(a.transfer, transferTimeout),
		CheckRedirect: func(request *http.Request, via []*http.Request) error {
			if len(via) >= maxRedirects {
				return fmt.Errorf("it redirects more than %d times", maxRedirects)
			}
			// net/http sends the account on to another port, to http, and to
			// every host below the first.
			if !everywhere && !atHome(request.URL, via[0].URL) {
				request.Header.Del("Authorization")
			}
			return nil
		},
		Transport: &http.Transport{
			Proxy:                 http.ProxyFromEnvironment,
			DialContext:           (&net.Dialer{Timeout: dialTimeout}).DialContext,
			TLSClientConfig:       a.tls,
			TLSHandshakeTimeout:   answerTimeout,
			ResponseHeaderTimeout: answerTimeout,
			DisableKeepAlives:     true,
		},
	}
}

func atHome(target, home *url.URL) bool {
	return target.Scheme == home.Scheme && target.Host == home.Host
}

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
	a, err := c.account(ctx, at, base.Host, secretRef, certSecretRef)
	if err != nil {
		return nil, err
	}
	out := &found{}
	if repository.Spec.Type == sourcev1.HelmRepositoryTypeOCI || base.Scheme == sourcev1.HelmRepositoryTypeOCI {
		if err := withoutProvider(at, repository.Spec.Provider, secretRef); err != nil {
			return nil, err
		}
		out.chart, out.origin, err = pullChart(ctx, a, base.Host+base.JoinPath(want.Spec.Chart).Path, repository.Spec.Insecure, want.Spec.Version)
	} else {
		out.chart, out.origin, err = c.download(ctx, a, at, repository, want)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", at, err)
	}
	if err := mergeFiles(out.chart, want, fileOf(out.chart)); err != nil {
		return nil, fmt.Errorf("chart %s of %s: %w", want.Spec.Chart, at, err)
	}
	return out, revise(out.chart, want, "")
}

// withoutProvider: the credentials of a cloud are those of source-controller's
// own pod.
func withoutProvider(at flux.Ref, provider, secretRef string) error {
	if provider == "" || provider == sourcev1.GenericOCIProvider || secretRef != "" {
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
func (c *Charts) download(ctx context.Context, a account, at flux.Ref, repository *sourcev1.HelmRepository, want *sourcev1.HelmChart) (loaded *helmchart.Chart, origin string, err error) {
	base := repository.Spec.URL
	var raw []byte
	if artifact := repository.Status.Artifact; artifact != nil && repository.Generation == repository.Status.ObservedGeneration {
		raw, err = c.artifacts.Raw(ctx, sourceOf(at, artifact))
	} else {
		raw, err = a.get(ctx, strings.TrimSuffix(base, "/")+"/index.yaml", base, repository.Spec.PassCredentials, maxIndex)
	}
	if err != nil {
		return nil, "", err
	}
	var list index
	if err := yaml.Unmarshal(raw, &list); err != nil || list.APIVersion == "" {
		return nil, "", errors.New("its index.yaml is no index of charts")
	}
	chosen, err := choose(list.Entries[want.Spec.Chart], want.Spec.Version)
	if err != nil {
		return nil, "", fmt.Errorf("chart %s: %w", want.Spec.Chart, err)
	}
	if len(chosen.URLs) == 0 {
		return nil, "", fmt.Errorf("chart %s %s: the index says of no place where it is", want.Spec.Chart, chosen.Version)
	}
	target, err := resolve(base, chosen.URLs[0])
	if err != nil {
		return nil, "", fmt.Errorf("chart %s %s: %w", want.Spec.Chart, chosen.Version, err)
	}
	if raw, err = a.get(ctx, target, base, repository.Spec.PassCredentials, maxChart); err != nil {
		return nil, "", err
	}
	if loaded, err = load(raw); err != nil {
		return nil, "", fmt.Errorf("%s is no chart: %w", withoutUser(target), err)
	}
	return loaded, withoutUser(target), nil
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
		return nil, fmt.Errorf("%s cannot be fetched from here, and source-controller has not made the chart yet: %w", withoutUser(target), err)
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

// withoutUser is a URL as it may be printed: without user, password and query.
func withoutUser(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "its URL"
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}
