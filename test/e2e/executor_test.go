// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubestandup/kubestandup/pkg/wedge"
	"github.com/kubestandup/kubestandup/test/cluster"
)

// marker is a value that no output may ever hold.
const marker = "marker-of-a-secret-value"

// chart has two ConfigMaps, a Secret and a Service that stays at an uninstall;
// its pre-delete hook never ends, since nothing runs its Pod.
func writeChart(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "stuck")
	for name, text := range map[string]string{
		"Chart.yaml":  "apiVersion: v2\nname: stuck\nversion: 1.0.0\n",
		"values.yaml": "password: " + marker + "\n",
		"templates/objects.yaml": `
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}-a}
data: {text: "first"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}-b}
data: {text: "second"}
---
apiVersion: v1
kind: Secret
metadata: {name: {{ .Release.Name }}-secret}
stringData: {password: {{ .Values.password | quote }}}
---
apiVersion: v1
kind: Service
metadata: {name: {{ .Release.Name }}-kept, annotations: {helm.sh/resource-policy: keep}}
spec: {ports: [{port: 80}]}
`,
		"templates/hook.yaml": `
apiVersion: batch/v1
kind: Job
metadata: {name: {{ .Release.Name }}-hook, annotations: {helm.sh/hook: pre-delete}}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: example.org/none}]}}}
`,
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// stuckRelease is a release of plain Helm that was being uninstalled when helm
// was killed.
type stuckRelease struct {
	c        *cluster.Cluster
	ns, name string
	sh       *shell
	flags    []string
	backups  string
}

func newStuckRelease(t *testing.T, c *cluster.Cluster, chart, ns, name string, major int) *stuckRelease {
	t.Helper()
	if err := c.Apply(t.Context(), "apiVersion: v1\nkind: Namespace\nmetadata: {name: "+ns+"}\n"); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"install", name, chart, "-n", ns},
		{"upgrade", name, chart, "-n", ns},
	} {
		if out, err := c.Helm(t.Context(), major, args...); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	r := &stuckRelease{c: c, ns: ns, name: name, sh: shellFor(t, c), backups: filepath.Join(t.TempDir(), "backups")}
	if err := c.HelmKilled(t.Context(), major, client.ObjectKey{Namespace: ns, Name: r.record(2)}, "uninstalling", nil,
		"uninstall", name, "-n", ns, "--timeout", "10m"); err != nil {
		t.Fatal(err)
	}
	r.flags = append([]string{
		"unwedge", "-n", ns, "--uninstalling=finish", "--older-than", "1ms", "--backup-dir", r.backups,
	}, expect(t, c)...)
	return r
}

func (r *stuckRelease) record(n int) string {
	return fmt.Sprintf("sh.helm.release.v1.%s.v%d", r.name, n)
}

func (r *stuckRelease) with(flags ...string) []string { return append(slices.Clone(r.flags), flags...) }

// left names what is left of the release: its objects and records.
func (r *stuckRelease) left(t *testing.T) string {
	t.Helper()
	var names []string
	var maps corev1.ConfigMapList
	var secrets corev1.SecretList
	var services corev1.ServiceList
	for _, list := range []client.ObjectList{&maps, &secrets, &services} {
		if err := r.c.Client().List(t.Context(), list, client.InNamespace(r.ns)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range maps.Items {
		names = append(names, maps.Items[i].Name)
	}
	for i := range secrets.Items {
		names = append(names, secrets.Items[i].Name)
	}
	for i := range services.Items {
		names = append(names, services.Items[i].Name)
	}
	names = slices.DeleteFunc(names, func(n string) bool { return n == "kube-root-ca.crt" })
	slices.Sort(names)
	return strings.Join(names, " ")
}

// mutating are the requests of unwedge that changed the release's namespace,
// or no namespace at all.
func (r *stuckRelease) mutating(t *testing.T, mark cluster.Mark) cluster.Events {
	t.Helper()
	return sent(t, r.c, mark, "kubectl-unwedge").Mutating().Where(func(e cluster.Event) bool { return e.Namespace == r.ns || e.Namespace == "" })
}

// planOf decodes what -o json printed.
func planOf(t *testing.T, o outcome) wedge.Plan {
	t.Helper()
	var p wedge.Plan
	if err := json.Unmarshal([]byte(o.stdout), &p); err != nil {
		t.Fatalf("%s\nnot a plan: %v", o, err)
	}
	return p
}

// TestExecutor is what holds for every repair, whatever its cause.
func TestExecutor(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, cluster.Options{
		Components: []cluster.Component{cluster.ControllerManager}, FluxCRDs: true, Users: []cluster.User{{Name: "blind"}},
	})
	chart := writeChart(t)
	cases := []struct {
		name string
		run  func(*testing.T)
	}{
		{"a dry run changes nothing", func(t *testing.T) { dryRun(t, newStuckRelease(t, c, chart, "dry", "db", 4)) }},
		{"a repair", func(t *testing.T) { repaired(t, newStuckRelease(t, c, chart, "whole", "db", 3)) }},
		{"another writer", func(t *testing.T) { raced(t, newStuckRelease(t, c, chart, "race", "db", 4), chart) }},
		{"killed", func(t *testing.T) { killed(t, c, chart) }},
		{"what may not be looked at", func(t *testing.T) { blind(t, newStuckRelease(t, c, chart, "blind", "db", 4)) }},
		{"backups", func(t *testing.T) { restored(t, newStuckRelease(t, c, chart, "backup", "db", 4)) }},
	}
	together(t, "at once", len(cases), func(i int) (string, func(*testing.T)) { return cases[i].name, cases[i].run })
}

// dryRun: nothing is sent that changes anything, and without the right
// expectation nothing is sent that looks closely either.
func dryRun(t *testing.T, r *stuckRelease) {
	before := r.left(t)
	mark := r.c.Mark()
	o := r.sh.want(t, 0, "unwedge", "-n", r.ns, "--older-than", "1ms")
	o.holds(t, o.stdout, "Release/dry/db v2: uninstalling for", "(release-uninstalling)", "--uninstalling=finish", "--uninstalling=keep", "finish deletes ConfigMap/dry/db-a",
		"Service/dry/db-kept (helm.sh/resource-policy says keep)", "its hooks are left out: Job/db-hook")
	o = r.sh.want(t, 3, "unwedge", "-n", r.ns, "--older-than", "1ms", "--exit-code", "-o", "json")
	if p := planOf(t, o); len(p.Verdicts) != 1 || p.Verdicts[0].Choice == nil || len(p.Verdicts[0].Actions) != 0 {
		t.Errorf("%s\nwant one verdict with a choice", o)
	}
	// A choice alone does nothing.
	o = r.sh.want(t, 6, r.with()...)
	o.holds(t, o.stdout, "1. ConfigMap/dry/db-a: delete it, DESTRUCTIVE")
	o.holds(t, o.stderr, "--uninstalling=finish is done only together with --confirm-destructive")
	// Nor does a choice that was not made.
	o = r.sh.want(t, 6, append([]string{"unwedge", "-n", r.ns, "--older-than", "1ms", "--confirm-destructive"}, expect(t, r.c)...)...)
	o.holds(t, o.stderr, "a person has to choose", "--uninstalling=keep --confirm-destructive --context test")
	// What deletes nothing is all that --apply does.
	o = r.sh.want(t, 6, r.with("--apply")...)
	o.holds(t, o.stderr, "its repair deletes something")
	for name, flags := range map[string][]string{
		"no expectation": nil,
		"another URL":    {"--expect-server", "https://api.example.org:6443"},
		"another UID":    {"--expect-server", r.c.URL(), "--expect-uid", "00000000-58a1-4b0e-9c57-2d1f7a8e4b11"},
	} {
		if o := r.sh.run(t, append([]string{"unwedge", "-n", r.ns, "--uninstalling=finish", "--older-than", "1ms", "--confirm-destructive"}, flags...)...); o.code != 5 {
			t.Errorf("%s: %s\nwant exit code 5", name, o)
		}
	}
	if sent := r.mutating(t, mark); len(sent) != 0 {
		t.Errorf("sent:\n%s", sent)
	}
	if after := r.left(t); after != before {
		t.Errorf("left %s, want %s", after, before)
	}
	if _, err := os.Stat(r.backups); !os.IsNotExist(err) {
		t.Errorf("backups were written: %v", err)
	}
}

// repaired: the objects go in Helm's order, then the records; what is to be
// kept stays; no secret value is in anything that was printed.
func repaired(t *testing.T, r *stuckRelease) {
	mark := r.c.Mark()
	o := r.sh.want(t, 0, r.with("--confirm-destructive", "-o", "json")...)
	p := planOf(t, o)
	var deleted []string
	for _, a := range p.Verdicts[0].Actions {
		if a.Result != wedge.Done {
			t.Errorf("%s %s: %s %s", a.Verb, a.Object, a.Result, a.Message)
		}
		if a.Verb == wedge.Delete {
			deleted = append(deleted, a.Object.Name)
			holdsSecretly(t, a.Backup)
		}
	}
	want := "db-a db-b db-secret " + r.record(1) + " " + r.record(2)
	if got := strings.Join(deleted, " "); got != want {
		t.Errorf("deleted %s, want %s", got, want)
	}
	if left := r.left(t); left != "db-kept" {
		t.Errorf("left %s", left)
	}
	for _, e := range r.mutating(t, mark) {
		if e.Verb != "delete" {
			t.Errorf("sent %s", e)
		}
	}
	if strings.Contains(o.stdout+o.stderr, marker) {
		t.Errorf("%s\nholds a secret value", o)
	}
	// Done again, there is nothing to do.
	mark = r.c.Mark()
	o = r.sh.want(t, 0, r.with("--confirm-destructive")...)
	o.holds(t, o.stderr, "Nothing is wedged in namespace whole.")
	if again := r.mutating(t, mark); len(again) != 0 {
		t.Errorf("sent:\n%s", again)
	}
}

// blind: whoever may delete the records, but not look at what the release owns,
// deletes nothing.
func blind(t *testing.T, r *stuckRelease) {
	if err := r.c.Apply(t.Context(), `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: blind}
rules:
- apiGroups: ["*"]
  resources: [secrets, services, persistentvolumeclaims, namespaces, customresourcedefinitions, apiservices, deployments, pods,
    validatingwebhookconfigurations, mutatingwebhookconfigurations, kustomizations, helmreleases, gitrepositories, ocirepositories,
    buckets, externalartifacts, helmcharts, helmrepositories]
  verbs: ["*"]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: blind}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: blind}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: blind}]
`); err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := r.c.KubeconfigFor("blind")
	if err != nil {
		t.Fatal(err)
	}
	before := r.left(t)
	mark := r.c.Mark()
	o := newShell(t, kubeconfig).want(t, 6, r.with("--confirm-destructive")...)
	o.holds(t, o.stderr, "what is left of the release could not be looked at", `is forbidden: User "blind" cannot get resource "configmaps"`)
	if sent := r.mutating(t, mark); len(sent) != 0 {
		t.Errorf("sent:\n%s", sent)
	}
	if after := r.left(t); after != before {
		t.Errorf("left %s, want %s", after, before)
	}
}

// holdsSecretly: a backup is readable by its owner alone, and its name tells
// nothing of what is in it.
func holdsSecretly(t *testing.T, path string) {
	t.Helper()
	file, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.Stat(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	if file.Mode().Perm() != 0o600 || dir.Mode().Perm() != 0o700 {
		t.Errorf("%s has mode %o in a directory of mode %o", path, file.Mode().Perm(), dir.Mode().Perm())
	}
	if strings.Contains(path, marker) {
		t.Errorf("%s holds a secret value", path)
	}
}

// raced: while one action waits, somebody writes to the object of a later one.
// That action is skipped and the rest of the run goes on.
func raced(t *testing.T, r *stuckRelease, chart string) {
	other := newStuckRelease(t, r.c, chart, r.ns, "other", 4)
	third := newStuckRelease(t, r.c, chart, r.ns, "third", 3)
	fourth := newStuckRelease(t, r.c, chart, r.ns, "vault", 4)
	held := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.ns, Name: "db-a"}}
	finalizers := func(list string) {
		t.Helper()
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":`+list+`}}`))
		if err := r.c.Client().Patch(t.Context(), held, patch); err != nil {
			t.Fatal(err)
		}
	}
	finalizers(`["example.org/hold"]`)
	run := r.sh.start(t, r.with("--confirm-destructive", "-o", "json")...)
	run.says(t, "wait Secret/race/"+r.record(2))
	record := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: r.ns, Name: r.record(1)}}
	if err := r.c.Client().Patch(t.Context(), record, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"by":"another"}}}`))); err != nil {
		t.Fatal(err)
	}
	// One object is taken over by another release, and one is written to.
	for name, merge := range map[string]string{
		"third-b": `{"metadata":{"annotations":{"meta.helm.sh/release-name":"another"}}}`,
		"vault-a": `{"data":{"text":"precious"}}`,
	} {
		taken := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.ns, Name: name}}
		if err := r.c.Client().Patch(t.Context(), taken, client.RawPatch("application/merge-patch+json", []byte(merge))); err != nil {
			t.Fatal(err)
		}
	}
	finalizers(`null`)
	o := run.wait(t)
	if o.code != 1 {
		t.Errorf("%s\nwant exit code 1", o)
	}
	o.holds(t, o.stderr, "error: Secret/race/"+r.record(1)+" was changed since the plan",
		"ConfigMap/race/third-b was changed since the plan: it now belongs to release race/another", "ConfigMap/race/vault-a was changed since the plan")
	results := map[string]wedge.Result{}
	for _, v := range planOf(t, o).Verdicts {
		for _, a := range v.Actions {
			if a.Verb == wedge.Delete {
				results[a.Object.Name] = a.Result
			}
		}
	}
	for name, want := range map[string]wedge.Result{
		"db-b": wedge.Done, r.record(1): wedge.Skipped, r.record(2): wedge.Skipped,
		"other-a": wedge.Done, other.record(2): wedge.Done,
		"third-a": wedge.Done, "third-b": wedge.Skipped, third.record(2): wedge.Skipped,
		"vault-a": wedge.Skipped, "vault-b": wedge.Skipped, fourth.record(2): wedge.Skipped,
	} {
		if results[name] != want {
			t.Errorf("%s: %s, want %s", name, results[name], want)
		}
	}
	// Run again it does the rest.
	r.sh.want(t, 0, r.with("--confirm-destructive")...)
	if left := r.left(t); left != "db-kept other-kept third-b third-kept vault-kept" {
		t.Errorf("left %s", left)
	}
}

// killed: after any action the process may be killed; run again, it does the
// rest, and each object that is gone has a backup.
func killed(t *testing.T, c *cluster.Cluster, chart string) {
	const records = "sh.helm.release.v1.db.v"
	for after, action := range []string{
		"delete ConfigMap/NS/db-a", "delete ConfigMap/NS/db-b", "delete Secret/NS/db-secret", "wait Secret/NS/" + records + "2",
		"delete Secret/NS/" + records + "1", "delete Secret/NS/" + records + "2",
	} {
		r := newStuckRelease(t, c, chart, fmt.Sprintf("kill%d", after), "db", 3+after%2)
		action = strings.Replace(action, "NS", r.ns, 1)
		run := r.sh.start(t, r.with("--confirm-destructive")...)
		run.says(t, "done "+action)
		if err := run.cmd.Process.Kill(); err != nil {
			t.Logf("it was done before it could be killed after %q: %v", action, err)
		}
		_ = run.cmd.Wait() // it was killed
		run.cancel()
		r.sh.want(t, 0, r.with("--confirm-destructive")...)
		if left := r.left(t); left != "db-kept" {
			t.Errorf("killed after %q: left %s", action, left)
		}
		saved, err := filepath.Glob(filepath.Join(r.backups, "*", "*.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"ConfigMap_" + r.ns + "_db-a", "ConfigMap_" + r.ns + "_db-b", "Secret_" + r.ns + "_db-secret", r.record(1), r.record(2)} {
			if !slices.ContainsFunc(saved, func(path string) bool { return strings.Contains(path, name) }) {
				t.Errorf("killed after %q: no backup of %s among %s", action, name, saved)
			}
		}
	}
}

// restored: the command that is printed puts back, byte for byte, what was
// deleted.
func restored(t *testing.T, r *stuckRelease) {
	names := []string{"db-secret", r.record(1), r.record(2)}
	read := func() map[string]map[string][]byte {
		t.Helper()
		all := map[string]map[string][]byte{}
		for _, name := range names {
			var s corev1.Secret
			err := r.c.Client().Get(t.Context(), client.ObjectKey{Namespace: r.ns, Name: name}, &s)
			if err != nil && !apierrors.IsNotFound(err) {
				t.Fatal(err)
			}
			all[name] = s.Data
			if s.Name != "" {
				all[name]["labels"] = []byte(fmt.Sprint(s.Labels, s.Type))
			}
		}
		return all
	}
	before := read()
	o := r.sh.want(t, 0, r.with("--confirm-destructive")...)
	_, command, found := strings.Cut(o.stderr, "To put back what was backed up (the objects, not the data that they held): kubectl ")
	if !found {
		t.Fatalf("%s\nsays nothing of how to put it back", o)
	}
	command, _, _ = strings.Cut(command, "\n")
	r.sh.want(t, 0, strings.Fields(command)...)
	after := read()
	for _, name := range names {
		if fmt.Sprint(after[name]) != fmt.Sprint(before[name]) || len(after[name]) == 0 {
			t.Errorf("%s is not what it was", name)
		}
	}
	if left := r.left(t); left != "db-a db-b db-kept db-secret "+r.record(1)+" "+r.record(2) {
		t.Errorf("left %s", left)
	}
	// The release is what it was: wedged in the same way.
	o = r.sh.want(t, 6, r.with()...)
	o.holds(t, o.stdout, "release-uninstalling")
}
