// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

func patch(t *testing.T, s *Server) error {
	t.Helper()
	client, err := dynamic.NewForConfig(s.Config())
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("x").
		Patch(t.Context(), "c", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{})
	return err
}

func wantRefused(t *testing.T, err error, text string) *RefusedError {
	t.Helper()
	var refused *RefusedError
	if !errors.As(err, &refused) || exitCode(err) != 5 || !strings.Contains(err.Error(), text) {
		t.Fatalf("got %v (exit %d), want a refusal with %q", err, exitCode(err), text)
	}
	return refused
}

func wantMutations(t *testing.T, w *wire, n int) {
	t.Helper()
	if got := w.mutations(); len(got) != n {
		t.Fatalf("%d mutations arrived, want %d: %q", len(got), n, got)
	}
}

func TestUnprovedIsRefusedAndSaysHow(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t, "a")
	w := newWire(t, ca, uidA)
	s := connect(t, kubeconfig(t, w.URL, ca.pem), nil)
	wantRefused(t, patch(t, s), "server "+w.URL+" is not proved; name the cluster with --expect-server")
	if got := w.requests(); len(got) != 0 || s.Seen().URL != w.URL || s.Seen().UID != "" {
		t.Errorf("%q arrived, %+v seen", got, s.Seen())
	}
	err := s.Prove(t.Context(), Expectation{})
	var unproved *UnprovedError
	if !errors.As(err, &unproved) || unproved.ExitCode() != 5 {
		t.Fatalf("got %v", err)
	}
	fingerprint, _ := caFingerprint(ca.pem)
	equalLines(t, "message", err.Error(), strings.ReplaceAll(strings.ReplaceAll(
		`server URL is not proved, so nothing was done: no cluster was named
  server    URL
  uid       aaaaaaaa-0000-4000-8000-000000000001
  ca        CA
  context   prod
If this is the cluster that you mean, add to the command
  --expect-server URL --expect-uid aaaaaaaa-0000-4000-8000-000000000001
or keep as its standup.yaml
  apiVersion: kubestandup.dev/v1alpha1
  kind: Standup
  metadata:
    name: standup
    annotations: {config.kubernetes.io/local-config: "true"}
  cluster:
    server: URL
    uid: aaaaaaaa-0000-4000-8000-000000000001`, "URL", w.URL), "CA", fingerprint))
	wantRefused(t, patch(t, s), "is not proved")
	wantMutations(t, w, 0)
}

func TestProvedPasses(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t, "a")
	w := newWire(t, ca, uidA)
	s := connect(t, kubeconfig(t, w.URL, ca.pem), nil)
	if err := s.Prove(t.Context(), Expectation{Server: w.URL + "/", UID: uidA}); err != nil {
		t.Fatal(err)
	}
	if err := patch(t, s); err != nil || !s.Proved() {
		t.Fatal(err)
	}
	wantMutations(t, w, 1)
	if s.Seen().UID != uidA || len(w.requests()) != 2 {
		t.Errorf("%+v after %q", s.Seen(), w.requests())
	}
	for i, agent := range w.agents {
		if !strings.HasPrefix(agent, "kubectl-standup/") || w.auth[i] != "Bearer s3cret-token" {
			t.Errorf("request %q came from %q with %q", w.arrived[i], agent, w.auth[i])
		}
	}
}

func TestWrongURL(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t, "a")
	w := newWire(t, ca, uidA)
	s := connect(t, kubeconfig(t, w.URL, ca.pem), nil)
	err := s.Prove(t.Context(), Expectation{Server: "https://api.prod.example.org:6443", UID: uidB, Origin: "clusters/prod/standup.yaml:3:11"})
	var mismatch *MismatchError
	if !errors.As(err, &mismatch) || mismatch.ExitCode() != 5 {
		t.Fatalf("got %v", err)
	}
	pad := strings.Repeat(" ", max(0, len("https://api.prod.example.org:6443")-len("clusters/prod/standup.yaml:3:11")))
	equalLines(t, "message", err.Error(), `server is not the expected one, so nothing was done: the URL differs
           expected                               found
  server   https://api.prod.example.org:6443      `+w.URL+`
  uid      bbbbbbbb-0000-4000-8000-000000000002   (not asked)
  from     clusters/prod/standup.yaml:3:11     `+pad+` context prod
Choose the cluster that you mean with --context; nothing overrides this check.`)
	if got := w.requests(); len(got) != 0 {
		t.Errorf("%q arrived at the wrong server", got)
	}
	// Whoever was told so cannot go on to prove it in the same run.
	if err := s.Prove(t.Context(), Expectation{Server: w.URL}); exitCode(err) != 5 {
		t.Errorf("proved after all: %v", err)
	}
	wantRefused(t, patch(t, s), "the URL differs")
	wantMutations(t, w, 0)
}

func TestAnotherUIDBehindTheURL(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t, "a")
	w := newWire(t, ca, uidB)
	s := connect(t, kubeconfig(t, w.URL, ca.pem), nil)
	err := s.Prove(t.Context(), Expectation{Server: w.URL, UID: uidA, Origin: "--expect-server, --expect-uid"})
	var mismatch *MismatchError
	if !errors.As(err, &mismatch) || mismatch.Found.UID != uidB || !strings.Contains(err.Error(), "another cluster is behind it") {
		t.Fatalf("got %v", err)
	}
	wantRefused(t, patch(t, s), "another cluster is behind it")
	wantMutations(t, w, 0)
}

func TestAnotherCABehindTheURL(t *testing.T) {
	t.Parallel()
	ours, theirs := newAuthority(t, "ours"), newAuthority(t, "theirs")
	w := newWire(t, theirs, uidA)
	s := connect(t, kubeconfig(t, w.URL, ours.pem), nil)
	if _, err := s.Identity(t.Context()); exitCode(err) != 1 {
		t.Errorf("without an expectation: %v (exit %d), want a plain error", err, exitCode(err))
	}
	err := s.Prove(t.Context(), Expectation{Server: w.URL, UID: uidA})
	var mismatch *MismatchError
	if !errors.As(err, &mismatch) || exitCode(err) != 5 || !strings.Contains(err.Error(), "another one answers at its address: x509: ") {
		t.Fatalf("got %v", err)
	}
	wantRefused(t, patch(t, s), "another one answers")
	if got := w.requests(); len(got) != 0 {
		t.Errorf("%q arrived", got)
	}
}

func TestCertificateForAnotherName(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t, "a")
	w := newWire(t, ca, uidA)
	s := connect(t, kubeconfig(t, w.URL, ca.pem, func(c *clientcmdapi.Config) {
		c.Clusters["c"].TLSServerName = "api.prod.example.org"
	}), nil)
	if err := s.Prove(t.Context(), Expectation{Server: w.URL}); exitCode(err) != 5 || !strings.Contains(err.Error(), "api.prod.example.org") {
		t.Fatalf("got %v (exit %d)", err, exitCode(err))
	}
}

func TestPlainHTTPBehindTheURL(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t, "a")
	plain := newPlainServer(t)
	s := connect(t, kubeconfig(t, strings.Replace(plain, "http://", "https://", 1), ca.pem), nil)
	if err := s.Prove(t.Context(), Expectation{Server: s.URL()}); exitCode(err) != 5 {
		t.Fatalf("got %v (exit %d)", err, exitCode(err))
	}
}

func TestNeverProof(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t, "a")
	w := newWire(t, ca, uidA)
	for name, tt := range map[string]struct {
		server, want string
	}{
		"insecure": {w.URL, "server " + w.URL + " is not proved, so nothing was done: insecure-skip-tls-verify is set, and an unverified connection never proves which server answers; give the kubeconfig the cluster's CA"},
		"http":     {"http://127.0.0.1:1", "server http://127.0.0.1:1 is not proved, so nothing was done: plain http never proves which server answers; use https"},
	} {
		t.Run(name, func(t *testing.T) {
			s := connect(t, kubeconfig(t, tt.server, nil, func(c *clientcmdapi.Config) {
				c.Clusters["c"].InsecureSkipTLSVerify = name == "insecure"
			}), nil)
			err := s.Prove(t.Context(), Expectation{Server: tt.server, UID: uidA})
			if exitCode(err) != 5 || err.Error() != tt.want {
				t.Errorf("got %v (exit %d)", err, exitCode(err))
			}
			wantRefused(t, patch(t, s), "is not proved")
		})
	}
	wantMutations(t, w, 0)
	if got := w.requests(); len(got) != 0 {
		t.Errorf("%q arrived", got)
	}
}

func TestUIDChangesInMidRun(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t, "a")
	w := newWire(t, ca, uidA)
	c := newClock()
	s := connect(t, kubeconfig(t, w.URL, ca.pem), c)
	// Without a UID in the expectation the one that was found is held on to.
	if err := s.Prove(t.Context(), Expectation{Server: w.URL}); err != nil {
		t.Fatal(err)
	}
	c.move(identityMaxAge - time.Millisecond)
	if err := patch(t, s); err != nil || w.looks() != 1 {
		t.Fatalf("young proof: %v, %d looks", err, w.looks())
	}
	c.move(time.Millisecond)
	if err := patch(t, s); err != nil || w.looks() != 2 {
		t.Fatalf("old proof: %v, %d looks", err, w.looks())
	}
	w.become(uidB)
	c.move(identityMaxAge)
	refused := wantRefused(t, patch(t, s), "the cluster behind its address changed since this command started")
	var mismatch *MismatchError
	if refused.Transient || !errors.As(refused, &mismatch) || mismatch.Expected.UID != uidA || mismatch.Found.UID != uidB {
		t.Errorf("got %+v", refused)
	}
	// For ever after, also when the first cluster is back.
	w.become(uidA)
	wantRefused(t, patch(t, s), "changed since this command started")
	if err := s.Prove(t.Context(), Expectation{Server: w.URL, UID: uidA}); exitCode(err) != 5 || s.Proved() {
		t.Errorf("proved again: %v", err)
	}
	wantMutations(t, w, 2)
}

func TestIdentitySeesTheChange(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t, "a")
	w := newWire(t, ca, uidA)
	s := connect(t, kubeconfig(t, w.URL, ca.pem), newClock())
	if err := s.Prove(t.Context(), Expectation{Server: w.URL}); err != nil {
		t.Fatal(err)
	}
	w.become(uidB)
	if id, err := s.Identity(t.Context()); err != nil || id.UID != uidB || s.Proved() {
		t.Errorf("%+v, %v, proved %v", id, err, s.Proved())
	}
	wantRefused(t, patch(t, s), "changed since")
	wantMutations(t, w, 0)
}

func TestCAChangesInMidRun(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t, "a")
	w := newWire(t, ca, uidA)
	c := newClock()
	s := connect(t, kubeconfig(t, w.URL, ca.pem), c)
	if err := s.Prove(t.Context(), Expectation{Server: w.URL}); err != nil {
		t.Fatal(err)
	}
	w.present(newAuthority(t, "other"))
	c.move(identityMaxAge)
	wantRefused(t, patch(t, s), "changed since this command started: x509: ")
	w.present(ca)
	wantRefused(t, patch(t, s), "changed since this command started")
	wantMutations(t, w, 0)
}

// An API server that restarts is no reason to give the run up, and none to let
// a mutation through unconfirmed.
func TestUnreadableInMidRun(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t, "a")
	w := newWire(t, ca, uidA)
	c := newClock()
	s := connect(t, kubeconfig(t, w.URL, ca.pem), c)
	if err := s.Prove(t.Context(), Expectation{Server: w.URL}); err != nil {
		t.Fatal(err)
	}
	c.move(identityMaxAge)
	w.respond(func(rw http.ResponseWriter, _ *http.Request) bool {
		refuseWith(rw, http.StatusInternalServerError, "InternalError")
		return true
	})
	refused := wantRefused(t, patch(t, s), "who it is could not be confirmed")
	if !refused.Transient {
		t.Errorf("got %+v", refused)
	}
	wantMutations(t, w, 0)
	w.respond(nil)
	if err := patch(t, s); err != nil {
		t.Fatal(err)
	}
	wantMutations(t, w, 1)
}

func TestYoung(t *testing.T) {
	t.Parallel()
	for age, want := range map[time.Duration]bool{
		-time.Second: false, -1: false, 0: true, identityMaxAge - 1: true, identityMaxAge: false, time.Hour: false,
	} {
		if young(age) != want {
			t.Errorf("%v: young is %v", age, !want)
		}
	}
}

// Who gives up takes nobody else with them.
func TestOneOfSeveralIsCancelled(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t, "a")
	w := newWire(t, ca, uidA)
	c := newClock()
	s := connect(t, kubeconfig(t, w.URL, ca.pem), c)
	if err := s.Prove(t.Context(), Expectation{Server: w.URL}); err != nil {
		t.Fatal(err)
	}
	c.move(time.Hour)
	asked, release := make(chan struct{}, 2), make(chan struct{})
	w.respond(func(_ http.ResponseWriter, r *http.Request) bool {
		asked <- struct{}{}
		select {
		case <-release:
		case <-r.Context().Done():
		}
		return false
	})
	ctx, cancel := context.WithCancel(t.Context())
	first := make(chan error, 1)
	go func() { first <- s.confirm(ctx) }()
	<-asked
	cancel()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("the first: %v", err)
	}
	second := make(chan error, 1)
	go func() { second <- s.confirm(t.Context()) }()
	close(release)
	if err := <-second; err != nil {
		t.Errorf("the second: %v", err)
	}
	if w.looks() != 2 {
		t.Errorf("%d looks, want one at the start and one that both asked for", w.looks())
	}
}

func TestClockSetBack(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t, "a")
	w := newWire(t, ca, uidA)
	c := newClock()
	s := connect(t, kubeconfig(t, w.URL, ca.pem), c)
	if err := s.Prove(t.Context(), Expectation{Server: w.URL}); err != nil {
		t.Fatal(err)
	}
	c.move(-time.Hour)
	if err := patch(t, s); err != nil || w.looks() != 2 {
		t.Errorf("%v, %d looks", err, w.looks())
	}
}

func TestParallelMutationsShareOneLook(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t, "a")
	w := newWire(t, ca, uidA)
	c := newClock()
	s := connect(t, kubeconfig(t, w.URL, ca.pem), c)
	if err := s.Prove(t.Context(), Expectation{Server: w.URL}); err != nil {
		t.Fatal(err)
	}
	c.move(time.Hour)
	const n = 20
	asked, release := make(chan struct{}, n), make(chan struct{})
	w.respond(func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasPrefix(r.URL.Path, "/api/v1/namespaces/kube-system") {
			asked <- struct{}{}
			<-release
		}
		return false
	})
	var all sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		all.Go(func() { errs[i] = patch(t, s) })
	}
	<-asked
	close(release)
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if w.looks() != 2 {
		t.Errorf("%d looks, want one at the start and one for all", w.looks())
	}
	wantMutations(t, w, n)
}

func TestCancelledWhileConfirming(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t, "a")
	w := newWire(t, ca, uidA)
	c := newClock()
	s := connect(t, kubeconfig(t, w.URL, ca.pem), c)
	if err := s.Prove(t.Context(), Expectation{Server: w.URL}); err != nil {
		t.Fatal(err)
	}
	c.move(time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	w.respond(func(http.ResponseWriter, *http.Request) bool {
		cancel()
		<-release
		return false
	})
	client, err := dynamic.NewForConfig(s.Config())
	if err != nil {
		t.Fatal(err)
	}
	err = client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("x").
		Delete(ctx, "c", metav1.DeleteOptions{})
	if !errors.Is(err, context.Canceled) || exitCode(err) == 5 {
		t.Errorf("got %v (exit %d), want the interruption", err, exitCode(err))
	}
	wantMutations(t, w, 0)
}
