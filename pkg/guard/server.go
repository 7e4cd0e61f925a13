// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/metadata"
	// The authentication plugins that kubectl knows.
	_ "k8s.io/client-go/plugin/pkg/client/auth"
	"k8s.io/client-go/rest"
)

const (
	// Enough for a snapshot of a large cluster to be read without waiting for
	// ourselves; the burst is kubectl's for discovery.
	qps   = 50
	burst = 300

	// identityMaxAge is how long a proof counts without looking again.
	identityMaxAge = 10 * time.Second
	// identityTimeout bounds one look.
	identityTimeout = 15 * time.Second
)

// Options are what a caller chooses about its connection. None of them weakens
// the guard.
type Options struct {
	// UserAgent begins with the binary's name: "kubectl-standup/v1.2.3".
	// Empty: client-go's, which does too.
	UserAgent string
	// Warnings receives the API server's warning headers. Nil: client-go's
	// default, the log.
	Warnings rest.WarningHandlerWithContext
	// Now is the clock, for tests alone: a test of this package fails when the
	// program sets it.
	Now func() time.Time
}

// Server is one API server, resolved once. It is safe for concurrent use.
type Server struct {
	// direct holds the credentials and never leaves this package.
	direct *rest.Config
	// raw sends with credentials, below the guard.
	raw      http.RoundTripper
	guarded  *transport
	metadata metadata.Interface

	options    Options
	endpoint   endpoint
	ca         string
	unprovable string

	context           string
	namespace         string
	explicitNamespace bool
	targetArgs        []string

	flight singleflight.Group
	mu     sync.Mutex
	seen   Identity  // the last identity that the server gave
	uid    string    // the proved UID, empty while unproved
	at     time.Time // when the proof was last read
	lost   error     // why no proof counts any more
}

// Connect resolves kubectl's flags and the kubeconfig to a server. It sends
// nothing. Its errors are one sentence each and name the files and, where
// that is the matter, the contexts that there are.
func Connect(flags *genericclioptions.ConfigFlags, options Options) (*Server, error) {
	r, err := resolve(flags)
	if err != nil {
		return nil, err
	}
	if options.UserAgent == "" {
		options.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	s := &Server{
		direct: r.config, options: options, context: r.context,
		namespace: r.namespace, explicitNamespace: r.explicitNamespace,
		targetArgs: targetArgs(flags, r.context),
	}
	s.direct.UserAgent = options.UserAgent
	if err := s.setEndpoint(); err != nil {
		return nil, err
	}
	if s.ca, err = caFingerprint(s.direct.CAData); err != nil {
		return nil, fmt.Errorf("server %s: %w", s.endpoint, err)
	}
	if s.raw, err = rawTransport(s.direct); err != nil {
		return nil, fmt.Errorf("server %s: %w", s.endpoint, err)
	}
	s.guarded = &transport{server: s, next: s.raw}
	s.metadata, err = metadata.NewForConfigAndClient(
		&rest.Config{Host: s.direct.Host, QPS: -1, UserAgent: options.UserAgent, WarningHandler: rest.NoWarnings{}},
		s.rawClient())
	if err != nil {
		return nil, fmt.Errorf("server %s: %w", s.endpoint, err)
	}
	return s, nil
}

// setEndpoint fixes where requests go, in client-go's words and in ours.
func (s *Server) setEndpoint() error {
	base, _, err := rest.DefaultServerUrlFor(s.direct)
	if err != nil {
		return errors.New("server of the kubeconfig is not a URL: write it like https://api.example.org:6443")
	}
	normal, why := parseServer(base.String())
	if why != "" {
		return fmt.Errorf("server of the kubeconfig %s", why)
	}
	base.Path = strings.TrimRight(base.Path, "/")
	s.direct.Host = base.String()
	s.endpoint = endpoint{normal: normal}
	switch {
	case normal.Scheme != "https":
		s.unprovable = "plain http never proves which server answers; use https"
	case s.direct.Insecure:
		s.unprovable = "insecure-skip-tls-verify is set, and an unverified connection never proves which server answers; give the kubeconfig the cluster's CA"
	}
	return nil
}

// rawTransport is client-go's own, with the credentials.
func rawTransport(config *rest.Config) (http.RoundTripper, error) {
	own := rest.CopyConfig(config)
	if own.CAData == nil && own.CertData == nil && !own.Insecure && own.ServerName == "" {
		// Without any TLS setting client-go falls back on http.DefaultTransport,
		// whose verification any other package could switch off.
		own.NextProtos = []string{"h2", "http/1.1"}
	}
	return rest.TransportFor(own)
}

// rawClient sends below the guard. It follows no redirect: an identity that
// another server gives is none.
func (s *Server) rawClient() *http.Client {
	return &http.Client{
		Transport: s.raw,
		Timeout:   s.direct.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}
}

// Config is what clients are made from: dynamic, discovery, typed,
// controller-runtime. It holds no credentials, only the guarded transport, so
// that nothing made from it, nor from a changed copy, gets round the guard.
// Upgraded connections (exec, attach, port-forward) cannot be made from it.
func (s *Server) Config() *rest.Config {
	return &rest.Config{
		Host:                      s.direct.Host,
		Transport:                 s.guarded,
		WrapTransport:             s.wrap,
		UserAgent:                 s.options.UserAgent,
		WarningHandlerWithContext: s.options.Warnings,
		Timeout:                   s.direct.Timeout,
		DisableCompression:        s.direct.DisableCompression,
		QPS:                       qps,
		Burst:                     burst,
	}
}

// wrap guards what a library or a changed copy of Config puts in the place of
// our transport. Such a transport carries no proof, so it sends nothing.
func (s *Server) wrap(rt http.RoundTripper) http.RoundTripper {
	if rt == s.guarded {
		return rt
	}
	return &transport{server: s, next: dead{}}
}

type dead struct{}

func (dead) RoundTrip(r *http.Request) (*http.Response, error) {
	closeBody(r)
	return nil, errors.New("connection is not the guard's own: make clients from Server.Config alone")
}

// URL is the server's, normalised.
func (s *Server) URL() string { return s.endpoint.String() }

// Context is the name of the kubeconfig's context, empty when flags alone
// named the server.
func (s *Server) Context() string { return s.context }

// Namespace is that of -n, else the context's, else "default"; explicit is
// true when -n was given.
func (s *Server) Namespace() (name string, explicit bool) { return s.namespace, s.explicitNamespace }

// Seen is the identity that the server last gave, without asking again. Before
// it was asked the UID is empty.
func (s *Server) Seen() Identity {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen.UID == "" {
		return s.unasked()
	}
	return s.seen
}

// Proved is true while the server is proved to be the expected one.
func (s *Server) Proved() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost == nil && s.uid != ""
}

// endpoint is where requests may go.
type endpoint struct{ normal *url.URL }

func (e endpoint) String() string { return e.normal.String() }

// CloseIdleConnections lets go of the connections that are not in use.
func (s *Server) CloseIdleConnections() { utilnet.CloseIdleConnectionsFor(s.raw) }
