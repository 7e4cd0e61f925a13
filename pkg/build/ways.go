// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

const (
	// dialTimeout bounds the direct way, name resolution included. From a
	// workstation the name usually does not resolve, and a resolver can take
	// long to say so.
	dialTimeout = 2 * time.Second
	// answerTimeout bounds the wait for the head of an answer.
	answerTimeout = 15 * time.Second
)

// location is where an artifact lies, as its source states it.
type location struct {
	url *url.URL
	// service and namespace are empty when the host names no Service.
	service, namespace string
	port               string
}

// parseLocation reads the URL of an artifact. source-controller writes
// http://source-controller.flux-system.svc.cluster.local./kind/ns/name/x.tar.gz
// (flag --storage-adv-addr).
func parseLocation(raw string) (location, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return location{}, fmt.Errorf("%w: its URL %q is not one of HTTP", ErrUnreachable, raw)
	}
	at := location{url: u, port: cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])}
	parts := strings.Split(strings.TrimSuffix(u.Hostname(), "."), ".")
	switch {
	case net.ParseIP(u.Hostname()) != nil:
	case len(parts) == 2, len(parts) > 2 && parts[2] == "svc":
		at.service, at.namespace = parts[0], parts[1]
	}
	return at, nil
}

// way is one way to an artifact.
type way struct {
	name string
	open func(context.Context) (io.ReadCloser, error)
	// wantsCertificate is set once the server asked for one.
	wantsCertificate *atomic.Bool
}

func (f *Fetcher) ways(at location) []way {
	ways := []way{f.direct(at)}
	if at.service == "" || f.cluster == nil {
		return ways
	}
	if f.core != nil {
		ways = append(ways, f.forward(at))
	}
	if at.url.Scheme == "http" {
		ways = append(ways, f.proxy(at))
	}
	return ways
}

func (f *Fetcher) direct(at location) way {
	w := way{name: "directly", wantsCertificate: &atomic.Bool{}}
	w.open = func(ctx context.Context) (io.ReadCloser, error) {
		return w.get(ctx, at, f.dial)
	}
	return w
}

func (f *Fetcher) forward(at location) way {
	w := way{name: "by port-forward", wantsCertificate: &atomic.Bool{}}
	w.open = func(ctx context.Context) (io.ReadCloser, error) {
		pod, port, err := f.backend(ctx, at)
		if err != nil {
			return nil, err
		}
		return w.get(ctx, at, func(ctx context.Context, _, _ string) (net.Conn, error) {
			return f.cluster.DialArtifact(ctx, at.namespace, pod, port)
		})
	}
	return w
}

func (f *Fetcher) proxy(at location) way {
	return way{name: "by the API server's service proxy", wantsCertificate: &atomic.Bool{}, open: func(ctx context.Context) (io.ReadCloser, error) {
		return f.cluster.GetArtifact(ctx, at.namespace, at.service, at.port, at.url.Path)
	}}
}

// get is a plain GET over connections that dial opens.
func (w way) get(ctx context.Context, at location, dial func(context.Context, string, string) (net.Conn, error)) (io.ReadCloser, error) {
	transport := &http.Transport{
		// No proxy: the name means something inside of the cluster alone, and
		// what a proxy answers for it is a page about that.
		DialContext: dial,
		// The digest decides: it came from the API server, and pins every
		// byte. Nothing secret is sent. So an authority that only the cluster
		// knows is no obstacle.
		TLSClientConfig: &tls.Config{
			InsecureSkipVerify: true, // as above
			MinVersion:         tls.VersionTLS12,
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				w.wantsCertificate.Store(true)
				return &tls.Certificate{}, nil // none
			},
		},
		TLSHandshakeTimeout:   answerTimeout,
		ResponseHeaderTimeout: answerTimeout,
		DisableCompression:    true, // the digest is of the archive as it is
		DisableKeepAlives:     true,
	}
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return errors.New("the answer is a redirect, which Flux's controllers never send")
	}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.url.String(), nil)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err // the URL is known
		}
		return nil, w.explain(err)
	}
	if response.StatusCode != http.StatusOK {
		_ = response.Body.Close() // of an error, which nobody reads
		if response.StatusCode == http.StatusNotFound {
			return nil, fmt.Errorf("%s does not have it any more; its source produces it again at its next reconcile", at.url.Host)
		}
		return nil, fmt.Errorf("%s answered %s", at.url.Host, response.Status)
	}
	return response.Body, nil
}

// explain says so when the reason is that the controllers know each other by
// certificates (Flux 2.10).
func (w way) explain(err error) error {
	if w.wantsCertificate.Load() && strings.Contains(err.Error(), "tls: ") {
		return fmt.Errorf("the server asks for a client certificate, which only Flux's controllers have (mTLS between the controllers is on); "+
			"build a working tree instead: %w", err)
	}
	return err
}

// backend is a pod behind the Service, and the port of it that the URL means.
func (f *Fetcher) backend(ctx context.Context, at location) (string, int, error) {
	service, err := f.core.Services(at.namespace).Get(ctx, at.service, metav1.GetOptions{})
	if err != nil {
		return "", 0, fmt.Errorf("service %s/%s: %w", at.namespace, at.service, err)
	}
	if len(service.Spec.Selector) == 0 {
		return "", 0, fmt.Errorf("service %s/%s selects no pods", at.namespace, at.service)
	}
	pods, err := f.core.Pods(at.namespace).List(ctx, metav1.ListOptions{
		LabelSelector: labels.SelectorFromSet(service.Spec.Selector).String(), Limit: 500,
	})
	if err != nil {
		return "", 0, fmt.Errorf("pods of service %s/%s: %w", at.namespace, at.service, err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if !isReady(pod) {
			continue
		}
		if port := targetPort(service, pod, at.port); port != 0 {
			return pod.Name, port, nil
		}
		return "", 0, fmt.Errorf("service %s/%s has no port %s that pod %s serves", at.namespace, at.service, at.port, pod.Name)
	}
	return "", 0, fmt.Errorf("service %s/%s: none of its %d pods is Ready; see kubectl get pods -n %s", at.namespace, at.service, len(pods.Items), at.namespace)
}

func isReady(pod *corev1.Pod) bool {
	if pod.DeletionTimestamp != nil {
		return false
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// targetPort is the port of the pod that the port of the Service leads to, or
// zero.
func targetPort(service *corev1.Service, pod *corev1.Pod, port string) int {
	for _, p := range service.Spec.Ports {
		if fmt.Sprint(p.Port) != port {
			continue
		}
		if p.TargetPort.StrVal == "" {
			return int(cmp.Or(p.TargetPort.IntVal, p.Port))
		}
		for _, container := range pod.Spec.Containers {
			for _, named := range container.Ports {
				if named.Name == p.TargetPort.StrVal {
					return int(named.ContainerPort)
				}
			}
		}
	}
	return 0
}
