// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const (
	uidA = "aaaaaaaa-0000-4000-8000-000000000001"
	uidB = "bbbbbbbb-0000-4000-8000-000000000002"
)

// authority is a self-signed certificate for 127.0.0.1.
type authority struct {
	pem  []byte
	cert tls.Certificate
}

func newAuthority(t *testing.T, name string) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return authority{
		pem:  pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		cert: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key},
	}
}

// wire is an HTTPS server that answers like an API server as far as the
// transport can tell, and notes what arrives. It tests the transport alone;
// test/e2e holds the guard against real control planes.
type wire struct {
	*httptest.Server
	mu       sync.Mutex
	uid      string
	cert     tls.Certificate
	answer   func(http.ResponseWriter, *http.Request) bool
	arrived  []string
	auth     []string
	agents   []string
	identity int
}

func newWire(t *testing.T, ca authority, uid string) *wire {
	t.Helper()
	w := &wire{uid: uid, cert: ca.cert}
	w.Server = httptest.NewUnstartedServer(w)
	w.Server.Config.ErrorLog = log.New(io.Discard, "", 0) // handshakes fail on purpose
	w.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		return &tls.Config{Certificates: []tls.Certificate{w.cert}, NextProtos: []string{"http/1.1"}}, nil
	}}
	w.StartTLS()
	t.Cleanup(w.Close)
	return w
}

func (w *wire) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	uid, answer := w.uid, w.answer
	line := r.Method + " " + r.URL.RequestURI()
	w.arrived = append(w.arrived, line)
	w.auth = append(w.auth, r.Header.Get("Authorization"))
	w.agents = append(w.agents, r.Header.Get("User-Agent"))
	if strings.HasPrefix(line, "GET /api/v1/namespaces/kube-system") {
		w.identity++
	}
	w.mu.Unlock()
	if answer != nil && answer(rw, r) {
		return
	}
	rw.Header().Set("Content-Type", "application/json")
	object := fmt.Sprintf(`{"metadata":{"name":"kube-system","uid":%q}`, uid)
	switch {
	case strings.HasPrefix(line, "GET /api/v1/namespaces/kube-system"):
		_, _ = io.WriteString(rw, `{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata",`+object[1:]+`}`)
	case strings.HasPrefix(line, "GET /api/v1/namespaces?"):
		_, _ = io.WriteString(rw, `{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadataList","items":[`+
			`{"metadata":{"name":"default","uid":"no"}},`+object+`}]}`)
	default:
		_, _ = io.WriteString(rw, `{"apiVersion":"v1","kind":"Status","status":"Success"}`)
	}
}

func (w *wire) become(uid string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.uid = uid
}

// present changes the certificate and cuts the connections that knew the old
// one, as a restart would.
func (w *wire) present(ca authority) {
	w.mu.Lock()
	w.cert = ca.cert
	w.mu.Unlock()
	w.CloseClientConnections()
}

func (w *wire) respond(f func(http.ResponseWriter, *http.Request) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answer = f
}

// mutations are the requests that arrived and are no reads.
func (w *wire) mutations() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var found []string
	for _, line := range w.arrived {
		if !strings.HasPrefix(line, "GET ") {
			found = append(found, line)
		}
	}
	return found
}

func (w *wire) requests() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.arrived...)
}

func (w *wire) looks() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.identity
}

// refuse answers as the API server does.
func refuseWith(rw http.ResponseWriter, code int, reason string) {
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(code)
	_, _ = fmt.Fprintf(rw, `{"apiVersion":"v1","kind":"Status","status":"Failure","reason":%q,"code":%d,"message":"namespaces \"kube-system\" is %s"}`,
		reason, code, strings.ToLower(reason))
}

// kubeconfig writes one with the context "prod" and returns kubectl's flags
// for it.
func kubeconfig(t *testing.T, server string, ca []byte, change ...func(*clientcmdapi.Config)) *genericclioptions.ConfigFlags {
	t.Helper()
	c := clientcmdapi.NewConfig()
	c.Clusters["c"] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: ca}
	c.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: "s3cret-token"}
	c.Contexts["prod"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u", Namespace: "apps"}
	c.CurrentContext = "prod"
	for _, f := range change {
		f(c)
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*c, path); err != nil {
		t.Fatal(err)
	}
	flags := genericclioptions.NewConfigFlags(true)
	*flags.KubeConfig = path
	return flags
}

func rewrite(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// clock is a time that tests move.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2026, 10, 1, 2, 0, 0, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func connect(t *testing.T, flags *genericclioptions.ConfigFlags, c *clock) *Server {
	t.Helper()
	o := Options{UserAgent: "kubectl-standup/v0.0.0-test"}
	if c != nil {
		o.Now = c.Now
	}
	s, err := Connect(flags, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.CloseIdleConnections)
	return s
}

func equalLines(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\n%s\nwant:\n%s", what, got, want)
	}
}
