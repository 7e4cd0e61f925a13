// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package cluster

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestTwoClusters start at once, know nothing of each other, and end each by itself.
func TestTwoClusters(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	var work sync.WaitGroup
	var clusters [2]*Cluster
	for i, o := range []Options{bare(), {Components: []Component{ControllerManager}}} {
		work.Go(func() {
			c, err := Start(ctx, o)
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(func() { _ = c.StopAll() })
			clusters[i] = c
			if err := c.Apply(ctx, configMapYAML(fmt.Sprint(i))); err != nil {
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
		uid, err := c.UID(ctx)
		if err != nil {
			t.Fatal(err)
		}
		uids[uid] = true
		var made corev1.ConfigMap
		if err := c.Client().Get(ctx, client.ObjectKey{Namespace: "default", Name: "made"}, &made); err != nil || made.Data["value"] != fmt.Sprint(i) {
			t.Errorf("cluster %d has %v: %v", i, made.Data, err)
		}
	}
	if len(uids) != 2 {
		t.Errorf("one UID for two clusters: %v", uids)
	}

	one, other := clusters[1], clusters[0]
	var pids []int
	for _, comp := range []Component{Etcd, APIServer, ControllerManager} {
		if !one.Running(comp) {
			t.Fatalf("%s does not run", comp)
		}
		pids = append(pids, one.process(comp).cmd.Process.Pid)
	}
	for range 2 { // the second time there is nothing left to do
		if err := one.StopAll(); err != nil {
			t.Error(err)
		}
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("process %d is still there: %v", pid, err)
		}
	}
	if _, err := os.Stat(one.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its files are still there: %v", err)
	}
	if _, err := other.UID(ctx); err != nil {
		t.Errorf("the other one: %v", err)
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
