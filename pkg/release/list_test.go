// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

// serve answers requests one after the other, and notes them.
func serve(t *testing.T, answers ...any) (cfg *rest.Config, asked *[]*http.Request) {
	t.Helper()
	asked = &[]*http.Request{}
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		n := len(*asked)
		*asked = append(*asked, r)
		out.Header().Set("Content-Type", "application/json")
		if n >= len(answers) {
			out.WriteHeader(http.StatusTeapot)
			return
		}
		if status, ok := answers[n].(*apierrors.StatusError); ok {
			status.ErrStatus.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
			out.WriteHeader(int(status.ErrStatus.Code))
			_ = json.NewEncoder(out).Encode(status.ErrStatus) // a test's answer
			return
		}
		fmt.Fprint(out, answers[n])
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL, QPS: -1}, asked
}

func listOf(next string, items ...string) string {
	return `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"continue":"` + next + `"},"items":[` + strings.Join(items, ",") + `]}`
}

func item(ns, name, more string) string {
	return fmt.Sprintf(`{"metadata":{"namespace":%q,"name":%q,"uid":"u","resourceVersion":"7","creationTimestamp":"2026-01-02T03:04:05Z"%s}}`, ns, name, more)
}

func TestList(t *testing.T) {
	cfg, asked := serve(t,
		listOf("more",
			item("b", "sh.helm.release.v1.web.v10", `,"labels":{"status":"deployed","name":"other","version":"3","modifiedAt":"1"}`),
			item("b", "sh.helm.release.v1.web.v9", `,"deletionTimestamp":"2026-01-03T00:00:00Z","managedFields":[{"manager":"helm","time":"2026-01-02T04:00:00Z","fieldsV1":{"f:data":{}}},{"manager":"x","time":"2026-01-02T03:30:00Z"}]`),
			item("b", "web-credentials", "")),
		listOf("", item("a", "sh.helm.release.v1.my.v2.v1", "")))
	got, err := List(t.Context(), cfg, "")
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0].Key != (Key{"a", "my.v2"}) || got[1].Key != (Key{"b", "web"}) || len(got[1].Revisions) != 2 {
		t.Fatalf("%+v", got)
	}
	created := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	latest := got[1].Latest()
	if latest.Version != 10 || latest.Label != Deployed || latest.UID != "u" || latest.ResourceVersion != "7" ||
		!latest.Created.Equal(created) || !latest.Modified.Equal(created) || !latest.Deleted.IsZero() {
		t.Errorf("%+v", latest)
	}
	going := got[1].Revisions[0]
	if going.Version != 9 || going.Label != "" || going.Deleted.Day() != 3 || !going.Modified.Equal(created.Truncate(time.Hour).Add(time.Hour)) {
		t.Errorf("%+v", going)
	}
	if len(*asked) != 2 {
		t.Fatalf("%d requests", len(*asked))
	}
	for i, r := range *asked {
		query := r.URL.Query()
		if r.Method != http.MethodGet || r.URL.Path != "/api/v1/secrets" || query.Get("limit") != "500" ||
			query.Get("fieldSelector") != "type=helm.sh/release.v1" || query.Get("labelSelector") != "owner=helm" ||
			query.Get("continue") != []string{"", "more"}[i] {
			t.Errorf("asked for %s %s", r.Method, r.URL)
		}
		if accept := r.Header.Get("Accept"); accept != "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1" {
			t.Errorf("accepts %q: payloads would come along", accept)
		}
	}
}

func TestListOneNamespace(t *testing.T) {
	cfg, asked := serve(t, listOf(""))
	got, err := List(t.Context(), cfg, "apps")
	if err != nil || len(got) != 0 || (*asked)[0].URL.Path != "/api/v1/namespaces/apps/secrets" {
		t.Errorf("%v, %v, asked for %s", got, err, (*asked)[0].URL)
	}
}

func TestListStartsOverWhenItsTokenExpires(t *testing.T) {
	cfg, asked := serve(t,
		listOf("old", item("a", "sh.helm.release.v1.web.v1", "")),
		apierrors.NewResourceExpired("too old"),
		listOf("", item("a", "sh.helm.release.v1.web.v2", "")))
	got, err := List(t.Context(), cfg, "")
	if err != nil || len(got) != 1 || len(got[0].Revisions) != 1 || got[0].Revisions[0].Version != 2 || len(*asked) != 3 {
		t.Errorf("%+v, %v after %d requests", got, err, len(*asked))
	}
}

func TestListErrors(t *testing.T) {
	secrets := schema.GroupResource{Resource: "secrets"}
	cfg, _ := serve(t, apierrors.NewForbidden(secrets, "", errors.New("no")))
	if _, err := List(t.Context(), cfg, ""); !apierrors.IsForbidden(err) || !strings.HasPrefix(err.Error(), "list the records of releases in all namespaces: secrets is forbidden") {
		t.Errorf("%v", err)
	}
	cfg, _ = serve(t, apierrors.NewResourceExpired("at once"))
	if _, err := List(t.Context(), cfg, "apps"); !apierrors.IsResourceExpired(err) || !strings.Contains(err.Error(), "in namespace apps") {
		t.Errorf("%v", err)
	}
	cfg, _ = serve(t, "<html>")
	if _, err := List(t.Context(), cfg, ""); err == nil || !strings.Contains(err.Error(), "answer is not a list") {
		t.Errorf("%v", err)
	}
}

func TestGet(t *testing.T) {
	secret := golden(t)["helm4/next.v2.pending-upgrade.json"]
	text, err := json.Marshal(secret)
	if err != nil {
		t.Fatal(err)
	}
	broken := secret.DeepCopy()
	broken.Data = map[string][]byte{"release": []byte("!")}
	brokenText, err := json.Marshal(broken)
	if err != nil {
		t.Fatal(err)
	}
	cfg, asked := serve(t, string(text), apierrors.NewNotFound(corev1.Resource("secrets"), "x"), string(brokenText))
	core, err := typedcorev1.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	// What was seen before is older than what is read now.
	r, err := Get(t.Context(), core, Revision{Key: Key{"helm4", "next"}, Version: 2, ResourceVersion: "1", UID: "old"})
	if err != nil {
		t.Fatal(err)
	}
	if r.Status != PendingUpgrade || r.ResourceVersion != secret.ResourceVersion || r.UID != secret.UID || r.Label != PendingUpgrade {
		t.Errorf("%+v", r.Revision)
	}
	if path := (*asked)[0].URL.Path; path != "/api/v1/namespaces/helm4/secrets/sh.helm.release.v1.next.v2" {
		t.Errorf("asked for %s", path)
	}
	if _, err := Get(t.Context(), core, r.Revision); !apierrors.IsNotFound(err) {
		t.Errorf("%v", err)
	}
	var unreadable *UnreadableError
	if _, err := Get(t.Context(), core, r.Revision); !errors.As(err, &unreadable) || unreadable.Secret != "helm4/sh.helm.release.v1.next.v2" {
		t.Errorf("%v", err)
	}
}
