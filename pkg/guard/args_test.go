// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"os/exec"
	"strings"
	"testing"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

func TestArgs(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t, "a")
	w := newWire(t, ca, uidA)
	flags := kubeconfig(t, w.URL, ca.pem, func(c *clientcmdapi.Config) {
		c.Contexts["it's prod"] = c.Contexts["prod"]
		c.CurrentContext = "it's prod"
	})
	set(&flags.Impersonate, "jane")
	set(&flags.ImpersonateGroup, []string{"a", "b c"})
	set(&flags.BearerToken, "hunter2")
	set(&flags.CAFile, "")
	s := connect(t, flags, nil)
	target := `--context 'it'\''s prod' --kubeconfig ` + *flags.KubeConfig + ` --as jane --as-group a --as-group 'b c'`
	if got := s.KubectlArgs(); got != target {
		t.Errorf("kubectl: %s, want %s", got, target)
	}
	// Before the server was asked there is only its URL to hold on to.
	if got, want := s.Args(), target+" --expect-server "+w.URL; got != want {
		t.Errorf("unasked: %s, want %s", got, want)
	}
	if _, err := s.Identity(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := target + " --expect-server " + w.URL + " --expect-uid " + uidA
	if got := s.Args(); got != want {
		t.Errorf("seen: %s, want %s", got, want)
	}
	if err := s.Prove(t.Context(), Expectation{Server: w.URL}); err != nil {
		t.Fatal(err)
	}
	if got := s.Args(); got != want {
		t.Errorf("proved: %s, want %s", got, want)
	}
	// What is known to be wrong is not held out for pasting.
	w.become(uidB)
	if _, err := s.Identity(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := s.Args(); got != target {
		t.Errorf("lost: %s, want %s", got, target)
	}
	if strings.Contains(s.Args(), "hunter2") {
		t.Error("the token is printed")
	}
}

// A shell must read back exactly what was quoted.
func TestShellQuote(t *testing.T) {
	t.Parallel()
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal("no sh on PATH: install one")
	}
	for _, s := range []string{"", "plain-1.2/x@y", "a b", "it's", `"$(reboot)"`, "`x`", `\`, "a\nb", "*", "~", "!x", "'", "''", "#", "-x", "ü"} {
		out, err := exec.Command(sh, "-c", "printf %s "+ShellQuote(s)).Output()
		if err != nil || string(out) != s {
			t.Errorf("%q: the shell reads %q, %v", s, out, err)
		}
	}
}
