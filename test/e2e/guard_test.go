// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package e2e

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubestandup/kubestandup/pkg/guard"
	"github.com/kubestandup/kubestandup/test/cluster"
)

// testGuard holds the guard against one control plane, which is the expected
// one or not.
func testGuard(t *testing.T, c *cluster.Cluster) {
	for _, tt := range []struct {
		name string
		run  func(*testing.T, *cluster.Cluster)
	}{
		{"unproved", guardUnproved},
		{"proved", guardProved},
		{"wrong URL", guardWrongURL},
		{"insecure", guardInsecure},
		{"identity under RBAC", guardIdentityUnderRBAC},
		{"delete options in the body", guardDeleteOptionsInTheBody},
		{"server restarts", guardServerRestarts},
		{"another cluster", guardAnotherCluster},
	} {
		t.Run(tt.name, func(t *testing.T) { tt.run(t, c) })
	}
}

// guardUnproved: without an expectation nothing that changes the cluster
// leaves the process; reading, asking and rehearsing do.
func guardUnproved(t *testing.T, c *cluster.Cluster) {
	mark := c.Mark()
	s := guardServer(t, c.Kubeconfig(), nil)
	tryAll(t, s, "is not proved")
	if got := arrivedMutations(t, c, mark); len(got) != 0 {
		t.Errorf("arrived:\n%s", got)
	}
	wantExit5(t, s.Prove(t.Context(), guard.Expectation{}), "--expect-server "+c.URL()+" --expect-uid "+uidOf(t, c))
	tryAll(t, s, "is not proved")
	if got := arrivedMutations(t, c, mark); len(got) != 0 {
		t.Errorf("arrived:\n%s", got)
	}

	clients, err := kubernetes.NewForConfig(s.Config())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := clients.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
	if _, _, err := clients.Discovery().ServerGroupsAndResources(); err != nil {
		t.Error(err)
	}
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "delete", Resource: "namespaces"},
	}}
	if got, err := clients.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{}); err != nil || !got.Status.Allowed {
		t.Errorf("%+v, %v", got, err)
	}
	rehearsed := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "rehearsed"}}
	if _, err := clients.CoreV1().ConfigMaps("default").Create(t.Context(), rehearsed, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		t.Error(err)
	}
	if _, err := clients.CoreV1().ConfigMaps("default").Get(t.Context(), "rehearsed", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the rehearsal left something: %v", err)
	}
}

// guardProved is the other half of guardUnproved: each of those calls
// is one that the API server takes for a mutation.
func guardProved(t *testing.T, c *cluster.Cluster) {
	s := guardServer(t, c.Kubeconfig(), nil)
	if err := s.Prove(t.Context(), guard.Expectation{Server: c.URL(), UID: uidOf(t, c)}); err != nil {
		t.Fatal(err)
	}
	for _, call := range mutatingCalls() {
		mark := c.Mark()
		err := call.run(t.Context(), s.Config())
		var refused *guard.RefusedError
		if errors.As(err, &refused) {
			t.Errorf("%s: %v", call.name, err)
		}
		events, auditErr := c.Since(t.Context(), mark)
		if auditErr != nil {
			t.Fatal(auditErr)
		}
		arrived := events.By(guardAgent).Where(func(e cluster.Event) bool {
			return e.Mutating() || e.Subresource == "scale" && e.DryRun()
		})
		if want := map[bool]int{false: 1, true: 0}[call.upgraded]; len(arrived) != want {
			t.Errorf("%s (%v): %d arrived, want %d\n%s", call.name, err, len(arrived), want, events.By(guardAgent))
		}
	}
}

func guardWrongURL(t *testing.T, c *cluster.Cluster) {
	mark := c.Mark()
	s := guardServer(t, c.Kubeconfig(), nil)
	wantExit5(t, s.Prove(t.Context(), guard.Expectation{Server: "https://api.prod.example.org:6443", UID: uidOf(t, c)}), "the URL differs")
	tryAll(t, s, "the URL differs")
	events, err := c.Since(t.Context(), mark)
	if err != nil {
		t.Fatal(err)
	}
	if got := events.By(guardAgent); len(got) != 0 {
		t.Errorf("arrived at the wrong server:\n%s", got)
	}
}

func guardInsecure(t *testing.T, c *cluster.Cluster) {
	mark := c.Mark()
	flags := genericclioptions.NewConfigFlags(true)
	*flags.KubeConfig = c.Kubeconfig()
	*flags.Insecure = true
	s := guardConnect(t, flags, nil)
	expected := guard.Expectation{Server: c.URL(), UID: uidOf(t, c)}
	wantExit5(t, s.Prove(t.Context(), expected), "insecure-skip-tls-verify is set")
	tryAll(t, s, "is not proved")
	if got := arrivedMutations(t, c, mark); len(got) != 0 {
		t.Errorf("arrived:\n%s", got)
	}
	id, err := s.Identity(t.Context())
	if err != nil || id.UID != expected.UID || id.Unprovable == "" {
		t.Errorf("%+v, %v", id, err)
	}
}

// guardIdentityUnderRBAC: get, else list, else the rule that is missing.
func guardIdentityUnderRBAC(t *testing.T, c *cluster.Cluster) {
	if err := c.Apply(t.Context(), `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: getter}
rules: [{apiGroups: [""], resources: [namespaces], resourceNames: [kube-system], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: lister}
rules: [{apiGroups: [""], resources: [namespaces], verbs: [list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: getter}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: getter}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: getter}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: lister}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: lister}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: lister}]
`); err != nil {
		t.Fatal(err)
	}
	uid := uidOf(t, c)
	for user, verbs := range map[string][]string{"getter": {"get"}, "lister": {"get", "list"}, "nobody": {"get", "list"}} {
		t.Run(user, func(t *testing.T) {
			kubeconfig, err := c.KubeconfigFor(user)
			if err != nil {
				t.Fatal(err)
			}
			s := guardServer(t, kubeconfig, nil)
			mark := c.Mark()
			id, err := s.Identity(t.Context())
			if user == "nobody" {
				if err == nil || !strings.Contains(err.Error(), "resourceNames: [kube-system], verbs: [get]") || strings.Contains(err.Error(), "\n") {
					t.Errorf("got %v", err)
				}
			} else if err != nil || id.UID != uid {
				t.Errorf("got %+v, %v", id, err)
			}
			events, err := c.Since(t.Context(), mark)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, e := range events.By(guardAgent) {
				got = append(got, e.Verb)
			}
			if !slices.Equal(got, verbs) {
				t.Errorf("asked with %q, want %q", got, verbs)
			}
		})
	}
}

// guardDeleteOptionsInTheBody: why the guard reads the body of a DELETE.
// The API server does not look at the query when there is one.
func guardDeleteOptionsInTheBody(t *testing.T, c *cluster.Cluster) {
	victim := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "victim"}}
	if err := c.Client().Create(t.Context(), victim); err != nil {
		t.Fatal(err)
	}
	exists := func() bool {
		err := c.Client().Get(t.Context(), client.ObjectKeyFromObject(victim), &corev1.ConfigMap{})
		if client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		return err == nil
	}
	s := guardServer(t, c.Kubeconfig(), nil)
	guarded, err := kubernetes.NewForConfig(s.Config())
	if err != nil {
		t.Fatal(err)
	}
	// A rehearsed deletion is the API server's dry run indeed.
	if err := guarded.CoreV1().ConfigMaps("default").Delete(t.Context(), "victim", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}); err != nil || !exists() {
		t.Fatalf("%v, still there: %v", err, exists())
	}
	// A query that says so beside a body that does not is none.
	lie := func(clients kubernetes.Interface) error {
		return clients.CoreV1().RESTClient().Delete().Namespace("default").Resource("configmaps").Name("victim").
			Param("dryRun", "All").Body(&metav1.DeleteOptions{}).Do(t.Context()).Error()
	}
	wantExit5(t, lie(guarded), "is not proved")
	if !exists() {
		t.Fatal("the guard let a deletion through")
	}
	unguarded, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	if err := lie(unguarded); err != nil || exists() {
		t.Errorf("%v, still there: %v; the API server has changed: the guard may be simpler now", err, exists())
	}
}

// guardServerRestarts: the same cluster may go away and come back.
func guardServerRestarts(t *testing.T, c *cluster.Cluster) {
	now := time.Now()
	mark := c.Mark()
	s := guardServer(t, c.Kubeconfig(), func() time.Time { return now })
	if err := s.Prove(t.Context(), guard.Expectation{Server: c.URL()}); err != nil {
		t.Fatal(err)
	}
	c.Kill(cluster.APIServer)
	now = now.Add(time.Minute)
	create := mutatingCalls()[0]
	var refused *guard.RefusedError
	if err := create.run(t.Context(), s.Config()); !errors.As(err, &refused) || !refused.Transient {
		t.Errorf("while it is away: %v", err)
	}
	if err := c.Start(t.Context(), cluster.APIServer); err != nil {
		t.Fatal(err)
	}
	if err := create.run(t.Context(), s.Config()); err != nil {
		t.Errorf("after it is back: %v", err)
	}
	if got := arrivedMutations(t, c, mark); len(got) != 1 {
		t.Errorf("arrived:\n%s", got)
	}
}

// guardAnotherCluster: another cluster comes to answer at the address of the
// expected one, first with the same CA, then with another. The proof that a run
// started with does not outlive the cluster, and there is no new one.
func guardAnotherCluster(t *testing.T, a *cluster.Cluster) {
	expected := guard.Expectation{Server: a.URL(), UID: uidOf(t, a)}
	create := mutatingCalls()[0]
	mark := a.Mark()
	others := []*otherCluster{
		{name: "same CA, another UID", credentials: a.Credentials(), refusal: "another cluster is behind it"},
		{name: "another CA", refusal: "another one answers at its address", proof: "another one answers at its address: x509: "},
	}
	for _, o := range others {
		o.now = time.Now()
		o.run = guardServer(t, a.Kubeconfig(), func() time.Time { return o.now })
		if err := o.run.Prove(t.Context(), guard.Expectation{Server: a.URL()}); err != nil {
			t.Fatal(err)
		}
		// Whoever ran before may have made it.
		made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "guard"}}
		if err := client.IgnoreNotFound(a.Client().Delete(t.Context(), made)); err != nil {
			t.Fatal(err)
		}
		if err := create.run(t.Context(), o.run.Config()); err != nil {
			t.Fatal(err)
		}
	}
	for _, o := range others {
		t.Run(o.name, func(t *testing.T) { o.takesOver(t, a, expected) })
	}
	if err := a.Start(t.Context(), cluster.APIServer); err != nil {
		t.Fatal(err)
	}
	// For the rest of the run, also when the first one is back.
	for _, o := range others {
		wantExit5(t, o.run.Prove(t.Context(), guard.Expectation{Server: a.URL()}), "changed since this command started")
		tryAll(t, o.run, "changed since this command started")
	}
	got := arrivedMutations(t, a, mark)
	if len(got) != len(others) || slices.ContainsFunc(got, func(e cluster.Event) bool { return e.Verb != "create" }) {
		t.Errorf("arrived at the first cluster:\n%s", got)
	}
}

// otherCluster answers at the address of the one that was proved.
type otherCluster struct {
	name        string
	credentials *cluster.Credentials // nil are other ones
	refusal     string               // of what a new run tries
	proof       string               // the error of its proof; "" is refusal
	run         *guard.Server        // that started before
	now         time.Time            // of that run
}

func (o *otherCluster) takesOver(t *testing.T, a *cluster.Cluster, expected guard.Expectation) {
	b := takeOver(t, a, o.credentials)
	if o.credentials != nil && (uidOf(t, b) == expected.UID || b.URL() != a.URL()) {
		t.Fatalf("the second cluster is %s %s, as the first", b.URL(), expected.UID)
	}
	s := guardServer(t, a.Kubeconfig(), nil)
	wantExit5(t, s.Prove(t.Context(), expected), cmp.Or(o.proof, o.refusal))
	tryAll(t, s, o.refusal)
	o.now = o.now.Add(10 * time.Second)
	tryAll(t, o.run, "changed since this command started")
	if got := arrivedMutations(t, b, cluster.Mark{}); len(got) != 0 {
		t.Errorf("arrived at the second cluster:\n%s", got)
	}
}
