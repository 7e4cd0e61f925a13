// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/kubestandup/kubestandup/pkg/crds"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/standup/config"
	"github.com/kubestandup/kubestandup/pkg/tiers"
)

// wire answers lists with what is written down, by path.
type wire struct {
	lists map[string]string
	mu    sync.Mutex
	asked []string // METHOD path accept
}

const discoveryType = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// group is one of aggregated discovery; a kind is Kind/plural/Scope.
func group(name, version string, kinds ...string) string {
	var resources []string
	for _, k := range kinds {
		p := strings.Split(k, "/")
		resources = append(resources, fmt.Sprintf(`{"resource":%q,"responseKind":{"group":%q,"version":%q,"kind":%q},"scope":%q,"verbs":["get","list"]}`, p[1], name, version, p[0], p[2]))
	}
	return fmt.Sprintf(`{"metadata":{"name":%q},"versions":[{"version":%q,"resources":[%s]}]}`, name, version, strings.Join(resources, ","))
}

func (w *wire) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/api", "/apis":
		groups := group("", "v1", "ConfigMap/configmaps/Namespaced", "Secret/secrets/Namespaced", "Namespace/namespaces/Cluster")
		if r.URL.Path == "/apis" {
			groups = strings.Join([]string{
				group("apps", "v1", "Deployment/deployments/Namespaced"), group("batch", "v1", "Job/jobs/Namespaced"),
				group("apiextensions.k8s.io", "v1", "CustomResourceDefinition/customresourcedefinitions/Cluster"),
				group("rbac.authorization.k8s.io", "v1", "ClusterRole/clusterroles/Cluster"),
				group("example.org", "v1", "Thing/things/Cluster", "Shy/shies/Cluster"),
			}, ",")
		}
		out.Header().Set("Content-Type", discoveryType)
		fmt.Fprintf(out, `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[%s]}`, groups)
		return
	}
	w.mu.Lock()
	w.asked = append(w.asked, r.Method+" "+r.URL.Path+" "+r.Header.Get("Accept"))
	w.mu.Unlock()
	out.Header().Set("Content-Type", "application/json")
	answer, ok := w.lists[r.URL.RequestURI()]
	if !ok {
		answer, ok = w.lists[r.URL.Path]
	}
	switch {
	case !ok:
		out.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(out, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"%s is forbidden"}`, r.URL.Path)
	case answer == "gone":
		out.WriteHeader(http.StatusNotFound)
		fmt.Fprint(out, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
	default:
		fmt.Fprint(out, answer)
	}
}

// listOf is a page; token leads to the next one.
func listOf(apiVersion, kind, token string, items ...string) string {
	return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"continue":%q},"items":[%s]}`, apiVersion, kind, token, strings.Join(items, ","))
}

const metadataList = "PartialObjectMetadataList"

func metadataOf(ns, name string) string {
	return fmt.Sprintf(`{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":{"namespace":%q,"name":%q}}`, ns, name)
}

func thingOf(name, status string) string {
	return fmt.Sprintf(`{"apiVersion":"example.org/v1","kind":"Thing","metadata":{"name":%q},"status":{%s}}`, name, status)
}

// serve starts the wire, and asks it what it serves.
func (w *wire) serve(t *testing.T) (*rest.Config, *crds.Served) {
	t.Helper()
	server := httptest.NewServer(w)
	t.Cleanup(server.Close)
	cfg := &rest.Config{Host: server.URL, QPS: -1}
	client, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	served, err := crds.Discover(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	return cfg, served
}

// applied gives a tier an inventory of these entries.
func (v *verify) applied(served *crds.Served, ids ...string) {
	n := v.graph.Tiers()[0]
	for _, id := range ids {
		v.add(n, entry{id, "v1"}, served, &unseen{})
	}
}

func (v *verify) examined(t *testing.T, w *wire, ids ...string) ([]blind, error) {
	t.Helper()
	cfg, served := w.serve(t)
	v.applied(served, ids...)
	book, _, err := v.book(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	e, err := newExaminer(cfg, served, book)
	if err != nil {
		t.Fatal(err)
	}
	return e.examine(t.Context(), v.kinds())
}

func (v *verify) class(t *testing.T, kind, name string) proof {
	t.Helper()
	for _, p := range v.pieces {
		if p.ref.Kind == kind && p.ref.Name == name {
			return p.proof
		}
	}
	t.Fatalf("no piece %s/%s", kind, name)
	return proof{}
}

func TestEachKindIsListedOnce(t *testing.T) {
	w := &wire{lists: map[string]string{
		"/api/v1/configmaps?limit=500":                    listOf("meta.k8s.io/v1", metadataList, "two", metadataOf("a", "one"), metadataOf("b", "other")),
		"/api/v1/configmaps?continue=two&limit=500":       listOf("meta.k8s.io/v1", metadataList, "", metadataOf("a", "two")),
		"/api/v1/secrets":                                 listOf("meta.k8s.io/v1", metadataList, "", metadataOf("a", "key")),
		"/apis/example.org/v1/things":                     listOf("example.org/v1", "ThingList", "", thingOf("fine", `"conditions":[{"type":"Ready","status":"True"}]`), thingOf("quiet", "")),
		"/apis/batch/v1/jobs":                             listOf("batch/v1", "JobList", ""),
		"/apis/apps/v1/deployments":                       "gone",
		"/apis/rbac.authorization.k8s.io/v1/clusterroles": listOf("meta.k8s.io/v1", metadataList, "", metadataOf("", "system:example")),
		"/apis/apiextensions.k8s.io/v1/customresourcedefinitions": listOf("meta.k8s.io/v1", metadataList, "",
			metadataOf("", "things.example.org"), metadataOf("", "new.example.org")),
	}}
	v := verifying(t, nil, tier("a", "True", "", ""))
	blinds, err := v.examined(t, w, "a_one__ConfigMap", "a_two__ConfigMap", "b_one__ConfigMap", "a_key__Secret", "_fine_example.org_Thing", "_quiet_example.org_Thing",
		"_lost_example.org_Thing", "a_setup_batch_Job", "a_web_apps_Deployment", "_system__example_rbac.authorization.k8s.io_ClusterRole",
		"_things.example.org_apiextensions.k8s.io_CustomResourceDefinition", "_new.example.org_apiextensions.k8s.io_CustomResourceDefinition",
		"_x_example.org_Shy", "_y_nowhere.org_Kind")
	if err != nil {
		t.Fatal(err)
	}
	for object, want := range map[string]class{
		"ConfigMap/one": absent, "ConfigMap/two": wellApplied, "Secret/key": wellApplied, "Thing/fine": wellSaid, "Thing/quiet": mute, "Thing/lost": absent,
		"Job/setup": mute, "Deployment/web": unservedKind, "ClusterRole/system:example": wellApplied,
		"CustomResourceDefinition/things.example.org": wellSaid, "CustomResourceDefinition/new.example.org": late, "Shy/x": unasked, "Kind/y": unservedKind,
	} {
		kind, name, _ := strings.Cut(object, "/")
		if object == "ConfigMap/one" { // the one in a is there, the one in b is not
			if got := v.pieces[identity{"", "ConfigMap", "a", "one"}].class; got != wellApplied {
				t.Errorf("%s in a: class %d", object, got)
			}
			if got := v.pieces[identity{"", "ConfigMap", "b", "one"}].class; got != absent {
				t.Errorf("%s in b: class %d", object, got)
			}
			continue
		}
		if got := v.class(t, kind, name); got.class != want {
			t.Errorf("%s: got class %d, %q; want %d", object, got.class, got.why, want)
		}
	}
	if len(blinds) != 1 || blinds[0].kind.Kind != "Shy" || !strings.Contains(blinds[0].why, "shies is forbidden") {
		t.Errorf("blind: %+v", blinds)
	}
	if len(w.asked) != 9 { // one for each kind that is served, and one more page
		t.Errorf("asked\n%s", strings.Join(w.asked, "\n"))
	}
}

// TestSecretsAreNeverRead: not even where a check would like to.
func TestSecretsAreNeverRead(t *testing.T) {
	w := &wire{lists: map[string]string{
		"/api/v1/configmaps": listOf("v1", "ConfigMapList", "", `{"metadata":{"namespace":"a","name":"one"},"data":{"key":"x"}}`),
		"/api/v1/secrets":    listOf("meta.k8s.io/v1", metadataList, "", metadataOf("a", "key")),
	}}
	v := verifying(t, &config.Config{Verify: config.Verify{Checks: []config.HealthCheck{
		{APIVersion: "v1", Kind: "ConfigMap", Current: "has(data.key)"}, {APIVersion: "v1", Kind: "Secret", Current: "has(data.key)"}, {APIVersion: "v1", Current: "has(data.key)"},
	}}}, tier("a", "True", "", ""))
	if _, err := v.examined(t, w, "a_one__ConfigMap", "a_key__Secret"); err != nil {
		t.Fatal(err)
	}
	if v.class(t, "ConfigMap", "one").class != wellSaid || v.class(t, "Secret", "key").class != wellApplied {
		t.Errorf("got %+v", v.pieces)
	}
	slices.Sort(w.asked)
	if len(w.asked) != 2 || strings.Contains(w.asked[0], "PartialObjectMetadata") {
		t.Errorf("a check has to see a ConfigMap; asked\n%s", strings.Join(w.asked, "\n"))
	}
	method, accept, _ := strings.Cut(w.asked[1], " /api/v1/secrets ")
	for _, kind := range strings.Split(accept, ",") {
		if !strings.Contains(kind, "as=PartialObjectMetadataList") && kind != "application/json" || method != http.MethodGet {
			t.Errorf("asked %s", w.asked[1])
		}
	}
	if !strings.HasPrefix(accept, "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList") {
		t.Errorf("Secrets were asked for as %s", accept)
	}
}

// TestAServerThatIsGone is no matter of one kind.
func TestAServerThatIsGone(t *testing.T) {
	w := &wire{}
	cfg, served := w.serve(t)
	v := verifying(t, nil, tier("a", "True", "", ""))
	v.applied(served, "a_one__ConfigMap")
	cfg.Host = "http://127.0.0.1:1"
	e, err := newExaminer(cfg, served, emptyBook())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.examine(t.Context(), v.kinds()); err == nil || !strings.Contains(err.Error(), "list configmaps: ") {
		t.Errorf("got %v", err)
	}
	if errors.Is(err, t.Context().Err()) && err != nil {
		t.Errorf("got %v", err)
	}
}

func TestInventoryEntries(t *testing.T) {
	_, served := (&wire{}).serve(t)
	release := tier("web", "True", "", "")
	release.Ref.Kind, release.Ref.Namespace, release.Helm = flux.HelmReleaseKind, "apps", &flux.Helm{TargetNamespace: "target"}
	v := verifying(t, nil, release, tier("child", "True", "", ""))
	n := v.graph.Node(release.Ref)
	u := &unseen{}
	for _, id := range []string{
		"_one__ConfigMap",           // its namespace is not known
		"apps_n__Namespace",         // has none, whatever it says
		"apps_one_example.org_Gone", // nothing is known of its scope
		"flux-system_child_kustomize.toolkit.fluxcd.io_Kustomization", // a tier, which another check knows
		"flux-system_gone_kustomize.toolkit.fluxcd.io_Kustomization",  // no tier any more
		"_system__a__b_rbac.authorization.k8s.io_ClusterRole",
		"garbled",
	} {
		v.add(n, entry{id, "v1"}, served, u)
	}
	var got []string
	for _, p := range v.sorted() {
		got = append(got, p.ref.APIVersion+" "+p.ref.String())
	}
	want := []string{
		"rbac.authorization.k8s.io/v1 ClusterRole/system:a:b", "v1 ConfigMap/target/one", "example.org/v1 Gone/apps/one",
		"kustomize.toolkit.fluxcd.io/v1 Kustomization/flux-system/gone", "v1 Namespace/n",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
	if len(u.garbled) != 1 || !strings.Contains(u.garbled[0], `HelmRelease/apps/web: "garbled" of its inventory names no object`) || v.counts.Unproved != 1 {
		t.Errorf("garbled %q", u.garbled)
	}
	other := v.graph.Tiers()[0]
	if other == n {
		other = v.graph.Tiers()[1]
	}
	v.add(other, entry{"target_one__ConfigMap", "v1"}, served, u)
	if p := v.pieces[identity{"", "ConfigMap", "target", "one"}]; !slices.Equal(p.tiers, []*tiers.Node{n, other}) {
		t.Errorf("an object of two tiers has %v", p.tiers)
	}
}
