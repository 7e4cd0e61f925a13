// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package draft

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/kubestandup/kubestandup/pkg/guard"
)

// server answers with what stands under the path of a request, in turn where
// there are several answers; a number is the code of a refusal. It is here to
// try the client on; the e2e tests have a real API server.
type server struct {
	t       *testing.T
	answers map[string][]string

	mu    sync.Mutex
	asked []string
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, r.Method+" "+r.URL.RequestURI())
	if r.Method != http.MethodGet {
		s.t.Errorf("sent %s %s", r.Method, r.URL)
	}
	if strings.Contains(r.URL.Path, "/secrets/") && !strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadata") {
		s.t.Errorf("asked for a whole Secret: %s", r.Header.Get("Accept"))
	}
	code, body, reason := http.StatusOK, "", metav1.StatusReasonNotFound
	answers := s.answers[r.URL.Path]
	if len(answers) > 0 {
		body = answers[0]
	}
	if len(answers) > 1 {
		s.answers[r.URL.Path] = answers[1:]
	}
	switch body {
	case "":
		code = http.StatusNotFound
	case "403":
		code, reason = http.StatusForbidden, metav1.StatusReasonForbidden
	case "401":
		code, reason = http.StatusUnauthorized, metav1.StatusReasonUnauthorized
	case "410":
		code, reason = http.StatusGone, metav1.StatusReasonExpired
	}
	if code != http.StatusOK {
		body = fmt.Sprintf("{kind: Status, apiVersion: v1, status: Failure, code: %d, reason: %s, message: %s is refused}", code, reason, r.URL.Path)
	}
	data, err := yaml.YAMLToJSON([]byte(body))
	if err != nil {
		s.t.Error(err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(data)
}

func (s *server) read(t *testing.T) (*Live, error) {
	t.Helper()
	s.t = t
	listening := httptest.NewServer(s)
	t.Cleanup(listening.Close)
	return Read(t.Context(), &rest.Config{Host: listening.URL}, guard.Identity{URL: "https://h", UID: "u"})
}

// apiList is a list in YAML; next is its continue token.
func apiList(apiVersion, kind, next string, items ...string) string {
	text := fmt.Sprintf("apiVersion: %s\nkind: %sList\nmetadata: {continue: %q, resourceVersion: \"1\"}\nitems:\n", apiVersion, kind, next)
	for _, item := range items {
		text += fmt.Sprintf("- {apiVersion: %s, kind: %s, %s}\n", apiVersion, kind, item)
	}
	if len(items) == 0 {
		text = strings.Replace(text, "items:\n", "items: []\n", 1)
	}
	return text
}

const (
	kustomizationsPath = "/apis/kustomize.toolkit.fluxcd.io/v1/kustomizations"
	helmReleasesPath   = "/apis/helm.toolkit.fluxcd.io/v2/helmreleases"
)

func ksItem(name, spec string) string {
	return "metadata: {name: " + name + ", namespace: flux-system, labels: {kustomize.toolkit.fluxcd.io/name: root, kustomize.toolkit.fluxcd.io/namespace: flux-system}}, spec: {" + spec + "}"
}

func TestRead(t *testing.T) {
	t.Parallel()
	const ks1, hr1 = "kustomize.toolkit.fluxcd.io/v1", "helm.toolkit.fluxcd.io/v2"
	s := &server{answers: map[string][]string{
		kustomizationsPath: {
			apiList(ks1, "Kustomization", "more", ksItem("lost", "path: x")),
			"410", // the token is too old: the list begins again
			apiList(ks1, "Kustomization", "more", ksItem("b", "path: ./b/, suspend: true, postBuild: {substitute: {A: x}, substituteFrom: [{kind: ConfigMap, name: vars}, {kind: Secret, name: s}, {kind: Secret, name: gone}, {kind: Secret, name: mine}]}")),
			apiList(ks1, "Kustomization", "", ksItem("a", "path: ../x, postBuild: {substituteFrom: [{kind: ConfigMap, name: vars}]}")),
		},
		helmReleasesPath: {apiList(hr1, "HelmRelease", "", "metadata: {name: c, namespace: apps}, spec: {values: {crds: {install: false}}, valuesFrom: [{kind: Secret, name: x}], install: {crds: Skip}}")},
		"/api/v1/nodes":  {apiList("v1", "Node", "", "metadata: {name: node-1}, status: {nodeInfo: {kernelVersion: 6.1.0, kubeletVersion: v1.36.0}, capacity: {memory: 1Gi}, conditions: [{type: Ready, status: \"True\"}]}")},
		"/apis/apps/v1/deployments": {"apiVersion: meta.k8s.io/v1\nkind: PartialObjectMetadataList\nmetadata: {}\nitems:\n" +
			"- {apiVersion: meta.k8s.io/v1, kind: PartialObjectMetadata, metadata: {name: flux-operator, namespace: ops}}\n" +
			"- {apiVersion: meta.k8s.io/v1, kind: PartialObjectMetadata, metadata: {name: kustomize-controller, namespace: flux}}\n" +
			"- {apiVersion: meta.k8s.io/v1, kind: PartialObjectMetadata, metadata: {name: a-controller, namespace: ops}}\n"},
		"/apis/networking.k8s.io/v1/ingresses":             {apiList("networking.k8s.io/v1", "Ingress", "", "metadata: {name: i, namespace: x}, spec: {rules: [{host: a.example.org}, {}], tls: [{hosts: [b.example.org]}]}")},
		"/apis/gateway.networking.k8s.io/v1beta1/gateways": {apiList("gateway.networking.k8s.io/v1beta1", "Gateway", "", "metadata: {name: g, namespace: x}, spec: {listeners: [{hostname: c.example.org}, {name: x}]}")},
		"/apis/cert-manager.io/v1/certificates":            {apiList("cert-manager.io/v1", "Certificate", "", "metadata: {name: c, namespace: x}, spec: {dnsNames: [a.example.org]}")},
		"/api/v1/namespaces/flux-system/configmaps/vars":   {"{apiVersion: v1, kind: ConfigMap, metadata: {name: vars}, data: {A: \"1\", B: \"2\"}}"},
		"/api/v1/namespaces/flux-system/secrets/s":         {`{apiVersion: meta.k8s.io/v1, kind: PartialObjectMetadata, metadata: {name: s, managedFields: [{manager: m, operation: Apply, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {"f:data": {".": {}, "f:T": {}}, "f:stringData": {"f:U": {}}}}]}}`},
		"/api/v1/namespaces/flux-system/secrets/mine":      {"403"},
	}}
	got, err := s.read(t)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.asked) != 15 {
		t.Errorf("%d requests: %q", len(s.asked), s.asked)
	}
	set := func(kind, name string) Set { return Set{kind, "flux-system", name} }
	root := ks("root")
	root.APIVersion = ""
	want := &Live{
		Identity: guard.Identity{URL: "https://h", UID: "u"}, Controllers: "flux",
		Tiers: []Tier{
			{Ref: hr("c"), Values: map[string]any{"crds": map[string]any{"install": false}}, SkipsCRDs: true, MoreValues: true},
			{Ref: ks("a"), Owner: root, Path: "x", From: []Set{set("ConfigMap", "vars")}},
			{
				Ref: ks("b"), Owner: root, Path: "b", Suspended: true, Inline: map[string]string{"A": "x"},
				From: []Set{set("ConfigMap", "vars"), set("Secret", "s"), set("Secret", "gone"), set("Secret", "mine")},
			},
		},
		Known: map[Set]Names{
			set("ConfigMap", "vars"): {Names: []string{"A", "B"}, Values: map[string]string{"A": "1", "B": "2"}},
			set("Secret", "s"):       {Names: []string{"T", "U"}}, set("Secret", "gone"): {Missing: true}, set("Secret", "mine"): {Hidden: true},
		},
		Nodes:  []Node{{Name: "node-1", Ready: true, Kernel: "6.1.0", Kubelet: "v1.36.0", Memory: 1 << 30}},
		Hosts:  []string{"a.example.org", "b.example.org", "c.example.org"},
		Unread: []Unread{{"Secret/flux-system/mine", "/api/v1/namespaces/flux-system/secrets/mine is refused"}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
	check(t, Write(got, nil))
}

// What is forbidden is noted, what is not served is not there.
func TestReadOfLittle(t *testing.T) {
	t.Parallel()
	s := &server{answers: map[string][]string{
		kustomizationsPath: {"403"}, "/api/v1/nodes": {"403"}, "/apis/apps/v1/deployments": {"403"}, "/apis/networking.k8s.io/v1/ingresses": {"403"},
	}}
	got, err := s.read(t)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, u := range got.Unread {
		names = append(names, u.What)
	}
	if !slices.Equal(names, []string{"deployments", "ingresses", "kustomizations", "nodes"}) || got.NoFlux {
		t.Errorf("got %q, no Flux: %v", names, got.NoFlux)
	}
	// RBAC refuses also what is not there.
	s = &server{answers: map[string][]string{
		"/apis/cert-manager.io/v1/certificates": {"403"}, "/apis/networking.k8s.io/v1/ingresses": {"403"},
		"/api":  {"{kind: APIVersions, versions: [v1]}"},
		"/apis": {"{kind: APIGroupList, apiVersion: v1, groups: [{name: networking.k8s.io, versions: [{groupVersion: networking.k8s.io/v1, version: v1}], preferredVersion: {groupVersion: networking.k8s.io/v1, version: v1}}]}"},
	}}
	if got, err := s.read(t); err != nil || len(got.Unread) != 2 || got.Unread[1].What != "ingresses" {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := (&server{}).read(t); err != nil || !got.NoFlux {
		t.Errorf("got %+v, %v", got, err)
	}
	old := &server{answers: map[string][]string{
		"/apis/kustomize.toolkit.fluxcd.io/v1beta2/kustomizations": {apiList("kustomize.toolkit.fluxcd.io/v1beta2", "Kustomization", "", ksItem("a", "path: x"))},
	}}
	if got, err := old.read(t); err != nil || got.NoFlux || len(got.Tiers) != 1 {
		t.Errorf("got %+v, %v", got, err)
	}
}

// Without the server, or without being let in, there is no draft.
func TestReadFails(t *testing.T) {
	t.Parallel()
	if _, err := (&server{answers: map[string][]string{"/api/v1/nodes": {"401"}}}).read(t); !apierrors.IsUnauthorized(err) {
		t.Errorf("got %v", err)
	}
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	if _, err := Read(t.Context(), &rest.Config{Host: gone.URL}, guard.Identity{}); err == nil || !strings.Contains(err.Error(), "in all namespaces: ") {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Read(ctx, &rest.Config{Host: gone.URL}, guard.Identity{}); err == nil {
		t.Error("a draft was made after the interrupt")
	}
}

// Who suspended a tier is told as pkg/flux tells it.
func TestSuspender(t *testing.T) {
	t.Parallel()
	entry := func(manager, at string, fields string) map[string]any {
		return map[string]any{"manager": manager, "operation": "Apply", "time": at, "fieldsType": "FieldsV1", "fieldsV1": map[string]any{"f:spec": map[string]any{fields: map[string]any{}}}}
	}
	for _, tt := range []struct {
		entries []any
		want    string
	}{
		{nil, ""},
		{[]any{entry("flux", "2026-01-02T00:00:00Z", "f:suspend"), entry("kubectl-edit", "2026-01-03T00:00:00Z", "f:suspend"), entry("x", "2026-01-04T00:00:00Z", "f:path")}, "kubectl-edit 2026-01-03"},
		{[]any{entry("kustomize-controller", "2026-01-02T00:00:00Z", "f:suspend"), entry("flux", "2026-01-03T00:00:00Z", "f:suspend")}, "kustomize-controller 2026-01-02"},
	} {
		o := &unstructured.Unstructured{Object: map[string]any{
			"kind": "Kustomization", "metadata": map[string]any{"name": "a", "managedFields": tt.entries, "annotations": map[string]any{holdAnnotation: "wait"}},
			"spec": map[string]any{"suspend": true},
		}}
		got := kustomization(o)
		said := strings.TrimSpace(got.SuspendedBy + " " + strings.TrimPrefix(got.SuspendedSince.Format(time.DateOnly), "0001-01-01"))
		if said != tt.want || got.Hold != "wait" || !got.Suspended {
			t.Errorf("got %+v, want %s", got, tt.want)
		}
	}
}
