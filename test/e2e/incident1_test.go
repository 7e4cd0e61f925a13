// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubestandup/kubestandup/test/bringup"
	"github.com/kubestandup/kubestandup/test/cluster"
)

// TestIncident1_WrongCluster: a person works in the folder of one cluster while
// their kubeconfig's current context is that of another. Every step, and
// everything that changes something, does nothing there and shows both, side by
// side. Nothing that can be typed overrides it.
func TestIncident1_WrongCluster(t *testing.T) {
	t.Parallel()
	options := cluster.Options{Components: []cluster.Component{}, FluxCRDs: true}
	options.Name = "production"
	meant := controlPlane(t, options)
	options.Name = "development"
	live := controlPlane(t, options)
	sh := newShell(t, bothContexts(t, meant, live))
	sh.throughKubectl = true
	if err := os.WriteFile(filepath.Join(sh.dir, "standup.yaml"), []byte(bringup.StandupYAML(meant.URL(), uidOf(t, meant))), 0o600); err != nil {
		t.Fatal(err)
	}

	marks := map[*cluster.Cluster]cluster.Mark{meant: meant.Mark(), live: live.Mark()}
	for _, typed := range []string{
		"standup preflight", "standup crds", "standup crds --dry-run", "standup unwedge", "standup resume", "standup verify", "standup all",
		"standup unwedge --confirm-destructive", "unwedge --confirm-destructive", "tiers --wait --nudge",
	} {
		o := sh.want(t, 5, strings.Fields(typed)...)
		o.holds(t, o.stderr, "server is not the expected one, so nothing was done: the URL differs", meant.URL(), live.URL(), "context development")
		if o.stdout != "" {
			t.Errorf("%s\nsays something of the wrong cluster", o)
		}
	}
	for _, override := range []string{"--force", "--yes", "--skip-guard", "--insecure-skip-tls-verify"} {
		if o := sh.run(t, "standup", "all", override); o.code != 2 && o.code != 5 {
			t.Errorf("%s\noverrides the guard", o)
		}
	}
	for c, mark := range marks {
		mutatedNothing(t, c, mark)
	}
	// The same, where it was meant: it runs.
	o := sh.run(t, "standup", "preflight", "--context", "production")
	if o.code == 5 || !strings.Contains(o.stdout+o.stderr, meant.URL()) {
		t.Errorf("%s\nis the cluster that is meant", o)
	}
}

// bothContexts is a kubeconfig of two clusters, whose current context is the
// second's.
func bothContexts(t *testing.T, meant, live *cluster.Cluster) string {
	t.Helper()
	rules := &clientcmd.ClientConfigLoadingRules{Precedence: []string{live.Kubeconfig(), meant.Kubeconfig()}}
	config, err := rules.Load()
	if err != nil {
		t.Fatal(err)
	}
	if config.CurrentContext != "development" || len(config.Contexts) != 2 {
		t.Fatalf("the kubeconfig has contexts %v, of which %s is current", config.Contexts, config.CurrentContext)
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}
