// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

func set[T any](p **T, v T) { *p = &v }

// Each way in which a kubeconfig leads nowhere is one sentence, and exit 1.
func TestKubeconfigSentences(t *testing.T) {
	// t.Setenv: not parallel.
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	type change = func(*clientcmdapi.Config)
	two := func(c *clientcmdapi.Config) { c.Contexts["dev"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"} }
	for name, tt := range map[string]struct {
		change []change
		flags  func(*genericclioptions.ConfigFlags)
		want   string
	}{
		"no current context": {
			change: []change{two, func(c *clientcmdapi.Config) { c.CurrentContext = "" }},
			want:   "kubeconfig FILE has no current context: choose one with --context; it has the contexts dev, prod",
		},
		"current context that does not exist": {
			change: []change{two, func(c *clientcmdapi.Config) { c.CurrentContext = "gone" }},
			want:   "kubeconfig FILE has no context gone, its current context: choose one with --context; it has the contexts dev, prod",
		},
		"--context that does not exist": {
			change: []change{two},
			flags:  func(f *genericclioptions.ConfigFlags) { set(&f.Context, "staging") },
			want:   "kubeconfig FILE has no context staging: choose another with --context; it has the contexts dev, prod",
		},
		"--context for nobody": {
			change: []change{func(c *clientcmdapi.Config) { *c = *clientcmdapi.NewConfig() }},
			flags:  func(f *genericclioptions.ConfigFlags) { set(&f.Context, "staging") },
			want:   "kubeconfig FILE has no context staging: choose another with --context; it has no context",
		},
		"empty": {
			change: []change{func(c *clientcmdapi.Config) { *c = *clientcmdapi.NewConfig() }},
			want:   "kubeconfig FILE names no cluster: set KUBECONFIG or pass --kubeconfig",
		},
		"no file": {
			flags: func(f *genericclioptions.ConfigFlags) { set(&f.KubeConfig, "/nonexistent/kubeconfig") },
			want:  "kubeconfig /nonexistent/kubeconfig does not exist: pass --kubeconfig with a file that does",
		},
		"context without its cluster": {
			change: []change{func(c *clientcmdapi.Config) { c.Contexts["prod"].Cluster = "other" }},
			want:   "kubeconfig FILE has no cluster other, which context prod uses: it has the clusters c",
		},
		"context without its user": {
			change: []change{func(c *clientcmdapi.Config) { c.Contexts["prod"].AuthInfo = "other" }},
			want:   "kubeconfig FILE has no user other, which context prod uses: it has the users u",
		},
		"cluster without a server": {
			change: []change{func(c *clientcmdapi.Config) { c.Clusters["c"].Server = "" }},
			want:   "kubeconfig FILE gives no server for cluster c, which context prod uses",
		},
		"--cluster that does not exist": {
			change: []change{func(c *clientcmdapi.Config) { c.CurrentContext = "" }},
			flags:  func(f *genericclioptions.ConfigFlags) { set(&f.ClusterName, "other") },
			want:   "kubeconfig FILE has no cluster other, which --cluster names: it has the clusters c",
		},
		"--cluster without a server": {
			change: []change{func(c *clientcmdapi.Config) { c.CurrentContext, c.Clusters["c"].Server = "", "" }},
			flags:  func(f *genericclioptions.ConfigFlags) { set(&f.ClusterName, "c") },
			want:   "kubeconfig FILE gives no server for cluster c, which --cluster names",
		},
		"--user that does not exist": {
			flags: func(f *genericclioptions.ConfigFlags) { set(&f.AuthInfoName, "other") },
			want:  "kubeconfig FILE has no user other, which --user names: it has the users u",
		},
		"server that is no URL": {
			change: []change{func(c *clientcmdapi.Config) { c.Clusters["c"].Server = "https://u:hunter2@h" }},
			want:   "server of the kubeconfig holds a user name: credentials belong into the kubeconfig",
		},
		"CA file that is gone": {
			change: []change{func(c *clientcmdapi.Config) { c.Clusters["c"].CertificateAuthority = "/nonexistent/ca.crt" }},
			want:   "kubeconfig FILE cannot be used: invalid configuration: unable to read certificate-authority /nonexistent/ca.crt for c due to open /nonexistent/ca.crt: no such file or directory",
		},
		"CA that is none": {
			change: []change{func(c *clientcmdapi.Config) { c.Clusters["c"].CertificateAuthorityData = []byte("x") }},
			want:   "server https://h:6443: certificate authority of the kubeconfig holds no certificate in PEM form",
		},
		"context with an escape": {
			change: []change{func(c *clientcmdapi.Config) {
				c.CurrentContext = ""
				c.Contexts["\x1b[2J"] = &clientcmdapi.Context{}
			}},
			want: `kubeconfig FILE has no current context: choose one with --context; it has the contexts "\x1b[2J", prod`,
		},
		"timeout that is none": {
			flags: func(f *genericclioptions.ConfigFlags) { set(&f.Timeout, "soon") },
			want:  "kubeconfig FILE cannot be used: Invalid timeout value. Timeout must be a single integer in seconds, or an integer followed by a corresponding time unit (e.g. 1s | 2m | 3h)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			flags := kubeconfig(t, "https://h:6443", nil, tt.change...)
			file := *flags.KubeConfig
			if tt.flags != nil {
				tt.flags(flags)
			}
			_, err := Connect(flags, Options{})
			if err == nil || exitCode(err) != 1 {
				t.Fatalf("got %v (exit %d)", err, exitCode(err))
			}
			equalLines(t, "message", strings.ReplaceAll(err.Error(), file, "FILE"), tt.want)
		})
	}
	t.Run("not YAML", func(t *testing.T) {
		flags := kubeconfig(t, "https://h:6443", nil)
		rewrite(t, *flags.KubeConfig, "a: [")
		_, err := Connect(flags, Options{})
		if err == nil || !strings.HasPrefix(err.Error(), "kubeconfig "+*flags.KubeConfig+" cannot be read: ") {
			t.Errorf("got %v", err)
		}
	})
}

// The silent fallbacks of client-go: the Pod's service account, localhost:8080
// and $KUBERNETES_MASTER.
func TestNoSilentFallback(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	t.Setenv("KUBECONFIG", a+string(filepath.ListSeparator)+b)
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
	t.Setenv("KUBERNETES_SERVICE_PORT", "443")
	t.Setenv("KUBERNETES_MASTER", "http://127.0.0.1:8080")
	_, err := Connect(genericclioptions.NewConfigFlags(true), Options{})
	if err == nil || exitCode(err) != 1 {
		t.Fatalf("got %v", err)
	}
	equalLines(t, "message", err.Error(), "kubeconfig "+a+", "+b+" names no cluster: set KUBECONFIG or pass --kubeconfig; "+
		"the service account of this Pod is not used by itself: name the server with --server, --certificate-authority and --token")

	// What is named is used, with no kubeconfig at all.
	flags := genericclioptions.NewConfigFlags(true)
	set(&flags.APIServer, "https://10.0.0.1")
	set(&flags.BearerToken, "t")
	s, err := Connect(flags, Options{})
	if err != nil || s.URL() != "https://10.0.0.1" || s.Context() != "" {
		t.Errorf("got %+v, %v", s, err)
	}
}

// A kubeconfig that happens to say what client-go falls back on is still the
// kubeconfig's word.
func TestLocalhostInKubeconfig(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
	t.Setenv("KUBERNETES_SERVICE_PORT", "443")
	s := connect(t, kubeconfig(t, "http://localhost:8080", nil), nil)
	if s.URL() != "http://localhost:8080" {
		t.Errorf("got %s", s.URL())
	}
}

func TestServerWithoutScheme(t *testing.T) {
	t.Parallel()
	// client-go takes it for http, CA or not; then it is never proof.
	for _, ca := range [][]byte{nil, newAuthority(t, "a").pem} {
		s := connect(t, kubeconfig(t, "127.0.0.1:6443", ca), nil)
		if s.URL() != "http://127.0.0.1:6443" || s.Config().Host != s.URL() || s.unprovable == "" {
			t.Errorf("got %s, %s, %q", s.URL(), s.Config().Host, s.unprovable)
		}
	}
}

func TestFlagsOverride(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t, "a")
	flags := kubeconfig(t, "https://h:6443", ca.pem)
	set(&flags.Impersonate, "jane")
	set(&flags.ImpersonateUID, "7")
	set(&flags.ImpersonateGroup, []string{"g1", "g2"})
	set(&flags.ImpersonateUserExtra, []string{"scopes=a", "scopes=b", "odd"})
	set(&flags.BearerToken, "other")
	set(&flags.TLSServerName, "name")
	set(&flags.Timeout, "7s")
	set(&flags.DisableCompression, true)
	set(&flags.ProxyURL, "http://127.0.0.1:3128")
	dir := t.TempDir()
	for flag, file := range map[**string]string{&flags.CAFile: "ca.crt", &flags.CertFile: "tls.crt", &flags.KeyFile: "tls.key"} {
		rewrite(t, filepath.Join(dir, file), file+"'s content")
		set(flag, filepath.Join(dir, file))
	}
	r, err := resolve(flags)
	if err != nil {
		t.Fatal(err)
	}
	c := r.config
	if string(c.CAData) != "ca.crt's content" || string(c.CertData) != "tls.crt's content" || string(c.KeyData) != "tls.key's content" ||
		c.CAFile+c.CertFile+c.KeyFile != "" {
		t.Errorf("files are not held in memory: %q, %q, %q", c.CAFile, c.CertFile, c.KeyFile)
	}
	if c.Impersonate.UserName != "jane" || c.Impersonate.UID != "7" || len(c.Impersonate.Groups) != 2 ||
		!reflect.DeepEqual(c.Impersonate.Extra, map[string][]string{"scopes": {"a", "b"}}) ||
		c.BearerToken != "other" || c.ServerName != "name" || c.Timeout.String() != "7s" || !c.DisableCompression || c.Proxy == nil {
		t.Errorf("got %+v", c)
	}
	set(&flags.CAFile, "")
	set(&flags.CertFile, "")
	set(&flags.KeyFile, "")
	set(&flags.Insecure, true)
	if s := connect(t, flags, nil); s.unprovable == "" || s.ca != "" {
		t.Errorf("insecure: %q, %q", s.unprovable, s.ca)
	}
}

func TestKubeconfigNames(t *testing.T) {
	t.Parallel()
	flags := kubeconfig(t, "https://h", nil, func(c *clientcmdapi.Config) { c.Contexts["dev"] = &clientcmdapi.Context{} })
	want := Names{Contexts: []string{"dev", "prod"}, Clusters: []string{"c"}, Users: []string{"u"}}
	if got, err := KubeconfigNames(flags); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, %v", got, err)
	}
	set(&flags.KubeConfig, "/nonexistent")
	if got, err := KubeconfigNames(flags); err == nil {
		t.Errorf("got %q", got)
	}
}

// overrides copies what cli-runtime keeps to itself; a flag that a later one
// brings must be looked at before it is silently lost.
func TestOverridesKnowEveryFlag(t *testing.T) {
	t.Parallel()
	known := map[string]bool{
		"KubeConfig": true, "ClusterName": true, "AuthInfoName": true, "Context": true, "Namespace": true, "APIServer": true,
		"TLSServerName": true, "Insecure": true, "CertFile": true, "KeyFile": true, "CAFile": true, "BearerToken": true,
		"Impersonate": true, "ImpersonateUID": true, "ImpersonateGroup": true, "ImpersonateUserExtra": true, "Username": true,
		"Password": true, "Timeout": true, "DisableCompression": true, "ProxyURL": true,
		// Not about the connection.
		"CacheDir": true, "WrapConfigFn": true,
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[genericclioptions.ConfigFlags]()) {
		if f.IsExported() && !known[f.Name] {
			t.Errorf("genericclioptions.ConfigFlags has a new field %s: add it to overrides and targetArgs, then here", f.Name)
		}
	}
}
