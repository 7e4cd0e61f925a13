// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubestandup/kubestandup/pkg/standup/config"
	"github.com/kubestandup/kubestandup/test/cluster"
)

const initLive = `
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata:
  name: flux-system
  namespace: flux-system
  labels: {kustomize.toolkit.fluxcd.io/name: flux-system, kustomize.toolkit.fluxcd.io/namespace: flux-system}
spec: {interval: 1h, path: ./clusters/prod, prune: true, sourceRef: {kind: GitRepository, name: flux-system}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata:
  name: apps
  namespace: flux-system
  labels: {kustomize.toolkit.fluxcd.io/name: flux-system, kustomize.toolkit.fluxcd.io/namespace: flux-system}
spec:
  interval: 1h
  path: ./apps
  prune: true
  sourceRef: {kind: GitRepository, name: flux-system}
  postBuild:
    substituteFrom:
    - {kind: ConfigMap, name: cluster-vars}
    - {kind: Secret, name: cluster-secrets}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata:
  name: backup
  namespace: flux-system
  labels: {kustomize.toolkit.fluxcd.io/name: flux-system, kustomize.toolkit.fluxcd.io/namespace: flux-system}
spec:
  interval: 1h
  path: ./backup
  prune: true
  suspend: true
  sourceRef: {kind: GitRepository, name: flux-system}
  postBuild:
    substituteFrom: [{kind: ConfigMap, name: cluster-vars}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: cluster-vars, namespace: flux-system}
data: {CLUSTER_NAME: prod, DOMAIN: prod.example.org, REPLICAS: "3", BACKUP_ENDPOINT: TBD-backup, ZONE: eu}
---
apiVersion: v1
kind: Secret
metadata: {name: cluster-secrets, namespace: flux-system}
stringData: {API_TOKEN: swordfish-live}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: kyverno, namespace: flux-system}
spec:
  interval: 1h
  chart: {spec: {chart: kyverno, version: 3.x, sourceRef: {kind: HelmRepository, name: kyverno}}}
  values: {crds: {install: false}, password: swordfish-values}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: plain, namespace: flux-system}
spec:
  interval: 1h
  chart: {spec: {chart: plain, sourceRef: {kind: HelmRepository, name: kyverno}}}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web, namespace: default}
spec:
  rules:
  - {host: web.prod.example.org, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}}
  - {host: api.prod.example.org, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: init-visitor}
rules: [{apiGroups: [""], resources: [namespaces], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: init-visitor}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: init-visitor}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: visitor}]
`

func initVars(name, domain, replicas, endpoint string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cluster-vars, namespace: flux-system}\ndata:\n" +
		"  CLUSTER_NAME: " + name + "\n  DOMAIN: " + domain + "\n  REPLICAS: \"" + replicas + "\"\n  BACKUP_ENDPOINT: " + endpoint + "\n  ZONE: eu\n"
}

func initSecret(value string) string {
	return "apiVersion: v1\nkind: Secret\nmetadata: {name: cluster-secrets, namespace: flux-system}\nstringData: {API_TOKEN: " + value + "}\n"
}

// initTree is the checkout that the person is in.
func initTree(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for file, text := range map[string]string{
		".git/HEAD":                 "ref: refs/heads/main\n",
		"clusters/prod/vars.yaml":   initVars("prod", "prod.example.org", "3", "TBD-backup"),
		"clusters/dev/vars.yaml":    initVars("dev-1", "dev.example.org", "1", "https://backup.dev.example.org"),
		"clusters/prod/secret.yaml": initSecret("swordfish-prod"),
		"clusters/dev/secret.yaml":  initSecret("swordfish-dev"),
		"apps/web.yaml":             "host: web.${DOMAIN}\n",
		"backup/velero.yaml":        "endpoint: ${BACKUP_ENDPOINT}\n",
		"charts/a/templates/a.yaml": "kind: ConfigMap\n{{ if .Values.a }}\n",
	} {
		path := filepath.Join(root, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// initNode makes a node and writes the status that its kubelet would: there is
// none.
func initNode(ctx context.Context, c *cluster.Cluster) error {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}
	if err := c.Client().Create(ctx, node); err != nil {
		return err
	}
	node.Status.NodeInfo = corev1.NodeSystemInfo{KernelVersion: "6.8.0-45-generic", KubeletVersion: "v1.36.1"}
	node.Status.Capacity = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("32653208Ki")}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return c.Client().Status().Update(ctx, node)
}

// TestFluxCRDsAlone: what needs Flux's kinds and none of its controllers, one
// after the other on the same API server.
func TestFluxCRDsAlone(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, cluster.Options{Components: []cluster.Component{}, FluxCRDs: true, Users: []cluster.User{{Name: "visitor"}}})
	t.Run("ReleaseRequests", func(t *testing.T) { releaseRequests(t, c) })
	t.Run("Init", func(t *testing.T) { testInit(t, c) })
}

// testInit: what init writes is at once a standup.yaml, and says what is there.
func testInit(t *testing.T, c *cluster.Cluster) {
	if err := c.Apply(t.Context(), initLive); err != nil {
		t.Fatal(err)
	}
	if err := initNode(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	root, sh := initTree(t), shellFor(t, c)
	sh.dir = filepath.Join(root, "clusters", "prod")
	mark := c.Mark()
	o := sh.want(t, 0, "standup", "init")
	mutatedNothing(t, c, mark)
	if o.stderr != "" {
		t.Errorf("%s\nwant nothing on stderr", o)
	}
	if requests := sent(t, c, mark, "kubectl-standup"); len(requests) != 11 {
		t.Errorf("%d requests:\n%s", len(requests), requests)
	}
	t.Logf("\n%s", o.stdout)
	noSwordfish(t, o)
	file := filepath.Join(sh.dir, config.FileName)
	if err := os.WriteFile(file, []byte(o.stdout), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := config.Read(file, file)
	if err != nil {
		t.Fatal(err)
	}
	if got.Cluster.UID != uidOf(t, c) || got.Cluster.Server != c.URL() {
		t.Errorf("got %+v", got.Cluster)
	}
	if want := (config.Flux{Namespace: "flux-system", Root: "flux-system"}); got.Flux != want {
		t.Errorf("got %+v", got.Flux)
	}
	if want := (config.Nodes{Count: 1, MinKernel: "6.8", MinKubelet: "1.36", MinMemory: "31Gi"}); got.Nodes != want {
		t.Errorf("got %+v", got.Nodes)
	}
	wantVariables := []config.Variable{
		{Name: "BACKUP_ENDPOINT", Required: true, Forbid: []string{"https://backup.dev.example.org"}, Placeholder: "TBD-*"},
		{Name: "CLUSTER_NAME", Required: true, Forbid: []string{"dev-1"}},
		{Name: "DOMAIN", Required: true, Forbid: []string{"dev.example.org"}},
		{Name: "REPLICAS", Required: true},
	}
	if !reflect.DeepEqual(got.Variables, wantVariables) {
		t.Errorf("got %+v", got.Variables)
	}
	wantCharts := []config.FromChart{{HelmRelease: "flux-system/kyverno", Values: map[string]any{"crds": map[string]any{"install": true}}}}
	if !reflect.DeepEqual(got.CRDs.FromCharts, wantCharts) {
		t.Errorf("got %+v", got.CRDs.FromCharts)
	}
	o.holds(t, o.stdout,
		"  #domain: prod.example.org\n", "#- name: API_TOKEN\n", "or may not: ks/flux-system/backup.",
		`  #blocks: ["ks/flux-system/backup"]`, "# Suspended now by test since ", "  #- ks/flux-system/backup\n",
		"# Its place is clusters/prod/standup.yaml, beside", "Nothing was guessed about ZONE.")

	t.Run("the draft names the cluster", func(t *testing.T) {
		o := sh.run(t, "tiers")
		if strings.Contains(o.stderr, "not checked") || !strings.Contains(o.stdout, "backup") {
			t.Errorf("%s\nwant the tiers of a server that was checked", o)
		}
		// The file is no expectation of init: it is how it is made anew.
		again := sh.want(t, 0, "standup", "init", "--path", root)
		if again.stdout != got0(t, file) {
			t.Errorf("%s\nwant the same again", again)
		}
	})
	t.Run("bad input", func(t *testing.T) { initBadInput(t, c, file) })
	t.Run("a visitor", func(t *testing.T) { initVisitor(t, c) })
}

func got0(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func noSwordfish(t *testing.T, o outcome) {
	t.Helper()
	if strings.Contains(o.stdout+o.stderr, "swordfish") {
		t.Errorf("%s\nit tells a secret", o)
	}
}

func initBadInput(t *testing.T, c *cluster.Cluster, file string) {
	sh := shellFor(t, c)
	for _, tt := range []struct {
		command string
		code    int
		says    string
	}{
		{"--path " + file, 2, "error: --path " + file + " is a file: name the folder of the working tree"},
		{"--path absent", 2, "error: --path absent cannot be opened: no such file or directory"},
		{"extra", 2, `"kubectl standup init" takes no arguments`},
		{"-o json", 2, "unknown shorthand flag: 'o'"},
		{"--context nowhere", 1, "has no context nowhere"},
		{"--server " + nowhere, 1, "server " + nowhere + ": identity cannot be read: "},
		{"--expect-server https://other:6443", 5, "error: "},
	} {
		o := sh.want(t, tt.code, append([]string{"standup", "init"}, strings.Fields(tt.command)...)...)
		o.holds(t, o.stderr, tt.says)
		if o.stdout != "" {
			t.Errorf("%s\nwant nothing on stdout", o)
		}
	}
}

// initVisitor: who may read nothing but the identity gets that, and is told
// what is missing, in the file and beside it.
func initVisitor(t *testing.T, c *cluster.Cluster) {
	kubeconfig, err := c.KubeconfigFor("visitor")
	if err != nil {
		t.Fatal(err)
	}
	sh := newShell(t, kubeconfig)
	o := sh.want(t, 0, "standup", "init")
	file := filepath.Join(sh.dir, config.FileName)
	if err := os.WriteFile(file, []byte(o.stdout), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := config.Read(file, file); err != nil || got.Cluster.UID != uidOf(t, c) || got.Nodes.Count != 0 {
		t.Errorf("%s\n%+v, %v", o, got, err)
	}
	for _, what := range []string{"deployments", "helmreleases", "ingresses", "kustomizations", "nodes"} {
		o.holds(t, o.stdout, "# - "+what+": "+what)
		o.holds(t, o.stderr, "Warning: "+what+" could not be read: "+what)
	}
	o.holds(t, o.stdout, "# No working tree was read", "#nodes:")
}

// initWithoutFlux: a cold cluster can be named before Flux is there.
func initWithoutFlux(t *testing.T, c *cluster.Cluster) {
	sh := shellFor(t, c)
	o := sh.want(t, 0, "standup", "init", "--path", initTree(t))
	o.holds(t, o.stderr, "Warning: the cluster serves no kind of Flux")
	o.holds(t, o.stdout, "# This cluster serves no kind of Flux", "#flux:\n", "  #root: flux-system\n", "# No node was seen.")
	noSwordfish(t, o)
	file := filepath.Join(sh.dir, config.FileName)
	if err := os.WriteFile(file, []byte(o.stdout), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := config.Read(file, file); err != nil || got.Cluster.Server != c.URL() {
		t.Errorf("got %+v, %v", got, err)
	}
}
