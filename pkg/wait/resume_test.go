// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wait

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/tiers"
)

// resuming is a wait that resumes the tiers, without a cluster.
func resuming(names ...string) *waiter {
	r := &Resume{Tiers: map[flux.Ref]bool{}, Left: map[flux.Ref]string{}}
	for _, name := range names {
		r.Tiers[ks(name)] = true
	}
	return &waiter{resumption: newResumption(r), nudges: nudges{}, clocks: clocks{}}
}

// sees is the view of the tiers, and what is decided about it.
func (w *waiter) sees(now time.Time, all ...flux.Tier) (*view, decision) {
	s := &flux.Snapshot{
		Tiers:   slices.Clone(all), // a snapshot is nobody else's
		Served:  []flux.Resource{{Kind: "Kustomization"}, {Kind: "GitRepository"}},
		Sources: []flux.Source{{Ref: all[0].Source, Artifact: &flux.Artifact{Revision: rev}}},
	}
	v := w.view(s, nil, now)
	w.clocks.update(v, now)
	return v, decide(v, Targets{Releases: true}, w.clocks, now)
}

// TestALoopThatGitNoLongerHas: what contains the loop is asked for the revision
// that mends it, before anybody gives up.
func TestALoopThatGitNoLongerHas(t *testing.T) {
	a, b := in("root", suspended(tier("a", "b"))), in("root", suspended(tier("b", "a")))
	old, held := ready(tier("root")), suspended(tier("root"))
	old.LastAppliedRevision, old.LastAttemptedRevision = "main@sha1:0000", "main@sha1:0000"
	tried := failed(tier("root"))
	tried.LastAttemptedRevision = rev
	for name, tc := range map[string]struct {
		root  flux.Tier
		stuck bool
	}{
		"the container is behind":          {old, false},
		"it is at work":                    {atWork(tier("root"), "Building manifests"), false},
		"it is to be resumed":              {held, false},
		"it has applied what it has":       {ready(tier("root")), true},
		"it has failed on what git has":    {tried, true},
		"it waits for what it has applied": {atWork(waits(tier("root")), "Running health checks for revision x"), true},
	} {
		_, d := resuming("a", "b", "root").sees(time.Now(), tc.root, a, b)
		if _, stuck := errors.AsType[*StuckError](d.err); stuck != tc.stuck {
			t.Errorf("%s: got %v", name, d.err)
		}
	}
}

// next are the tiers that would be resumed now.
func next(v *view) string {
	var names []string
	for _, n := range v.Tiers() {
		if v.ready(n) {
			names = append(names, n.Ref.Name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

func atWork(t flux.Tier, message string) flux.Tier {
	t = condition(t, "Unknown", "Progressing")
	t.LastAttemptedRevision = rev
	t.Conditions = append(t.Conditions, metav1.Condition{Type: "Reconciling", Status: "True", Message: message, ObservedGeneration: t.Generation})
	return t
}

func TestTheOrderOfAResume(t *testing.T) {
	a, b := suspended(tier("a")), suspended(tier("b", "a"))
	root, child := suspended(waits(tier("root"))), in("root", suspended(tier("child")))
	tests := map[string]struct {
		tiers []flux.Tier
		want  string
	}{
		"the first of a chain":                 {[]flux.Tier{a, b}, "a"},
		"a level at once":                      {[]flux.Tier{a, suspended(tier("c")), b}, "a c"},
		"not before it is Ready":               {[]flux.Tier{condition(tier("a"), "Unknown", "Progressing"), b}, ""},
		"as soon as it is Ready":               {[]flux.Tier{ready(tier("a")), b}, "b"},
		"not behind one that will be resumed":  {[]flux.Tier{suspended(ready(tier("a"))), b}, "a"},
		"the container first":                  {[]flux.Tier{root, child}, "root"},
		"not while it is being applied":        {[]flux.Tier{atWork(waits(tier("root")), "Building manifests"), child}, ""},
		"as soon as it waits for its children": {[]flux.Tier{atWork(waits(tier("root")), "Running health checks for revision x"), child}, "child"},
		"nothing that runs":                    {[]flux.Tier{ready(tier("a")), ready(tier("b", "a"))}, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			v, d := resuming("a", "b", "c", "root", "child").sees(time.Now(), tc.tiers...)
			if got := next(v); got != tc.want {
				t.Errorf("resumes %q, want %q", got, tc.want)
			}
			if d.err != nil {
				t.Errorf("ended with %v", d.err)
			}
			if left := tc.tiers[0].Suspended || tc.tiers[1].Suspended; d.done == left {
				t.Errorf("done: %t", d.done)
			}
		})
	}
}

// TestASuspendedTierIsShownAsWhatItIs, though it is looked at as if it were
// not; and so is what waits for it.
func TestASuspendedTierIsShownAsWhatItIs(t *testing.T) {
	a := suspended(failed(tier("a")))
	a.SuspendedBy = "flux"
	v, d := resuming("a").sees(time.Now(), a, blocked(tier("b", "a")))
	n, below := v.Node(ks("a")), v.Node(ks("b"))
	if n.State != tiers.Suspended || n.Why != "suspended by flux, to be resumed" || n.Root == nil || n.Root.State != tiers.Suspended {
		t.Errorf("a is %s: %s (%+v)", n.State, n.Why, n.Root)
	}
	if below.Root.Object != ks("a") || below.Root.State != tiers.Suspended || len(d.left) != 2 || d.err != nil {
		t.Errorf("b's root cause is %+v; left %d, %v", below.Root, len(d.left), d.err)
	}
}

// TestWhatStaysIsNotWaitedFor, nor what it holds back.
func TestWhatStaysIsNotWaitedFor(t *testing.T) {
	w := resuming("b")
	w.resumption.Left[ks("a")] = "somebody holds it"
	v, d := w.sees(time.Now(), suspended(tier("a")), suspended(tier("b", "a")), ready(tier("c")))
	if !d.done || d.err != nil || next(v) != "" {
		t.Errorf("done %t, %v; resumes %q", d.done, d.err, next(v))
	}
	// A container of it applies the rest all the same.
	root := suspended(waits(tier("root")))
	w = resuming("root", "b")
	w.resumption.Left[ks("a")] = "somebody holds it"
	held, other := in("root", suspended(tier("a"))), in("root", suspended(tier("b")))
	if v, d = w.sees(time.Now(), root, held, other); next(v) != "root" || d.done {
		t.Errorf("resumes %q, done %t", next(v), d.done)
	}
	root = atWork(waits(tier("root")), "Running health checks for revision x")
	if v, d = w.sees(time.Now(), root, held, other); next(v) != "b" || d.done {
		t.Errorf("resumes %q, done %t", next(v), d.done)
	}
	if _, d = w.sees(time.Now(), root, held, in("root", ready(tier("b")))); !d.done {
		t.Errorf("left: %v", summary(d.left))
	}
}

// TestAResumeStops: at what nobody will mend, and where nothing moves.
func TestAResumeStops(t *testing.T) {
	stalled := failed(tier("a"))
	stalled.Conditions = append(stalled.Conditions, metav1.Condition{Type: "Stalled", Status: "True", Reason: "BuildFailed", ObservedGeneration: 1})
	for name, tc := range map[string]struct {
		tiers []flux.Tier
		root  string
	}{
		"a wedge":                           {[]flux.Tier{stalled, suspended(tier("b", "a"))}, "a"},
		"a cycle":                           {[]flux.Tier{suspended(tier("a", "b")), suspended(tier("b", "a"))}, "a"},
		"suspended meanwhile by somebody":   {[]flux.Tier{suspended(failed(tier("x"))), suspended(tier("b", "x"))}, "x"},
		"a container suspended meanwhile":   {[]flux.Tier{suspended(failed(tier("x"))), in("x", suspended(tier("b")))}, "b"},
		"it depends on what does not exist": {[]flux.Tier{ready(tier("x")), suspended(tier("b", "gone"))}, "gone"},
	} {
		t.Run(name, func(t *testing.T) {
			_, d := resuming("a", "b").sees(time.Now(), tc.tiers...)
			stuck, ok := errors.AsType[*StuckError](d.err)
			if !ok || stuck.Root.Object != ks(tc.root) {
				t.Errorf("ended with %v, want the root cause %s", d.err, tc.root)
			}
		})
	}
}

// TestAContainerThatStillWaitsAsItWas: it was resumed while its controller is at
// the health checks of the attempt before; that ends, and another one begins.
func TestAContainerThatStillWaitsAsItWas(t *testing.T) {
	w := resuming("a", "b")
	root := atWork(waits(tier("root")), "Running health checks for revision x")
	root.Generation = 3
	v, d := w.sees(time.Now(), root, in("root", suspended(tier("a"))), in("root", suspended(tier("b", "a"))))
	if d.err != nil || next(v) != "" || d.next.IsZero() {
		t.Errorf("ended with %v; resumes %q; the next deadline is %s", d.err, next(v), d.next)
	}
}

// TestSuspendedAgain: a tier is resumed once. Who suspends it then means it.
func TestSuspendedAgain(t *testing.T) {
	w := resuming("a")
	w.resumption.resumed[ks("a")] = 2
	stale := suspended(tier("a"))
	v, d := w.sees(time.Now(), stale, ready(tier("b")))
	if !v.pending[ks("a")] || d.done || d.err != nil {
		t.Errorf("an event from before the write: pending %t, done %t, %v", v.pending[ks("a")], d.done, d.err)
	}
	again := suspended(tier("a"))
	again.Generation = 3
	if v, d = w.sees(time.Now(), again, ready(tier("b"))); v.pending[ks("a")] || !d.done {
		t.Errorf("suspended again: pending %t, done %t", v.pending[ks("a")], d.done)
	}
}

// TestTheWatchIsQuickerThanTheAnswer: a tier that is being resumed is not nudged
// as one that sleeps.
func TestTheWatchIsQuickerThanTheAnswer(t *testing.T) {
	w := resuming("a")
	w.resumption.busy[ks("a")] = true
	stale := ready(tier("a"))
	stale.Generation = 2
	v, d := w.sees(time.Now(), stale, ready(tier("b")))
	if !v.pending[ks("a")] || next(v) != "a" || d.done || len(w.nudges.due(d.left)) > 0 {
		t.Errorf("pending %t, done %t, nudged %v", v.pending[ks("a")], d.done, w.nudges.due(d.left))
	}
	delete(w.resumption.busy, ks("a"))
	if v, d = w.sees(time.Now(), stale, ready(tier("b"))); v.pending[ks("a")] || len(w.nudges.due(d.left)) != 1 {
		t.Errorf("pending %t, nudged %v", v.pending[ks("a")], w.nudges.due(d.left))
	}
}

// TestTheClocksOfAResume: the time of a suspended tier is not its own, that of a
// container is until it has applied; and standup.yaml may limit both.
func TestTheClocksOfAResume(t *testing.T) {
	start := time.Now()
	w := resuming("a", "b")
	a := suspended(ready(tier("a")))
	w.sees(start, a, suspended(tier("b", "a")))
	// a is Ready as it was, so that b has all it depends on; and is not next.
	if _, runs := w.clocks[ks("b")]; runs {
		t.Error("the time of a suspended tier runs before its turn")
	}
	w = resuming("root", "child")
	w.Limit = time.Minute
	child := in("root", suspended(tier("child")))
	if _, d := w.sees(start, suspended(waits(tier("root"))), child); !d.next.Equal(start.Add(time.Minute)) {
		t.Errorf("the next deadline is %s, want that of the root, which comes next", d.next)
	}
	failing := failed(waits(tier("root")))
	failing.Generation, failing.Conditions[0].ObservedGeneration = 2, 2
	w.sees(start.Add(time.Second), failing, child)
	_, d := w.sees(start.Add(2*time.Minute), failing, child)
	if late, ok := errors.AsType[*DeadlineError](d.err); !ok || late.Tier != ks("root") || late.Allowed != time.Minute {
		t.Errorf("ended with %v", d.err)
	}
	// Between two attempts it looks as if it had applied nothing.
	w = resuming("child")
	w.sees(start, atWork(waits(tier("root")), "Running health checks for revision x"), child)
	if v, _ := w.sees(start.Add(time.Second), atWork(waits(tier("root")), "Building manifests"), child); next(v) != "child" {
		t.Errorf("resumes %q", next(v))
	}
}

func TestTheFirstArtifactIsWaitedFor(t *testing.T) {
	w := resuming("a")
	a := suspended(tier("a"))
	now := time.Now()
	s := &flux.Snapshot{Tiers: []flux.Tier{a}, Served: []flux.Resource{{Kind: "GitRepository"}}, Sources: []flux.Source{{Ref: a.Source}}}
	v := w.view(s, nil, now)
	w.clocks.update(v, now)
	d := decide(v, Targets{}, w.clocks, now)
	if next(v) != "" || d.err != nil || d.next.IsZero() {
		t.Errorf("resumes %q, %v, next %s: it has its own time to get one", next(v), d.err, d.next)
	}
}

func TestThePatchIsPinned(t *testing.T) {
	g := graph(nil, tier("a"))
	n := g.Node(ks("a"))
	n.UID, n.Generation = "uid", 7
	raw, err := unsuspend(n)
	if err != nil {
		t.Fatal(err)
	}
	var ops []map[string]any
	if err := json.Unmarshal(raw, &ops); err != nil {
		t.Fatal(err)
	}
	want := `[{"op":"test","path":"/metadata/uid","value":"uid"},{"op":"test","path":"/metadata/generation","value":7},` +
		`{"op":"test","path":"/spec/suspend","value":true},{"op":"remove","path":"/spec/suspend"}]`
	if string(raw) != want {
		t.Errorf("got %s", raw)
	}
}

// TestWritesThatFail: what passes is tried again, and what does not ends the
// wait.
func TestWritesThatFail(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "kustomizations"}, "a", nil)
	refused := errors.New("dial tcp: connection refused")
	w := resuming("a", "b")
	if err := w.failed(refused); err != nil || w.resumption.retry.IsZero() {
		t.Errorf("%v, tried again at %s", err, w.resumption.retry)
	}
	if err := w.failed(forbidden); err == nil {
		t.Error("what was never allowed is tried again")
	}
	if err := w.failed(apierrors.NewUnauthorized("expired")); err == nil {
		t.Error("credentials that are not accepted are tried again")
	}
	w = resuming("a", "b")
	w.resumption.resumed[ks("a")] = 2
	for i := range maxForbidden {
		if err := w.failed(forbidden); (err != nil) != (i == maxForbidden-1) {
			t.Errorf("attempt %d: %v", i, err)
		}
	}
}

func TestWhatBecameOfAnAttempt(t *testing.T) {
	w := resuming("a")
	var told []Done
	w.resumption.Did = func(d Done) { told = append(told, d) }
	n := graph(nil, tier("a")).Node(ks("a"))
	w.resumption.busy[n.Ref] = true
	if err := w.did(act{node: n, stays: "it was deleted", moved: true}); err != nil {
		t.Fatal(err)
	}
	if len(told) != 1 || !told[0].Moved || w.resumption.Left[n.Ref] != "it was deleted" || len(w.resumption.busy) > 0 {
		t.Errorf("told %+v, left %v", told, w.resumption.Left)
	}
}
