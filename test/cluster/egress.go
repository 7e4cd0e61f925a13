// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package cluster

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// egressConfig makes the API server ask a proxy for every connection into the
// cluster: to webhooks, aggregated servers and pods. That is the mechanism made
// for control planes that are not part of the cluster's network, as this one is.
const egressConfig = `apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection:
    proxyProtocol: HTTPConnect
    transport:
      uds:
        udsName: %q
`

// egress is that proxy. It connects to a Service or Pod that a component of this
// cluster is behind, and refuses all else at once, where a network would be
// silent for half a minute.
type egress struct {
	cluster *Cluster
	server  *http.Server

	mu    sync.Mutex
	conns map[net.Conn]bool // taken over from the server: closed by stop
}

func (c *Cluster) egressSocket() string { return c.file("egress") }

func newEgress(c *Cluster) (*egress, error) {
	listener, err := net.Listen("unix", c.egressSocket())
	if err != nil {
		return nil, err
	}
	e := &egress{cluster: c, conns: map[net.Conn]bool{}}
	e.server = &http.Server{Handler: e, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = e.server.Serve(listener) }() // ends with stop
	return e, nil
}

func (e *egress) stop() {
	_ = e.server.Close()
	e.mu.Lock()
	defer e.mu.Unlock()
	for conn := range e.conns {
		conn.Close()
	}
}

func (e *egress) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect {
		http.Error(w, "only CONNECT", http.StatusMethodNotAllowed)
		return
	}
	address, err := e.cluster.resolve(r.Context(), r.Host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	backend, err := net.Dial("tcp", address)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		backend.Close()
		return
	}
	fmt.Fprint(conn, "HTTP/1.1 200 OK\r\n\r\n")
	e.join(conn, backend)
}

// join copies both ways until one side ends.
func (e *egress) join(a, b net.Conn) {
	e.mu.Lock()
	e.conns[a], e.conns[b] = true, true
	e.mu.Unlock()
	var once sync.Once
	end := func() {
		once.Do(func() {
			a.Close()
			b.Close()
			e.mu.Lock()
			defer e.mu.Unlock()
			delete(e.conns, a)
			delete(e.conns, b)
		})
	}
	for _, pair := range [][2]net.Conn{{a, b}, {b, a}} {
		go func() {
			defer end()
			_, _ = io.Copy(pair[0], pair[1]) // an error is an end like any other
		}()
	}
}

// resolve finds the component behind a cluster address host:port.
func (c *Cluster) resolve(ctx context.Context, hostPort string) (string, error) {
	host, _, err := net.SplitHostPort(hostPort)
	if err != nil {
		return "", err
	}
	var services corev1.ServiceList
	if err := c.client.List(ctx, &services); err != nil {
		return "", err
	}
	for _, s := range services.Items {
		if s.Spec.ClusterIP == host {
			return c.behind(s.Namespace, s.Spec.Selector)
		}
	}
	var pods corev1.PodList
	if err := c.client.List(ctx, &pods); err != nil {
		return "", err
	}
	for _, p := range pods.Items {
		if p.Status.PodIP == host {
			return c.behind(p.Namespace, p.Labels)
		}
	}
	return "", fmt.Errorf("no service or pod has the address %s", host)
}

// behind is the address of the component that pods with these labels stand for.
func (c *Cluster) behind(namespace string, labels map[string]string) (string, error) {
	switch {
	case namespace == cdiNamespace && labels["cdi.kubevirt.io"] == string(CDIAPIServer) && c.Running(CDIAPIServer):
		return c.address(CDIAPIServer, "https"), nil
	case namespace == FluxNamespace && labels["app"] == string(SourceController) && c.Running(SourceController):
		return c.address(SourceController, "storage"), nil
	}
	return "", fmt.Errorf("no process of this cluster is behind %s %v", namespace, labels)
}
