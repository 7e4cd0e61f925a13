// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	metainternalversionscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
)

// dangerous are the sub-resources that DESIGN.md names, whatever their verb.
var dangerous = []string{
	"exec", "attach", "proxy", "portforward", "ephemeralcontainers", "token", "eviction", "scale",
}

// FuzzClassify holds what passes unproved against the API server's own reading
// of the same request.
func FuzzClassify(f *testing.F) {
	for _, seed := range []struct{ method, path, query, header string }{
		{"GET", "/api/v1/namespaces/kube-system", "", ""},
		{"GET", "/api/v1/namespaces/x/pods/p/exec", "command=sh", ""},
		{"GET", "/api/v1/watch/namespaces/x/pods/p/exec", "", ""},
		{"GET", "/api/v1/proxy/nodes/n", "", ""},
		{"POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "", ""},
		{"POST", "/apis/authorization.k8s.io/v1/namespaces/x/localsubjectaccessreviews", "", ""},
		{"PATCH", "/apis/apps/v1/namespaces/x/deployments/d", "dryRun=All", ""},
		{"PATCH", "/apis/apps/v1/namespaces/x/deployments/d/scale", "dryRun=All&dryRun=", ""},
		{"DELETE", "/api/v1/namespaces/status/finalize", "dryRun=All", "upgrade"},
		{"GET", "/api/v1/namespaces/x/status/proxy", "", "x-http-method-override"},
		{"GET", "/api/v1/namespaces/x/pods/p%2Fexec", "", ""},
		{"GET", "/api", "\x1e", ""},
		{"POST", "/api/v1/pods", "a b&dryRun=All", ""},
		{"", "/apis/g/v/namespaces/n/namespaces/exec", "", ""},
	} {
		f.Add(seed.method, seed.path, seed.query, seed.header)
	}
	server := endpointOf(f, plainServer)
	understand := &apirequest.RequestInfoFactory{
		APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api"),
	}
	f.Fuzz(func(t *testing.T, method, path, query, key string) {
		u, err := url.Parse(plainServer + path)
		if err != nil {
			t.Skip()
		}
		u.RawQuery = query
		r := &http.Request{Method: method, URL: u, Header: http.Header{key: {"x"}}}
		_, got, _ := server.classify(r)
		if got != pass {
			return
		}
		// What the server receives is the request line, parsed once more.
		received, err := url.ParseRequestURI(u.RequestURI())
		if err != nil {
			t.Fatalf("%s %s passes and is no request: %v", method, u, err)
		}
		if method == "" {
			method = http.MethodGet
		}
		info, err := understand.NewRequestInfo(&http.Request{Method: method, URL: received})
		if err != nil {
			t.Fatalf("%s %s passes and is not understood: %v", method, u, err)
		}
		if slices.Contains(dangerous, info.Subresource) || slices.Contains([]string{"proxy", "redirect"}, info.Verb) {
			t.Fatalf("%s %s passes and is %s of %s/%s", method, u, info.Verb, info.Resource, info.Subresource)
		}
		for _, part := range strings.Split(received.Path, "/") {
			if part == "." || part == ".." {
				t.Fatalf("%s %s passes with a dotted segment", method, u)
			}
		}
		if len(info.Parts) > 3 {
			t.Fatalf("%s %s passes with segments behind its sub-resource", method, u)
		}
		switch k := strings.ToLower(key); {
		case k == "upgrade", strings.Contains(k, "override"):
			t.Fatalf("%s %s passes with the header %q", method, u, key)
		}
		switch {
		case method == http.MethodGet, method == http.MethodHead:
			if info.IsResourceRequest && !slices.Contains([]string{"get", "list", "watch"}, info.Verb) {
				t.Fatalf("%s %s passes and is %s", method, u, info.Verb)
			}
		case method == http.MethodPost && info.Verb == "create" && strings.HasSuffix(info.Resource, "reviews") && info.Subresource == "" && info.Name == "":
		case received.Query()["dryRun"] != nil && info.IsResourceRequest:
			if d := received.Query()["dryRun"]; len(d) != 1 || d[0] != "All" {
				t.Fatalf("%s %s passes and is no dry run", method, u)
			}
		default:
			t.Fatalf("%s %s passes and may change something", method, u)
		}
	})
}

func FuzzInspectDelete(f *testing.F) {
	f.Add(`{"kind":"DeleteOptions","apiVersion":"v1","dryRun":["All"]}`, "application/json", "")
	f.Add(`{"dryRun":["All"],"dryRun":[]}`, "application/json", "dryRun=All")
	f.Add(``, "", "dryRun=All")
	f.Add("k8s\x00", "application/vnd.kubernetes.protobuf", "dryRun=All")
	f.Fuzz(func(t *testing.T, body, contentType, query string) {
		r := &http.Request{
			Method: http.MethodDelete, URL: &url.URL{Path: "/api/v1/pods", RawQuery: query},
			Header: http.Header{"Content-Type": {contentType}},
			Body:   io.NopCloser(strings.NewReader(body)),
		}
		sent, got, err := inspectDelete(r)
		if err != nil {
			t.Fatal(err)
		}
		after, err := io.ReadAll(sent.Body)
		if err != nil || !bytes.Equal(after, []byte(body)) {
			t.Fatalf("body %q became %q, %v", body, after, err)
		}
		if got != pass {
			return
		}
		if options := serverReadsDelete(r, []byte(body)); options != nil && !slices.Equal(options.DryRun, []string{"All"}) {
			t.Fatalf("body %q, query %q pass, and the API server reads %+v", body, query, options)
		}
	})
}

func FuzzNormalizeServer(f *testing.F) {
	for _, seed := range []string{
		"https://api.example.org:6443/", "HTTPS://API.Example.ORG.:443", "https://[::1]:443/", "https://[fe80::1%25eth0]:6443",
		"http://127.0.0.1:80", "https://rancher.example.org/k8s/clusters/c-1/", "https://käse.example.org", "https://u:p@h", "h:6443",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		once, err := NormalizeServer(raw)
		if err != nil {
			return
		}
		twice, err := NormalizeServer(once)
		if err != nil || once != twice {
			t.Fatalf("%q becomes %q, and that %q, %v", raw, once, twice, err)
		}
		u, err := url.Parse(once)
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil ||
			u.RawQuery != "" || u.Fragment != "" || strings.HasSuffix(once, "/") || u.Host != strings.ToLower(u.Host) && !strings.Contains(u.Host, "%") {
			t.Fatalf("%q becomes %q, which is not normal", raw, once)
		}
	})
}

// serverReadsDelete is what k8s.io/apiserver does in pkg/endpoints/handlers/delete.go;
// nil when it would answer with an error.
func serverReadsDelete(r *http.Request, body []byte) *metav1.DeleteOptions {
	options := &metav1.DeleteOptions{}
	if len(body) == 0 {
		if metainternalversionscheme.ParameterCodec.DecodeParameters(r.URL.Query(), metav1.SchemeGroupVersion, options) != nil {
			return nil
		}
		return options
	}
	s, err := negotiation.NegotiateInputSerializer(r, false, metainternalversionscheme.Codecs)
	if err != nil {
		return nil
	}
	kind := metav1.SchemeGroupVersion.WithKind("DeleteOptions")
	decoder := metainternalversionscheme.Codecs.DecoderToVersion(s.Serializer, kind.GroupVersion())
	if object, _, err := decoder.Decode(body, &kind, options); err != nil || object != options {
		return nil
	}
	return options
}
