// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
)

// artifactDialTimeout is generous: the API server dials a kubelet in turn.
const artifactDialTimeout = 30 * time.Second

// DialArtifact opens one connection to one port of one pod, through the API
// server, proved or not: it is how the artifact of a source is fetched from the
// pod of its controller, and for pkg/build alone (a test of this package fails
// when another one calls it). It speaks WebSocket and falls back on SPDY, as
// kubectl port-forward does, but opens no port on this machine that others
// could use.
//
// ctx bounds the dial, not the connection. The caller closes the connection.
func (s *Server) DialArtifact(ctx context.Context, namespace, pod string, port int) (net.Conn, error) {
	subject := fmt.Sprintf("port %d of pod %s/%s", port, printable(namespace), printable(pod))
	if why := notSegments(namespace, pod); why != "" || port < 1 || port > 65535 {
		return nil, fmt.Errorf("%s is not one: %s", subject, orText(why, "a port is between 1 and 65535"))
	}
	target := s.below("api", "v1", "namespaces", namespace, "pods", pod, "portforward")
	conn, protocol, err := s.dialUpgraded(ctx, target)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be reached through the API server: %w", subject, sanitized{err})
	}
	if protocol != portforward.PortForwardProtocolV1Name {
		_ = conn.Close() // it never carried anything
		return nil, fmt.Errorf("%s: API server answered in protocol %s instead of %s", subject, printable(protocol), portforward.PortForwardProtocolV1Name)
	}
	stream, err := openStream(conn, port)
	if err != nil {
		_ = conn.Close() // as above
		return nil, fmt.Errorf("%s: %w", subject, sanitized{err})
	}
	return stream, nil
}

// dialUpgraded gives client-go's dialers, which know no context, the caller's.
func (s *Server) dialUpgraded(ctx context.Context, target *url.URL) (httpstream.Connection, string, error) {
	ctx, cancel := context.WithTimeout(ctx, artifactDialTimeout)
	dialer, err := s.artifactDialer(ctx, target)
	if err != nil {
		cancel()
		return nil, "", err
	}
	type result struct {
		conn     httpstream.Connection
		protocol string
		err      error
	}
	dialled := make(chan result, 1)
	go func() {
		conn, protocol, err := dialer.Dial(portforward.PortForwardProtocolV1Name)
		dialled <- result{conn, protocol, err}
	}()
	select {
	case r := <-dialled:
		cancel()
		return r.conn, r.protocol, r.err
	case <-ctx.Done():
		err := ctx.Err()
		cancel()
		go func() {
			if r := <-dialled; r.conn != nil {
				_ = r.conn.Close() // it came too late to carry anything
			}
		}()
		return nil, "", err
	}
}

// artifactDialer is built as kubectl builds its own (k8s.io/kubectl
// pkg/cmd/portforward), over a transport that sends to target and to nothing
// else.
func (s *Server) artifactDialer(ctx context.Context, target *url.URL) (httpstream.Dialer, error) {
	config := rest.CopyConfig(s.direct)
	config.WrapTransport = func(rt http.RoundTripper) http.RoundTripper {
		return &only{ctx: ctx, target: target.String(), next: rt}
	}
	rt, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return nil, err
	}
	overSPDY := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: rt}, http.MethodPost, target)
	overWebSocket, err := portforward.NewSPDYOverWebsocketDialerForStreaming(target, config)
	if err != nil {
		return nil, err
	}
	return portforward.NewFallbackDialerForStreaming(overWebSocket, overSPDY, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	}), nil
}

// GetArtifact GETs one path of one service through the API server's service
// proxy, proved or not: the last way to an artifact, and for pkg/build alone,
// as DialArtifact. port is a number or the name of the service's port. The
// caller closes the body; an answer other than 200 is an error.
func (s *Server) GetArtifact(ctx context.Context, namespace, service, port, path string) (io.ReadCloser, error) {
	subject := fmt.Sprintf("path %s of service %s/%s:%s", printable(path), printable(namespace), printable(service), printable(port))
	segments := strings.Split(strings.TrimPrefix(path, "/"), "/")
	why := notSegments(append([]string{namespace, service, port}, segments...)...)
	if strings.Contains(service+port, ":") {
		why = "a service and a port are named without a scheme"
	}
	if why != "" {
		return nil, fmt.Errorf("%s is not one: %s", subject, why)
	}
	target := s.below(append([]string{"api", "v1", "namespaces", namespace, "services", service + ":" + port, "proxy"}, segments...)...)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", subject, err)
	}
	client := s.rawClient()
	client.Timeout = 0 // it would also cut off the body; ctx bounds both
	client.Transport = &only{ctx: ctx, target: target.String(), next: s.raw}
	response, err := client.Do(r)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be reached through the API server: %w", subject, err)
	}
	if response.StatusCode != http.StatusOK {
		_ = response.Body.Close() // of an error, which nobody reads
		return nil, fmt.Errorf("%s: %w", subject, apierrors.NewGenericServerResponse(response.StatusCode, "get",
			schema.GroupResource{Resource: "services/proxy"}, service, response.Status, 0, true))
	}
	return response.Body, nil
}

// below is a URL of the server.
func (s *Server) below(segments ...string) *url.URL {
	u, err := url.Parse(s.direct.Host)
	if err != nil { // setEndpoint made it from a parsed URL
		return &url.URL{}
	}
	return u.JoinPath(segments...)
}

// notSegments is why one of the names could be more, or less, than one segment
// of a path.
func notSegments(names ...string) string {
	for _, name := range names {
		if name == "" {
			return "a name is empty"
		}
		if problems := content.IsPathSegmentName(name); len(problems) > 0 {
			return "a name " + problems[0]
		}
		if strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\\' || r == ';' }) {
			return "a name holds a character that a proxy could read differently"
		}
	}
	return ""
}

// only sends to one URL, and gives the dial, which client-go makes without
// one, the caller's context.
type only struct {
	ctx    context.Context
	target string
	next   http.RoundTripper
}

func (o *only) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.String() != o.target || r.Host != "" && r.Host != r.URL.Host ||
		r.Method != http.MethodGet && r.Method != http.MethodPost {
		closeBody(r)
		return nil, errors.New("request is not the one for the artifact")
	}
	return o.next.RoundTrip(r.WithContext(o.ctx))
}
