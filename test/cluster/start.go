// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kubestandup/kubestandup/test/cluster/programs"
)

// New starts a cluster for a test and stops it when the test ends. A program
// that is missing fails the test and names the command that brings it. When the
// test fails, the ends of all logs are in its output, and the whole logs in its
// artifact directory.
func New(t testing.TB, o Options) *Cluster {
	t.Helper()
	c, err := Start(t.Context(), o)
	if err != nil {
		t.Fatalf("cluster: %v", err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			c.reportLogs(t)
		}
		if err := c.StopAll(); err != nil {
			t.Errorf("cluster: %v", err)
		}
	})
	return c
}

// Start starts a cluster. The caller stops it with StopAll.
// The error is a *programs.MissingError when the programs are not built.
func Start(ctx context.Context, o Options) (_ *Cluster, err error) {
	o = o.withDefaults()
	set, err := programs.Find()
	if err != nil {
		return nil, err
	}
	creds := o.Credentials
	if creds == nil {
		if creds, err = NewCredentials(); err != nil {
			return nil, err
		}
	}
	c := &Cluster{
		options:  o,
		programs: set,
		creds:    creds,
		// Health is asked of a server of our own making on loopback. On a machine
		// that is busy an answer may take long, and is one all the same.
		probe:     &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}},
		spawner:   newSpawner(),
		processes: map[Component]*process{},
		locks:     map[Component]*sync.Mutex{},
		ports:     map[string]int{},
		settled:   map[Component]bool{},
	}
	if o.Port != 0 {
		c.ports[string(APIServer)+"/https"] = o.Port
		c.settled[APIServer] = true
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.StopAll())
		}
	}()
	if c.dir, c.dirLock, err = makeDir(); err != nil {
		return nil, err
	}
	if err := c.writeFiles(); err != nil {
		return nil, err
	}
	if c.git, err = newGitServer(c.file("git")); err != nil {
		return nil, err
	}
	if err := c.git.start(); err != nil {
		return nil, err
	}
	if c.egress, err = newEgress(c); err != nil {
		return nil, err
	}
	if err := c.startControlPlane(ctx); err != nil {
		return nil, err
	}
	return c, c.startRest(ctx)
}

// startControlPlane brings up etcd and the API server, and the client to it.
func (c *Cluster) startControlPlane(ctx context.Context) error {
	if err := c.Start(ctx, Etcd); err != nil {
		return err
	}
	if c.options.Port != 0 {
		if err := awaitFreePort(ctx, c.options.Port); err != nil {
			return err
		}
	}
	if err := c.Start(ctx, APIServer); err != nil {
		return err
	}
	// Only now is the port known for good, which a clash may have changed.
	if err := c.writeKubeconfig(adminUser); err != nil {
		return err
	}
	var err error
	if c.client, err = newClient(c.Config()); err != nil {
		return err
	}
	// The API server makes these two after it says that it is ready.
	for _, name := range []string{metav1.NamespaceSystem, metav1.NamespaceDefault} {
		if err := c.Until(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, always); err != nil {
			return err
		}
	}
	return nil
}

// startRest brings up everything that needs an API server, side by side.
func (c *Cluster) startRest(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	start := func(comp Component) { group.Go(func() error { return c.Start(ctx, comp) }) }
	var flux []Component
	for _, comp := range c.options.Components {
		switch comp {
		case SourceController, KustomizeController, HelmController:
			flux = append(flux, comp)
		case Etcd, APIServer, Git:
		default:
			start(comp)
		}
	}
	if c.options.Kubelet {
		if !slices.Contains(c.options.Components, ControllerManager) {
			return errors.New("kubelet: needs the controller manager, which makes the pods")
		}
		group.Go(func() error {
			k, err := c.startKubelet(ctx)
			if err != nil {
				return err
			}
			return k.runPods(ctx, metav1.NamespaceAll, labels.Everything())
		})
	}
	if c.options.needsFlux() {
		group.Go(func() error {
			if err := c.installFluxCRDs(ctx); err != nil {
				return err
			}
			for _, comp := range flux {
				start(comp)
			}
			if c.options.FluxDeployments {
				return c.installFluxDeployments(ctx)
			}
			return nil
		})
	}
	return group.Wait()
}

// StopAll ends everything the cluster started and removes its files. It may be
// called again.
func (c *Cluster) StopAll() error {
	c.mu.Lock()
	if c.stopped {
		c.mu.Unlock()
		return nil
	}
	c.stopped = true
	started := make([]Component, 0, len(c.processes))
	for comp := range c.processes {
		started = append(started, comp)
	}
	c.mu.Unlock()

	c.kubeletMu.Lock()
	if c.kubelet != nil {
		c.kubelet.stop()
	}
	c.kubeletMu.Unlock()
	// Nothing is kept, so nothing is asked to finish: the servers last, so that
	// the others do not fill their logs.
	started = ordered(started)
	slices.Reverse(started)
	c.Kill(started...)
	c.spawner.close()
	if c.egress != nil {
		c.egress.stop()
	}
	if c.git != nil {
		c.git.stop()
	}
	err := os.RemoveAll(c.dir)
	c.dirLock.Release()
	return err
}
