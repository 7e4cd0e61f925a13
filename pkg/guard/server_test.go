// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/client-go/transport/websocket"
)

func TestConfigCarriesNoCredentials(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t, "a")
	w := newWire(t, ca, uidA)
	c := connect(t, kubeconfig(t, w.URL, ca.pem), nil).Config()
	if c.BearerToken != "" || c.CAData != nil || c.TLSClientConfig.KeyData != nil || c.ExecProvider != nil || c.AuthProvider != nil {
		t.Errorf("config holds credentials: %v", c)
	}
	if c.QPS != 50 || c.Burst != 300 || c.UserAgent != "kubectl-standup/v0.0.0-test" {
		t.Errorf("got %v, %v, %q", c.QPS, c.Burst, c.UserAgent)
	}
	server := connect(t, kubeconfig(t, w.URL, ca.pem), nil)
	if one, other := server.Config(), server.Config(); one == other {
		t.Error("two callers share one config")
	}
}

// A copy of the config that was changed, by us or by a library, sends nothing
// that the guard would not, and no credentials.
func TestChangedConfigs(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t, "a")
	w := newWire(t, ca, uidA)
	own, err := rest.TransportFor(&rest.Config{TLSClientConfig: rest.TLSClientConfig{CAData: ca.pem}})
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*rest.Config) *rest.Config{
		"as it is": func(c *rest.Config) *rest.Config { return c },
		"copied":   rest.CopyConfig,
		"wrapped": func(c *rest.Config) *rest.Config {
			c.Wrap(func(rt http.RoundTripper) http.RoundTripper { return rt })
			return c
		},
		"without the wrapper": func(c *rest.Config) *rest.Config { c.WrapTransport = nil; return c },
		"another transport":   func(c *rest.Config) *rest.Config { c.Transport = own; return c },
		"impersonating": func(c *rest.Config) *rest.Config {
			c.Impersonate.UserName = "system:admin"
			return c
		},
		"with a token": func(c *rest.Config) *rest.Config { c.BearerToken = "x"; return c },
	} {
		t.Run(name, func(t *testing.T) {
			s := connect(t, kubeconfig(t, w.URL, ca.pem), nil)
			client, err := kubernetes.NewForConfig(change(s.Config()))
			if err != nil {
				t.Fatal(err)
			}
			wantRefused(t, client.CoreV1().ConfigMaps("x").Delete(t.Context(), "c", metav1.DeleteOptions{}), "is not proved")
		})
	}
	t.Run("without anything", func(t *testing.T) {
		s := connect(t, kubeconfig(t, w.URL, ca.pem), nil)
		for name, c := range map[string]*rest.Config{
			"anonymous": rest.AnonymousClientConfig(s.Config()),
			"neither":   {Host: s.Config().Host, APIPath: s.Config().APIPath},
		} {
			client, err := kubernetes.NewForConfig(c)
			if err != nil {
				t.Fatal(err)
			}
			if err := client.CoreV1().ConfigMaps("x").Delete(t.Context(), "c", metav1.DeleteOptions{}); err == nil {
				t.Errorf("%s: it was sent", name)
			}
		}
	})
	t.Run("another transport, proved", func(t *testing.T) {
		s := connect(t, kubeconfig(t, w.URL, ca.pem), nil)
		if err := s.Prove(t.Context(), Expectation{Server: w.URL}); err != nil {
			t.Fatal(err)
		}
		c := s.Config()
		c.Transport = own
		client, err := kubernetes.NewForConfig(c)
		if err != nil {
			t.Fatal(err)
		}
		err = client.CoreV1().ConfigMaps("x").Delete(t.Context(), "c", metav1.DeleteOptions{})
		if err == nil || !strings.Contains(err.Error(), "make clients from Server.Config alone") {
			t.Errorf("got %v", err)
		}
	})
	wantMutations(t, w, 0)
}

func TestUpgradesAreRefused(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t, "a")
	w := newWire(t, ca, uidA)
	s := connect(t, kubeconfig(t, w.URL, ca.pem), nil)
	overSPDY, _, err := spdy.RoundTripperFor(s.Config())
	if err != nil {
		t.Fatal(err)
	}
	overWebSocket, _, err := websocket.RoundTripperFor(s.Config())
	if err != nil {
		t.Fatal(err)
	}
	for name, rt := range map[string]http.RoundTripper{"spdy": overSPDY, "websocket": overWebSocket} {
		for _, sub := range []string{"exec", "attach", "portforward"} {
			r := request(t, http.MethodGet, w.URL+"/api/v1/namespaces/x/pods/p/"+sub)
			r.Header.Set("Upgrade", name)
			_, err := rt.RoundTrip(r)
			wantRefused(t, err, "get of pods/"+sub+" x/p was refused")
		}
		// Not even a path that is harmless, once it is upgraded.
		r := request(t, http.MethodGet, w.URL+"/api/v1/pods")
		r.Header.Set("Connection", "Upgrade")
		_, err := rt.RoundTrip(r)
		wantRefused(t, err, "list of pods was refused")
	}
	if got := w.requests(); len(got) != 0 {
		t.Errorf("%q arrived", got)
	}
}

func TestRedirects(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t, "a")
	w, other := newWire(t, ca, uidA), newWire(t, ca, uidB)
	for name, tt := range map[string]struct {
		to, want string
	}{
		"to another server":   {other.URL + "/api/v1/namespaces", "it is for another server than " + w.URL},
		"to a sub-resource":   {"/api/v1/nodes/n/proxy", "is not proved"},
		"to an odd path":      {"/api/v1/namespaces/x/..%2f..%2fnodes", "its path can be read in two ways"},
		"to another protocol": {strings.Replace(w.URL, "https", "http", 1) + "/api/v1/namespaces", "it is for another server than " + w.URL},
	} {
		t.Run(name, func(t *testing.T) {
			s := connect(t, kubeconfig(t, w.URL, ca.pem), nil)
			w.respond(func(rw http.ResponseWriter, r *http.Request) bool {
				http.Redirect(rw, r, tt.to, http.StatusTemporaryRedirect)
				return true
			})
			client, err := kubernetes.NewForConfig(s.Config())
			if err != nil {
				t.Fatal(err)
			}
			_, err = client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
			wantRefused(t, err, tt.want)
			// A question that is answered with "ask there" is asked nowhere else.
			_, err = client.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), &authorizationv1.SelfSubjectAccessReview{}, metav1.CreateOptions{})
			wantRefused(t, err, tt.want)
		})
	}
	if got := other.requests(); len(got) != 0 {
		t.Errorf("%q arrived at the other server with %q", got, other.auth)
	}
}

// Everything that the connection needs is read at the start: what happens to
// the files later does not move it.
func TestLaterEditsDoNotMove(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t, "a")
	w, other := newWire(t, ca, uidA), newWire(t, newAuthority(t, "other"), uidB)
	dir := t.TempDir()
	caFile := dir + "/ca.crt"
	rewrite(t, caFile, string(ca.pem))
	flags := kubeconfig(t, w.URL, nil, func(c *clientcmdapi.Config) { c.Clusters["c"].CertificateAuthority = caFile })
	s := connect(t, flags, newClock())
	rewrite(t, caFile, "garbage")
	edited, err := os.ReadFile(*flags.KubeConfig)
	if err != nil {
		t.Fatal(err)
	}
	rewrite(t, *flags.KubeConfig, strings.ReplaceAll(string(edited), w.URL, other.URL))
	if err := s.Prove(t.Context(), Expectation{Server: w.URL, UID: uidA}); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(*flags.KubeConfig); err != nil {
		t.Fatal(err)
	}
	if err := patch(t, s); err != nil {
		t.Fatal(err)
	}
	wantMutations(t, w, 1)
	if got := other.requests(); len(got) != 0 {
		t.Errorf("%q arrived at the other server", got)
	}
}

func TestNamespaceAndContext(t *testing.T) {
	t.Parallel()
	flags := kubeconfig(t, "https://h:6443", nil)
	s := connect(t, flags, nil)
	if ns, explicit := s.Namespace(); ns != "apps" || explicit || s.Context() != "prod" || s.URL() != "https://h:6443" {
		t.Errorf("got %q, %v, %q, %q", ns, explicit, s.Context(), s.URL())
	}
	*flags.Namespace = "flux-system"
	if ns, explicit := connect(t, flags, nil).Namespace(); ns != "flux-system" || !explicit {
		t.Errorf("got %q, %v", ns, explicit)
	}
}

func TestErrorsReachTheShell(t *testing.T) {
	t.Parallel()
	for _, err := range []error{&MismatchError{}, &UnprovedError{}, &RefusedError{}, &ConflictError{}} {
		if exitCode(errors.Join(errors.New("x"), err)) != 5 {
			t.Errorf("%T: exit %d", err, exitCode(err))
		}
	}
	err := &ConflictError{
		First:  Expectation{Server: "https://a", UID: "u", Origin: "--expect-server"},
		Second: Expectation{Server: "https://b", Origin: "standup.yaml:2:11"},
	}
	equalLines(t, "message", err.Error(), `server expected twice, and differently, so nothing was done: make the two agree
           expected          and also
  server   https://a         https://b
  uid      u                 
  from     --expect-server   standup.yaml:2:11
`)
}
