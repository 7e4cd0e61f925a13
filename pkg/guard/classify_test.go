// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"bytes"
	"net/http"
	"net/url"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
)

func endpointOf(t testing.TB, server string) endpoint {
	t.Helper()
	normal, why := parseServer(server)
	if why != "" {
		t.Fatalf("server %s %s", server, why)
	}
	return endpoint{normal: normal}
}

func request(t testing.TB, method, rawURL string) *http.Request {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, rawURL, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Method = method
	return r
}

const (
	plainServer = "https://api.example.org:6443"
	rancher     = "https://rancher.example.org/k8s/clusters/c-1"
)

func TestClassify(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		method, path string
		want         verdict
	}{
		// Reading resources.
		{"GET", "/api/v1/namespaces/kube-system", pass},
		{"", "/api/v1/namespaces/kube-system", pass},
		{"HEAD", "/api/v1/namespaces/kube-system", pass},
		{"GET", "/api/v1/namespaces", pass},
		{"GET", "/api/v1/namespaces?watch=1", pass},
		{"GET", "/api/v1/pods?limit=500&continue=abc%2Bdef", pass},
		{"GET", "/api/v1/namespaces/flux-system/pods", pass},
		{"GET", "/api/v1/namespaces/flux-system/pods/source-controller-0", pass},
		{"GET", "/api/v1/namespaces/flux-system/pods/p/status", pass},
		{"GET", "/api/v1/namespaces/flux-system/pods/p/log?follow=true", pass},
		{"GET", "/api/v1/namespaces/flux-system/secrets/sops-age", pass},
		{"GET", "/api/v1/namespaces/flux-system/status", pass},
		{"GET", "/apis/apps/v1/deployments", pass},
		{"GET", "/apis/kustomize.toolkit.fluxcd.io/v1/kustomizations", pass},
		{"GET", "/apis/kustomize.toolkit.fluxcd.io/v1/namespaces/flux-system/kustomizations/apps", pass},
		{"GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/cdis.cdi.kubevirt.io", pass},
		{"GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:node", pass},
		{"GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles/my%20role", pass},
		{"GET", "/api/v1/watch/namespaces/flux-system/pods", pass},
		{"GET", "/api/v1/watch/pods/p", pass},
		// Names that look like something else.
		{"GET", "/api/v1/namespaces/exec/pods", pass},
		{"GET", "/api/v1/namespaces/x/pods/exec", pass},
		{"GET", "/api/v1/namespaces/x/pods/proxy", pass},
		{"GET", "/api/v1/namespaces/proxy", pass},
		// Discovery, version, health.
		{"GET", "/api", pass},
		{"GET", "/api/v1", pass},
		{"GET", "/apis", pass},
		{"GET", "/apis/apps", pass},
		{"GET", "/apis/apps/v1", pass},
		{"GET", "/openapi/v2", pass},
		{"GET", "/openapi/v3", pass},
		{"GET", "/openapi/v3/apis/apps/v1?hash=0F", pass},
		{"GET", "/version", pass},
		{"GET", "/healthz", pass},
		{"GET", "/livez?verbose", pass},
		{"GET", "/readyz/etcd", pass},
		{"HEAD", "/readyz", pass},
		// Other paths are not understood.
		{"GET", "/metrics", mutate},
		{"GET", "/logs/kube-apiserver.log", mutate},
		{"GET", "/debug/pprof/profile", mutate},
		{"GET", "/version/x", mutate},
		{"GET", "/openapi", mutate},
		{"GET", "/openapi/v2/x", mutate},
		{"GET", "/k8s/clusters/c-2/api/v1/pods", mutate},
		{"POST", "/version", mutate},
		{"POST", "/apis", mutate},
		{"DELETE", "/healthz", mutate},
		{"POST", "/healthz?dryRun=All", mutate},
		{"PATCH", "/apis/apps/v1?dryRun=All", mutate},
		// Sub-resources that reach further than their method says.
		{"GET", "/api/v1/namespaces/x/pods/p/exec?command=sh", mutate},
		{"POST", "/api/v1/namespaces/x/pods/p/exec?command=sh", mutate},
		{"GET", "/api/v1/namespaces/x/pods/p/attach", mutate},
		{"GET", "/api/v1/namespaces/x/pods/p/portforward", mutate},
		{"POST", "/api/v1/namespaces/x/pods/p/portforward", mutate},
		{"GET", "/api/v1/namespaces/x/pods/p/proxy", mutate},
		{"GET", "/api/v1/namespaces/x/pods/p/proxy/a/b", mutate},
		{"GET", "/api/v1/namespaces/x/pods/p:80/proxy/", refuse},
		{"GET", "/api/v1/namespaces/x/services/http:s:80/proxy/metrics", mutate},
		{"GET", "/api/v1/nodes/n/proxy/logs/syslog", mutate},
		{"HEAD", "/api/v1/nodes/n/proxy", mutate},
		{"GET", "/api/v1/namespaces/x/pods/p/ephemeralcontainers", mutate},
		{"PATCH", "/api/v1/namespaces/x/pods/p/ephemeralcontainers?dryRun=All", mutate},
		{"POST", "/api/v1/namespaces/x/serviceaccounts/s/token", mutate},
		{"POST", "/api/v1/namespaces/x/serviceaccounts/s/token?dryRun=All", mutate},
		{"POST", "/api/v1/namespaces/x/pods/p/eviction?dryRun=All", mutate},
		{"GET", "/apis/apps/v1/namespaces/x/deployments/d/scale", mutate},
		{"PATCH", "/apis/apps/v1/namespaces/x/deployments/d/scale?dryRun=All", mutate},
		{"GET", "/apis/subresources.kubevirt.io/v1/namespaces/x/virtualmachineinstances/v/console", mutate},
		{"GET", "/apis/subresources.kubevirt.io/v1/namespaces/x/virtualmachineinstances/v/vnc", mutate},
		{"PUT", "/apis/subresources.kubevirt.io/v1/namespaces/x/virtualmachines/v/restart?dryRun=All", mutate},
		{"GET", "/api/v1/namespaces/x/pods/p/status/more", mutate},
		{"GET", "/api/v1/namespaces/x/status/more", mutate},
		{"POST", "/api/v1/namespaces/x/pods/p/binding?dryRun=All", mutate},
		{"PUT", "/api/v1/namespaces/x/finalize", mutate},
		{"PUT", "/api/v1/namespaces/x/finalize?dryRun=All", mutate},
		{"PUT", "/apis/certificates.k8s.io/v1/certificatesigningrequests/c/approval?dryRun=All", mutate},
		// Verbs in the path, as old servers knew them.
		{"GET", "/api/v1/proxy/namespaces/x/services/s", mutate},
		{"GET", "/api/v1/proxy/nodes/n/logs", mutate},
		{"GET", "/api/v1/redirect/nodes/n", mutate},
		{"GET", "/api/v1/proxy", mutate},
		{"GET", "/api/v1/watch/namespaces/x/pods/p/exec", mutate},
		{"POST", "/api/v1/watch/namespaces?dryRun=All", mutate},
		{"DELETE", "/api/v1/proxy/nodes/n?dryRun=All", mutate},
		// Mutations.
		{"POST", "/api/v1/namespaces", mutate},
		{"POST", "/api/v1/namespaces/x/configmaps?fieldManager=kubectl-standup", mutate},
		{"PUT", "/api/v1/namespaces/x/configmaps/c", mutate},
		{"PATCH", "/apis/kustomize.toolkit.fluxcd.io/v1/namespaces/x/kustomizations/apps", mutate},
		{"PATCH", "/apis/cdi.kubevirt.io/v1beta1/cdis/cdi?force=true&fieldManager=m", mutate},
		{"DELETE", "/api/v1/namespaces/x", mutate},
		{"DELETE", "/api/v1/namespaces/x/configmaps", mutate},
		{"PUT", "/api/v1/namespaces/x/pods/p/status", mutate},
		{"POST", "/api/v1/namespaces/x/bindings", mutate},
		// Dry runs.
		{"POST", "/api/v1/namespaces/x/configmaps?dryRun=All", pass},
		{"PUT", "/api/v1/namespaces/x/configmaps/c?dryRun=All", pass},
		{"PATCH", "/apis/cdi.kubevirt.io/v1beta1/cdis/cdi?force=true&dryRun=All&fieldManager=m", pass},
		{"DELETE", "/api/v1/namespaces/x/configmaps/c?dryRun=All", pass},
		{"DELETE", "/api/v1/namespaces/x/configmaps?dryRun=All", pass},
		{"PATCH", "/apis/apps/v1/namespaces/x/deployments/d/status?dryRun=All", pass},
		{"POST", "/api/v1/namespaces/x/configmaps?dryRun=%41ll", pass},
		// And what only looks like one.
		{"POST", "/api/v1/namespaces/x/configmaps?dryRun=", mutate},
		{"POST", "/api/v1/namespaces/x/configmaps?dryRun", mutate},
		{"POST", "/api/v1/namespaces/x/configmaps?dryRun=all", mutate},
		{"POST", "/api/v1/namespaces/x/configmaps?dryRun=None", mutate},
		{"POST", "/api/v1/namespaces/x/configmaps?dryRun=true", mutate},
		{"POST", "/api/v1/namespaces/x/configmaps?dryrun=All", mutate},
		{"POST", "/api/v1/namespaces/x/configmaps?DryRun=All", mutate},
		{"POST", "/api/v1/namespaces/x/configmaps?dryRun=All&dryRun=All", mutate},
		{"POST", "/api/v1/namespaces/x/configmaps?dryRun=All&dryRun=", mutate},
		{"POST", "/api/v1/namespaces/x/configmaps?dryRun=All,None", mutate},
		{"POST", "/api/v1/namespaces/x/configmaps?dryRun=All%20", mutate},
		{"POST", "/api/v1/namespaces/x/configmaps?x=1;dryRun=All", mutate},
		{"POST", "/api/v1/namespaces/x/configmaps?dryRun=All;x=1", mutate},
		{"POST", "/api/v1/namespaces/x/configmaps?dryRun=All&bad=%zz", mutate},
		{"POST", "/api/v1/namespaces/x/configmaps?a=dryRun%3DAll", mutate},
		{"POST", "/api/v1/namespaces/x/configmaps#?dryRun=All", mutate},
		// Questions that are asked with a POST.
		{"POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", pass},
		{"POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", pass},
		{"POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", pass},
		{"POST", "/apis/authorization.k8s.io/v1/namespaces/x/localsubjectaccessreviews", pass},
		{"POST", "/apis/authentication.k8s.io/v1/tokenreviews", pass},
		{"POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", pass},
		{"PUT", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", mutate},
		{"DELETE", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", mutate},
		{"POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews/x", mutate},
		{"POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews/x/y", mutate},
		{"POST", "/apis/authorization.k8s.io/v1/namespaces/x/selfsubjectaccessreviews", mutate},
		{"POST", "/apis/authorization.k8s.io/v1/localsubjectaccessreviews", mutate},
		{"POST", "/apis/evil.example.org/v1/selfsubjectaccessreviews", mutate},
		{"POST", "/api/v1/selfsubjectaccessreviews", mutate},
		{"POST", "/apis/authentication.k8s.io/v1/tokenrequests", mutate},
		{"POST", "/apis/authorization.k8s.io/v1/watch/selfsubjectaccessreviews", mutate},
		// Methods that no API server has.
		{"get", "/api/v1/pods", refuse},
		{"Get", "/api/v1/pods", refuse},
		{"OPTIONS", "/api/v1/pods", refuse},
		{"TRACE", "/api/v1/pods", refuse},
		{"CONNECT", "/api/v1/nodes/n/proxy", refuse},
		{"WATCH", "/api/v1/pods", refuse},
		{"MERGE", "/api/v1/pods?dryRun=All", refuse},
		// Paths that two readers take for different ones.
		{"GET", "/api/v1/namespaces/x/pods/p%2Fexec", refuse},
		{"GET", "/api/v1/namespaces/x/pods/p%2fexec", refuse},
		{"GET", "/api/v1/namespaces/x/pods/p%252Fexec", refuse},
		{"GET", "/api/v1/namespaces/x/pods/p%5Cexec", refuse},
		{"GET", `/api/v1/namespaces/x/pods/p\exec`, refuse},
		{"GET", "/api/v1/namespaces/x/pods/../pods/p/exec", refuse},
		{"GET", "/api/v1/namespaces/x/pods/./p", refuse},
		{"GET", "/api/v1/namespaces/x/pods/%2e%2e/p", refuse},
		{"GET", "/api/v1/namespaces/x/pods/p/%2E/exec", refuse},
		{"GET", "/api/v1//namespaces", refuse},
		{"GET", "//api/v1/namespaces", refuse},
		{"GET", "/api/v1/namespaces/", refuse},
		{"GET", "/api/v1/namespaces/x/pods/p//exec", refuse},
		{"GET", "/api/v1/namespaces/x/pods/p;a=b/exec", refuse},
		{"GET", "/api/v1/namespaces/x/pods/p/status%3b/exec", refuse},
		{"GET", "/api/v1/namespaces/x/pods/p%00", refuse},
		{"GET", "/api/v1/namespaces/x/pods/p%0d%0aX: y", refuse},
		{"GET", "/api/v1/namespaces/x/pods/p%3Fexec", refuse},
		{"GET", "/api/v1/namespaces/x/pods/p%23", refuse},
		{"GET", "/api/v1/namespaces/x/pods/p%FF", refuse},
		{"GET", "/", refuse},
		{"GET", "", refuse},
		// A sub-resource in another spelling is one that is not known.
		{"GET", "/api/v1/namespaces/x/pods/p/EXEC", mutate},
		{"GET", "/api/v1/namespaces/x/pods/p/%65xec", mutate},
		{"GET", "/api/v1/namespaces/x/pods/p/exec%20", mutate},
	} {
		t.Run(tt.method+" "+tt.path, func(t *testing.T) {
			t.Parallel()
			r := request(t, tt.method, plainServer+tt.path)
			c, got, why := endpointOf(t, plainServer).classify(r)
			if got != tt.want {
				t.Errorf("verdict %d, want %d (%s)", got, tt.want, why)
			}
			if (got == refuse) != (why != "") {
				t.Errorf("verdict %d with the reason %q", got, why)
			}
			if text := c.refused(why, nil).Error(); strings.ContainsAny(text, "\n\r\x00") {
				t.Errorf("message holds a control character: %q", text)
			}
		})
	}
}

func TestClassifyNamesTheCall(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ method, path, want string }{
		{
			"PATCH", "/apis/kustomize.toolkit.fluxcd.io/v1/namespaces/flux-system/kustomizations/apps",
			"patch of kustomizations.kustomize.toolkit.fluxcd.io flux-system/apps was refused and not sent: why",
		},
		{"POST", "/api/v1/namespaces", "create of namespaces was refused and not sent: why"},
		{"PUT", "/api/v1/nodes/n", "update of nodes n was refused and not sent: why"},
		{"DELETE", "/api/v1/namespaces/x/secrets", "deletecollection of secrets x was refused and not sent: why"},
		{"DELETE", "/api/v1/namespaces/x/secrets/s", "delete of secrets x/s was refused and not sent: why"},
		{"GET", "/api/v1/namespaces/x/pods/p/exec", "get of pods/exec x/p was refused and not sent: why"},
		{"GET", "/api/v1/proxy/nodes/n", "get of proxy nodes n was refused and not sent: why"},
		{"POST", "/metrics", "post of /metrics was refused and not sent: why"},
	} {
		c, _, _ := endpointOf(t, plainServer).classify(request(t, tt.method, plainServer+tt.path))
		if got := c.refused("why", nil).Error(); got != tt.want {
			t.Errorf("%s %s: %q, want %q", tt.method, tt.path, got, tt.want)
		}
	}
}

func TestClassifyKeepsToTheServer(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		server, url string
		want        verdict
	}{
		{plainServer, "https://api.example.org:6443/api/v1/pods", pass},
		{plainServer, "https://API.example.org.:6443/api/v1/pods", pass},
		{plainServer, "HTTPS://api.example.org:6443/api/v1/pods", pass},
		{plainServer, "http://api.example.org:6443/api/v1/pods", refuse},
		{plainServer, "https://api.example.org/api/v1/pods", refuse},
		{plainServer, "https://api.example.org:443/api/v1/pods", refuse},
		{plainServer, "https://api.example.org:6444/api/v1/pods", refuse},
		{plainServer, "https://dev.example.org:6443/api/v1/pods", refuse},
		{plainServer, "https://api.example.org.evil.net:6443/api/v1/pods", refuse},
		{plainServer, "https://user:pw@api.example.org:6443/api/v1/pods", refuse},
		{"https://api.example.org", "https://api.example.org:443/api/v1/pods", pass},
		{"https://[fd00::1]:6443", "https://[fd00:0:0::1]:6443/api/v1/pods", pass},
		{"https://[fd00::1]:6443", "https://[fd00::2]:6443/api/v1/pods", refuse},
		{rancher, rancher + "/api/v1/pods", pass},
		{rancher, rancher + "/version", pass},
		{rancher, "https://rancher.example.org/k8s/clusters/c-2/api/v1/pods", refuse},
		{rancher, "https://rancher.example.org/k8s/clusters/c-11/api/v1/pods", refuse},
		{rancher, "https://rancher.example.org/k8s/clusters/c-1", refuse},
		{rancher, "https://rancher.example.org/api/v1/pods", refuse},
		{rancher, "https://rancher.example.org/k8s/clusters/c-1/../c-2/api/v1/pods", refuse},
		{rancher, "https://rancher.example.org/k8s/clusters/c-1/%2e%2e/c-2/api/v1/pods", refuse},
	} {
		_, got, why := endpointOf(t, tt.server).classify(request(t, http.MethodGet, tt.url))
		if got != tt.want {
			t.Errorf("%s at %s: verdict %d, want %d (%s)", tt.url, tt.server, got, tt.want, why)
		}
	}
}

func TestClassifyTricksBesideTheURL(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*http.Request)
		want   verdict
	}{
		"nothing":             {func(*http.Request) {}, pass},
		"method override":     {header("X-HTTP-Method-Override", "DELETE"), refuse},
		"empty override":      {header("X-Http-Method-Override", ""), refuse},
		"second override":     {header("X-Method-Override", "DELETE"), refuse},
		"third override":      {header("X-HTTP-Method", "DELETE"), refuse},
		"path override":       {header("X-Original-URL", "/api/v1/namespaces/x/pods/p/exec"), refuse},
		"raw key":             {func(r *http.Request) { r.Header["x-http-METHOD-override"] = nil }, refuse},
		"underscores":         {func(r *http.Request) { r.Header["X_HTTP_Method_Override"] = []string{"PUT"} }, refuse},
		"upgrade":             {header("Upgrade", "websocket"), mutate},
		"connection":          {header("Connection", "keep-alive, Upgrade"), mutate},
		"raw connection":      {func(r *http.Request) { r.Header["connection"] = []string{"UPGRADE"} }, mutate},
		"keep-alive":          {header("Connection", "keep-alive"), pass},
		"other host":          {func(r *http.Request) { r.Host = "dev.example.org:6443" }, refuse},
		"host with user":      {func(r *http.Request) { r.Host = "x@api.example.org:6443" }, refuse},
		"host with path":      {func(r *http.Request) { r.Host = "api.example.org:6443/x" }, refuse},
		"same host":           {func(r *http.Request) { r.Host = "API.example.org:6443" }, pass},
		"opaque":              {func(r *http.Request) { r.URL.Opaque = "//api.example.org:6443/api/v1/nodes/n/proxy" }, refuse},
		"query that splits":   {func(r *http.Request) { r.URL.RawQuery = "a HTTP/1.1\r\nX: y" }, refuse},
		"raw path that lies":  {func(r *http.Request) { r.URL.RawPath = "/api/v1/namespaces/x/pods/p/exec" }, pass},
		"raw path that hides": {func(r *http.Request) { r.URL.RawPath = "/api/v1/pod%73"; r.URL.Path = "/api/v1/pods" }, pass},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := request(t, http.MethodGet, plainServer+"/api/v1/pods")
			tt.change(r)
			_, got, why := endpointOf(t, plainServer).classify(r)
			if got != tt.want {
				t.Errorf("verdict %d, want %d (%s)", got, tt.want, why)
			}
			// A RawPath that is no encoding of Path is not sent.
			if got == pass && !strings.HasPrefix(unescaped(t, r.URL.EscapedPath()), "/api/v1/pods") {
				t.Errorf("sent would be %s", r.URL.EscapedPath())
			}
		})
	}
}

func header(key, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(key, value) }
}

func unescaped(t *testing.T, path string) string {
	t.Helper()
	p, err := url.PathUnescape(path)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The API server reads the options of a DELETE from the body when there is
// one, and then does not look at the query.
func TestInspectDelete(t *testing.T) {
	t.Parallel()
	const all = `{"kind":"DeleteOptions","apiVersion":"v1","dryRun":["All"]}`
	for name, tt := range map[string]struct {
		query, contentType, body string
		want                     verdict
	}{
		"dry run in the body":       {"", "application/json", all, pass},
		"with a charset":            {"", "application/json; charset=utf-8", all, pass},
		"with preconditions":        {"", "application/json", `{"dryRun":["All"],"preconditions":{"resourceVersion":"7"},"propagationPolicy":"Foreground"}`, pass},
		"in the query, no body":     {"?dryRun=All", "", "", pass},
		"nowhere":                   {"", "application/json", `{"kind":"DeleteOptions"}`, mutate},
		"in the ignored query":      {"?dryRun=All", "application/json", `{"kind":"DeleteOptions","apiVersion":"v1"}`, mutate},
		"empty object":              {"?dryRun=All", "application/json", `{}`, mutate},
		"a space":                   {"?dryRun=All", "application/json", ` `, mutate},
		"empty list":                {"?dryRun=All", "application/json", `{"dryRun":[]}`, mutate},
		"twice":                     {"", "application/json", `{"dryRun":["All","All"]}`, mutate},
		"given and taken back":      {"", "application/json", `{"dryRun":["All"],"dryRun":[]}`, mutate},
		"other case":                {"", "application/json", `{"dryrun":["All"]}`, mutate},
		"other value":               {"", "application/json", `{"dryRun":["all"]}`, mutate},
		"unknown field":             {"", "application/json", `{"dryRun":["All"],"x":1}`, mutate},
		"other kind":                {"", "application/json", `{"kind":"Pod","dryRun":["All"]}`, mutate},
		"two documents":             {"", "application/json", all + all, mutate},
		"no content type":           {"", "", all, mutate},
		"yaml":                      {"", "application/yaml", all, mutate},
		"protobuf":                  {"", "application/vnd.kubernetes.protobuf", protobufDelete(t, "All"), pass},
		"protobuf of nothing":       {"?dryRun=All", "application/vnd.kubernetes.protobuf", "k8s\x00", mutate},
		"protobuf without":          {"?dryRun=All", "application/vnd.kubernetes.protobuf", protobufDelete(t), mutate},
		"protobuf twice":            {"", "application/vnd.kubernetes.protobuf", protobufDelete(t, "All", "All"), mutate},
		"protobuf called json":      {"", "application/json", protobufDelete(t, "All"), mutate},
		"json called protobuf":      {"", "application/vnd.kubernetes.protobuf", all, mutate},
		"protobuf cut short":        {"", "application/vnd.kubernetes.protobuf", protobufDelete(t, "All")[:20], mutate},
		"larger than any options":   {"", "application/json", all + strings.Repeat(" ", maxDeleteOptions), mutate},
		"not json":                  {"", "application/json", "dryRun: [All]", mutate},
		"dry run of a sub-resource": {"", "application/json", all, mutate},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := "/api/v1/namespaces/x/configmaps/c"
			if name == "dry run of a sub-resource" {
				path += "/other"
			}
			r, err := http.NewRequest(http.MethodDelete, plainServer+path+tt.query, bytes.NewBufferString(tt.body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", tt.contentType)
			_, got, _ := endpointOf(t, plainServer).classify(r)
			if got == inspect {
				if r, got, err = inspectDelete(r); err != nil {
					t.Fatal(err)
				}
				sent := new(bytes.Buffer)
				if _, err := sent.ReadFrom(r.Body); err != nil || sent.String() != tt.body {
					t.Errorf("sent would be %q, %v", sent, err)
				}
			}
			if got != tt.want {
				t.Errorf("verdict %d, want %d", got, tt.want)
			}
		})
	}
	t.Run("gzip", func(t *testing.T) {
		t.Parallel()
		r, err := http.NewRequest(http.MethodDelete, plainServer+"/api/v1/pods", strings.NewReader(all))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Content-Encoding", "gzip")
		if _, got, _ := inspectDelete(r); got != mutate {
			t.Errorf("verdict %d, want %d", got, mutate)
		}
	})
}

func protobufDelete(t *testing.T, dryRun ...string) string {
	t.Helper()
	options := &metav1.DeleteOptions{DryRun: dryRun}
	options.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "DeleteOptions"})
	var b bytes.Buffer
	if err := protobuf.NewSerializer(nil, nil).Encode(options, &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
