// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/fluxcd/pkg/runtime/secrets"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

const (
	dialTimeout   = 10 * time.Second
	answerTimeout = 30 * time.Second
	// transferTimeout bounds one whole request: a server may answer and then
	// send nothing.
	transferTimeout = 5 * time.Minute
	maxRedirects    = 10
)

// account is how a repository or registry is spoken to.
type account struct {
	username, password string
	tls                *tls.Config
	// transfer bounds one whole request; zero for transferTimeout.
	transfer time.Duration
	// cluster is true when source-controller could have been asked instead.
	cluster bool
}

// account reads the Secrets that the source names (source-controller
// internal/helm/getter client_opts.go).
func (c *Charts) account(ctx context.Context, by flux.Ref, host, secretRef, certSecretRef string) (a account, err error) {
	defer func() { a.cluster = c.offline == nil }()
	ctx = logr.NewContext(ctx, logr.Discard()) // the logger that is else looked for complains that there is none
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
		if c.notKnown(err) {
			return a, nil
		}
		if err != nil {
			return a, err
		}
		if a, err = accountFrom(ctx, s, host); err != nil {
			return a, fmt.Errorf("%s names Secret/%s/%s: %w", by, by.Namespace, secretRef, err)
		}
	}
	if certSecretRef != "" {
		s, err := read(certSecretRef)
		if c.notKnown(err) {
			return a, nil
		}
		if err != nil {
			return a, err
		}
		if a.tls, err = secrets.TLSConfigFromSecret(ctx, s, secrets.WithSystemCertPool()); err != nil {
			return a, fmt.Errorf("%s names Secret/%s/%s, which holds no certificates that can be used", by, by.Namespace, certSecretRef)
		}
	}
	return a, nil
}

// notKnown is true for a Secret that the repository does not hold in the clear:
// what is public can be had without it.
func (c *Charts) notKnown(err error) bool {
	var missing *NotFoundError
	var sealed *encryptedError
	return c.offline != nil && (errors.As(err, &missing) || errors.As(err, &sealed))
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
