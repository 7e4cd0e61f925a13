// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"strings"

	"k8s.io/cli-runtime/pkg/genericclioptions"
)

// Args are the arguments that every command of ours which we print carries,
// quoted for a POSIX shell: it then reaches the server that this one reached,
// or refuses. They name the identity that the server last gave, so a command
// that was printed without an expectation is bound to what was seen.
// Credentials are never among them.
func (s *Server) Args() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	uid := orText(s.uid, s.seen.UID)
	if s.lost != nil || s.unprovable != "" {
		return strings.Join(s.targetArgs, " ")
	}
	return strings.Join(append(s.targetArgs[:len(s.targetArgs):len(s.targetArgs)], expectArgs(s.URL(), uid)...), " ")
}

// KubectlArgs are those of a printed command of kubectl or flux, which know
// no expectation.
func (s *Server) KubectlArgs() string { return strings.Join(s.targetArgs, " ") }

// HelmArgs are those of a printed command of helm, which calls the context and
// the server otherwise and ignores what kubectl's other flags say.
func (s *Server) HelmArgs() string {
	var args []string
	names := map[string]string{"--context": "--kube-context", "--kubeconfig": "--kubeconfig", "--server": "--kube-apiserver", "--as": "--kube-as-user"}
	for i := 0; i+1 < len(s.targetArgs); i += 2 {
		if name, known := names[s.targetArgs[i]]; known {
			args = append(args, name, s.targetArgs[i+1])
		}
	}
	return strings.Join(args, " ")
}

func expectArgs(url, uid string) []string {
	args := []string{"--expect-server", ShellQuote(url)}
	if uid != "" {
		args = append(args, "--expect-uid", ShellQuote(uid))
	}
	return args
}

// targetArgs repeats the flags that chose the server and the user, with the
// context always named: the current one may be another by the time the
// command is pasted.
func targetArgs(f *genericclioptions.ConfigFlags, context string) []string {
	var args []string
	add := func(flag, value string) {
		if value != "" {
			args = append(args, flag, ShellQuote(value))
		}
	}
	add("--context", context)
	add("--kubeconfig", value(f.KubeConfig))
	add("--cluster", value(f.ClusterName))
	add("--user", value(f.AuthInfoName))
	add("--server", value(f.APIServer))
	add("--tls-server-name", value(f.TLSServerName))
	add("--certificate-authority", value(f.CAFile))
	add("--client-certificate", value(f.CertFile))
	add("--client-key", value(f.KeyFile))
	add("--as", value(f.Impersonate))
	add("--as-uid", value(f.ImpersonateUID))
	for _, group := range value(f.ImpersonateGroup) {
		add("--as-group", group)
	}
	if value(f.Insecure) {
		args = append(args, "--insecure-skip-tls-verify")
	}
	return args
}

// ShellQuote is text as one word of a POSIX shell, for a command that is printed
// to be pasted.
func ShellQuote(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:,./_-") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
