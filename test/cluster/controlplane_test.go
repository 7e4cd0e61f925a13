// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// bare is a control plane without anything on top.
func bare() Options { return Options{Components: []Component{}} }

// TestControlPlane is about what needs no more than etcd and the API server, on
// one cluster, since a start is what a test's time goes into.
func TestControlPlane(t *testing.T) {
	t.Parallel()
	o := bare()
	o.Name = "prod"
	o.Users = []User{{Name: "reader", Groups: []string{"readers", "night shift"}}, {Name: "nobody"}}
	c := New(t, o)
	for name, test := range map[string]func(*testing.T, *Cluster){
		"users log in":                  testUsers,
		"audit has every request":       testAudit,
		"kubectl":                       testKubectl,
		"Until says what it saw":        testUntil,
		"MarkAvailable without any pod": testMarkAvailable,
	} {
		t.Run(name, func(t *testing.T) { test(t, c) })
	}
	// The last one: it leaves the cluster without its API server.
	t.Run("port taken", func(t *testing.T) { testPortTaken(t, c) })
}

func testUsers(t *testing.T, c *Cluster) {
	ctx := t.Context()
	err := c.Apply(ctx, `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: readers}
rules: [{apiGroups: [""], resources: [pods], verbs: [list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: readers}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: readers}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: night shift}]
`)
	if err != nil {
		t.Fatal(err)
	}
	for user, allowed := range map[string]func(error) bool{
		"admin":    func(err error) bool { return err == nil },
		"reader":   func(err error) bool { return err == nil },
		"nobody":   apierrors.IsForbidden,
		"stranger": apierrors.IsUnauthorized,
	} {
		file, err := c.KubeconfigFor(user)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := clientcmd.LoadFromFile(file)
		if err != nil || raw.CurrentContext != "prod" {
			t.Fatalf("%s: context %q, %v", user, raw.CurrentContext, err)
		}
		config, err := clientcmd.BuildConfigFromFlags("", file)
		if err != nil {
			t.Fatal(err)
		}
		mark := c.Mark()
		config.UserAgent = "as-" + user + "/1"
		cl, err := client.New(config, client.Options{})
		if err != nil && user != "stranger" {
			t.Fatal(err)
		}
		if err == nil {
			err = cl.List(ctx, &corev1.PodList{})
		}
		if !allowed(err) {
			t.Errorf("%s: %v", user, err)
		}
		events, err := c.Since(ctx, mark)
		if err != nil {
			t.Fatal(err)
		}
		if len(events.By("as-"+user+"/")) == 0 {
			t.Errorf("%s: no request in the audit log:\n%s", user, events)
		}
	}
}

// testAudit looks into the log the moment the last answer is there, many times.
func testAudit(t *testing.T, c *Cluster) {
	ctx := t.Context()
	config := c.Config()
	config.UserAgent = "counted/1"
	cl, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := cl.Get(ctx, client.ObjectKey{Name: "default"}, &corev1.Namespace{}); err != nil { // discovery
		t.Fatal(err)
	}
	for round := range 100 {
		mark := c.Mark()
		var work sync.WaitGroup
		for _, o := range [][]client.CreateOption{nil, {client.DryRunAll}} {
			work.Go(func() {
				cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "x-"}}
				if err := cl.Create(ctx, cm, o...); err != nil {
					t.Error(err)
				}
			})
		}
		for range 10 { // answered without a look at etcd, so as fast as can be
			work.Go(func() {
				if err := get(ctx, httpClient, c.URL()+"/version"); err != nil {
					t.Error(err)
				}
			})
		}
		work.Wait()
		events, err := c.Since(ctx, mark)
		if err != nil {
			t.Fatal(err)
		}
		mine := events.By("counted/")
		if len(mine) != 12 || len(mine.Mutating()) != 1 {
			t.Fatalf("round %d: %d requests, %d mutating; want 12 and 1:\n%s", round, len(mine), len(mine.Mutating()), mine)
		}
		for _, e := range mine {
			create := e.Code == 201 && e.Resource == "configmaps" && e.Namespace == "default"
			if e.User != "admin" || !create && (e.Code != 200 || e.URI != "/version") {
				t.Fatalf("event %+v", e)
			}
		}
	}
}

func testKubectl(t *testing.T, c *Cluster) {
	mark := c.Mark()
	cmd := exec.Command(c.Program("kubectl"), "version", "--output=json")
	cmd.Env = []string{"KUBECONFIG=" + c.Kubeconfig(), "HOME=" + t.TempDir()}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var version struct{ ClientVersion, ServerVersion struct{ GitVersion string } }
	if err := json.Unmarshal(out, &version); err != nil {
		t.Fatal(err)
	}
	// Unstamped, both call themselves v0.0.0.
	if v := version.ServerVersion.GitVersion; !strings.HasPrefix(v, "v1.") || v != version.ClientVersion.GitVersion {
		t.Errorf("versions %+v", version)
	}
	events, err := c.Since(t.Context(), mark)
	if err != nil {
		t.Fatal(err)
	}
	if got := events.By("kubectl/v1."); len(got) != 1 || got[0].URI != "/version?timeout=32s" || got[0].Resource != "" {
		t.Errorf("kubectl's requests:\n%s", got)
	}
}

func testUntil(t *testing.T, c *Cluster) {
	ctx, cancel := context.WithCancel(t.Context())
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	err := c.Until(ctx, ns, func() bool { cancel(); return false })
	if err == nil || !strings.Contains(err.Error(), "Namespace /default not as expected") || !strings.Contains(err.Error(), "Active") {
		t.Errorf("error %v, want the object and its last status", err)
	}
}

func testMarkAvailable(t *testing.T, c *Cluster) {
	ctx := t.Context()
	if err := c.Apply(ctx, deploymentYAML); err != nil {
		t.Fatal(err)
	}
	if err := c.MarkAvailable(ctx, "default", "web"); err != nil {
		t.Fatal(err)
	}
	var web appsv1.Deployment
	if err := c.Client().Get(ctx, client.ObjectKey{Namespace: "default", Name: "web"}, &web); err != nil {
		t.Fatal(err)
	}
	if !available(&web) || web.Status.AvailableReplicas != 2 {
		t.Errorf("status %+v", web.Status)
	}
}

// testPortTaken: the port that a component was to have is taken before it starts.
func testPortTaken(t *testing.T, c *Cluster) {
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	taken := other.Addr().(*net.TCPAddr).Port
	c.mu.Lock()
	c.ports[string(ControllerManager)+"/https"] = taken
	c.mu.Unlock()
	if err := c.Start(t.Context(), ControllerManager); err != nil {
		t.Fatal(err)
	}
	if c.port(ControllerManager, "https") == fmt.Sprint(taken) {
		t.Error("healthy on a port that is somebody else's")
	}
	// Once others may know its port, it has to be that one.
	c.Kill(APIServer)
	squatter, err := net.Listen("tcp", c.address(APIServer, "https"))
	if err != nil {
		t.Fatal(err)
	}
	defer squatter.Close()
	if err := c.Start(t.Context(), APIServer); !errors.Is(err, errClash) {
		t.Errorf("error %v, want that the port was taken", err)
	}
}
