// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wait

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/tiers"
)

// TestTheLastLookDecides: what a resume would delete may have come with a commit
// since it was planned. Nothing is sent then.
func TestTheLastLookDecides(t *testing.T) {
	unreadable := errors.New("list kustomizations: no")
	judges := func(why string, err error) func(context.Context, *tiers.Node) (string, error) {
		return func(_ context.Context, n *tiers.Node) (string, error) {
			if n.Ref != ks("a") {
				t.Errorf("asked about %s", n.Ref)
			}
			return why, err
		}
	}
	ended, end := context.WithCancel(t.Context())
	for _, tc := range []struct {
		name  string
		judge func(context.Context, *tiers.Node) (string, error)
		ctx   context.Context //nolint:containedctx // the case is about it
		stays string
		fails error
		sends bool
	}{
		{"nobody asks", nil, t.Context(), "", nil, true},
		{"nothing against it", judges("", nil), t.Context(), "", nil, true},
		{"it must stay", judges("its prune would DELETE x", nil), t.Context(), "its prune would DELETE x", nil, false},
		{"it cannot be told", judges("", unreadable), t.Context(), "", unreadable, false},
		{"the wait ended meanwhile", func(context.Context, *tiers.Node) (string, error) {
			end()
			return "", nil
		}, ended, "", context.Canceled, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var mu sync.Mutex
			var asked []string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				asked = append(asked, r.Method)
				mu.Unlock()
				answers{patch: live("uid", 8)}.ServeHTTP(w, r)
			}))
			defer server.Close()
			client, err := dynamic.NewForConfig(&rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			w := resuming("a")
			w.client = client
			w.served = []flux.Resource{{Group: flux.KustomizeGroup, Version: "v1", Kind: flux.KustomizationKind, Plural: "kustomizations"}}
			w.resumption.Judge = tc.judge
			n := graph(nil, suspended(tier("a"))).Node(ks("a"))
			n.UID, n.Generation = "uid", 7
			a := w.attempt(tc.ctx, n)
			if a.stays != tc.stays || a.moved || !errors.Is(a.err, tc.fails) || a.sent != tc.sends || a.node != n {
				t.Errorf("got %+v", a)
			}
			var want []string
			if tc.sends {
				want = []string{http.MethodPatch}
			}
			mu.Lock()
			defer mu.Unlock()
			if !slices.Equal(asked, want) {
				t.Errorf("the server was asked to %q, want %q", asked, want)
			}
		})
	}
	end()
}
