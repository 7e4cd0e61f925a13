// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package flux

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// wire answers requests with what is written down, by path and query. All
// other lists are empty.
type wire struct {
	answers map[string]string
	errors  map[string]*apierrors.StatusError

	mu    sync.Mutex
	asked []string
}

func (w *wire) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	uri := r.URL.RequestURI()
	w.mu.Lock()
	w.asked = append(w.asked, uri)
	err, answer := w.errors[uri], w.answers[uri]
	delete(w.errors, uri) // it is different the next time
	w.mu.Unlock()
	out.Header().Set("Content-Type", "application/json")
	if err != nil {
		status := err.ErrStatus
		status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		out.WriteHeader(int(status.Code))
		_ = json.NewEncoder(out).Encode(status) // a test's answer
		return
	}
	if answer == "" {
		answer = list()
	}
	fmt.Fprint(out, answer)
}

// read takes a snapshot of the wire.
func (w *wire) read(t *testing.T) (*Snapshot, error) {
	t.Helper()
	server := httptest.NewServer(w)
	t.Cleanup(server.Close)
	return Read(t.Context(), &rest.Config{Host: server.URL, QPS: -1})
}

func (w *wire) count(prefix string) int {
	n := 0
	for _, uri := range w.asked {
		if strings.HasPrefix(uri, prefix) {
			n++
		}
	}
	return n
}

const (
	kustomizations = "/apis/kustomize.toolkit.fluxcd.io/v1/kustomizations?limit=500"
	helmReleases   = "/apis/helm.toolkit.fluxcd.io/v2/helmreleases?limit=500"
)

func list(items ...string) string { return page("", items...) }

func page(next string, items ...string) string {
	return `{"metadata":{"continue":` + strconv.Quote(next) + `},"items":[` + strings.Join(items, ",") + `]}`
}

func named(name string) string {
	return `{"metadata":{"namespace":"flux-system","name":"` + name + `"},"spec":{"interval":"1h"}}`
}

func notFound() *apierrors.StatusError {
	return apierrors.NewNotFound(schema.GroupResource{}, "")
}

func tierNames(s *Snapshot) (names []string) {
	for i := range s.Tiers {
		names = append(names, s.Tiers[i].Ref.Name)
	}
	return names
}

func TestReadTakesOneListOfEachKind(t *testing.T) {
	w := &wire{answers: map[string]string{
		kustomizations: list(named("b"), named("a")),
		helmReleases:   list(named("c")),
	}}
	s, err := w.read(t)
	if err != nil {
		t.Fatal(err)
	}
	if got := tierNames(s); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("tiers %v", got)
	}
	if len(w.asked) != len(resources()) || len(s.Served) != len(resources()) {
		t.Errorf("asked %q; served %v", w.asked, s.Served)
	}
}

func TestReadFollowsPages(t *testing.T) {
	w := &wire{answers: map[string]string{
		kustomizations:                   page("one", named("a")),
		kustomizations + "&continue=one": page("two", named("b")),
		"/apis/kustomize.toolkit.fluxcd.io/v1/kustomizations?continue=one&limit=500": page("two", named("b")),
		"/apis/kustomize.toolkit.fluxcd.io/v1/kustomizations?continue=two&limit=500": page("", named("c")),
	}}
	s, err := w.read(t)
	if err != nil || !slices.Equal(tierNames(s), []string{"a", "b", "c"}) {
		t.Errorf("%v, %v", s, err)
	}
}

// The token of a list that takes too long expires, and what was read until
// then may be outdated.
func TestReadStartsOverWhenItsTokenHasExpired(t *testing.T) {
	second := "/apis/kustomize.toolkit.fluxcd.io/v1/kustomizations?continue=one&limit=500"
	w := &wire{
		answers: map[string]string{kustomizations: page("one", named("a")), second: page("", named("b"))},
		errors:  map[string]*apierrors.StatusError{second: apierrors.NewResourceExpired("too old")},
	}
	s, err := w.read(t)
	if err != nil || !slices.Equal(tierNames(s), []string{"a", "b"}) {
		t.Errorf("%v, %v", s, err)
	}
	if n := w.count(kustomizations); n != 2 {
		t.Errorf("the list was begun %d times", n)
	}
}

func TestReadFindsTheVersionOfAnOlderFlux(t *testing.T) {
	w := &wire{
		answers: map[string]string{
			"/apis": `{"items":[{"metadata":{"name":"helm.toolkit.fluxcd.io"},"versions":[
				{"version":"v2beta2","resources":[{"resource":"helmreleases"}]},
				{"version":"v2beta1","resources":[{"resource":"helmreleases"}]}]}]}`,
			"/apis/helm.toolkit.fluxcd.io/v2beta2/helmreleases?limit=500": list(named("old")),
		},
		errors: map[string]*apierrors.StatusError{
			helmReleases: notFound(),
			"/apis/source.toolkit.fluxcd.io/v1/externalartifacts?limit=500": notFound(),
		},
	}
	s, err := w.read(t)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Tiers) != 1 || s.Tiers[0].Ref.APIVersion != "helm.toolkit.fluxcd.io/v2beta2" {
		t.Errorf("tiers %+v", s.Tiers)
	}
	if _, served := ResourceOf(s.Served, "ExternalArtifact"); served {
		t.Error("a kind that is not served counts as served")
	}
	if r, _ := ResourceOf(s.Served, HelmReleaseKind); r.GroupVersionResource() != (schema.GroupVersionResource{Group: HelmGroup, Version: "v2beta2", Resource: "helmreleases"}) {
		t.Errorf("served as %v", r)
	}
	if w.count("/apis?")+w.count("/apis")-w.count("/apis/") != 1 {
		t.Errorf("asked %q, want one discovery", w.asked)
	}
}

// Flux may be installed with one of its controllers alone.
func TestReadNeedsOneKindOfTier(t *testing.T) {
	for missing, there := range map[string]string{kustomizations: helmReleases, helmReleases: kustomizations} {
		w := &wire{
			answers: map[string]string{"/apis": `{"items":[]}`, there: list(named("podinfo"))},
			errors:  map[string]*apierrors.StatusError{missing: notFound()},
		}
		s, err := w.read(t)
		if err != nil || !slices.Equal(tierNames(s), []string{"podinfo"}) || len(s.Served) != len(resources())-1 {
			t.Errorf("without %s: %+v, %v", missing, s, err)
		}
	}
}

func TestReadSaysWhatIsTheMatter(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Group: HelmGroup, Resource: "helmreleases"}, "", errors.New("no"))
	for name, tt := range map[string]struct {
		wire  *wire
		says  string
		check func(error) bool
	}{
		"no Flux": {
			&wire{answers: map[string]string{"/apis": `{"items":[]}`}, errors: map[string]*apierrors.StatusError{kustomizations: notFound(), helmReleases: notFound()}},
			"it serves neither kustomize.toolkit.fluxcd.io nor helm.toolkit.fluxcd.io, so Flux is not installed there", func(err error) bool {
				var e *NotInstalledError
				return errors.As(err, &e)
			},
		},
		"a list that is forbidden": {
			&wire{errors: map[string]*apierrors.StatusError{helmReleases: forbidden}},
			"list helmreleases in all namespaces: ", apierrors.IsForbidden,
		},
		"discovery that fails": {
			&wire{errors: map[string]*apierrors.StatusError{helmReleases: notFound(), "/apis": apierrors.NewInternalError(errors.New("boom"))}},
			"discover the served kinds: ", apierrors.IsInternalError,
		},
		"an answer that is no list": {
			&wire{answers: map[string]string{kustomizations: "<html>"}}, "list kustomizations in all namespaces: answer is not a list", nil,
		},
		"discovery that is none": {
			&wire{answers: map[string]string{"/apis": "<html>"}, errors: map[string]*apierrors.StatusError{helmReleases: notFound()}},
			"discover the served kinds: ", nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tt.wire.read(t)
			if err == nil || !strings.Contains(err.Error(), tt.says) || tt.check != nil && !tt.check(err) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// A readyExpr is evaluated over whole objects: each is read once, and one that
// is not there is for the graph to report.
func TestReadGetsTheObjectsOfReadyExprs(t *testing.T) {
	const of = "/apis/kustomize.toolkit.fluxcd.io/v1/namespaces/flux-system/kustomizations/"
	needing := func(name, dep string) string {
		return `{"metadata":{"namespace":"flux-system","name":"` + name + `"},"spec":{"dependsOn":[{"name":"` + dep + `","readyExpr":"true"},{"name":"plain"}]}}`
	}
	w := &wire{
		answers: map[string]string{
			kustomizations: list(needing("a", "dep"), needing("b", "dep"), needing("c", "gone"), named("dep"), named("plain")),
			of + "a":       `{"spec":{"path":"./a"}}`, of + "b": `{}`, of + "c": `{}`, of + "dep": `{"status":{"phase":"Deployed"}}`,
		},
		errors: map[string]*apierrors.StatusError{of + "gone": notFound()},
	}
	s, err := w.read(t)
	if err != nil {
		t.Fatal(err)
	}
	if n := w.count(of); n != 5 {
		t.Errorf("%d objects were read, want a, b, c, dep and gone once each: %q", n, w.asked)
	}
	ref := Ref{APIVersion: "kustomize.toolkit.fluxcd.io/v1", Kind: KustomizationKind, Namespace: "flux-system", Name: "dep"}
	if got := fmt.Sprint(s.Objects[ref]); got != "map[status:map[phase:Deployed]]" || len(s.Objects) != 4 {
		t.Errorf("%s; %d objects", got, len(s.Objects))
	}
	w.errors = map[string]*apierrors.StatusError{of + "dep": apierrors.NewInternalError(errors.New("boom"))}
	if _, err := w.read(t); err == nil || !strings.HasPrefix(err.Error(), "get Kustomization/flux-system/dep: ") {
		t.Errorf("got %v", err)
	}
}

func TestRefs(t *testing.T) {
	r := Ref{APIVersion: "kustomize.toolkit.fluxcd.io/v1", Kind: "Kustomization", Namespace: "ns", Name: "x"}
	cluster := Ref{APIVersion: "v1", Kind: "Namespace", Name: "x"}
	for got, want := range map[string]string{
		r.String(): "Kustomization/ns/x", cluster.String(): "Namespace/x", r.Key(): "ns/x", cluster.Key(): "x",
		r.Group(): "kustomize.toolkit.fluxcd.io", cluster.Group(): "",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	sorted := []Ref{cluster, {Kind: "A", Namespace: "ns", Name: "x"}, r, {Kind: "Kustomization", Namespace: "ns", Name: "y"}}
	if !slices.IsSortedFunc(sorted, Ref.Compare) {
		t.Errorf("%v is not in order", sorted)
	}
}
