// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package e2e

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubestandup/kubestandup/pkg/wedge"
	"github.com/kubestandup/kubestandup/test/cluster"
)

// staleCaches: what kubectl has cached of this server, and of no other, is
// deleted when that is asked for.
func staleCaches(t *testing.T, c *cluster.Cluster) {
	const group = "disc01.example.com"
	crd := definition(group, "Widget", "Namespaced", "", version("v1", true, true))
	apply(t, c, crd)
	p := newPatient(t, c, "--only", "stale-discovery-cache")
	cache := filepath.Join(p.sh.dir, "cache")
	p.sh.env = []string{"KUBECACHEDIR=" + cache}
	p.sh.want(t, 0, "get", "widgets."+group)
	servers, err := os.ReadDir(filepath.Join(cache, "discovery"))
	if err != nil || len(servers) != 1 {
		t.Fatalf("kubectl has cached %v, %v", servers, err)
	}
	own := filepath.Join(cache, "discovery", servers[0].Name())
	// Another server's, of which the same is known.
	other := filepath.Join(cache, "discovery", "api.example.org_6443")
	if err := os.CopyFS(other, os.DirFS(own)); err != nil {
		t.Fatal(err)
	}
	count := func(dir string) (files int) {
		err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
			if err == nil && !e.IsDir() {
				files++
			}
			return nil //nolint:nilerr // what is not there has no files
		})
		if err != nil {
			t.Fatal(err)
		}
		return files
	}
	before := count(own)

	object := crdObject("widgets." + group)
	remove(t, c, object)
	untilGone(t, c, object)
	apply(t, c, strings.Replace(crd, "scope: Namespaced", "scope: Cluster", 1))
	check := func(v *wedge.Verdict) {
		t.Helper()
		plans(t, v, "delete "+v.Object.String())
		tells(t, v, "Widget is of the cluster, cached as namespaced", "Other servers' caches stay", own)
	}
	v, _ := p.verdict(t, 0, wedge.StaleCache, "stale")
	check(v)
	if count(own) != before {
		t.Error("a dry run has deleted files")
	}
	// The flag wins over the environment.
	p.healthy(t, "--cache-dir", filepath.Join(p.sh.dir, "empty"))
	p.sh.env = []string{"KUBECACHEDIR=" + filepath.Join(p.sh.dir, "empty")}
	p.healthy(t)
	mark := c.Mark()
	v, _ = p.verdict(t, 0, wedge.StaleCache, "stale", "--cache-dir", cache, "--apply")
	check(v)
	if count(own) != 0 || count(other) != before {
		t.Errorf("of this server %d files are left, of the other %d of %d", count(own), count(other), before)
	}
	p.did(t, mark, ofGroup(group))
	p.healthy(t, "--cache-dir", cache)
	p.sh.env = []string{"KUBECACHEDIR=" + cache}
	p.sh.want(t, 0, "get", "widgets."+group)
	p.healthy(t) // equal: nothing is said
}

// noExpectation: the current context alone is no target for what changes
// anything, not even on this machine.
func noExpectation(t *testing.T, c *cluster.Cluster) {
	sh := shellFor(t, c)
	mark := c.Mark()
	for _, flags := range [][]string{{"--apply"}, {"--confirm-destructive"}, {"--apply", "--context", "test"}} {
		o := sh.want(t, 5, append([]string{"unwedge", "--only", "cdi-error"}, flags...)...)
		o.holds(t, o.stderr, c.URL(), uidOf(t, c), "--expect-server "+c.URL())
		if o.stdout != "" {
			t.Errorf("%s\nwant no plan", o)
		}
	}
	if got := sent(t, c, mark, "kubectl-unwedge").Mutating().Where(func(e cluster.Event) bool { return strings.Contains(e.Name, "ctx01") }); len(got) > 0 {
		t.Errorf("sent:\n%s", got)
	}
	// A dry run says whom it talks to.
	o := sh.run(t, "unwedge", "--only", "stale-mapper")
	o.holds(t, o.stderr, c.URL(), uidOf(t, c))
}

// twoContexts is a kubeconfig whose current context is another cluster's.
func twoContexts(t *testing.T, c *cluster.Cluster) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(c.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	there := config.Contexts["test"].DeepCopy()
	there.Cluster = "elsewhere"
	server := config.Clusters[config.Contexts["test"].Cluster].DeepCopy()
	server.Server = "https://127.0.0.1:1"
	config.Clusters["elsewhere"], config.Contexts["elsewhere"], config.CurrentContext = server, there, "elsewhere"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// printedCommands: commands of kubectl, helm and flux, in the report and beside
// it, name the context, so that they lead to this cluster whatever the current
// one is by then. Those of Helm are pasted, with the real one.
func printedCommands(t *testing.T, c *cluster.Cluster) {
	const ns = "ctx03"
	// The test writes the status that helm-controller would.
	stalled := thing("helm.toolkit.fluxcd.io/v2", "HelmRelease", ns, "app")
	apply(t, c, namespaceText(ns), "{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {name: app, namespace: "+ns+
		"}, spec: {interval: 1h, chartRef: {kind: OCIRepository, name: app}}}")
	merge(t, c, stalled, "helm-controller", `{"status":{"observedGeneration":1,"conditions":[
		{"type":"Stalled","status":"True","reason":"MissingRollbackTarget","message":"missing target release for rollback","observedGeneration":1,"lastTransitionTime":"2026-01-01T00:00:00Z"},
		{"type":"Ready","status":"False","reason":"UpgradeFailed","message":"upgrade failed","observedGeneration":1,"lastTransitionTime":"2026-01-01T00:00:00Z"}],
		"storageNamespace":"ctx03","history":[{"name":"app","namespace":"ctx03","version":1,"digest":"sha256:0","chartName":"app","chartVersion":"1.0.0","configDigest":"sha256:0","status":"failed","firstDeployed":"2026-01-01T00:00:00Z","lastDeployed":"2026-01-01T00:00:00Z"}]}}`, "status")
	chart := filepath.Join(t.TempDir(), "web")
	writeFiles(t, chart, map[string]string{
		"Chart.yaml":        "apiVersion: v2\nname: web\nversion: 1.0.0\n",
		"templates/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n",
		"templates/job.yaml": "apiVersion: batch/v1\nkind: Job\nmetadata: {name: web-hook, annotations: {helm.sh/hook: pre-upgrade}}\n" +
			"spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: example.org/none}]}}}\n",
	})
	if out, err := c.Helm(t.Context(), 4, "install", "web", chart, "-n", ns); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := c.HelmKilled(t.Context(), 4, client.ObjectKey{Namespace: ns, Name: "sh.helm.release.v1.web.v2"}, "pending-upgrade",
		&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web-hook"}}, "upgrade", "web", chart, "-n", ns, "--timeout", "1h"); err != nil {
		t.Fatal(err)
	}
	p := newPatient(t, c, "-n", ns, "--older-than", "1ms", "--context", "test")
	p.sh.kubeconfig = twoContexts(t, c)
	p.sh.env = []string{"HELM_KUBECONTEXT=elsewhere", "KUBECONTEXT=elsewhere"}
	plan, _ := p.unwedge(t, 0)
	var commands []string
	for _, v := range plan.Verdicts {
		commands = append(commands, v.Commands...)
	}
	leads := func(command string) {
		t.Helper()
		words := strings.Fields(command)
		flag := "--context"
		if words[0] == "helm" {
			flag = "--kube-context"
		}
		if i := slices.Index(words, flag); i < 0 || words[i+1] != "test" {
			t.Errorf("%q leads to no cluster", command)
		}
		if i := slices.Index(words, "-n"); i < 0 || words[i+1] != ns {
			t.Errorf("%q leads to no namespace", command)
		}
	}
	tools := map[string]int{}
	for _, command := range commands {
		leads(command)
		tools[strings.Fields(command)[0]]++
	}
	if tools["helm"] == 0 || tools["flux"] == 0 {
		t.Errorf("the plan has the commands %q", commands)
	}
	// What the text says is the same, and names the plugin's own as well.
	args := slices.Concat([]string{"unwedge", "--backup-dir", p.backups}, p.scope, p.named)
	o := p.sh.want(t, 0, args...)
	for _, command := range commands {
		flat := strings.Join(strings.Fields(o.stdout), " ")
		if !strings.Contains(flat, command) {
			t.Errorf("%s\nit does not print %s", o, command)
		}
	}
	p.sh.want(t, 0, append(args, "--allow", "secret/"+ns+"/sh.helm.release.v1.web.v2")...)
	o = p.sh.run(t, append(args, "--allow", "secret/"+ns+"/sh.helm.release.v1.web.v2")...)
	_, again, found := strings.Cut(o.stderr, "To do what deletes, too: ")
	if !found {
		t.Fatalf("%s\nit does not say how the plan is carried out", o)
	}
	again, _, _ = strings.Cut(again, "\n")
	leads(again)
	if !strings.Contains(again, "--expect-server "+c.URL()) || !strings.Contains(again, "--allow secret/"+ns) {
		t.Errorf("%q does not say which server, or not what may be lost", again)
	}
	// The rollback that is printed, pasted where the current context is another.
	for _, command := range commands {
		if words := strings.Fields(command); words[0] == "helm" {
			if out, err := c.Helm(t.Context(), 4, append(words[1:], "--kubeconfig", p.sh.kubeconfig)...); err != nil {
				t.Errorf("%s: %v\n%s", command, err, out)
			}
		}
	}
	if plan, o := p.unwedge(t, 0); len(plan.Verdicts) != 1 || plan.Verdicts[0].Cause != wedge.ReleaseNoTarget {
		t.Errorf("%s\nthe rollback has mended the release", o)
	}
}

func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// movedInMidRun: a command goes on where it began, though its kubeconfig leads
// elsewhere by now.
func movedInMidRun(t *testing.T, c *cluster.Cluster) {
	const group = "ctx03.example.com"
	apply(t, c, namespaceText("ctx03-moved"), definition(group, "Widget", "Namespaced", "", version("v1", true, true)))
	one := thing(group+"/v1", "Widget", "ctx03-moved", "one")
	one.SetFinalizers([]string{group + "/cleanup", "orphan"})
	create(t, c, one, "gone-operator")
	crd := crdObject("widgets." + group)
	remove(t, c, crd)
	until(t, c, one, func() bool { return one.GetDeletionTimestamp() != nil })
	p := newPatient(t, c, "crd/widgets."+group, "--allow", "crd/widgets."+group)
	raw, err := os.ReadFile(c.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	p.sh.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(p.sh.kubeconfig, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	run := p.sh.start(t, slices.Concat([]string{"unwedge", "-o", "json", "--timeout", "3m", "--backup-dir", p.backups}, p.scope, p.named, []string{"--confirm-destructive"})...)
	// One finalizer is Kubernetes' own and stays, so that it waits.
	run.says(t, "wait Widget/ctx03-moved/one")
	moved, err := os.ReadFile(twoContexts(t, c))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p.sh.kubeconfig, moved, 0o600); err != nil {
		t.Fatal(err)
	}
	if exists(t, c, one) {
		merge(t, c, one, "test", `{"metadata":{"finalizers":null}}`)
	}
	if o := run.wait(t); o.code != 0 {
		t.Errorf("%s\nwant exit code 0", o)
	}
	untilGone(t, c, crd)
	// Typed now, it leads elsewhere, and does not prove to be this cluster.
	if o := p.sh.run(t, append([]string{"unwedge", "--apply"}, p.named...)...); o.code != 5 && o.code != 1 {
		t.Errorf("%s\nwant exit code 5 or 1", o)
	}
}

// inCluster: in a Pod without a kubeconfig the service account is not used by
// itself, neither to change nor to look.
func inCluster(t *testing.T, c *cluster.Cluster) {
	sh := newShell(t, filepath.Join(t.TempDir(), "none"))
	sh.env = []string{"KUBERNETES_SERVICE_HOST=127.0.0.1", fmt.Sprintf("KUBERNETES_SERVICE_PORT=%d", c.Port())}
	mark := c.Mark()
	for _, flags := range [][]string{nil, {"--apply"}, append([]string{"--confirm-destructive"}, expect(t, c)...)} {
		o := sh.run(t, append([]string{"unwedge", "--only", "stale-mapper"}, flags...)...)
		if o.code == 0 || o.stdout != "" {
			t.Errorf("%s\nwant a refusal", o)
		}
		o.holds(t, o.stderr, "the service account of this Pod is not used by itself")
	}
	events, err := c.Since(t.Context(), mark)
	if err != nil {
		t.Fatal(err)
	}
	if got := events.Where(func(e cluster.Event) bool { return strings.HasPrefix(e.User, "system:anonymous") }); len(got) > 0 {
		t.Errorf("sent:\n%s", got)
	}
}
