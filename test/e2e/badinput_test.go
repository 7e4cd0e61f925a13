// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kubestandup/kubestandup/test/cluster"
)

// oneSentence fails the test when an error is more than a sentence: one line
// that begins with error, and at most so many lines in all.
func oneSentence(t *testing.T, o outcome, lines int) {
	t.Helper()
	said := strings.Split(strings.TrimSpace(o.stderr), "\n")
	errors := 0
	for _, line := range said {
		if strings.HasPrefix(line, "error: ") {
			errors++
		}
	}
	if errors != 1 || len(said) > lines {
		t.Errorf("%s\nwant one sentence", o)
	}
}

// nowhere is a server that nobody is.
const nowhere = "https://127.0.0.1:1"

// kubeconfigOf writes a changed copy of the cluster's kubeconfig.
func kubeconfigOf(t *testing.T, c *cluster.Cluster, change func(*clientcmdapi.Config)) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(c.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	change(config)
	file := filepath.Join(t.TempDir(), "config")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestWithoutFlux: what needs no more than an API server, one after the other on
// the same one.
func TestWithoutFlux(t *testing.T) {
	t.Parallel()
	c := controlPlane(t, cluster.Options{Users: []cluster.User{{Name: "visitor"}, {Name: "getter"}, {Name: "lister"}, {Name: "nobody"}}})
	for _, tt := range []struct {
		name string
		run  func(*testing.T, *cluster.Cluster)
	}{
		{"Init", initWithoutFlux},
		{"BadServers", badServers},
		{"RealHelmsReadEditedRecords", realHelmsReadEditedRecords},
		{"Guard", testGuard}, // last, since it takes the API server away
	} {
		t.Run(tt.name, func(t *testing.T) { tt.run(t, c) })
	}
}

// badServers: whatever is the matter with the way to the cluster, or with the
// cluster, it is one sentence and the right exit code, of each command.
func badServers(t *testing.T, c *cluster.Cluster) {
	if err := c.Apply(t.Context(), `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: visitor}
rules: [{apiGroups: [""], resources: [namespaces], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: visitor}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: visitor}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: visitor}]
`); err != nil {
		t.Fatal(err)
	}
	visitor, err := c.KubeconfigFor("visitor")
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := cluster.NewCredentials()
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		kubeconfig string
		server     string // expected; "" is the cluster's
		code       int    // without an expectation
		expected   int    // with one; 0 is the same
		says       string
	}{
		"an unreachable server": {
			kubeconfig: kubeconfigOf(t, c, func(k *clientcmdapi.Config) { k.Clusters["test"].Server = nowhere }),
			server:     nowhere, code: 1,
			says: "server https://127.0.0.1:1: identity cannot be read: dial tcp 127.0.0.1:1: connect: connection refused: check that it runs, and that the context in use names the right one",
		},
		"no current context": {
			kubeconfig: kubeconfigOf(t, c, func(k *clientcmdapi.Config) { k.CurrentContext = "" }),
			code:       1, says: "has no current context: choose one with --context; it has the contexts test",
		},
		"a context that is not there": {
			kubeconfig: kubeconfigOf(t, c, func(k *clientcmdapi.Config) { k.CurrentContext = "prod" }),
			code:       1, says: "has no context prod, its current context: choose one with --context",
		},
		"no kubeconfig": {
			kubeconfig: filepath.Join(t.TempDir(), "absent"),
			code:       1, says: "names no cluster: set KUBECONFIG or pass --kubeconfig",
		},
		"a cluster without Flux": {
			kubeconfig: c.Kubeconfig(), code: 1,
			says: "it serves neither kustomize.toolkit.fluxcd.io nor helm.toolkit.fluxcd.io, so Flux is not installed there",
		},
		"forbidden": {
			kubeconfig: visitor, code: 1,
			says: `User "visitor" cannot list resource "kustomizations" in API group "kustomize.toolkit.fluxcd.io" at the cluster scope: ask for that permission`,
		},
		"a token that is not valid": {
			kubeconfig: kubeconfigOf(t, c, func(k *clientcmdapi.Config) { k.AuthInfos["admin"].Token = "expired" }),
			code:       1, says: "server does not accept these credentials (Unauthorized): log in again",
		},
		"another CA": {
			kubeconfig: kubeconfigOf(t, c, func(k *clientcmdapi.Config) { k.Clusters["test"].CertificateAuthorityData = stranger.CA() }),
			code:       1, expected: 5, says: "certificate signed by unknown authority",
		},
	} {
		t.Run(name, func(t *testing.T) {
			sh := newShell(t, tt.kubeconfig)
			server, code := tt.server, tt.code
			if server == "" {
				server = c.URL()
			}
			for _, command := range [][]string{{"tiers"}, {"unwedge"}} {
				o := sh.want(t, code, command...)
				o.holds(t, o.stderr, tt.says)
				oneSentence(t, o, 2) // before it stands whom it talks to
			}
			lines := 1
			if tt.expected != 0 {
				code, lines = tt.expected, 6 // with expected and found side by side
			}
			for _, command := range [][]string{{"standup", "preflight"}, {"unwedge", "--apply"}} {
				o := sh.want(t, code, append(command, "--expect-server", server)...)
				o.holds(t, o.stderr, tt.says)
				oneSentence(t, o, lines)
				if o.stdout != "" {
					t.Errorf("%s\nwant nothing on stdout", o)
				}
			}
		})
	}
	t.Run("typed wrongly", func(t *testing.T) { typedWrongly(t, c) })
}

// typedWrongly: nothing is asked of a server before what was typed is understood.
func typedWrongly(t *testing.T, c *cluster.Cluster) {
	two := t.TempDir()
	for _, dir := range []string{".git", "clusters/prod", "clusters/dev", "clusters/odd", "empty"} {
		if err := os.MkdirAll(filepath.Join(two, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	named := "cluster:\n  server: " + c.URL() + "\n"
	for file, text := range map[string]string{
		"clusters/prod/standup.yaml": named,
		"clusters/dev/standup.yaml":  named,
		"clusters/odd/standup.yaml":  "cluster:\n  server: " + c.URL() + "\n  serverr: x\n",
	} {
		if err := os.WriteFile(filepath.Join(two, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	several := "standup.yaml of which cluster? 3 are below this directory: choose one with --config, or work beside it\n" +
		"  --config clusters/dev/standup.yaml\n  --config clusters/odd/standup.yaml\n  --config clusters/prod/standup.yaml"
	paste := "--expect-server " + c.URL() + " --expect-uid " + uidOf(t, c)
	for _, tt := range []struct {
		dir, command string
		code         int
		says         []string
		lines        int
		asks         bool
	}{
		{"", "tiers --timeout 5m", 2, []string{"error: --timeout goes with --wait", "See 'kubectl tiers --help' for usage."}, 2, false},
		{"", "tiers --nudge", 2, []string{"error: --nudge goes with --wait"}, 2, false},
		{"", "tiers --wait --timeout -5m", 2, []string{"error: --timeout -5m0s is negative"}, 2, false},
		{"", "tiers -o xml", 2, []string{"choose one of: "}, 2, false},
		{"", "tiers --wiat", 2, []string{"error: unknown flag: --wiat"}, 2, false},
		{"", "tiers why", 2, []string{"accepts 1 arg(s), received 0"}, 2, false},
		{"", "standup preflight --wiat", 2, []string{"error: unknown flag: --wiat", "See 'kubectl standup preflight --help' for usage."}, 2, false},
		{"", "standup prefligth", 2, []string{`unknown command "prefligth" for "kubectl standup": did you mean preflight?`}, 2, false},
		{"", "standup crds --timeout 0s", 2, []string{"error: --timeout 0s leaves no time"}, 2, false},
		{"", "unwedge --wiat", 2, []string{"error: unknown flag: --wiat"}, 2, false},
		{"", "unwedge --timeout 0s", 2, []string{"error: --timeout 0s leaves no time"}, 2, false},
		{"", "standup preflight --expect-uid " + uidOf(t, c), 2, []string{"uid of --expect-uid names no server"}, 2, false},
		{"", "standup preflight --expect-server prod", 2, []string{"server URL of --expect-server "}, 2, false},
		{"", "standup preflight --config absent.yaml", 1, []string{"absent.yaml cannot be read: "}, 1, false},
		{"", "standup preflight", 5, []string{"no cluster was named", paste}, 17, true},
		{"", "standup crds", 5, []string{"no cluster was named", paste}, 17, true},
		{"", "unwedge --apply", 5, []string{"no cluster was named", paste}, 17, true},
		{"", "tiers --wait --nudge", 5, []string{"no cluster was named", paste}, 17, true},
		{"clusters", "tiers", 2, []string{several[:40]}, 6, false},
		{".", "tiers", 2, []string{several}, 6, false},
		{".", "standup preflight", 2, []string{several}, 6, false},
		{".", "unwedge", 2, []string{several}, 6, false},
		{"clusters/odd", "tiers", 1, []string{"error: standup.yaml:3:3: ", "serverr"}, 2, false},
		{"clusters/odd", "standup preflight", 1, []string{"error: standup.yaml:3:3: ", "serverr"}, 2, false},
		{"clusters/odd", "unwedge", 1, []string{"error: standup.yaml:3:3: ", "serverr"}, 2, false},
		{"clusters/prod", "tiers --expect-server https://api.dev.example.org:6443", 5, []string{"server expected twice, and differently", "standup.yaml:2:11"}, 6, false},
		{"clusters/prod", "standup preflight", 1, []string{"Flux is not installed there"}, 1, true},
	} {
		t.Run(strings.TrimSpace(tt.dir+" "+tt.command), func(t *testing.T) {
			sh := shellFor(t, c)
			if tt.dir != "" {
				sh.dir = filepath.Join(two, tt.dir)
			}
			mark := c.Mark()
			o := sh.want(t, tt.code, strings.Fields(tt.command)...)
			o.holds(t, o.stderr, tt.says...)
			oneSentence(t, o, tt.lines)
			events, err := c.Since(t.Context(), mark)
			if err != nil {
				t.Fatal(err)
			}
			if asked := slices.ContainsFunc(events, func(e cluster.Event) bool { return strings.HasPrefix(e.UserAgent, "kubectl-") }); asked != tt.asks {
				t.Errorf("%s\nasked the server: %v\n%s", o, asked, events.By("kubectl-"))
			}
			mutatedNothing(t, c, mark)
		})
	}
}
