// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"slices"
	"testing"
)

func TestParseSecret(t *testing.T) {
	for _, tt := range []struct {
		secret, name string
		version      int
	}{
		{"sh.helm.release.v1.web.v1", "web", 1},
		{"sh.helm.release.v1.web.v10", "web", 10},
		{"sh.helm.release.v1.my.v2.v3", "my.v2", 3},
		{"sh.helm.release.v1.web.v2.app.v1", "web.v2.app", 1},
		{"sh.helm.release.v1.v1.v1", "v1", 1},
		{"sh.helm.release.v1..v1", "", 0},
		{"sh.helm.release.v1.web", "", 0},
		{"sh.helm.release.v1.web.v", "", 0},
		{"sh.helm.release.v1.web.v0", "", 0},
		{"sh.helm.release.v1.web.v-1", "", 0},
		{"sh.helm.release.v1.web.v+1", "", 0},
		{"sh.helm.release.v1.web.v01", "", 0},
		{"sh.helm.release.v1.web.v1.2", "", 0},
		{"sh.helm.release.v1.web.v99999999999999999999", "", 0},
		{"sh.helm.release.v2.web.v1", "", 0},
		{"web.v1", "", 0},
		{"", "", 0},
	} {
		name, version, ok := parseSecret(tt.secret)
		if name != tt.name || version != tt.version || ok != (tt.version > 0) {
			t.Errorf("%s: %q, %d, %v; want %q, %d", tt.secret, name, version, ok, tt.name, tt.version)
		}
		if r := (Revision{Key: Key{"ns", name}, Version: version}); ok && r.Secret() != tt.secret {
			t.Errorf("%s became %s", tt.secret, r.Secret())
		}
	}
}

func TestHistories(t *testing.T) {
	rev := func(ns, name string, version int) Revision {
		return Revision{Key: Key{ns, name}, Version: version}
	}
	got := histories([]Revision{
		rev("b", "web", 2), rev("a", "web", 10), rev("a", "web", 9), rev("a", "db", 1), rev("b", "web", 1),
	})
	want := []struct {
		key      Key
		versions []int
	}{
		{Key{"a", "db"}, []int{1}}, {Key{"a", "web"}, []int{9, 10}}, {Key{"b", "web"}, []int{1, 2}},
	}
	if len(got) != len(want) {
		t.Fatalf("%d histories, want %d", len(got), len(want))
	}
	for i, h := range got {
		var versions []int
		for _, r := range h.Revisions {
			versions = append(versions, r.Version)
		}
		if h.Key != want[i].key || !slices.Equal(versions, want[i].versions) {
			t.Errorf("%s %v, want %s %v", h.Key, versions, want[i].key, want[i].versions)
		}
		if latest := h.Latest(); latest == nil || latest.Version != versions[len(versions)-1] {
			t.Errorf("%s: latest is %v", h.Key, latest)
		}
	}
	// A caller that appends to one must not write into the next.
	_ = append(got[0].Revisions, rev("x", "x", 1))
	if got[1].Revisions[0].Name != "web" {
		t.Error("the histories share what follows them")
	}
	if (&History{}).Latest() != nil {
		t.Error("a history without revisions has a latest one")
	}
	if got := histories(nil); len(got) != 0 {
		t.Errorf("%d histories of nothing", len(got))
	}
}

func TestPending(t *testing.T) {
	pending := []Status{PendingInstall, PendingUpgrade, PendingRollback}
	for _, s := range []Status{Unknown, Deployed, Uninstalled, Superseded, Failed, Uninstalling, PendingInstall, PendingUpgrade, PendingRollback, "pending", ""} {
		if got, want := s.Pending(), slices.Contains(pending, s); got != want {
			t.Errorf("%q pending: %v", s, got)
		}
	}
}

func TestNameFor(t *testing.T) {
	for _, tt := range []struct{ releaseName, target, name, want string }{
		{"", "", "web", "web"},
		{"", "apps", "web", "apps-web"},
		{"mine", "apps", "web", "mine"},
		// The limit itself, and one more.
		{"", "", "a123456789b123456789c123456789d123456789e123456789f12", "a123456789b123456789c123456789d123456789e123456789f12"},
		{"", "", "a123456789b123456789c123456789d123456789e123456789f123", "a123456789b123456789c123456789d123456789-d756a6fbab77"},
		{"", "a123456789b123456789c123456789", "d123456789e123456789f12", "a123456789b123456789c123456789-d12345678-4291568a792c"},
		// What helm-controller made of the example of its documentation.
		{"", "a-very-lengthy-target-namespace", "with-a-nice-object-name", "a-very-lengthy-target-namespace-with-a-n-97af5d7f41f3"},
	} {
		if got := NameFor(tt.releaseName, tt.target, tt.name); got != tt.want {
			t.Errorf("%+v: %s", tt, got)
		}
	}
}
