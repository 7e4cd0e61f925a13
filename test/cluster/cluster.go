// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package cluster

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubestandup/kubestandup/test/cluster/internal/filelock"
	"github.com/kubestandup/kubestandup/test/cluster/programs"
)

// Cluster is a cluster that runs. Its methods may be called at the same time.
type Cluster struct {
	options  Options
	programs *programs.Set
	creds    *Credentials
	dir      string
	dirLock  *filelock.Lock
	spawner  *spawner
	probe    *http.Client // for health
	client   client.WithWatch
	git      *gitServer
	egress   *egress
	kubelet  *kubelet       // guarded by kubeletMu; nil until a pod is to run
	cdiTurn  *filelock.Lock // guarded by the lock of CDIOperator

	kubeletMu sync.Mutex
	mu        sync.Mutex // of all that follow
	processes map[Component]*process
	locks     map[Component]*sync.Mutex
	ports     map[string]int     // by component/purpose
	settled   map[Component]bool // their ports are not to change any more
	stopped   bool
}

// Config is a configuration of the administrator's, for tests and clients that
// are not themselves under test. Its User-Agent is "test".
func (c *Cluster) Config() *rest.Config {
	return &rest.Config{
		Host:            c.URL(),
		BearerToken:     c.creds.token(adminUser),
		TLSClientConfig: rest.TLSClientConfig{CAData: c.creds.ca},
		UserAgent:       userAgent,
		QPS:             -1,
		WarningHandler:  rest.NoWarnings{},
	}
}

// Client is the administrator's client. It knows the kinds of Kubernetes,
// CustomResourceDefinition and Flux as Go types; all others go as unstructured.
func (c *Cluster) Client() client.WithWatch { return c.client }

// Credentials may be given to another cluster, also after this one has stopped.
func (c *Cluster) Credentials() *Credentials { return c.creds }

// Port of the API server.
func (c *Cluster) Port() int {
	port, _ := strconv.Atoi(c.port(APIServer, "https"))
	return port
}

// URL of the API server.
func (c *Cluster) URL() string { return "https://" + c.address(APIServer, "https") }

// UID of the namespace kube-system, by which a cluster is known.
func (c *Cluster) UID(ctx context.Context) (string, error) {
	var ns corev1.Namespace
	if err := c.client.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, &ns); err != nil {
		return "", err
	}
	return string(ns.UID), nil
}

// Program is the file of one of the programs that are built, such as kubectl.
func (c *Cluster) Program(name string) string { return c.programs.Path(name) }

// Programs are all programs and manifests that are built.
func (c *Cluster) Programs() *programs.Set { return c.programs }

func (c *Cluster) file(elem ...string) string {
	return filepath.Join(append([]string{c.dir}, elem...)...)
}

// lock keeps two calls from starting or stopping one component at once.
func (c *Cluster) lock(comp Component) (unlock func()) {
	c.mu.Lock()
	if c.locks[comp] == nil {
		c.locks[comp] = &sync.Mutex{}
	}
	lock := c.locks[comp]
	c.mu.Unlock()
	lock.Lock()
	return lock.Unlock
}

func (c *Cluster) process(comp Component) *process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.processes[comp]
}

func (c *Cluster) setProcess(comp Component, p *process) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.processes[comp] = p
}

func (c *Cluster) settlePorts(comp Component) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settled[comp] = true
}

// forgetPorts lets a component take other ports. It refuses when somebody may
// know those it has.
func (c *Cluster) forgetPorts(comp Component) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.settled[comp] {
		return false
	}
	for key := range c.ports {
		if strings.HasPrefix(key, string(comp)+"/") {
			delete(c.ports, key)
		}
	}
	return true
}

// What a wait may take whose caller sets no deadline: long enough for a machine
// that has much else to do, short enough for a test that fails.
const (
	startDeadline = 10 * time.Minute
	waitDeadline  = 5 * time.Minute
)

// withDeadline gives ctx a deadline if it has none.
func withDeadline(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if _, has := ctx.Deadline(); has {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, d, fmt.Errorf("gave up after %s: %w", d, context.DeadlineExceeded))
}

func always() bool { return true }
