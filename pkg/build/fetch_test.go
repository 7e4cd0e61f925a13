// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	godigest "github.com/opencontainers/go-digest"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

// entry is one header of an archive, and its content.
type entry struct {
	header  tar.Header
	content string
}

func packed(t *testing.T, entries ...entry) []byte {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	archived := tar.NewWriter(zipped)
	for _, e := range entries {
		e.header.Size = int64(len(e.content))
		if e.header.Mode == 0 {
			e.header.Mode = 0o644
		}
		if err := archived.WriteHeader(&e.header); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(archived, e.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(archived.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func simple(t *testing.T) []byte {
	t.Helper()
	return packed(t, entry{tar.Header{Name: "apps/", Typeflag: tar.TypeDir}, ""}, entry{tar.Header{Name: "apps/a.yaml"}, configMap("a", "k: v")})
}

func sourceOf(url string, archive []byte) flux.Source {
	return flux.Source{
		Ref:      flux.Ref{Kind: "GitRepository", Namespace: "flux-system", Name: "flux-system"},
		Artifact: &flux.Artifact{URL: url, Digest: godigest.FromBytes(archive).String()},
	}
}

func serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL + "/gitrepository/flux-system/flux-system/x.tar.gz"
}

func serving(content []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(content) }
}

// fetcher is closed at the end, and must then have left nothing behind.
func fetcher(t *testing.T, f *Fetcher) *Fetcher {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		if left, _ := os.ReadDir(os.TempDir()); len(left) != 0 {
			t.Errorf("it left %v behind", left)
		}
	})
	return f
}

func TestFetchDirectly(t *testing.T) {
	archive := simple(t)
	var requests atomic.Int32
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		serving(archive)(w, r)
	})
	f := fetcher(t, NewFetcher(nil, nil))
	blake := godigest.BLAKE3.FromBytes(archive).String()
	bare := godigest.FromBytes(archive).Encoded() // as before Flux 2.0
	for _, digest := range []string{godigest.FromBytes(archive).String(), godigest.SHA512.FromBytes(archive).String(), blake, bare} {
		source := sourceOf(url, archive)
		source.Artifact.Digest = digest
		tree, err := f.Fetch(t.Context(), source)
		if err != nil {
			t.Fatalf("%s: %v", digest, err)
		}
		if got, want := files(t, tree), []string{"apps/a.yaml"}; !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", digest, got, want)
		}
		if result, err := (Builder{}).Build(t.Context(), tierAt(t, "tier", "apps"), tree); err != nil || len(result.Objects) != 1 {
			t.Errorf("%s: built %v, %v", digest, result, err)
		}
	}

	// Many tiers of one source share its tree.
	before := requests.Load()
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			if _, err := f.Fetch(t.Context(), sourceOf(url, archive)); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if n := requests.Load() - before; n != 0 {
		t.Errorf("%d requests for an artifact that is there", n)
	}
}

// TestFetchBadArtifacts has one sentence per way to be wrong. Nothing of such
// an artifact is used, and nothing is left behind.
func TestFetchBadArtifacts(t *testing.T) {
	good := simple(t)
	random := bytes.Repeat([]byte("0123456789abcdef"), 1000)
	deep := packed(t, entry{tar.Header{Name: "zeros"}, strings.Repeat("\x00", 5000)})
	tests := []struct {
		name     string
		archive  []byte // what the digest is of
		handler  http.HandlerFunc
		want     string
		sentinel error
	}{{
		name: "truncated", archive: good, sentinel: ErrUnreachable,
		handler: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(len(good)))
			_, _ = w.Write(good[:len(good)/2])
		},
		want: fmt.Sprintf("directly: the transfer was cut short after %d bytes", len(good)/2),
	}, {
		name: "truncated, without a length", archive: good, sentinel: ErrUnreachable,
		handler: func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(good[:len(good)/2])
			w.(http.Flusher).Flush()
		},
		want: fmt.Sprintf("directly: the %d bytes that arrived do not have the digest that the source states, so they are not used", len(good)/2),
	}, {
		name: "another artifact", archive: []byte("something else"), handler: serving(good), sentinel: ErrUnreachable,
		want: "do not have the digest that the source states",
	}, {
		name: "garbage collected", archive: good, handler: http.NotFound, sentinel: ErrUnreachable,
		want: "does not have it any more; its source produces it again at its next reconcile",
	}, {
		name: "server error", archive: good, sentinel: ErrUnreachable,
		handler: func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusBadGateway) },
		want:    "answered 502 Bad Gateway",
	}, {
		name: "redirect", archive: good, sentinel: ErrUnreachable,
		handler: func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://example.com/", http.StatusFound)
		},
		want: "the answer is a redirect",
	}, {
		name: "huge download", archive: random, handler: serving(random),
		want: "its artifact is not used: it is larger than 4096 bytes",
	}, {
		name: "tar bomb", archive: deep, handler: serving(deep),
		want: "its artifact cannot be unpacked: it holds more than 4000 bytes of files",
	}, {
		name:    "too many files",
		archive: packed(t, entry{tar.Header{Name: "a"}, ""}, entry{tar.Header{Name: "b"}, ""}, entry{tar.Header{Name: "c"}, ""}, entry{tar.Header{Name: "d"}, ""}, entry{tar.Header{Name: "e"}, ""}),
		want:    "its artifact cannot be unpacked: it holds more than 4 files",
	}, {
		name:    "climbing out",
		archive: packed(t, entry{tar.Header{Name: "../escaped"}, "x"}),
		want:    `its artifact cannot be unpacked: tar contained invalid name error "../escaped"`,
	}, {
		name:    "absolute",
		archive: packed(t, entry{tar.Header{Name: "/etc/passwd"}, "x"}),
		want:    `its artifact cannot be unpacked: tar contained invalid name error "/etc/passwd"`,
	}, {
		name:    "device",
		archive: packed(t, entry{tar.Header{Name: "null", Typeflag: tar.TypeChar}, ""}),
		want:    "its artifact cannot be unpacked: tar file entry null contained unsupported file type",
	}, {
		name: "no archive", archive: []byte("hello"), handler: serving([]byte("hello")),
		want: "its artifact cannot be unpacked: requires gzip-compressed body",
	}}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.handler == nil {
				tt.handler = serving(tt.archive)
			}
			f := fetcher(t, NewFetcher(nil, nil))
			f.limit = limits{download: 4096, unpacked: 4000, files: 4}
			_, err := f.Fetch(t.Context(), sourceOf(serve(t, tt.handler), tt.archive))
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "source GitRepository/flux-system/flux-system: its artifact ") {
				t.Errorf("got %v\nwant …%s…", err, tt.want)
			}
			if errors.Is(err, ErrUnreachable) != (tt.sentinel != nil) {
				t.Errorf("%v: it is unreachable: %t", err, errors.Is(err, ErrUnreachable))
			}
			if strings.Contains(fmt.Sprint(err), os.TempDir()) {
				t.Errorf("the error shows where the copy lies: %v", err)
			}
		})
	}
}

// TestFetchLinks: a link inside of an archive is left out, as Flux leaves it.
func TestFetchLinks(t *testing.T) {
	archive := packed(t, entry{tar.Header{Name: "link", Typeflag: tar.TypeSymlink, Linkname: "/etc"}, ""}, entry{tar.Header{Name: "link/a.yaml"}, "a: b"})
	tree, err := fetcher(t, NewFetcher(nil, nil)).Fetch(t.Context(), sourceOf(serve(t, serving(archive)), archive))
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(tree.root + "/link"); err != nil || !info.IsDir() {
		t.Errorf("got %v, %v, want a directory of our own", info, err)
	}
}

func TestFetchWithout(t *testing.T) {
	good := simple(t)
	tests := []struct {
		name     string
		artifact *flux.Artifact
		want     string
		sentinel error
	}{
		{"artifact", nil, "source GitRepository/flux-system/flux-system: it has no artifact yet", ErrNoArtifact},
		{"digest", &flux.Artifact{URL: "http://127.0.0.1/"}, "the source states no digest", ErrUnreachable},
		{"known digest", &flux.Artifact{URL: "http://127.0.0.1/", Digest: "md5:00"}, "unsupported digest algorithm", ErrUnreachable},
		{"URL", &flux.Artifact{URL: "file:///etc/passwd", Digest: godigest.FromBytes(good).String()}, "is not one of HTTP", ErrUnreachable},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			source := sourceOf("", nil)
			source.Artifact = tt.artifact
			_, err := fetcher(t, NewFetcher(nil, nil)).Fetch(t.Context(), source)
			if err == nil || !strings.Contains(err.Error(), tt.want) || !errors.Is(err, tt.sentinel) {
				t.Errorf("got %v, want …%s…", err, tt.want)
			}
		})
	}
}

// TestFetchIsTriedAgain: a failure is not remembered.
func TestFetchIsTriedAgain(t *testing.T) {
	archive := simple(t)
	var up atomic.Bool
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if !up.Load() {
			http.Error(w, "starting", http.StatusServiceUnavailable)
			return
		}
		serving(archive)(w, r)
	})
	f := fetcher(t, NewFetcher(nil, nil))
	if _, err := f.Fetch(t.Context(), sourceOf(url, archive)); !errors.Is(err, ErrUnreachable) {
		t.Fatalf("got %v", err)
	}
	up.Store(true)
	if _, err := f.Fetch(t.Context(), sourceOf(url, archive)); err != nil {
		t.Fatal(err)
	}
}

func TestFetchInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	url := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	_, err := fetcher(t, NewFetcher(nil, nil)).Fetch(ctx, sourceOf(url, simple(t)))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that it was interrupted", err)
	}
}

func TestFetcherClosed(t *testing.T) {
	archive := simple(t)
	url := serve(t, serving(archive))
	f := NewFetcher(nil, nil)
	tree, err := f.Fetch(t.Context(), sourceOf(url, archive))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(tree.root); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the tree is still there: %v", err)
	}
	if _, err := f.Fetch(t.Context(), sourceOf(url, archive)); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("got %v", err)
	}
}

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
		{"no way", aService, noPods, throughServer{proxyErr: errors.New("services/proxy is forbidden")}, []string{proxied},
			"its artifact cannot be fetched (" + godigest.FromBytes(archive).String() + "); directly: no such host; " +
				"by port-forward: service flux-system/source-controller: none of its 0 pods is Ready; see kubectl get pods -n flux-system; " +
				"by the API server's service proxy: services/proxy is forbidden"},
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
			server.TLS = &tls.Config{ClientAuth: tt.auth, MaxVersion: tt.max} //nolint:gosec // the old version is the test
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

// TestFetcherTrees: a tier of a source that has no tree is outside.
func TestFetcherTrees(t *testing.T) {
	archive := simple(t)
	source := sourceOf(serve(t, serving(archive)), archive)
	empty := flux.Source{Ref: flux.Ref{Kind: "Bucket", Namespace: "flux-system", Name: "empty"}}
	trees := fetcher(t, NewFetcher(nil, nil)).Trees([]flux.Source{source, empty})
	for ref, want := range map[flux.Ref]bool{
		source.Ref: true,
		{APIVersion: "source.toolkit.fluxcd.io/v1", Kind: "GitRepository", Namespace: "flux-system", Name: "flux-system"}: true,
		empty.Ref: false,
		{Kind: "GitRepository", Namespace: "flux-system", Name: "other"}: false,
	} {
		tree, err := trees(t.Context(), ref)
		if err != nil || (tree != nil) != want {
			t.Errorf("%s: got %v, %v", ref, tree, err)
		}
	}
}
