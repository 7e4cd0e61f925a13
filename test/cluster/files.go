// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kubestandup/kubestandup/test/cluster/internal/filelock"
)

const (
	adminUser = "admin"
	userAgent = "test"
	dirPrefix = "kubestandup-cluster-"
)

// makeDir makes the directory of a cluster and removes those that other
// processes left behind when they were killed: whose lock nobody holds.
func makeDir() (string, *filelock.Lock, error) {
	abandoned, err := filepath.Glob(filepath.Join(os.TempDir(), dirPrefix+"*"))
	if err != nil {
		return "", nil, err
	}
	for _, dir := range abandoned {
		if lock, err := filelock.Try(filepath.Join(dir, "lock")); err == nil && lock != nil {
			_ = os.RemoveAll(dir) // tidiness, not needed by anybody
			lock.Release()
		}
	}
	// Under another name until it is locked, so that no other process takes it
	// for abandoned.
	temp, err := os.MkdirTemp("", "new-"+dirPrefix)
	if err != nil {
		return "", nil, err
	}
	lock, err := filelock.Try(filepath.Join(temp, "lock"))
	if err != nil {
		return "", nil, err
	}
	dir := filepath.Join(filepath.Dir(temp), strings.TrimPrefix(filepath.Base(temp), "new-"))
	if err := os.Rename(temp, dir); err != nil {
		lock.Release()
		return "", nil, err
	}
	return dir, lock, nil
}

// writeFiles writes what the components read when they start.
func (c *Cluster) writeFiles() error {
	for _, dir := range []string{"logs", "home", "tmp"} {
		if err := os.MkdirAll(c.file(dir), 0o700); err != nil {
			return err
		}
	}
	users := append([]User{{Name: adminUser, Groups: []string{"system:masters"}}}, c.options.Users...)
	if err := c.creds.write(c.file("pki"), users); err != nil {
		return err
	}
	if err := os.WriteFile(c.file("audit-policy.yaml"), []byte(auditPolicy), 0o600); err != nil {
		return err
	}
	return os.WriteFile(c.file("egress.yaml"), fmt.Appendf(nil, egressConfig, c.egressSocket()), 0o600)
}

// Kubeconfig is the administrator's kubeconfig file.
func (c *Cluster) Kubeconfig() string { return c.file("kubeconfig-" + adminUser) }

// KubeconfigFor is the kubeconfig file of one of Options.Users. A name that is
// not among them gets one too, which the API server does not let in.
func (c *Cluster) KubeconfigFor(user string) (string, error) {
	if user == adminUser {
		return c.Kubeconfig(), nil
	}
	return c.file("kubeconfig-" + user), c.writeKubeconfig(user)
}

func (c *Cluster) writeKubeconfig(user string) error {
	name := c.options.Name
	return clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: {Server: c.URL(), CertificateAuthorityData: c.creds.ca}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{user: {Token: c.creds.token(user)}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: user}},
		CurrentContext: name,
	}, c.file("kubeconfig-"+user))
}

// reportLogs shows the ends of all logs of a failed test, and keeps the whole.
func (c *Cluster) reportLogs(t testing.TB) {
	logs, _ := filepath.Glob(c.file("logs", "*.log"))
	for _, log := range logs {
		name := filepath.Base(log)
		t.Logf("--- the end of %s ---\n%s", name, tail(log, 12))
		if data, err := os.ReadFile(log); err == nil {
			_ = os.WriteFile(filepath.Join(t.ArtifactDir(), name), data, 0o600)
		}
	}
}
