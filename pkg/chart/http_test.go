// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// helmServer is a Helm repository that wants the account of credentials, when
// it is told to.
type helmServer struct {
	*httptest.Server
	wantsAccount bool

	mu    sync.Mutex
	files map[string][]byte
	asked []string
}

func newHelmServer(t *testing.T, secure, wantsAccount bool) *helmServer {
	t.Helper()
	s := &helmServer{files: map[string][]byte{}, wantsAccount: wantsAccount}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, given := r.BasicAuth()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.asked = append(s.asked, fmt.Sprintf("%s %v", r.URL.Path, given))
		raw, ok := s.files[r.URL.Path]
		switch {
		case s.wantsAccount && (user != "user" || password != marker):
			http.Error(w, "log in", http.StatusUnauthorized)
		case !ok:
			http.NotFound(w, r)
		default:
			_, _ = w.Write(raw)
		}
	})
	if secure {
		s.Server = httptest.NewTLSServer(handler)
	} else {
		s.Server = httptest.NewServer(handler)
	}
	t.Cleanup(s.Close)
	return s
}

// offer puts the versions of the chart into the index, at the URL.
func (s *helmServer) offer(t *testing.T, at string, versions ...string) []byte {
	t.Helper()
	index := "apiVersion: v1\nentries:\n  demo:\n"
	for _, v := range versions {
		s.files["/charts/demo-"+v+".tgz"] = archive(t, chartFiles(v))
		index += fmt.Sprintf("  - {name: demo, version: %s, urls: [%q], created: 2026-01-01T00:00:00Z}\n", v, at+"demo-"+v+".tgz")
	}
	s.files["/charts/index.yaml"] = []byte(index)
	return []byte(index)
}

func repositoryOf(url, spec, status string) string {
	return source(helmRepository, fmt.Sprintf(", url: %q%s", url, spec), status)
}

func credentials() string {
	return "apiVersion: v1\nkind: Secret\nmetadata: {name: account, namespace: sources}\ndata: {username: " +
		base64.StdEncoding.EncodeToString([]byte("user")) + ", password: " + base64.StdEncoding.EncodeToString([]byte(marker)) + "}"
}

// TestHelmRepository: the highest version in the range, by the index that
// source-controller has where it has one, with the repository's account.
func TestHelmRepository(t *testing.T) {
	t.Parallel()
	open := newHelmServer(t, false, false)
	index := open.offer(t, "", "1.0.0", "1.2.0", "0.9.0")
	open.offer(t, "", "1.0.0", "1.2.0", "0.9.0", "1.3.0") // newer than what Flux has seen
	closed := newHelmServer(t, false, true)
	closed.offer(t, "", "1.0.0")
	secured := newHelmServer(t, true, true)
	secured.offer(t, "", "1.1.0")
	authority := "apiVersion: v1\nkind: Secret\nmetadata: {name: authority, namespace: sources}\ndata: {ca.crt: " +
		base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secured.Certificate().Raw})) + "}"
	s := newStored(t)
	seen := s.artifact("/index.yaml", "sha256:x", index)
	const withAccount = ", secretRef: {name: account}"
	release := helmRelease(helmRepository)
	for _, tt := range []struct{ name, live, version, origin string }{
		{"its own index", repositoryOf(open.URL+"/charts", "", "{}"), "1.3.0", open.URL + "/charts/demo-1.3.0.tgz"},
		{"a slash at the end", repositoryOf(open.URL+"/charts/", "", "{}"), "1.3.0", open.URL + "/charts/demo-1.3.0.tgz"},
		{"the index that Flux has", repositoryOf(open.URL+"/charts", "", "{observedGeneration: 1, artifact: "+seen+"}"), "1.2.0", open.URL + "/charts/demo-1.2.0.tgz"},
		{"an index of an older spec", repositoryOf(open.URL+"/charts", "", "{observedGeneration: 0, artifact: "+seen+"}"), "1.3.0", open.URL},
		{"an account", objects(repositoryOf(closed.URL+"/charts", withAccount, "{}"), credentials()), "1.0.0", closed.URL},
		{"an account and an authority", objects(repositoryOf(secured.URL+"/charts", withAccount+", certSecretRef: {name: authority}", "{}"), credentials(), authority), "1.1.0", secured.URL},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := mustLoad(t, charts(t, objects(release, tt.live), ""))
			if c.Version != tt.version || !strings.HasPrefix(c.Origin, tt.origin) {
				t.Errorf("got %s from %s, want %s from %s", c.Version, c.Origin, tt.version, tt.origin)
			}
			if got := names(t, c, on()); !slices.Equal(got, []string{"widgets.example.com"}) {
				t.Errorf("got %v", got)
			}
		})
	}
}

// TestHelmRepositoryValuesFiles are files of the chart.
func TestHelmRepositoryValuesFiles(t *testing.T) {
	t.Parallel()
	open := newHelmServer(t, false, false)
	open.offer(t, "", "1.0.0")
	files := chartFiles("1.0.0")
	files["demo/ci/on.yaml"] = "crds: {install: true}\n"
	open.files["/charts/demo-1.0.0.tgz"] = archive(t, files)
	release := strings.Replace(helmRelease(helmRepository), "chart: demo", "chart: demo, valuesFiles: [values.yaml, ci/on.yaml]", 1)
	c := mustLoad(t, charts(t, objects(release, repositoryOf(open.URL+"/charts", "", "{}")), ""))
	if got := names(t, c, nil); !slices.Equal(got, []string{"widgets.example.com"}) || c.Version != "1.0.0+1" {
		t.Errorf("got %v at %s", got, c.Version)
	}
}

// TestAccountStaysAtHome: the index may send us to another host, which is not
// told who we are.
func TestAccountStaysAtHome(t *testing.T) {
	t.Parallel()
	for spec, want := range map[string]bool{"": false, ", passCredentials: true": true} {
		home, away := newHelmServer(t, false, true), newHelmServer(t, false, false)
		away.offer(t, "", "1.0.0")
		home.offer(t, away.URL+"/charts/", "1.0.0")
		mustLoad(t, charts(t, objects(helmRelease(helmRepository), repositoryOf(home.URL+"/charts", ", secretRef: {name: account}"+spec, "{}"), credentials()), ""))
		if asked := []string{fmt.Sprintf("/charts/demo-1.0.0.tgz %v", want)}; !slices.Equal(away.asked, asked) {
			t.Errorf("%s: got %q, want %q", spec, away.asked, asked)
		}
	}
}

// TestAccountIsNotRedirected: neither may an answer, though it is to the same
// machine.
func TestAccountIsNotRedirected(t *testing.T) {
	t.Parallel()
	for everywhere, want := range map[bool]string{false: "/charts/demo-1.0.0.tgz false", true: "/charts/demo-1.0.0.tgz true"} {
		away := newHelmServer(t, false, false)
		away.offer(t, "", "1.0.0")
		home := httptest.NewServer(http.RedirectHandler(away.URL+"/charts/demo-1.0.0.tgz", http.StatusFound))
		t.Cleanup(home.Close)
		a := account{username: "user", password: marker}
		if _, err := a.get(t.Context(), home.URL+"/x.tgz", home.URL, everywhere, maxChart); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(away.asked, []string{want}) {
			t.Errorf("everywhere %t: got %q, want %q", everywhere, away.asked, want)
		}
	}
}

func TestHelmRepositoryFails(t *testing.T) {
	t.Parallel()
	closed := newHelmServer(t, false, true)
	open := newHelmServer(t, false, false)
	open.offer(t, "", "0.1.0")
	odd := newHelmServer(t, false, false)
	odd.files["/charts/index.yaml"] = []byte("<html>")
	empty := newHelmServer(t, false, false)
	empty.files["/charts/index.yaml"] = []byte("apiVersion: v1\nentries: {demo: [{name: demo, version: 1.0.0}]}\n")
	gone := newHelmServer(t, false, false)
	gone.Close()
	release := helmRelease(helmRepository)
	private := strings.Replace(gone.URL, "http://", "http://me:"+marker+"@", 1)
	for _, tt := range []struct{ name, live, says string }{
		{"no account", repositoryOf(closed.URL+"/charts", "", "{}"), closed.URL + "/charts/index.yaml answered 401 Unauthorized"},
		{"an account that is not there", repositoryOf(closed.URL, ", secretRef: {name: account}", "{}"), "Secret/sources/account exists neither on the cluster"},
		{"an account that is none", objects(repositoryOf(closed.URL, ", secretRef: {name: account}", "{}"), strings.Replace(credentials(), "username:", "user:", 1)), "it holds no credentials that can be used"},
		{"an authority that is none", objects(repositoryOf(closed.URL, ", certSecretRef: {name: account}", "{}"), credentials()), "holds no certificates that can be used"},
		{"no version in the range", repositoryOf(open.URL+"/charts", "", "{}"), `chart demo: none of its 1 versions is in the range ">=1.0.0"`},
		{"no index", repositoryOf(odd.URL+"/charts", "", "{}"), "its index.yaml is no index of charts"},
		{"no place", repositoryOf(empty.URL+"/charts", "", "{}"), "the index says of no place where it is"},
		{"nobody there", repositoryOf(private+"/charts", "", "{}"), "HelmRepository/sources/charts: " + gone.URL + "/charts/index.yaml cannot be fetched from here, and source-controller has not made the chart yet"},
		{"no URL", repositoryOf("nonsense", "", "{}"), "HelmRepository/sources/charts has a URL that is none"},
		{"a cloud's account", repositoryOf("oci://x.example.com/charts", ", type: oci, provider: aws", "{}"), "logs in as source-controller's pod (provider aws), which nobody else can"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := charts(t, objects(release, tt.live), "").Load(t.Context(), "apps", "demo")
			fails(t, err, tt.says)
			fails(t, err, "chart of HelmRelease/apps/demo: ")
		})
	}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	for _, tt := range [][3]string{
		{"https://a.example.com/charts", "x.tgz", "https://a.example.com/charts/x.tgz"},
		{"https://a.example.com/charts/", "x.tgz", "https://a.example.com/charts/x.tgz"},
		{"https://a.example.com/charts?token=1", "x.tgz", "https://a.example.com/charts/x.tgz?token=1"},
		{"https://a.example.com/charts", "/x.tgz", "https://a.example.com/x.tgz"},
		{"https://a.example.com/charts", "https://b.example.com/x.tgz", "https://b.example.com/x.tgz"},
	} {
		if got, err := resolve(tt[0], tt[1]); err != nil || got != tt[2] {
			t.Errorf("%s and %s: got %s, %v, want %s", tt[0], tt[1], got, err, tt[2])
		}
	}
	if got := withoutUser("https://me:" + marker + "@a.example.com/x?token=" + marker + "#" + marker); got != "https://a.example.com/x" {
		t.Errorf("got %s", got)
	}
}
