// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"errors"
	"strings"
	"testing"
)

func TestNormalizeServer(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ raw, want string }{
		{"https://api.example.org:6443", "https://api.example.org:6443"},
		{"https://api.example.org:6443/", "https://api.example.org:6443"},
		{"https://api.example.org:6443//", "https://api.example.org:6443"},
		{"HTTPS://API.Example.ORG:6443", "https://api.example.org:6443"},
		{"https://api.example.org.:6443", "https://api.example.org:6443"},
		{"https://api.example.org:443", "https://api.example.org"},
		{"https://api.example.org:0443", "https://api.example.org"},
		{"https://api.example.org:", "https://api.example.org"},
		{"https://api.example.org:80", "https://api.example.org:80"},
		{"http://api.example.org:80", "http://api.example.org"},
		{"http://api.example.org:443", "http://api.example.org:443"},
		{"https://10.0.0.1:6443", "https://10.0.0.1:6443"},
		{"https://[::1]:6443", "https://[::1]:6443"},
		{"https://[0:0:0:0:0:0:0:1]:6443", "https://[::1]:6443"},
		{"https://[FD00::00A1]:443", "https://[fd00::a1]"},
		{"https://[fe80::1%25eth0]:6443", "https://[fe80::1%25eth0]:6443"},
		{"https://rancher.example.org/k8s/clusters/c-1/", "https://rancher.example.org/k8s/clusters/c-1"},
		{"https://rancher.example.org/K8s/Clusters/c-1", "https://rancher.example.org/K8s/Clusters/c-1"},
		{"https://xn--kse-qla.example.org", "https://xn--kse-qla.example.org"},
		{"https://käse.example.org", "https://xn--kse-qla.example.org"},
		{"https://KÄSE.example.org", "https://xn--kse-qla.example.org"},
		{"https://kube_api:6443", "https://kube_api:6443"},
		{"https://localhost:6443", "https://localhost:6443"},
	} {
		got, err := NormalizeServer(tt.raw)
		if err != nil || got != tt.want {
			t.Errorf("%q becomes %q, %v; want %q", tt.raw, got, err, tt.want)
		}
	}
}

func TestNormalizeServerKeepsApart(t *testing.T) {
	t.Parallel()
	for _, tt := range [][2]string{
		{"https://a.example.org", "http://a.example.org"},
		{"https://a.example.org", "https://a.example.org:6443"},
		{"https://a.example.org", "https://b.example.org"},
		{"https://h/k8s/clusters/c-1", "https://h/k8s/clusters/c-2"},
		{"https://h/k8s/clusters/c-1", "https://h/k8s/clusters/C-1"},
		{"https://h/k8s", "https://h"},
		{"https://127.0.0.1:6443", "https://localhost:6443"},
		{"https://[::ffff:127.0.0.1]", "https://127.0.0.1"},
	} {
		a, errA := NormalizeServer(tt[0])
		b, errB := NormalizeServer(tt[1])
		if a == b || errA != nil || errB != nil {
			t.Errorf("%s and %s become %q and %q (%v, %v)", tt[0], tt[1], a, b, errA, errB)
		}
	}
}

func TestNormalizeServerMalformed(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		"", " ", "api.example.org:6443", "api.example.org", "10.0.0.1:6443", "ssh://h", "https:", "https://", "https:///x",
		"https:h", "https://h:0", "https://h:65536", "https://h:x", "https://user:hunter2@h", "https://user@h",
		"https://h?x=1", "https://h?", "https://h#f", "https://h#", "https://h/a//b", "https://h/./b", "https://h/../b",
		"https://h/a%2Fb", "https://h/%61", `https://h/a\b`, "https://h/!", "https://a..b", "https://..", "https://h..", "https://a b",
		" https://h", "https://h ", "https://h\n", "https://h:6443:1", "https://::1:6443", "https://[::1", "https://h|x", "https://*.h",
		"https://\u202eh",
	} {
		got, err := NormalizeServer(raw)
		var usage *UsageError
		if !errors.As(err, &usage) || usage.ExitCode() != 2 {
			t.Errorf("%q becomes %q, %v; want a usage error", raw, got, err)
			continue
		}
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: the error repeats the password: %v", raw, err)
		}
	}
}
