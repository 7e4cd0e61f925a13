// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package cluster

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// bare is a control plane without anything on top.
func bare() Options { return Options{Components: []Component{}} }

func configMapYAML(value string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: made\n  namespace: default\ndata:\n  value: %q\n", value)
}

// TestFlux walks once through what most tests will do.
func TestFlux(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c := New(t, Options{})

	revision, err := c.Push(ctx, "fleet", Files{"root/made.yaml": configMapYAML("one")}, "first")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.InstallRoot(ctx, Root{Repo: "fleet", Path: "root"}); err != nil {
		t.Fatal(err)
	}
	repo := &sourcev1.GitRepository{ObjectMeta: metav1.ObjectMeta{Namespace: FluxNamespace, Name: "flux-system"}}
	if err := c.Until(ctx, repo, func() bool { return repo.Status.Artifact != nil }); err != nil {
		t.Fatal(err)
	}
	if repo.Status.Artifact.Revision != revision {
		t.Errorf("revision %q, pushed %q", repo.Status.Artifact.Revision, revision)
	}
	made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "made"}}
	if err := c.Until(ctx, made, func() bool { return made.Data["value"] == "one" }); err != nil {
		t.Fatal(err)
	}
	untilApplied(t, c, revision)

	t.Run("audit", func(t *testing.T) {
		events, err := c.Audit(ctx)
		if err != nil {
			t.Fatal(err)
		}
		applied := events.By("kustomize-controller/").Mutating().Where(func(e Event) bool { return e.Resource == "configmaps" })
		if len(applied) != 1 || applied[0].Verb != "patch" || applied[0].Code/100 != 2 {
			t.Errorf("the ConfigMap was applied once:\n%s", applied)
		}
		dry := events.By("kustomize-controller/").Where(func(e Event) bool { return e.Resource == "configmaps" && e.DryRun() })
		if len(dry) == 0 {
			t.Error("the server-side dry run is not in the log")
		}
	})

	t.Run("restart of the API server and etcd", func(t *testing.T) {
		if err := c.Restart(ctx, APIServer, Etcd); err != nil {
			t.Fatal(err)
		}
		next, err := c.Push(ctx, "fleet", Files{"root/made.yaml": configMapYAML("two")}, "second")
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Sync(ctx, "flux-system", next); err != nil {
			t.Fatal(err)
		}
		if err := c.Until(ctx, made, func() bool { return made.Data["value"] == "two" }); err != nil {
			t.Fatal(err)
		}
	})

	t.Run("controller stopped", func(t *testing.T) {
		if err := c.Stop(ctx, KustomizeController); err != nil {
			t.Fatal(err)
		}
		next, err := c.Push(ctx, "fleet", Files{"root/made.yaml": configMapYAML("three")}, "third")
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Sync(ctx, "flux-system", next); err != nil {
			t.Fatal(err)
		}
		if err := c.Client().Get(ctx, client.ObjectKeyFromObject(made), made); err != nil || made.Data["value"] != "two" {
			t.Errorf("applied with no controller: %v, %v", made.Data, err)
		}
		if err := c.Start(ctx, KustomizeController); err != nil {
			t.Fatal(err)
		}
		untilApplied(t, c, next)
	})

	t.Run("namespaces end", func(t *testing.T) { // which takes the controller manager
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "passing"}}
		if err := c.Client().Create(ctx, ns); err != nil {
			t.Fatal(err)
		}
		if err := c.Client().Delete(ctx, ns); err != nil {
			t.Fatal(err)
		}
		if err := c.UntilGone(ctx, ns); err != nil {
			t.Fatal(err)
		}
	})
}

func TestHelm(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c := New(t, Options{Components: []Component{SourceController, HelmController}})
	_, err := c.Push(ctx, "charts", Files{
		"demo/Chart.yaml":          "apiVersion: v2\nname: demo\nversion: 0.1.0\n",
		"demo/templates/made.yaml": configMapYAML("{{ .Values.value }}"),
	}, "first")
	if err != nil {
		t.Fatal(err)
	}
	err = c.Apply(ctx, fmt.Sprintf(`
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: charts, namespace: default}
spec: {interval: 1h, url: %q, ref: {branch: main}}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: demo, namespace: default}
spec:
  interval: 1h
  chart: {spec: {chart: ./demo, sourceRef: {kind: GitRepository, name: charts}}}
  values: {value: from the release}
`, c.RepoURL("charts")))
	if err != nil {
		t.Fatal(err)
	}
	made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "made"}}
	if err := c.Until(ctx, made, func() bool { return made.Data["value"] == "from the release" }); err != nil {
		t.Fatal(err)
	}
}

func untilApplied(t *testing.T, c *Cluster, revision string) {
	t.Helper()
	ks := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: FluxNamespace, Name: "flux-system"}}
	if err := c.Until(t.Context(), ks, func() bool { return ks.Status.LastAppliedRevision == revision }); err != nil {
		t.Fatal(err)
	}
}

func TestTwoClustersAtOnce(t *testing.T) {
	t.Parallel()
	var work sync.WaitGroup
	var clusters [2]*Cluster
	for i := range clusters {
		work.Go(func() {
			c, err := Start(t.Context(), bare())
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(func() { _ = c.StopAll() })
			clusters[i] = c
			err = c.Apply(t.Context(), configMapYAML(fmt.Sprint(i)))
			if err != nil {
				t.Error(err)
			}
		})
	}
	work.Wait()
	if t.Failed() {
		return
	}
	uids := map[string]bool{}
	for i, c := range clusters {
		uid, err := c.UID(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		uids[uid] = true
		var made corev1.ConfigMap
		if err := c.Client().Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "made"}, &made); err != nil || made.Data["value"] != fmt.Sprint(i) {
			t.Errorf("cluster %d has %v: %v", i, made.Data, err)
		}
	}
	if len(uids) != 2 {
		t.Errorf("one UID for two clusters: %v", uids)
	}
}

// TestOtherClusterOnTheSamePort is what the guard must notice.
func TestOtherClusterOnTheSamePort(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	first := New(t, bare())
	uid, err := first.UID(ctx)
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", first.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	get := func() (string, error) {
		var ns corev1.Namespace
		cl, err := client.New(config, client.Options{})
		if err == nil {
			err = cl.Get(ctx, client.ObjectKey{Name: "kube-system"}, &ns)
		}
		return string(ns.UID), err
	}
	first.Kill(APIServer)

	o := bare()
	o.Port, o.Credentials = first.Port(), first.Credentials()
	same := New(t, o)
	if got, err := get(); err != nil || got == uid {
		t.Errorf("same CA: UID %s, first %s, %v; want to be let in and to find another UID", got, uid, err)
	}
	same.Kill(APIServer)

	o.Credentials = nil
	New(t, o)
	var unknown x509.UnknownAuthorityError
	if _, err := get(); !errors.As(err, &unknown) {
		t.Errorf("other CA: %v, want an unknown authority", err)
	}
}

func TestUsers(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	o := bare()
	o.Users = []User{{Name: "reader", Groups: []string{"readers", "night shift"}}, {Name: "nobody"}}
	o.Name = "prod"
	c := New(t, o)
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

// TestAuditHasEveryRequest looks into the log the moment the last answer is
// there, many times.
func TestAuditHasEveryRequest(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c := New(t, bare())
	config := c.Config()
	config.UserAgent = "counted/1"
	cl, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := cl.Get(ctx, client.ObjectKey{Name: "default"}, &corev1.Namespace{}); err != nil { // discovery
		t.Fatal(err)
	}
	for round := range 20 {
		mark := c.Mark()
		var work sync.WaitGroup
		for i := range 10 {
			work.Go(func() {
				cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "x-"}}
				var o []client.CreateOption
				if i%2 == 1 {
					o = append(o, client.DryRunAll)
				}
				if err := cl.Create(ctx, cm, o...); err != nil {
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
		if len(mine) != 10 || len(mine.Mutating()) != 5 {
			t.Fatalf("round %d: %d requests, %d mutating; want 10 and 5:\n%s", round, len(mine), len(mine.Mutating()), mine)
		}
		for _, e := range mine {
			if e.Code != 201 || e.User != "admin" || e.Resource != "configmaps" || e.Namespace != "default" {
				t.Fatalf("event %+v", e)
			}
		}
	}
}

func TestStopLeavesNothing(t *testing.T) {
	t.Parallel()
	c, err := Start(t.Context(), Options{Components: []Component{ControllerManager}})
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, comp := range []Component{Etcd, APIServer, ControllerManager} {
		if !c.Running(comp) {
			t.Errorf("%s does not run", comp)
			continue
		}
		pids = append(pids, c.process(comp).cmd.Process.Pid)
	}
	dir := c.dir
	if err := c.StopAll(); err != nil {
		t.Error(err)
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("process %d is still there: %v", pid, err)
		}
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its files are still there: %v", err)
	}
	if err := c.StopAll(); err != nil {
		t.Errorf("stopped twice: %v", err)
	}
}

// TestKilledParent kills a process that holds a cluster, as a timeout of go test
// or a machine short of memory does.
func TestKilledParent(t *testing.T) {
	if os.Getenv("CLUSTER_TEST_CHILD") != "" {
		c, err := Start(t.Context(), bare())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("\nPIDS %d %d %s\n", c.process(Etcd).cmd.Process.Pid, c.process(APIServer).cmd.Process.Pid, c.dir)
		select {} // until killed
	}
	if runtime.GOOS != "linux" {
		return // only Linux ties the life of a child to its parent's
	}
	t.Parallel()
	child := exec.Command(os.Args[0], "-test.run=^TestKilledParent$")
	child.Env = append(os.Environ(), "CLUSTER_TEST_CHILD=1")
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	var etcd, apiServer int
	var dir string
	buffer := make([]byte, 4096)
	text := ""
	for dir == "" {
		n, err := out.Read(buffer)
		text += string(buffer[:n])
		if _, after, found := strings.Cut(text, "\nPIDS "); found && strings.Contains(after, "\n") {
			if _, err := fmt.Sscanf(after, "%d %d %s", &etcd, &apiServer, &dir); err != nil {
				t.Fatal(err)
			}
		} else if err != nil {
			t.Fatalf("child ended: %v\n%s", err, text)
		}
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, pid := range []int{etcd, apiServer} {
		for !dead(pid) {
			if ctx.Err() != nil {
				t.Fatalf("process %d outlived its parent", pid)
			}
			runtime.Gosched()
		}
	}
	made, lock, err := makeDir()
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(made)
	defer lock.Release()
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the next cluster did not clear %s away: %v", dir, err)
	}
}

// dead tells whether a process has ended, be it that nobody has waited for it yet.
func dead(pid int) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", fmt.Sprint(pid), "stat"))
	return err != nil || strings.Contains(string(stat), ") Z ")
}

// TestPortTaken: the port that a component was to have is taken before it starts.
func TestPortTaken(t *testing.T) {
	t.Parallel()
	c := New(t, bare())
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

func TestKubectl(t *testing.T) {
	t.Parallel()
	c := New(t, bare())
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

func TestUntilSaysWhatItSaw(t *testing.T) {
	t.Parallel()
	c := New(t, bare())
	ctx, cancel := context.WithCancel(t.Context())
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	err := c.Until(ctx, ns, func() bool { cancel(); return false })
	if err == nil || !strings.Contains(err.Error(), "Namespace /default not as expected") || !strings.Contains(err.Error(), "Active") {
		t.Errorf("error %v, want the object and its last status", err)
	}
}
