// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func newPlainServer(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(s.Close)
	return s.URL
}

func TestIdentity(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t, "a")
	fingerprint, err := caFingerprint(ca.pem)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		answer   func(http.ResponseWriter, *http.Request) bool
		requests int
		err      string
	}{
		"get": {requests: 1},
		"list when get is forbidden": {requests: 2, answer: func(rw http.ResponseWriter, r *http.Request) bool {
			if strings.HasSuffix(r.URL.Path, "kube-system") {
				refuseWith(rw, 403, "Forbidden")
				return true
			}
			return r.URL.RawQuery != "fieldSelector=metadata.name%3Dkube-system"
		}},
		"both forbidden": {requests: 2, answer: func(rw http.ResponseWriter, _ *http.Request) bool {
			refuseWith(rw, 403, "Forbidden")
			return true
		}, err: `identity cannot be read, since both get and list of the Namespace kube-system are forbidden: let a ClusterRole grant {apiGroups: [""], resources: [namespaces], resourceNames: [kube-system], verbs: [get]}: namespaces "kube-system" is forbidden`},
		"unauthorized": {requests: 1, answer: func(rw http.ResponseWriter, _ *http.Request) bool {
			refuseWith(rw, 401, "Unauthorized")
			return true
		}, err: `credentials of context prod were rejected: log in again: namespaces "kube-system" is unauthorized`},
		"not found": {requests: 1, answer: func(rw http.ResponseWriter, _ *http.Request) bool {
			refuseWith(rw, 404, "NotFound")
			return true
		}, err: `no Namespace kube-system was found: is this an API server, and is the path of its URL right?: namespaces "kube-system" is notfound`},
		"redirect": {requests: 1, answer: func(rw http.ResponseWriter, r *http.Request) bool {
			http.Redirect(rw, r, "https://dev.example.org/api/v1/namespaces/kube-system", http.StatusTemporaryRedirect)
			return true
		}, err: "identity cannot be read: "},
		"hostile text": {requests: 1, answer: func(rw http.ResponseWriter, _ *http.Request) bool {
			rw.Header().Set("Content-Type", "application/json")
			rw.WriteHeader(500)
			_, _ = rw.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"\u001b[2Jall is well\n"}`))
			return true
		}, err: `identity cannot be read: "\x1b[2Jall is well\n"`},
		"uid that is none": {requests: 1, answer: func(rw http.ResponseWriter, _ *http.Request) bool {
			rw.Header().Set("Content-Type", "application/json")
			_, _ = rw.Write([]byte(`{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"kube-system","uid":"$(reboot)"}}`))
			return true
		}, err: "answer has no usable UID of the Namespace kube-system: is the path of its URL right?"},
		"another namespace": {requests: 1, answer: func(rw http.ResponseWriter, _ *http.Request) bool {
			rw.Header().Set("Content-Type", "application/json")
			_, _ = rw.Write([]byte(`{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"default","uid":"u"}}`))
			return true
		}, err: "answer has no usable UID of the Namespace kube-system: is the path of its URL right?"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWire(t, ca, uidA)
			w.respond(tt.answer)
			s := connect(t, kubeconfig(t, w.URL, ca.pem), nil)
			got, err := s.Identity(t.Context())
			want := Identity{URL: w.URL, UID: uidA, CAFingerprint: fingerprint, Context: "prod"}
			if tt.err != "" {
				want.UID = ""
				if err == nil || !strings.HasPrefix(err.Error(), "server "+w.URL+": "+tt.err) || exitCode(err) != 1 || strings.Contains(err.Error(), "\n") {
					t.Errorf("got %v (exit %d), want %s", err, exitCode(err), tt.err)
				}
			} else if err != nil {
				t.Error(err)
			}
			if got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
			if n := len(w.requests()); n != tt.requests {
				t.Errorf("%d requests, want %d: %q", n, tt.requests, w.requests())
			}
		})
	}
}

func TestIdentityUnreachable(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t, "a")
	w := newWire(t, ca, uidA)
	w.Close()
	s := connect(t, kubeconfig(t, w.URL, ca.pem), nil)
	for _, expected := range []Expectation{{}, {Server: w.URL}} {
		err := s.Prove(t.Context(), expected)
		if exitCode(err) != 1 || !strings.HasPrefix(err.Error(), "server "+w.URL+": identity cannot be read: dial tcp 127.0.0.1:") {
			t.Errorf("got %v (exit %d)", err, exitCode(err))
		}
	}
}

func TestCAFingerprint(t *testing.T) {
	t.Parallel()
	a, b := newAuthority(t, "a").pem, newAuthority(t, "b").pem
	first, _ := pem.Decode(a)
	sum := sha256.Sum256(first.Bytes)
	if got, err := caFingerprint(a); err != nil || got != "sha256:"+hex.EncodeToString(sum[:]) {
		t.Errorf("one certificate: %s, %v; want what openssl x509 -fingerprint -sha256 prints", got, err)
	}
	ab, _ := caFingerprint([]byte(string(a) + string(b)))
	ba, _ := caFingerprint([]byte("# a comment\n" + string(b) + "\n\n" + string(a) + string(a)))
	onlyA, _ := caFingerprint(a)
	if ab != ba || ab == onlyA {
		t.Errorf("order, comments or repeats count: %s, %s, %s", ab, ba, onlyA)
	}
	for _, none := range []string{"", " \n"} {
		if got, err := caFingerprint([]byte(none)); got != "" || err != nil {
			t.Errorf("no CA: %q, %v", got, err)
		}
	}
	if got, err := caFingerprint([]byte("garbage")); err == nil {
		t.Errorf("garbage: %q", got)
	}
}

func TestIdentityCA(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		id   Identity
		want string
	}{
		{Identity{URL: "https://h", CAFingerprint: "sha256:00"}, "sha256:00"},
		{Identity{URL: "https://h"}, "the system's roots (the kubeconfig carries no CA)"},
		{Identity{URL: "https://h", Unprovable: "x"}, "not verified (insecure-skip-tls-verify)"},
		{Identity{URL: "http://h", Unprovable: "x"}, "none (plain http)"},
	} {
		if got := tt.id.CA(); got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.id, got, tt.want)
		}
	}
}
