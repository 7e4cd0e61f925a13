// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	godigest "github.com/opencontainers/go-digest"

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
		name: "download without an end", archive: random,
		handler: func(w http.ResponseWriter, _ *http.Request) {
			for {
				if _, err := w.Write(random); err != nil {
					return // hung up on
				}
			}
		},
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
