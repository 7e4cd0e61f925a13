// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestEventMutating(t *testing.T) {
	for _, tc := range []struct {
		name  string
		event Event
		want  bool
	}{
		{"get", Event{Verb: "get", Resource: "pods"}, false},
		{"watch", Event{Verb: "watch", Resource: "pods"}, false},
		{"discovery", Event{Verb: "get", URI: "/apis"}, false},
		{"create", Event{Verb: "create", Resource: "pods", URI: "/api/v1/namespaces/a/pods"}, true},
		{"patch", Event{Verb: "patch", Resource: "pods", URI: "/api/v1/namespaces/a/pods/b?fieldManager=x"}, true},
		{"delete collection", Event{Verb: "deletecollection", Resource: "pods"}, true},
		{"dry run", Event{Verb: "patch", Resource: "pods", URI: "/api/v1/namespaces/a/pods/b?dryRun=All&fieldManager=x"}, false},
		{"dry run of the last parameter", Event{Verb: "delete", Resource: "pods", URI: "/x?a=b&dryRun=All"}, false},
		{"dryRun of another value", Event{Verb: "patch", Resource: "pods", URI: "/x?dryRun=None"}, true},
		{"dryRun in a name", Event{Verb: "patch", Resource: "pods", URI: "/api/v1/namespaces/a/pods/dryRun=All"}, true},
		{"review", Event{Verb: "create", Group: "authorization.k8s.io", Resource: "selfsubjectaccessreviews"}, false},
		{"token review", Event{Verb: "create", Group: "authentication.k8s.io", Resource: "tokenreviews"}, false},
		{"a custom resource called reviews", Event{Verb: "create", Group: "example.com", Resource: "reviews"}, true},
		{"token of a service account", Event{Verb: "create", Resource: "serviceaccounts", Subresource: "token"}, true},
		{"exec by get", Event{Verb: "get", Resource: "pods", Subresource: "exec"}, true},
		{"proxy by get", Event{Verb: "get", Resource: "services", Subresource: "proxy"}, true},
		{"log", Event{Verb: "get", Resource: "pods", Subresource: "log"}, false},
		{"post to no resource", Event{Verb: "post", URI: "/somewhere"}, true},
	} {
		if got := tc.event.Mutating(); got != tc.want {
			t.Errorf("%s: Mutating() = %v, want %v", tc.name, got, tc.want)
		}
	}
}

func TestReadAudit(t *testing.T) {
	lines := []string{
		`{"auditID":"1","stage":"RequestReceived","verb":"list","requestURI":"/a","userAgent":"old"}`,
		`{"auditID":"2","stage":"RequestReceived","verb":"patch","requestURI":"/b","userAgent":"new/1","user":{"username":"u"},"objectRef":{"resource":"pods","namespace":"n","name":"m","apiGroup":"g","subresource":"s"}}`,
		`{"auditID":"1","stage":"ResponseComplete","responseStatus":{"code":200}}`,
		`{"auditID":"2","stage":"ResponseComplete","responseStatus":{"code":409}}`,
		`{"auditID":"3","stage":"ResponseStarted","verb":"get","requestURI":"/c","responseStatus":{"code":401}}`,
		`{"auditID":"4","stage":"RequestReceived","verb":"get","requestURI":"/d"}`,
		`{"auditID":"5","stage":"RequestRec`,
	}
	file := filepath.Join(t.TempDir(), "audit.log")
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := readAudit(file, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := all.String(), "list /a → 200 (old)\npatch /b → 409 (new/1)\nget /c → 401 ()\nget /d → 0 ()\n"; got != want {
		t.Errorf("all:\n%swant:\n%s", got, want)
	}
	second := all[1]
	if second.User != "u" || second.Group != "g" || second.Resource != "pods" || second.Subresource != "s" || second.Namespace != "n" || second.Name != "m" {
		t.Errorf("fields: %+v", second)
	}
	since, err := readAudit(file, int64(len(lines[0])+1))
	if err != nil {
		t.Fatal(err)
	}
	if len(since) != 3 || since[0].URI != "/b" {
		t.Errorf("since the second line: a request received before is among them, or one is missing:\n%s", since)
	}
	// A mark that was set while the first line was being written.
	if torn, err := readAudit(file, 10); err != nil || torn.String() != since.String() {
		t.Errorf("from the middle of a line: %v\n%s", err, torn)
	}
	if got := all.By("new/"); len(got) != 1 || got[0].URI != "/b" {
		t.Errorf("By: %s", got)
	}
	if got, err := readAudit(filepath.Join(t.TempDir(), "none"), 0); err != nil || got != nil {
		t.Errorf("no log yet: %v, %v", got, err)
	}
}
