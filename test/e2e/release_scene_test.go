// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubestandup/kubestandup/pkg/wedge"
	"github.com/kubestandup/kubestandup/test/cluster"
)

// waitsAtMost is for each wait of a repair. None of the tests lets it pass.
const waitsAtMost = "--timeout=3m"

// releaseScene is a namespace with one release that is called web.
type releaseScene struct {
	*releaseWorld
	ns      string
	backups string
	// uids are those of the objects that were there when it was left.
	uids map[string]types.UID
}

func (w *releaseWorld) scene(t *testing.T, ns string) *releaseScene {
	t.Helper()
	s := &releaseScene{w, ns, filepath.Join(w.sh.dir, ns), map[string]types.UID{}}
	s.apply(t, "{apiVersion: v1, kind: Namespace, metadata: {name: "+ns+"}}")
	return s
}

func (s *releaseScene) apply(t *testing.T, texts ...string) {
	t.Helper()
	if err := s.c.Apply(t.Context(), strings.Join(texts, "---\n")); err != nil {
		t.Fatal(err)
	}
}

// chart is the folder of the chart.
func (s *releaseScene) chart() string { return filepath.Join(s.charts, "chart") }

// helm runs a Helm in the namespace.
func (s *releaseScene) helm(t *testing.T, major int, args ...string) string {
	t.Helper()
	out, err := s.c.Helm(t.Context(), major, append(args, "-n", s.ns)...)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// killed kills a Helm while it waits for its hook, which never ends.
func (s *releaseScene) killed(t *testing.T, major, revision int, status string, args ...string) {
	t.Helper()
	hook := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "web-hook"}}
	record := client.ObjectKey{Namespace: s.ns, Name: recordName("web", revision)}
	if err := s.c.HelmKilled(t.Context(), major, record, status, hook, append(args, "-n", s.ns, "--timeout", "1h")...); err != nil {
		t.Fatal(err)
	}
}

// valuesFile is a flag for values that --set would take apart.
func (s *releaseScene) valuesFile(t *testing.T, pairs ...string) string {
	t.Helper()
	file := filepath.Join(s.charts, s.ns+".yaml") // not of a test's name, which may hold a comma
	if err := os.WriteFile(file, []byte(strings.TrimPrefix(values(pairs...), "values: ")), 0o600); err != nil {
		t.Fatal(err)
	}
	return "--values=" + file
}

func recordName(release string, revision int) string {
	return fmt.Sprintf("sh.helm.release.v1.%s.v%d", release, revision)
}

// record names one of web's on the command line.
func (s *releaseScene) record(revision int) string {
	return "secret/" + s.ns + "/" + recordName("web", revision)
}

// tier names the HelmRelease on the command line.
func (s *releaseScene) tier() string { return "hr/" + s.ns + "/web" }

func (s *releaseScene) hr() *helmv2.HelmRelease {
	return &helmv2.HelmRelease{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "web"}}
}

// release makes the HelmRelease and waits until it is Ready.
func (s *releaseScene) release(t *testing.T, spec ...string) {
	t.Helper()
	s.apply(t, helmRelease(s.ns, "web", spec...))
	s.untilReady(t, s.hr())
}

func (s *releaseScene) untilReady(t *testing.T, hr *helmv2.HelmRelease) {
	t.Helper()
	if err := s.c.Until(t.Context(), hr, func() bool {
		return hr.Status.ObservedGeneration == hr.Generation && meta.IsStatusConditionTrue(hr.Status.Conditions, "Ready")
	}); err != nil {
		t.Fatal(err)
	}
}

// untilSays waits until a condition of the HelmRelease, as it is now, is what it
// should be: what was said of a former spec does not count.
func (s *releaseScene) untilSays(t *testing.T, kind, status, reason, message string) {
	t.Helper()
	hr := s.hr()
	if err := s.c.Until(t.Context(), hr, func() bool {
		c := meta.FindStatusCondition(hr.Status.Conditions, kind)
		return c != nil && c.ObservedGeneration == hr.Generation && string(c.Status) == status && c.Reason == reason && strings.Contains(c.Message, message)
	}); err != nil {
		t.Fatal(err)
	}
}

func (s *releaseScene) nudge(t *testing.T) {
	t.Helper()
	if err := s.c.Nudge(t.Context(), s.hr()); err != nil {
		t.Fatal(err)
	}
}

// patch is a person's edit of the HelmRelease.
func (s *releaseScene) patch(t *testing.T, merge string) {
	t.Helper()
	if err := s.c.Client().Patch(t.Context(), s.hr(), client.RawPatch(types.MergePatchType, []byte(merge)), client.FieldOwner("kubectl-edit")); err != nil {
		t.Fatal(err)
	}
}

func (s *releaseScene) delete(t *testing.T, obj client.Object) {
	t.Helper()
	if err := s.c.Client().Delete(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
}

// objects are those that the chart makes, but for the extra ones.
func (s *releaseScene) objects() map[string]client.Object {
	m := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: s.ns, Name: name} }
	return map[string]client.Object{
		"ConfigMap":      &corev1.ConfigMap{ObjectMeta: m("web")},
		"kept":           &corev1.ConfigMap{ObjectMeta: m("web-kept")},
		"ServiceAccount": &corev1.ServiceAccount{ObjectMeta: m("web")},
		"Service":        &corev1.Service{ObjectMeta: m("web")},
	}
}

// live are the UIDs of the objects that are there.
func (s *releaseScene) live(t *testing.T) map[string]types.UID {
	t.Helper()
	out := map[string]types.UID{}
	for name, o := range s.objects() {
		switch err := s.c.Client().Get(t.Context(), client.ObjectKeyFromObject(o), o); {
		case err == nil:
			out[name] = o.GetUID()
		case client.IgnoreNotFound(err) != nil:
			t.Fatal(err)
		}
	}
	return out
}

// remember notes which objects are there; kept fails the test unless they still
// are the same.
func (s *releaseScene) remember(t *testing.T) {
	t.Helper()
	if s.uids = s.live(t); len(s.uids) != len(s.objects()) {
		t.Fatalf("of the release there are only %v", s.uids)
	}
}

func (s *releaseScene) kept(t *testing.T) {
	t.Helper()
	live := s.live(t)
	for name, uid := range s.uids {
		if live[name] != uid {
			t.Errorf("%s was %s, and is %q", name, uid, live[name])
		}
	}
}

// records are "v1 superseded, v2 deployed".
func (s *releaseScene) records(t *testing.T) string { return s.recordsOf(t, "web") }

func (s *releaseScene) recordsOf(t *testing.T, release string) string {
	t.Helper()
	var list corev1.SecretList
	if err := s.c.Client().List(t.Context(), &list, client.InNamespace(s.ns), client.MatchingLabels{"owner": "helm", "name": release}); err != nil {
		t.Fatal(err)
	}
	var out []string
	for i := range list.Items {
		out = append(out, "v"+list.Items[i].Labels["version"]+" "+list.Items[i].Labels["status"])
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// unwedge runs it, and returns its report with what it said.
func (s *releaseScene) unwedge(t *testing.T, code int, args ...string) (*wedge.Plan, outcome) {
	t.Helper()
	o := s.sh.run(t, slices.Concat([]string{"unwedge", "-o", "json", waitsAtMost, "--backup-dir", s.backups}, s.named, args)...)
	if o.code != code {
		t.Fatalf("%s\nwant exit code %d", o, code)
	}
	plan := &wedge.Plan{}
	if err := json.Unmarshal([]byte(o.stdout), plan); err != nil {
		t.Fatalf("%s\n%v", o, err)
	}
	return plan, o
}

// judged runs it and returns its one verdict.
func (s *releaseScene) judged(t *testing.T, code int, cause wedge.Cause, args ...string) (*wedge.Verdict, outcome) {
	t.Helper()
	plan, o := s.unwedge(t, code, args...)
	if len(plan.Verdicts) != 1 || plan.Verdicts[0].Cause != cause {
		t.Fatalf("%s\nwant one verdict, %s", o, cause)
	}
	return &plan.Verdicts[0], o
}

// healthy fails the test when there is still a verdict.
func (s *releaseScene) healthy(t *testing.T, object string) {
	t.Helper()
	if plan, o := s.unwedge(t, 0, object); len(plan.Verdicts) > 0 {
		t.Errorf("%s\nwant no verdict", o)
	}
}

// acted are the requests with which unwedge changed the scene, or tried to.
func (s *releaseScene) acted(t *testing.T, mark cluster.Mark) []string {
	t.Helper()
	var out []string
	for _, e := range sent(t, s.c, mark, "kubectl-unwedge").Mutating() {
		// A conflict has changed nothing, and is tried again.
		if e.Code != http.StatusConflict && (e.Namespace == s.ns || strings.Contains(e.Name, s.ns)) {
			name := e.Name
			if i := strings.LastIndex(name, ".v"); e.Resource == "secrets" && i > 0 {
				name = name[i+1:]
			}
			out = append(out, e.Verb+" "+e.Resource+"/"+name)
		}
	}
	return out
}

// did fails the test when unwedge changed anything else, or in another order.
func (s *releaseScene) did(t *testing.T, mark cluster.Mark, want ...string) {
	t.Helper()
	if got := s.acted(t, mark); !slices.Equal(got, want) {
		t.Errorf("unwedge sent\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

func (s *releaseScene) merge(t *testing.T, obj client.Object, patch string) {
	t.Helper()
	if err := s.c.Client().Patch(t.Context(), obj, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner("kubectl-edit")); err != nil {
		t.Fatal(err)
	}
}
