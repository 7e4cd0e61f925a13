// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wait

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

// answers is an API server that gives the same answer to each PATCH, and to
// each GET.
type answers struct{ patch, get string }

func (a answers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body := a.get
	if r.Method == http.MethodPatch {
		body = a.patch
	}
	w.Header().Set("Content-Type", "application/json")
	var status struct{ Code int }
	if json.Unmarshal([]byte(body), &status) == nil && status.Code > 0 {
		w.WriteHeader(status.Code)
	}
	_, _ = io.WriteString(w, body) // the client says what it got
}

func refusal(code int, reason string) string {
	return fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d,"message":"no"}`, reason, code)
}

func live(uid string, generation int) string {
	return fmt.Sprintf(`{"apiVersion":"kustomize.toolkit.fluxcd.io/v1","kind":"Kustomization","metadata":{"name":"a","namespace":"flux-system","uid":%q,"generation":%d}}`, uid, generation)
}

// TestWhatAWriteMeets: what moved is skipped, what is gone too, and everything
// else is an error that names the tier.
func TestWhatAWriteMeets(t *testing.T) {
	for name, tc := range map[string]struct {
		answers
		stays string
		fails string
	}{
		"nothing in its way":      {answers{patch: live("uid", 8)}, "", ""},
		"another spec":            {answers{refusal(422, "Invalid"), live("uid", 8)}, "it was changed in the moment in which it was to be resumed", ""},
		"another object":          {answers{refusal(422, "Invalid"), live("other", 7)}, "it was changed in the moment in which it was to be resumed", ""},
		"gone":                    {answers{patch: refusal(404, "NotFound")}, "it was deleted", ""},
		"gone a moment later":     {answers{refusal(422, "Invalid"), refusal(404, "NotFound")}, "it was deleted", ""},
		"somebody refuses it":     {answers{refusal(422, "Invalid"), live("uid", 7)}, "", "resume Kustomization/flux-system/a: no"},
		"forbidden":               {answers{patch: refusal(403, "Forbidden")}, "", "resume Kustomization/flux-system/a: no"},
		"not to be looked at":     {answers{refusal(422, "Invalid"), refusal(403, "Forbidden")}, "", "get Kustomization/flux-system/a: no"},
		"credentials of no worth": {answers{patch: refusal(401, "Unauthorized")}, "", "resume Kustomization/flux-system/a: no"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(tc.answers)
			defer server.Close()
			client, err := dynamic.NewForConfig(&rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			n := graph(nil, tier("a")).Node(ks("a"))
			n.UID, n.Generation = "uid", 7
			w := &waiter{client: client, served: []flux.Resource{{Group: flux.KustomizeGroup, Version: "v1", Kind: flux.KustomizationKind, Plural: "kustomizations"}}}
			a := w.write(t.Context(), act{node: n})
			if a.stays != tc.stays || a.moved != (tc.stays != "") || !a.sent {
				t.Errorf("got %+v", a)
			}
			if (a.err != nil) != (tc.fails != "") || a.err != nil && !strings.HasPrefix(a.err.Error(), tc.fails) {
				t.Errorf("error %v, want %q", a.err, tc.fails)
			}
			if tc.stays == "" && tc.fails == "" && a.object.GetGeneration() != 8 {
				t.Errorf("it became %v", a.object)
			}
		})
	}
}

// TestAWriteWithoutAnAnswer: it may have been done, so whether it was is seen
// from the tier.
func TestAWriteWithoutAnAnswer(t *testing.T) {
	w := resuming("a")
	var told []Done
	w.resumption.Did = func(d Done) { told = append(told, d) }
	n := graph(nil, suspended(tier("a"))).Node(ks("a"))
	if err := w.did(act{node: n, sent: true, err: errors.New("connection reset")}); err != nil {
		t.Fatal(err)
	}
	w.sees(w.resumption.retry, suspended(tier("a")))
	if len(told) > 0 {
		t.Fatal("it was said to be resumed, and is not")
	}
	done := tier("a")
	done.Generation = 2
	w.sees(w.resumption.retry, done)
	w.sees(w.resumption.retry, done)
	if len(told) != 1 || told[0].Stays != "" || w.resumption.resumed[ks("a")] != 2 {
		t.Errorf("told %+v", told)
	}
}
