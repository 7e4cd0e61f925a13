// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package util

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kubestandup/kubestandup/pkg/guard"
)

func TestExitCode(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want int
	}{
		"none":                        {nil, 0},
		"any":                         {errBoom, 1},
		"chosen":                      {Exit(ExitDeadline, errBoom), 4},
		"chosen and wrapped":          {fmt.Errorf("apps: %w", Exit(ExitDeadline, errBoom)), 4},
		"chosen for an interruption":  {Exit(ExitRefused, context.Canceled), 6},
		"the outermost choice":        {Exit(ExitRefused, Exit(ExitDeadline, errBoom)), 6},
		"nothing stays nothing":       {Exit(ExitDeadline, nil), 0},
		"silent":                      {Silent(ExitNotReady), 3},
		"silent and done":             {Silent(ExitDone), 0},
		"interrupted":                 {fmt.Errorf("apps: %w", context.Canceled), 130},
		"usage":                       {UsageError(errBoom), 2},
		"the guard's, below the wire": {&url.Error{Op: "Post", URL: "https://a", Err: &guard.RefusedError{}}, 5},
		"one of several":              {errors.Join(errBoom, Exit(ExitDeadline, errBoom)), 4},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ExitCode(tc.err); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

func TestMessage(t *testing.T) {
	ks := schema.GroupResource{Group: "kustomize.toolkit.fluxcd.io", Resource: "kustomizations"}
	post := func(err error) error {
		return &url.Error{Op: "Post", URL: "https://api.example.org:6443/api/v1/namespaces?limit=500", Err: err}
	}
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"none":          {nil, ""},
		"silent":        {Silent(3), ""},
		"ours":          {Exit(4, fmt.Errorf("apps: %w", errBoom)), "apps: kustomization apps: boom"},
		"hostile":       {errors.New("apps: \x1b[2Jgone"), "apps: ^[[2Jgone"},
		"several":       {errors.Join(errBoom, Silent(3), errors.New("more")), "kustomization apps: boom\nmore"},
		"an aggregate":  {utilerrors.NewAggregate([]error{errBoom, errors.New("more")}), "kustomization apps: boom\nmore"},
		"two in one":    {fmt.Errorf("a %w and b %w", errBoom, io.EOF), "a kustomization apps: boom and b EOF"},
		"the subject":   {fmt.Errorf("tier apps: %w", apierrors.NewConflict(ks, "apps", errors.New("too old"))), `tier apps: Operation cannot be fulfilled on kustomizations.kustomize.toolkit.fluxcd.io "apps": too old: it changed in the meantime, so run the command again`},
		"not found":     {apierrors.NewNotFound(ks, "apps"), `kustomizations.kustomize.toolkit.fluxcd.io "apps" not found`},
		"interrupted":   {context.Canceled, "interrupted: nothing more was started, and the same command can be run again"},
		"a closed pipe": {&fs.PathError{Op: "write", Path: os.Stdout.Name(), Err: syscall.EPIPE}, ""},
		"a broken connection is no closed pipe": {
			&fs.PathError{Op: "write", Path: "/tmp/report", Err: syscall.EPIPE}, "write /tmp/report: broken pipe",
		},
		"unauthorized": {
			apierrors.NewUnauthorized("Unauthorized"),
			"server does not accept these credentials (Unauthorized): log in again, or choose another user with --context or --user",
		},
		"forbidden": {
			apierrors.NewForbidden(ks, "", errors.New(`User "jane" cannot list`)),
			`kustomizations.kustomize.toolkit.fluxcd.io is forbidden: User "jane" cannot list: ask for that permission, or choose another user with --context or --as`,
		},
		"no such API": {
			&apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonNotFound, Message: "the server could not find the requested resource"}},
			"server does not serve what was asked for (the server could not find the requested resource): see what it serves with kubectl api-resources",
		},
		"invalid": {
			apierrors.NewInvalid(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "web", field.ErrorList{
				field.Required(field.NewPath("spec", "template"), "say what to run"),
				field.Invalid(field.NewPath("spec", "replicas"), -1, "must not be negative"),
			}),
			"Deployment web is not valid, says the server:\n" +
				"  spec.template: Required value: say what to run\n" +
				"  spec.replicas: Invalid value: -1: must not be negative",
		},
		"timeout": {
			apierrors.NewTimeoutError("request did not complete", 3),
			"server took too long: Timeout: request did not complete: run the command again",
		},
		"too many requests": {
			apierrors.NewTooManyRequests("slow down", 7),
			"server has too many requests (slow down): run the command again in 7 s",
		},
		"failed": {
			apierrors.NewInternalError(errors.New("etcd is gone")),
			"server failed: Internal error occurred: etcd is gone: run the command again, and if that does not help, read the API server's log",
		},
		"no kind": {
			&meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "kustomize.toolkit.fluxcd.io", Kind: "Kustomization"}},
			"server does not serve kind Kustomization.kustomize.toolkit.fluxcd.io: its CustomResourceDefinition is not installed, or not in a version that is known here; see what it serves with kubectl api-resources",
		},
		"a word of the guard below the wire": {
			fmt.Errorf("nudge apps: %w", post(&guard.RefusedError{Verb: "patch", Resource: "kustomizations", Namespace: "flux-system", Name: "apps", Reason: "the server is not proved"})),
			"nudge apps: patch of kustomizations flux-system/apps was refused and not sent: the server is not proved",
		},
		"interrupted on the wire": {
			post(context.Canceled),
			"server api.example.org:6443 was being asked when the command was interrupted: the same command can be run again",
		},
		"a proxy that does not answer": {
			post(&net.OpError{Op: "proxyconnect", Err: errors.New("dial tcp: refused")}),
			"server api.example.org:6443 was not reached, since its proxy does not answer: dial tcp: refused: check --proxy-url and HTTPS_PROXY",
		},
		"no such host": {
			post(&net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "api.example.org", IsNotFound: true}}),
			"server api.example.org:6443 was not found: there is no host api.example.org: check that it runs and that the context in use names the right one (kubectl config view --minify)",
		},
		"no answer": {
			post(context.DeadlineExceeded),
			"server api.example.org:6443 did not answer in time: check that it runs and that the context in use names the right one (kubectl config view --minify), or allow more with --request-timeout",
		},
		"no time left to ask": {
			fmt.Errorf("identity: %w", context.DeadlineExceeded),
			"identity: there was no time left for it: allow more with --timeout or --request-timeout",
		},
		"closed": {
			post(io.ErrUnexpectedEOF),
			"server api.example.org:6443 closed the connection: it may be restarting, or a proxy stands between; run the command again",
		},
		"no route": {
			post(&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.EHOSTUNREACH)}),
			"server api.example.org:6443 cannot be reached from here: check this machine's network and VPN",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Message(tc.err); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

// What client-go really returns, from real connections.
func TestMessageOfRealConnections(t *testing.T) {
	quiet := func(s *httptest.Server) *httptest.Server {
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
		t.Cleanup(s.Close)
		return s
	}
	plain := quiet(httptest.NewServer(http.NotFoundHandler()))
	hangUp := quiet(httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		connection, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			connection.Close()
		}
	})))
	secure := quiet(httptest.NewTLSServer(http.NotFoundHandler()))
	demanding := httptest.NewUnstartedServer(http.NotFoundHandler())
	demanding.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	quiet(demanding).StartTLS()
	t.Run("hung up", func(t *testing.T) {
		// Not through client-go, which asks ten times, a second apart.
		_, err := http.Get(hangUp.URL)
		if got := Message(err); !strings.HasSuffix(got, " closed the connection: it may be restarting, or a proxy stands between; run the command again") {
			t.Errorf("got %s for %v", got, err)
		}
	})
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()

	for name, tc := range map[string]struct {
		config rest.Config
		want   string
	}{
		"refused":          {rest.Config{Host: "http://" + closed.Addr().String()}, " refuses connections: check that it runs"},
		"another CA":       {rest.Config{Host: secure.URL}, " has a certificate that the context's CA did not sign ("},
		"another name":     {rest.Config{Host: secure.URL, TLSClientConfig: rest.TLSClientConfig{ServerName: "other.example", CAData: certificate(secure)}}, " has a certificate for other names ("},
		"no TLS":           {rest.Config{Host: strings.Replace(plain.URL, "http:", "https:", 1)}, " does not speak TLS: "},
		"a client's proof": {rest.Config{Host: demanding.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}, " ended the TLS handshake ("},
		"no plugin": {
			rest.Config{Host: secure.URL, TLSClientConfig: rest.TLSClientConfig{CAData: certificate(secure)}, ExecProvider: execPlugin("no-such-credential-plugin")},
			" was not asked, since the context's credential plugin failed: executable no-such-credential-plugin not found: install it",
		},
		"a plugin that fails": {
			rest.Config{Host: secure.URL, TLSClientConfig: rest.TLSClientConfig{CAData: certificate(secure)}, ExecProvider: execPlugin("false")},
			" was not asked, since the context's credential plugin failed: executable false failed with exit code 1: run it by hand",
		},
	} {
		t.Run(name, func(t *testing.T) {
			client, err := kubernetes.NewForConfig(&tc.config)
			if err != nil {
				t.Fatal(err)
			}
			_, err = client.CoreV1().Namespaces().Get(t.Context(), "kube-system", metav1.GetOptions{})
			if err == nil {
				t.Fatal("the request went through")
			}
			u, _ := url.Parse(tc.config.Host)
			got, want := Message(fmt.Errorf("identity: %w", err)), "identity: server "+u.Host+tc.want
			if !strings.HasPrefix(got, want) || strings.ContainsAny(got, "\n\x1b") {
				t.Errorf("got\n%s\nwant it to begin with\n%s\nfor\n%v", got, want, err)
			}
		})
	}
}

func certificate(s *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

func execPlugin(command string) *clientcmdapi.ExecConfig {
	return &clientcmdapi.ExecConfig{
		Command:         command,
		APIVersion:      "client.authentication.k8s.io/v1",
		InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
	}
}
