// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	godigest "github.com/opencontainers/go-digest"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// throughServer is the way through an API server, to the server at address.
type throughServer struct {
	address  string
	dialErr  error
	proxyErr error
	said     []string
}

func (c *throughServer) DialArtifact(ctx context.Context, namespace, pod string, port int) (net.Conn, error) {
	c.said = append(c.said, fmt.Sprintf("dial %s/%s:%d", namespace, pod, port))
	if c.dialErr != nil {
		return nil, c.dialErr
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", c.address)
}

func (c *throughServer) GetArtifact(ctx context.Context, namespace, service, port, path string) (io.ReadCloser, error) {
	c.said = append(c.said, fmt.Sprintf("get %s/%s:%s%s", namespace, service, port, path))
	if c.proxyErr != nil {
		return nil, c.proxyErr
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.address+path, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	return response.Body, nil
}

const (
	aService = `{"kind":"Service","apiVersion":"v1","metadata":{"name":"source-controller"},"spec":{"selector":{"app":"source-controller"},"ports":[{"name":"http","port":80,"targetPort":"http"}]}}`
	somePods = `{"kind":"PodList","apiVersion":"v1","items":[
		{"metadata":{"name":"old"},"spec":{"containers":[{"name":"m","ports":[{"name":"http","containerPort":9090}]}]},"status":{"conditions":[{"type":"Ready","status":"False"}]}},
		{"metadata":{"name":"new"},"spec":{"containers":[{"name":"m","ports":[{"name":"http-prom","containerPort":8080},{"name":"http","containerPort":9090}]}]},"status":{"conditions":[{"type":"Ready","status":"True"}]}}]}`
	noPods = `{"kind":"PodList","apiVersion":"v1","items":[]}`
)

// TestFetchThroughTheServer: from a workstation, the name of the Service does
// not resolve.
func TestFetchThroughTheServer(t *testing.T) {
	archive := simple(t)
	controller := httptest.NewServer(serving(archive))
	t.Cleanup(controller.Close)
	const path = "/gitrepository/flux-system/flux-system/x.tar.gz"
	url := "http://source-controller.flux-system.svc.cluster.local." + path
	forward, proxied := "dial flux-system/new:9090", "get flux-system/source-controller:80"+path
	tests := []struct {
		name          string
		service, pods string
		cluster       throughServer
		said          []string
		want          string
	}{
		{"port-forward", aService, somePods, throughServer{}, []string{forward}, ""},
		{"no port-forward", aService, somePods, throughServer{dialErr: errors.New("pods/portforward is forbidden")}, []string{forward, proxied}, ""},
		{"no pod is Ready", aService, noPods, throughServer{}, []string{proxied}, ""},
		{
			"no way", aService, noPods,
			throughServer{proxyErr: errors.New("services/proxy is forbidden")},
			[]string{proxied},
			"its artifact cannot be fetched (" + godigest.FromBytes(archive).String() + "); directly: no such host; " +
				"by port-forward: service flux-system/source-controller: none of its 0 pods is Ready; see kubectl get pods -n flux-system; " +
				"by the API server's service proxy: services/proxy is forbidden",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				switch r.URL.Path {
				case "/api/v1/namespaces/flux-system/services/source-controller":
					_, _ = io.WriteString(w, tt.service)
				case "/api/v1/namespaces/flux-system/pods":
					if got := r.URL.Query().Get("labelSelector"); got != "app=source-controller" {
						t.Errorf("pods are selected by %q", got)
					}
					_, _ = io.WriteString(w, tt.pods)
				default:
					http.NotFound(w, r)
				}
			}))
			t.Cleanup(api.Close)
			client, err := kubernetes.NewForConfig(&rest.Config{Host: api.URL})
			if err != nil {
				t.Fatal(err)
			}
			tt.cluster.address = controller.Listener.Addr().String()
			f := fetcher(t, NewFetcher(client.CoreV1(), &tt.cluster))
			f.dial = func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no such host") }
			_, err = f.Fetch(t.Context(), sourceOf(url, archive))
			if fmt.Sprint(err) != fmt.Sprint(error(nil)) && tt.want == "" || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if !slices.Equal(tt.cluster.said, tt.said) {
				t.Errorf("tried %q, want %q", tt.cluster.said, tt.said)
			}
		})
	}
}

// TestFetchMutualTLS: the controllers of Flux 2.10 can ask each other for
// certificates.
func TestFetchMutualTLS(t *testing.T) {
	archive := simple(t)
	for _, tt := range []struct {
		name string
		auth tls.ClientAuthType
		max  uint16
		want string
	}{
		{"TLS", tls.NoClientCert, 0, ""},
		{"optional", tls.RequestClientCert, 0, ""},
		{"demanded", tls.RequireAnyClientCert, 0, "the server asks for a client certificate, which only Flux's controllers have (mTLS between the controllers is on); build a working tree instead"},
		{"demanded over TLS 1.2", tls.RequireAnyClientCert, tls.VersionTLS12, "the server asks for a client certificate"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := httptest.NewUnstartedServer(serving(archive))
			server.TLS = &tls.Config{ClientAuth: tt.auth, MaxVersion: tt.max} // the old version is the test
			server.StartTLS()
			t.Cleanup(server.Close)
			_, err := fetcher(t, NewFetcher(nil, nil)).Fetch(t.Context(), sourceOf(server.URL, archive))
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestParseLocation(t *testing.T) {
	tests := []struct{ url, service, namespace, port string }{
		{"http://source-controller.flux-system.svc.cluster.local./a", "source-controller", "flux-system", "80"},
		{"http://source-controller.flux-system.svc:8080/a", "source-controller", "flux-system", "8080"},
		{"https://source-watcher.flux-system/a", "source-watcher", "flux-system", "443"},
		{"http://127.0.0.1:9790/a", "", "", "9790"},
		{"http://artifacts.example.com/a", "", "", "80"},
		{"http://localhost/a", "", "", "80"},
	}
	for _, tt := range tests {
		at, err := parseLocation(tt.url)
		if err != nil || at.service != tt.service || at.namespace != tt.namespace || at.port != tt.port {
			t.Errorf("%s: got %+v, %v, want %+v", tt.url, at, err, tt)
		}
	}
}
