// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/proxy"
	apiproxy "k8s.io/apiserver/pkg/util/proxy"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

const forwardPath = "/api/v1/namespaces/flux-system/pods/source-controller-0/portforward"

// forwarder is the kubelet's end of a port-forward, in front of one address.
// Before it stand the API server's own handlers, as in its pods/portforward.
type forwarder struct {
	to        string
	websocket bool // false: as an API server before 1.30
	kubelet   *url.URL
	mu        sync.Mutex
	ports     []string
}

func newForwarder(t *testing.T, to string, websocket bool) *forwarder {
	t.Helper()
	f := &forwarder{to: to, websocket: websocket}
	kubelet := httptest.NewServer(http.HandlerFunc(f.serve))
	t.Cleanup(kubelet.Close)
	var err error
	if f.kubelet, err = url.Parse(kubelet.URL); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *forwarder) answer(rw http.ResponseWriter, r *http.Request) bool {
	if r.URL.Path != forwardPath {
		return false
	}
	upgrade := proxy.NewUpgradeAwareHandler(f.kubelet, nil, false, true, f)
	if strings.EqualFold(r.Header.Get("Upgrade"), "websocket") && f.websocket {
		apiproxy.NewTunnelingHandler(upgrade).ServeHTTP(rw, r)
	} else {
		upgrade.ServeHTTP(rw, r)
	}
	return true
}

func (f *forwarder) Error(rw http.ResponseWriter, _ *http.Request, err error) {
	http.Error(rw, err.Error(), http.StatusBadRequest)
}

func (f *forwarder) serve(rw http.ResponseWriter, r *http.Request) {
	if _, err := httpstream.Handshake(r, rw, []string{portforward.PortForwardProtocolV1Name}); err != nil {
		return
	}
	streams := make(chan httpstream.Stream, 2)
	conn := spdy.NewResponseUpgrader().UpgradeResponse(rw, r, func(s httpstream.Stream, _ <-chan struct{}) error {
		streams <- s
		return nil
	})
	if conn == nil {
		return
	}
	defer func() { _ = conn.Close() }()
	failures, data := <-streams, <-streams
	f.mu.Lock()
	f.ports = append(f.ports, data.Headers().Get(corev1.PortHeader))
	f.mu.Unlock()
	target, err := net.Dial("tcp", f.to)
	if err != nil {
		_, _ = io.WriteString(failures, "an error occurred forwarding: \x1b[31mconnection refused")
		_, _ = failures.Close(), data.Close()
		<-conn.CloseChan()
		return
	}
	go func() {
		_, _ = io.Copy(target, data)
		_ = target.(*net.TCPConn).CloseWrite()
	}()
	_, _ = io.Copy(data, target)
	_, _ = data.Close(), failures.Close()
	_ = target.Close()
	<-conn.CloseChan()
}

func TestDialArtifact(t *testing.T) {
	t.Parallel()
	artifact := bytes.Repeat([]byte("artifact "), 100_000)
	store := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/gitrepository/flux-system/flux-system/abc.tar.gz" {
			http.NotFound(rw, r)
			return
		}
		_, _ = rw.Write(artifact)
	}))
	t.Cleanup(store.Close)
	for name, overWebSocket := range map[string]bool{"websocket": true, "spdy": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ca := newAuthority(t, "a")
			w := newWire(t, ca, uidA)
			f := newForwarder(t, store.Listener.Addr().String(), overWebSocket)
			w.respond(f.answer)
			s := connect(t, kubeconfig(t, w.URL, ca.pem), nil)
			client := &http.Client{Transport: &http.Transport{
				DisableKeepAlives: true,
				DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
					return s.DialArtifact(ctx, "flux-system", "source-controller-0", 9090)
				},
			}}
			response, err := client.Get("http://source-controller.flux-system.svc.cluster.local./gitrepository/flux-system/flux-system/abc.tar.gz")
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(response.Body)
			_ = response.Body.Close()
			if err != nil || !bytes.Equal(got, artifact) {
				t.Errorf("got %d bytes, %v; want %d", len(got), err, len(artifact))
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			if len(f.ports) != 1 || f.ports[0] != "9090" {
				t.Errorf("forwarded to %q", f.ports)
			}
			arrived := w.requests()
			if want := map[bool]int{true: 1, false: 2}[overWebSocket]; len(arrived) != want {
				t.Errorf("%q arrived, want %d: a WebSocket, and a fallback where it is not understood", arrived, want)
			}
			for i, line := range arrived {
				if !strings.HasSuffix(line, " "+forwardPath) || w.auth[i] != "Bearer s3cret-token" || !strings.HasPrefix(w.agents[i], "kubectl-standup/") {
					t.Errorf("%s arrived, with %q from %q", line, w.auth[i], w.agents[i])
				}
			}
			// The exception is this one: all else stays refused.
			wantRefused(t, patch(t, s), "is not proved")
		})
	}
}

func TestDialArtifactFails(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t, "a")
	w := newWire(t, ca, uidA)
	s := connect(t, kubeconfig(t, w.URL, ca.pem), nil)

	t.Run("nobody listens", func(t *testing.T) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		_ = listener.Close()
		w.respond(newForwarder(t, listener.Addr().String(), true).answer)
		conn, err := s.DialArtifact(t.Context(), "flux-system", "source-controller-0", 9090)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_, err = conn.Read(make([]byte, 1))
		if err == nil || errors.Is(err, io.EOF) || err.Error() != `"an error occurred forwarding: \x1b[31mconnection refused"` {
			t.Errorf("got %v, want what the kubelet said", err)
		}
	})
	t.Run("forbidden", func(t *testing.T) {
		w.respond(func(rw http.ResponseWriter, _ *http.Request) bool {
			refuseWith(rw, 403, "Forbidden")
			return true
		})
		_, err := s.DialArtifact(t.Context(), "flux-system", "source-controller-0", 9090)
		if err == nil || !strings.HasPrefix(err.Error(), "port 9090 of pod flux-system/source-controller-0 cannot be reached through the API server: ") ||
			!strings.Contains(err.Error(), "is forbidden") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		release := make(chan struct{})
		defer close(release)
		w.respond(func(http.ResponseWriter, *http.Request) bool {
			cancel()
			<-release
			return true
		})
		if _, err := s.DialArtifact(ctx, "flux-system", "source-controller-0", 9090); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("not a pod", func(t *testing.T) {
		before := len(w.requests())
		for _, tt := range []struct {
			namespace, pod string
			port           int
		}{
			{"flux-system", "p/../../nodes/n", 9090},
			{"flux-system/pods/x", "p", 9090},
			{"..", "p", 9090},
			{"", "p", 9090},
			{"x", "", 9090},
			{"x", "p%2f", 9090},
			{"x", "p", 0},
			{"x", "p", -1},
			{"x", "p", 65536},
			{"x", `p\x`, 1},
			{"x", "p;x", 1},
		} {
			if _, err := s.DialArtifact(t.Context(), tt.namespace, tt.pod, tt.port); err == nil || !strings.Contains(err.Error(), " is not one: ") {
				t.Errorf("%+v: got %v", tt, err)
			}
		}
		if got := w.requests(); len(got) != before {
			t.Errorf("%q arrived", got[before:])
		}
	})
}

func TestArtifactConnKeepsDeadlines(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	ca := newAuthority(t, "a")
	w := newWire(t, ca, uidA)
	w.respond(newForwarder(t, silent.Addr().String(), true).answer)
	s := connect(t, kubeconfig(t, w.URL, ca.pem), nil)
	conn, err := s.DialArtifact(t.Context(), "flux-system", "source-controller-0", 9090)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.SetReadDeadline(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	var timeout net.Error
	if _, err := conn.Read(make([]byte, 1)); !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("got %v", err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	if err := conn.Close(); err != nil {
		t.Errorf("closed twice: %v", err)
	}
}

func TestOnlyTheArtifact(t *testing.T) {
	t.Parallel()
	reached := 0
	o := &only{ctx: t.Context(), target: "https://h/api/v1/namespaces/x/pods/p/portforward", next: roundTripper(func(*http.Request) (*http.Response, error) {
		reached++
		return &http.Response{}, nil
	})}
	for _, tt := range []struct {
		method, url, host string
		want              int
	}{
		{"GET", "https://h/api/v1/namespaces/x/pods/p/portforward", "", 1},
		{"POST", "https://h/api/v1/namespaces/x/pods/p/portforward", "", 1},
		{"DELETE", "https://h/api/v1/namespaces/x/pods/p/portforward", "", 0},
		{"GET", "https://h/api/v1/namespaces/x/pods/p/exec", "", 0},
		{"GET", "https://h/api/v1/namespaces/x/pods/p/portforward?ports=22", "", 0},
		{"GET", "https://other/api/v1/namespaces/x/pods/p/portforward", "", 0},
		{"GET", "https://h/api/v1/namespaces/x/pods/p/portforward", "other", 0},
	} {
		r := request(t, tt.method, tt.url)
		if tt.host != "" {
			r.Host = tt.host
		}
		reached = 0
		if _, err := o.RoundTrip(r); reached != tt.want || (err == nil) != (tt.want == 1) {
			t.Errorf("%+v: reached %d, %v", tt, reached, err)
		}
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestGetArtifact(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t, "a")
	w := newWire(t, ca, uidA)
	s := connect(t, kubeconfig(t, w.URL+"/k8s/clusters/c-1", ca.pem), nil)
	w.respond(func(rw http.ResponseWriter, r *http.Request) bool {
		switch r.URL.Path {
		case "/k8s/clusters/c-1/api/v1/namespaces/flux-system/services/source-controller:http/proxy/gitrepository/a/b/c d.tar.gz":
			_, _ = io.WriteString(rw, "artifact")
		case "/k8s/clusters/c-1/api/v1/namespaces/flux-system/services/source-controller:80/proxy/moved":
			http.Redirect(rw, r, "/k8s/clusters/c-2/api/v1/nodes/n/proxy/", http.StatusFound)
		default:
			refuseWith(rw, 503, "ServiceUnavailable")
		}
		return true
	})
	body, err := s.GetArtifact(t.Context(), "flux-system", "source-controller", "http", "/gitrepository/a/b/c d.tar.gz")
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(body)
	if err != nil || string(got) != "artifact" || body.Close() != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := s.GetArtifact(t.Context(), "flux-system", "source-controller", "80", "/moved"); err == nil || !strings.Contains(err.Error(), "302") {
		t.Errorf("redirected: %v", err)
	}
	if _, err := s.GetArtifact(t.Context(), "flux-system", "source-controller", "80", "/x"); err == nil ||
		!strings.HasPrefix(err.Error(), "path /x of service flux-system/source-controller:80: ") {
		t.Errorf("unavailable: %v", err)
	}
	before := len(w.requests())
	for _, tt := range [][4]string{
		{"flux-system", "s", "80", "/../../../pods"},
		{"flux-system", "s", "80", "/a//b"},
		{"flux-system", "s", "80", "/a/./b"},
		{"flux-system", "s", "80", "/a%2fb"},
		{"flux-system", "s", "80", "/"},
		{"flux-system", "s/x", "80", "/a"},
		{"flux-system", "https:s", "80", "/a"},
		{"flux-system", "s", "80:x", "/a"},
		{"..", "s", "80", "/a"},
		{"x", "s", "", "/a"},
		{"flux-system", "s", "80", `/a\b`},
		{"flux-system", "s", "80", "/a\x00b"},
	} {
		if _, err := s.GetArtifact(t.Context(), tt[0], tt[1], tt[2], tt[3]); err == nil || !strings.Contains(err.Error(), " is not one: ") {
			t.Errorf("%q: got %v", tt, err)
		}
	}
	if got := w.requests(); len(got) != before {
		t.Errorf("%q arrived", got[before:])
	}
	wantMutations(t, w, 0)
}
