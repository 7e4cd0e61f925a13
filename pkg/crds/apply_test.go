// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package crds

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// sent is one server-side apply.
type sent struct {
	dryRun, force bool
	object        *unstructured.Unstructured
}

// registry is an API server that has one CRD, or none. Of a server-side apply
// it does what matters here: it refuses what is pinned to another
// resourceVersion, and what others manage unless it is forced; and it lays the
// fields over those that are there.
type registry struct {
	mu    sync.Mutex
	there *unstructured.Unstructured
	// moves is true where somebody changes the CRD once it has been read.
	moves bool
	// contested is true where others manage a field that is sent.
	contested bool
	sent      []sent
}

func (s *registry) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	refuse := func(code int, reason string) {
		w.WriteHeader(code)
		_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d,"message":"no"}`, reason, code)
	}
	if r.Method == http.MethodGet {
		if s.there == nil {
			refuse(http.StatusNotFound, "NotFound")
			return
		}
		_ = json.NewEncoder(w).Encode(s.there)
		if s.moves {
			s.there.SetResourceVersion("8")
		}
		return
	}
	one := sent{dryRun: r.URL.Query().Get("dryRun") == "All", force: r.URL.Query().Get("force") == "true", object: &unstructured.Unstructured{}}
	if err := json.NewDecoder(r.Body).Decode(one.object); err != nil || r.Method != http.MethodPatch {
		refuse(http.StatusBadRequest, "BadRequest")
		return
	}
	s.sent = append(s.sent, one)
	out := &unstructured.Unstructured{Object: map[string]any{}}
	if s.there != nil {
		out = s.there.DeepCopy()
	}
	pin := one.object.GetResourceVersion()
	if pin != "" && pin != out.GetResourceVersion() || s.contested && !one.force {
		refuse(http.StatusConflict, "Conflict")
		return
	}
	one.object.SetResourceVersion(out.GetResourceVersion())
	overlay(out.Object, one.object.Object)
	if !one.dryRun {
		s.there = out
	}
	_ = json.NewEncoder(w).Encode(out)
}

func overlay(onto, fields map[string]any) {
	for key, value := range fields {
		below, isMap := value.(map[string]any)
		if has, ok := onto[key].(map[string]any); ok && isMap {
			overlay(has, below)
			continue
		}
		onto[key] = value
	}
}

// serves starts the server; the cluster is one that has only it.
func (s *registry) serves(t *testing.T) *Cluster {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	client, err := dynamic.NewForConfig(&rest.Config{Host: server.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	return &Cluster{dynamic: client}
}

func unredacted() Apply {
	return Apply{Redact: func(err error) error { return err }}
}

// ofServer is the CRD as a server has it, Established.
func ofServer(t *testing.T, u *unstructured.Unstructured, all ...manages) *unstructured.Unstructured {
	t.Helper()
	u = managed(u, []string{"v1"}, all...)
	u.SetResourceVersion("7")
	u.SetGeneration(1)
	if err := unstructured.SetNestedSlice(u.Object, []any{map[string]any{"type": "Established", "status": "True"}}, "status", "conditions"); err != nil {
		t.Fatal(err)
	}
	return u
}

func withBundle(t *testing.T, u *unstructured.Unstructured, bundle string) *unstructured.Unstructured {
	t.Helper()
	u = u.DeepCopy()
	if err := unstructured.SetNestedField(u.Object, bundle, append([]string{"spec"}, caBundlePath()...)...); err != nil {
		t.Fatal(err)
	}
	return u
}

func bundleOf(u *unstructured.Unstructured) string {
	bundle, _, _ := unstructured.NestedString(u.Object, append([]string{"spec"}, caBundlePath()...)...)
	return bundle
}

// TestAnUpdateIsPinned: what was judged is what is changed. A CRD that moved
// meanwhile may have got another manager, or a stored version.
func TestAnUpdateIsPinned(t *testing.T) {
	t.Parallel()
	ours := manages{DefinitionManager, "", wholeSpec}
	for moves, want := range map[bool]Act{false: Updated, true: Refused} {
		s := &registry{there: ofServer(t, definition(t, "v1"), ours), moves: moves}
		one, err := s.serves(t).applyDefinition(t.Context(), definition(t, "v1", "v2"), unredacted())
		if err != nil || one.Act != want {
			t.Errorf("moves %t: got %s (%s), %v, want %s", moves, one.Act, one.Why, err, want)
		}
		if changed := versionsOf(s.there)["v2"] != nil; changed == moves {
			t.Errorf("moves %t: the CRD is changed: %t", moves, changed)
		}
		for _, each := range s.sent {
			if !moves && each.object.GetResourceVersion() != "7" {
				t.Errorf("sent with resourceVersion %q", each.object.GetResourceVersion())
			}
		}
	}
}

// TestNothingIsForced: what others manage is theirs, whether the CRD is new or
// ours, in a dry run too, which would else promise what the run cannot do.
func TestNothingIsForced(t *testing.T) {
	t.Parallel()
	ours := ofServer(t, definition(t, "v1"), manages{DefinitionManager, "", wholeSpec}, manages{"argocd", "", labelsOnly})
	for name, there := range map[string]*unstructured.Unstructured{"new": nil, "ours": ours} {
		for _, dryRun := range []bool{true, false} {
			s := &registry{there: there, contested: true}
			a := unredacted()
			a.DryRun = dryRun
			one, err := s.serves(t).applyDefinition(t.Context(), definition(t, "v1", "v2"), a)
			if err != nil || one.Act != Refused || one.Reason != NotAccepted || !strings.Contains(one.Why, "others manage fields of it") {
				t.Errorf("%s, dry run %t: got %+v, %v", name, dryRun, one, err)
			}
			for _, each := range s.sent {
				if each.force {
					t.Errorf("%s, dry run %t: forced", name, dryRun)
				}
			}
		}
	}
}

// TestOnlyARehearsalIsForced, whoever asks.
func TestOnlyARehearsalIsForced(t *testing.T) {
	t.Parallel()
	for _, dryRun := range []bool{true, false} {
		s := &registry{}
		if _, err := s.serves(t).patch(t.Context(), definition(t, "v1"), dryRun, true); err != nil {
			t.Fatal(err)
		}
		if got := s.sent[0]; got.force != dryRun || got.dryRun != dryRun {
			t.Errorf("dry run %t: sent with dryRun %t, force %t", dryRun, got.dryRun, got.force)
		}
	}
}

// TestTheAuthorityOfAnInjectorIsNotAskedFor: neither in an update, nor where a
// CRD is only compared, which would then never be as the chart has it.
func TestTheAuthorityOfAnInjectorIsNotAskedFor(t *testing.T) {
	t.Parallel()
	injector := manages{"cainjector", "", authority}
	for manager, act := range map[string]Act{DefinitionManager: Updated, "helm-controller": Left} {
		there := ofServer(t, withBundle(t, definition(t, "v1"), "SU5KRUNURUQ="), manages{manager, "", wholeSpec}, injector)
		wanted := definition(t, "v1")
		if act == Updated {
			wanted = definition(t, "v1", "v2")
		}
		s := &registry{there: there}
		one, err := s.serves(t).applyDefinition(t.Context(), withBundle(t, wanted, "LS0tLS1CRUdJTg=="), unredacted())
		if err != nil || one.Act != act || len(one.Differences) > 0 {
			t.Errorf("%s: got %+v, %v", manager, one, err)
		}
		for _, each := range s.sent {
			if got := bundleOf(each.object); got != "" {
				t.Errorf("%s: the authority %s is asked for", manager, got)
			}
		}
		if got := bundleOf(s.there); got != "SU5KRUNURUQ=" || len(s.sent) == 0 {
			t.Errorf("%s: the authority is %q after %d requests", manager, got, len(s.sent))
		}
	}
}

// TestABlankAuthorityIsNotSent: the CRD would never be Established.
func TestABlankAuthorityIsNotSent(t *testing.T) {
	t.Parallel()
	ours := manages{DefinitionManager, "", wholeSpec}
	for act, there := range map[Act]*unstructured.Unstructured{
		Created: nil,
		Updated: ofServer(t, definition(t, "v1"), ours),
		Left:    ofServer(t, definition(t, "v1", "v2"), manages{"x", "", wholeSpec}),
	} {
		s := &registry{there: there}
		one, err := s.serves(t).applyDefinition(t.Context(), withBundle(t, definition(t, "v1", "v2"), "Cg=="), unredacted())
		if err != nil || one.Act != act || len(s.sent) == 0 {
			t.Fatalf("%s: got %+v, %v after %d requests", act, one, err, len(s.sent))
		}
		for _, each := range s.sent {
			if _, found, _ := unstructured.NestedFieldNoCopy(each.object.Object, append([]string{"spec"}, caBundlePath()...)...); found {
				t.Errorf("%s: the blank authority is sent", act)
			}
		}
	}
}

// TestNothingToDoIsNoWord: what is there and as it should be is not waited for.
func TestNothingToDoIsNoWord(t *testing.T) {
	t.Parallel()
	there := ofServer(t, definition(t, "v1"), manages{DefinitionManager, "", wholeSpec})
	for name, wanted := range map[string][]*unstructured.Unstructured{"unchanged": {definition(t, "v1")}, "none": nil} {
		s := &registry{there: there.DeepCopy()}
		a := unredacted()
		a.Say = func(line string) { t.Errorf("%s: said %q", name, line) }
		all, err := s.serves(t).ApplyDefinitions(t.Context(), wanted, a)
		if err != nil || len(all) != len(wanted) {
			t.Fatalf("%s: got %+v, %v", name, all, err)
		}
		for _, one := range all {
			if one.Act != Unchanged {
				t.Errorf("%s: got %+v", name, one)
			}
		}
		for _, each := range s.sent {
			if !each.dryRun {
				t.Errorf("%s: it was changed", name)
			}
		}
	}
}

// TestWhatOthersManageIsOnlyCompared: the server says how it differs, though
// they would not let us have it.
func TestWhatOthersManageIsOnlyCompared(t *testing.T) {
	t.Parallel()
	s := &registry{there: ofServer(t, definition(t, "v1"), manages{"helm-controller", "", wholeSpec}), contested: true}
	one, err := s.serves(t).applyDefinition(t.Context(), definition(t, "v1", "v2"), unredacted())
	if err != nil || one.Act != Left || strings.Join(one.Differences, ", ") != "version v2 is missing" {
		t.Errorf("got %+v, %v", one, err)
	}
	if len(s.sent) != 1 || !s.sent[0].dryRun || versionsOf(s.there)["v2"] != nil {
		t.Errorf("it was sent %+v", s.sent)
	}
}
