// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package e2e

import (
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubestandup/kubestandup/test/cluster"
)

// TestWait: how `kubectl tiers --wait` ends, on real controllers.
func TestWait(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, cluster.Options{
		Components: []cluster.Component{cluster.SourceController, cluster.KustomizeController},
		Args:       map[cluster.Component][]string{cluster.KustomizeController: {"--requeue-dependency=1h"}}, // see nudgedChain
	})
	run := func(name string, test func(*testing.T, *cluster.Cluster)) bool {
		return t.Run(name, func(t *testing.T) { test(t, c) })
	}
	run("all Ready", waitAllReady) // waits for all of the cluster, so before the others

	// It takes a minute, in which the others run.
	late := newScene(t, c, "late", folders("late"))
	late.add(t, strings.Replace(late.manifest("never"), "retryInterval: "+quickly+"\n  timeout: 1m", "retryInterval: 5s\n  timeout: 30s", 1), late.manifest("below", needs("never")))
	late.untilFailed(t, "never", "kustomization path not found")
	overdue := late.sh.start(t, late.waitArgs()...)

	run("a chain, nudged", nudgedChain)
	run("a cycle", waitCycle)
	run("suspended", waitSuspended)
	run("--timeout", waitTimeout)
	run("a race that a retry heals", waitRace)
	run("containment", waitContainment)
	run("Ctrl-C", waitInterrupted)
	run("the source's revision", waitRevision)
	run("the API server restarts", waitRestart)
	t.Run("a tier's own deadline", func(t *testing.T) {
		o := overdue.wait(t)
		if o.code != 4 || o.took < time.Minute {
			t.Errorf("%s\nwant 4, after a minute", o)
		}
		o.holds(t, o.stderr, "error: Kustomization/late/never did not become Ready within 1m5s of its dependencies being met; 2 tiers are not Ready:",
			// It is tried now and then, so it may be at work just now.
			"\n  Kustomization/late/never (", "\n  Kustomization/late/below (blocked; root cause Kustomization/late/never, ")
	})
}

func waitAllReady(t *testing.T, c *cluster.Cluster) {
	s := newScene(t, c, "ready", folders("ready", "a", "b", "c"))
	s.add(t, s.manifest("a", "wait: true"), s.manifest("b"), s.manifest("c"))
	o := s.sh.want(t, 0, "tiers", "--wait")
	o.holds(t, o.stderr, "3 tiers Ready after ")
	for _, row := range strings.Split(strings.TrimSpace(o.stdout), "\n")[1:] {
		if !strings.HasSuffix(row, " ready") {
			t.Errorf("row %q", row)
		}
	}
	// Nothing is left to wait for.
	s.sh.want(t, 0, "tiers", "--wait")
}

// waitCycle: nothing will ever come of it, so it ends at once. (DEP-01)
func waitCycle(t *testing.T, c *cluster.Cluster) {
	s := newScene(t, c, "cycle", folders("cycle", "a", "b", "below"))
	s.add(t, s.manifest("a", needs("b")), s.manifest("b", needs("a")), s.manifest("below", needs("b")))
	s.untilFailed(t, "a", "dependency 'cycle/b' is not ready")
	o := s.sh.want(t, 3, s.waitArgs()...)
	o.holds(t, o.stderr, "is wedged and will not become Ready by itself: dependency cycle: cycle/a → cycle/b → cycle/a")
	o = s.sh.want(t, 3, s.waitArgs("below")...)
	o.holds(t, o.stderr, "dependency cycle: cycle/a → cycle/b → cycle/a")
}

func waitSuspended(t *testing.T, c *cluster.Cluster) {
	s := newScene(t, c, "asleep", folders("asleep", "a", "b", "free"))
	s.add(t, s.manifest("free"), s.manifest("a", "suspend: true"))
	o := s.sh.want(t, 0, s.waitArgs()...)
	o.holds(t, o.stderr, "asleep/a: suspended by test since ", "nothing that is waited for needs it")

	s.add(t, s.manifest("b", needs("a")))
	o = s.sh.want(t, 3, s.waitArgs()...)
	o.holds(t, o.stderr, "error: Kustomization/asleep/b will not become Ready by itself; the root cause is Kustomization/asleep/a, suspended: suspended by test since ")
	if strings.Contains(o.stderr, "nothing that is waited for needs it") {
		t.Errorf("%s\nb needs it", o)
	}
	// Named, it is waited for although nothing needs it.
	o = s.sh.want(t, 3, s.waitArgs("a")...)
	o.holds(t, o.stderr, "error: Kustomization/asleep/a is suspended and will not become Ready by itself")
	s.sh.want(t, 0, s.waitArgs("free")...)
}

func waitTimeout(t *testing.T, c *cluster.Cluster) {
	s := newScene(t, c, "slow", folders("slow", "b"))
	s.add(t, s.manifest("a"), s.manifest("b", needs("a")))
	s.untilFailed(t, "a", "kustomization path not found")
	o := s.sh.want(t, 4, s.waitArgs("--timeout", "5s")...)
	o.holds(t, o.stderr, "error: timed out after 5s; 2 tiers are not Ready:",
		"\n  Kustomization/slow/a (", "\n  Kustomization/slow/b (blocked; root cause Kustomization/slow/a, ")
	o.holds(t, o.stdout, "LEVEL", "blocked by a")
	s.rest(t, "a")
}

const widgetCRD = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: widgets.race.example.com
spec:
  group: race.example.com
  names: {kind: Widget, plural: widgets, singular: widget, listKind: WidgetList}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// waitRace: the tier that lacks a kind has no edge to the one that brings its
// CRD, which comes later. A retry heals that, so it is no end.
func waitRace(t *testing.T, c *cluster.Cluster) {
	s := newScene(t, c, "race", cluster.Files{
		"crds/widgets.yaml": widgetCRD,
		"widgets/w.yaml":    "apiVersion: race.example.com/v1\nkind: Widget\nmetadata: {name: w, namespace: race}\n",
	})
	s.add(t, s.manifest("widgets"))
	s.untilFailed(t, "widgets", `no matches for kind "Widget" in version "race.example.com/v1"`)
	s.rest(t, "widgets") // in the middle of an attempt there is nothing to say of it
	o := s.sh.want(t, 0, "tiers", "why", "ks/race/widgets")
	o.holds(t, o.stdout, "Nothing that is known creates Widget; a retry heals it once something does")
	merge(t, c, tierOf("race", "widgets"), "test", `{"spec":{"retryInterval":"`+quickly+`"}}`)

	waiting := s.sh.start(t, s.waitArgs()...)
	waiting.says(t, "race/widgets: retrying: Widget/race/w dry-run failed: no matches for kind")
	// It goes on through more attempts than one.
	seen, tier := 0, tierOf("race", "widgets")
	var last time.Time
	if err := c.Until(t.Context(), tier, func() bool {
		if ready := condition(tier); ready.Status == metav1.ConditionFalse && ready.LastTransitionTime.After(last) {
			last = ready.LastTransitionTime.Time
			seen++
		}
		return seen == 3
	}); err != nil {
		t.Fatal(err)
	}
	s.add(t, s.manifest("crds"))
	if o := waiting.wait(t); o.code != 0 {
		t.Errorf("%s\nwant 0: a retry healed it", o)
	}
}

// waitContainment: a parent that waits for its children is no edge for them.
func waitContainment(t *testing.T, c *cluster.Cluster) {
	s := &scene{ns: "nest"}
	files := folders("nest", "good")
	files["parent/children.yaml"] = s.manifest("good", "wait: true") + "---\n" + s.manifest("bad", "wait: true")
	s = newScene(t, c, "nest", files)
	s.add(t, s.manifest("parent", "wait: true"))
	s.untilFailed(t, "bad", "kustomization path not found")

	o := s.sh.want(t, 0, s.waitArgs("good")...)
	o.holds(t, o.stderr, "1 tier Ready after")
	for _, other := range []string{"asleep/", "cycle/", "late/"} {
		if strings.Contains(o.stderr, other) {
			t.Errorf("%s\nit speaks of %s, which is not waited for", o, other)
		}
	}
	if parent := tierOf("nest", "parent"); c.Until(t.Context(), parent, func() bool { return true }) != nil || condition(parent).Status == metav1.ConditionTrue {
		t.Errorf("the parent is Ready before its child bad is: %+v", condition(parent))
	}
	o = s.sh.want(t, 4, s.waitArgs("parent", "--timeout", "5s")...)
	o.holds(t, o.stderr, "Kustomization/nest/parent (blocked; root cause Kustomization/nest/bad, ")

	files["bad/cm.yaml"] = configMap("nest", "bad")
	s.push(t, files)
	o = s.sh.want(t, 0, s.waitArgs()...)
	o.holds(t, o.stderr, "3 tiers Ready after")
}

// waitInterrupted: it says what is left, and the command that goes on.
func waitInterrupted(t *testing.T, c *cluster.Cluster) {
	s := newScene(t, c, "stop", folders("stop", "good"))
	s.add(t, s.manifest("good"), s.manifest("bad"))
	s.untilFailed(t, "bad", "kustomization path not found")
	s.sh.want(t, 0, s.waitArgs("good")...) // what is left is then one tier
	waiting := s.sh.start(t, s.waitArgs("--timeout", "10m", "bad", "good")...)
	waiting.says(t, "stop/bad: retrying: kustomization path not found")
	if err := waiting.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	o := waiting.wait(t)
	if o.code != 130 {
		t.Errorf("%s\nwant 130", o)
	}
	o.holds(t, o.stderr, "Interrupted after ", "not Ready: stop/bad\n",
		"To go on: kubectl tiers bad good -n stop --wait --timeout 10m0s --context test --expect-server "+c.URL())
	if strings.Contains(o.stderr, "error:") {
		t.Errorf("%s\nto be interrupted is no error", o)
	}
	s.rest(t, "bad")
}

// waitRevision: a Ready of the revision before proves nothing. (DEP-07)
func waitRevision(t *testing.T, c *cluster.Cluster) {
	s := newScene(t, c, "revision", folders("revision", "a"))
	s.add(t, s.manifest("a"))
	s.sh.want(t, 0, s.waitArgs()...)
	if err := c.Stop(t.Context(), cluster.KustomizeController); err != nil {
		t.Fatal(err)
	}
	revision := s.push(t, cluster.Files{"a/cm.yaml": configMap("revision", "renamed")})
	o := s.sh.want(t, 4, s.waitArgs("--timeout", "5s")...)
	o.holds(t, o.stderr, "timed out after 5s; not Ready: Kustomization/revision/a (progressing: Ready at main@sha1:", "its source is at "+revision)

	waiting := s.sh.start(t, s.waitArgs()...)
	waiting.says(t, "revision/a: progressing")
	if err := c.Start(t.Context(), cluster.KustomizeController); err != nil {
		t.Fatal(err)
	}
	if o := waiting.wait(t); o.code != 0 {
		t.Errorf("%s\nwant 0", o)
	}
	tier := tierOf("revision", "a")
	if err := c.Until(t.Context(), tier, func() bool { return true }); err != nil || tier.Status.LastAppliedRevision != revision {
		t.Errorf("it ended with the tier at %s, not %s (%v)", tier.Status.LastAppliedRevision, revision, err)
	}
}

// waitRestart: what the watches miss comes with the next list.
func waitRestart(t *testing.T, c *cluster.Cluster) {
	s := newScene(t, c, "restart", folders("restart", "a"))
	s.add(t, s.manifest("a"), s.manifest("b"))
	s.untilFailed(t, "b", "kustomization path not found")
	waiting := s.sh.start(t, s.waitArgs()...)
	waiting.says(t, "restart/b: retrying")
	if err := c.Restart(t.Context(), cluster.APIServer); err != nil {
		t.Fatal(err)
	}
	s.push(t, folders("restart", "a", "b"))
	o := waiting.wait(t)
	if o.code != 0 {
		t.Errorf("%s\nwant 0", o)
	}
	o.holds(t, o.stderr, "trying again", "2 tiers Ready after")
}
