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
	for _, tc := range []struct {
		name  string
		stays string
		fails error
		// asks is false where nobody looks once more; ends is true where the
		// wait ends while somebody does.
		asks, ends, sends bool
	}{
		{name: "nobody asks", sends: true},
		{name: "nothing against it", asks: true, sends: true},
		{name: "it must stay", asks: true, stays: "its prune would DELETE x"},
		{name: "it cannot be told", asks: true, fails: unreadable},
		{name: "the wait ends meanwhile", asks: true, ends: true, fails: context.Canceled},
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
			ctx, end := context.WithCancel(t.Context())
			defer end()
			if tc.asks {
				w.resumption.Judge = func(_ context.Context, n *tiers.Node) (string, error) {
					if n.Ref != ks("a") {
						t.Errorf("asked about %s", n.Ref)
					}
					if tc.ends {
						end()
						return "", nil
					}
					return tc.stays, tc.fails
				}
			}
			n := graph(nil, suspended(tier("a"))).Node(ks("a"))
			n.UID, n.Generation = "uid", 7
			a := w.attempt(ctx, n)
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
}
