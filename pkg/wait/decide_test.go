// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wait

import (
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/guard"
	"github.com/kubestandup/kubestandup/pkg/tiers"
)

const rev = "main@sha1:aaaa"

func ks(name string) flux.Ref {
	return flux.Ref{Kind: "Kustomization", Namespace: "flux-system", Name: name}
}

// tier is a Kustomization with a timeout of five minutes and a retryInterval
// of one: its own deadline is eleven.
func tier(name string, dependsOn ...string) flux.Tier {
	t := flux.Tier{
		Ref: ks(name), Generation: 1, ObservedGeneration: -1,
		Source:  flux.Ref{Kind: "GitRepository", Namespace: "flux-system", Name: "flux-system"},
		Timeout: 5 * time.Minute, RetryInterval: time.Minute,
	}
	for _, d := range dependsOn {
		t.DependsOn = append(t.DependsOn, flux.Dependency{Ref: ks(d)})
	}
	return t
}

func condition(t flux.Tier, status metav1.ConditionStatus, reason string) flux.Tier {
	t.Conditions = []metav1.Condition{{Type: "Ready", Status: status, Reason: reason, Message: reason, ObservedGeneration: 1}}
	return t
}

func ready(t flux.Tier) flux.Tier {
	t.ObservedGeneration, t.LastAppliedRevision = 1, rev
	return condition(t, metav1.ConditionTrue, "ReconciliationSucceeded")
}

func failed(t flux.Tier) flux.Tier {
	return condition(t, metav1.ConditionFalse, "ReconciliationFailed")
}

func blocked(t flux.Tier) flux.Tier   { return condition(t, metav1.ConditionFalse, "DependencyNotReady") }
func suspended(t flux.Tier) flux.Tier { t.Suspended = true; return t }

func graph(wedged map[flux.Ref]string, all ...flux.Tier) *tiers.Graph {
	return tiers.Build(&flux.Snapshot{
		Tiers:  all,
		Served: []flux.Resource{{Kind: "Kustomization"}, {Kind: "GitRepository"}},
		Sources: []flux.Source{{
			Ref: all[0].Source, Artifact: &flux.Artifact{Revision: rev},
		}},
	}, tiers.Options{Wedged: wedged})
}

func TestDecide(t *testing.T) {
	named := func(names ...string) Targets {
		var out Targets
		for _, n := range names {
			out.Names = append(out.Names, ks(n))
		}
		return out
	}
	stuckOn := func(name string) func(error) bool {
		return func(err error) bool {
			var e *StuckError
			return errors.As(err, &e) && e.Root.Object == ks(name) && e.ExitCode() == 3
		}
	}
	tests := map[string]struct {
		targets Targets
		wedged  map[flux.Ref]string
		tiers   []flux.Tier
		done    bool
		err     func(error) bool
		left    int
	}{
		"all ready":                 {tiers: []flux.Tier{ready(tier("a")), ready(tier("b", "a"))}, done: true},
		"one at work":               {tiers: []flux.Tier{ready(tier("a")), condition(tier("b", "a"), "Unknown", "Progressing")}, left: 1},
		"a race that a retry heals": {tiers: []flux.Tier{ready(tier("a")), failed(tier("b", "a"))}, left: 1},
		"a wedged root cause": {
			wedged: map[flux.Ref]string{ks("a"): "deadlock"},
			tiers:  []flux.Tier{failed(tier("a")), blocked(tier("b", "a"))}, err: stuckOn("a"), left: 2,
		},
		"wedged, but not what is waited for": {
			targets: named("b"), wedged: map[flux.Ref]string{ks("a"): "deadlock"},
			tiers: []flux.Tier{failed(tier("a")), ready(tier("b"))}, done: true,
		},
		"DEP-01 a cycle ends at once":          {tiers: []flux.Tier{tier("a", "b"), tier("b", "a"), ready(tier("c"))}, err: stuckOn("a"), left: 2},
		"suspended and needed":                 {tiers: []flux.Tier{suspended(failed(tier("a"))), blocked(tier("b", "a"))}, err: stuckOn("a"), left: 1},
		"suspended and needed by nobody":       {tiers: []flux.Tier{suspended(failed(tier("a"))), ready(tier("b"))}, done: true},
		"suspended, ready and needed":          {tiers: []flux.Tier{suspended(ready(tier("a"))), ready(tier("b", "a"))}, done: true},
		"suspended and named":                  {targets: named("a"), tiers: []flux.Tier{suspended(failed(tier("a")))}, err: stuckOn("a")},
		"named with its ancestors":             {targets: named("b"), tiers: []flux.Tier{condition(tier("a"), "Unknown", "Progressing"), blocked(tier("b", "a")), failed(tier("x"))}, left: 2},
		"absent while others are at work":      {targets: named("b"), tiers: []flux.Tier{condition(tier("a"), "Unknown", "Progressing")}},
		"absent and all at rest":               {targets: named("b"), tiers: []flux.Tier{ready(tier("a"))}, err: func(err error) bool { var e *AbsentError; return errors.As(err, &e) && e.ExitCode() == 3 }},
		"all suspended is not done":            {tiers: []flux.Tier{suspended(failed(tier("a")))}, err: stuckOn("a")},
		"a namespace with nothing in it":       {targets: Targets{Namespace: "typo"}, tiers: []flux.Tier{ready(tier("a"))}, err: func(err error) bool { var e *AbsentError; return errors.As(err, &e) }},
		"a namespace that fills up":            {targets: Targets{Namespace: "later"}, tiers: []flux.Tier{condition(tier("a"), "Unknown", "Progressing")}},
		"a missing dependency while at work":   {tiers: []flux.Tier{blocked(tier("b", "gone")), condition(tier("a"), "Unknown", "Progressing")}, left: 2},
		"a missing dependency and all at rest": {tiers: []flux.Tier{blocked(tier("b", "gone")), ready(tier("a"))}, err: stuckOn("gone"), left: 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			g := graph(tc.wedged, tc.tiers...)
			now := time.Now()
			c := clocks{}
			c.update(&view{Graph: g}, now)
			d := decide(&view{Graph: g}, tc.targets, c, now)
			if d.done != tc.done || len(d.left) != tc.left {
				t.Errorf("done %t with %d left, want %t with %d", d.done, len(d.left), tc.done, tc.left)
			}
			if (d.err != nil) != (tc.err != nil) || tc.err != nil && !tc.err(d.err) {
				t.Errorf("error is %v", d.err)
			}
		})
	}
}

func TestTheDeadlineOfATier(t *testing.T) {
	start := time.Date(2026, 11, 30, 2, 0, 0, 0, time.UTC)
	c := clocks{}
	at := func(after time.Duration, all ...flux.Tier) decision {
		g := graph(nil, all...)
		c.update(&view{Graph: g}, start.Add(after))
		return decide(&view{Graph: g}, Targets{}, c, start.Add(after))
	}
	a, b := tier("a"), tier("b", "a")
	const allowed = 11 * time.Minute

	if d := at(0, failed(a), blocked(b)); !d.next.Equal(start.Add(allowed)) {
		t.Fatalf("the next deadline is %s, want that of a alone, %s", d.next, start.Add(allowed))
	}
	if d := at(10*time.Minute, ready(a), blocked(b)); d.err != nil || !d.next.Equal(start.Add(10*time.Minute+allowed)) {
		t.Fatalf("b's time starts when a is Ready: next %s, error %v", d.next, d.err)
	}
	// DEP-14: a dependency that flaps neither fails the wait nor starts the
	// clock anew.
	if d := at(12*time.Minute, condition(a, "Unknown", "Progressing"), blocked(b)); d.err != nil {
		t.Fatalf("a flap failed the wait: %v", d.err)
	}
	if d := at(13*time.Minute, ready(a), failed(b)); !d.next.Equal(start.Add(10*time.Minute + allowed)) {
		t.Fatalf("after the flap the deadline is %s, want %s", d.next, start.Add(10*time.Minute+allowed))
	}
	d := at(10*time.Minute+allowed, ready(a), failed(b))
	var late *DeadlineError
	if !errors.As(d.err, &late) || late.Tier != ks("b") || late.ExitCode() != 4 || len(late.Left) != 1 {
		t.Fatalf("past the deadline the error is %v", d.err)
	}
}

// TestANewRevisionStartsTheClockAnew: what was met for the old one says nothing
// of the new one, whose chain comes up from its start.
func TestANewRevisionStartsTheClockAnew(t *testing.T) {
	start := time.Date(2026, 11, 30, 2, 0, 0, 0, time.UTC)
	c := clocks{}
	c.update(&view{Graph: graph(nil, ready(tier("a")), failed(tier("b", "a")))}, start)
	g := graph(nil, condition(tier("a"), "Unknown", "Progressing"), blocked(tier("b", "a")))
	g.Node(ks("a")).Generation, g.Node(ks("b")).Generation = 2, 2
	late := start.Add(time.Hour)
	c.update(&view{Graph: g}, late)
	if d := decide(&view{Graph: g}, Targets{}, c, late.Add(time.Minute)); d.err != nil {
		t.Errorf("a deadline fired on progress: %v", d.err)
	}
}

// TestANamespaceIsWaitedForWithWhatItNeeds: else the wait would have no end,
// as no clock of what blocks it would run.
func TestANamespaceIsWaitedForWithWhatItNeeds(t *testing.T) {
	app := blocked(tier("app", "platform"))
	app.Ref.Namespace = "apps"
	d := decide(&view{Graph: graph(nil, failed(tier("platform")), app)}, Targets{Namespace: "apps"}, clocks{}, time.Now())
	if len(d.left) != 2 {
		t.Errorf("waits for %d tiers, want both", len(d.left))
	}
}

func TestErrorsThatPass(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "kustomizations"}, "a", nil)
	tests := map[string]struct {
		err    error
		before bool
		want   bool
	}{
		"connection refused":             {errors.New("dial tcp: connection refused"), false, true},
		"forbidden from the start":       {forbidden, false, false},
		"forbidden after it was allowed": {forbidden, true, true},
		"the guard could not look":       {&guard.RefusedError{Transient: true}, false, true},
		"the guard saw another server":   {&guard.RefusedError{}, true, false},
		"too many requests":              {apierrors.NewTooManyRequests("x", 1), false, true},
		"invalid":                        {apierrors.NewBadRequest("x"), true, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := passing(tc.err, tc.before); got != tc.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestAParentsTimeStartsWhenItsChildrenAreReady(t *testing.T) {
	parent, child := tier("p"), tier("c")
	parent.Wait, child.Owner = true, ks("p")
	met := func(all ...flux.Tier) bool {
		v := &view{Graph: graph(nil, all...)}
		return v.met(v.Node(ks("p")))
	}
	if met(failed(parent), failed(child)) {
		t.Error("the clock of a parent runs while its child is not Ready")
	}
	if !met(failed(parent), ready(child)) {
		t.Error("the clock of a parent does not run though its child is Ready")
	}
}

func TestNudgesAreSentOnceAndWhenTheyHelp(t *testing.T) {
	due := func(m nudges, all ...flux.Tier) string {
		g := graph(nil, all...)
		var out []string
		for _, n := range m.due(g.Tiers()) {
			out = append(out, n.Ref.Name)
			m.sent(n, "token")
		}
		return strings.Join(out, " ")
	}
	answered := func(t flux.Tier) flux.Tier { t.LastHandledReconcileAt = "token"; return t }
	a, b := tier("a"), tier("b", "a")
	m := nudges{}
	steps := []struct {
		what  string
		tiers []flux.Tier
		want  string
	}{
		{"a is at work, b would only be requeued", []flux.Tier{condition(a, "Unknown", "Progressing"), blocked(b)}, ""},
		{"a is Ready: now, and at once", []flux.Tier{ready(a), blocked(b)}, "b"},
		{"not answered yet", []flux.Tier{ready(a), blocked(b)}, ""},
		{"answered before the controller saw a", []flux.Tier{ready(a), answered(blocked(b))}, "b"},
		{"at work", []flux.Tier{ready(a), answered(condition(b, "Unknown", "Progressing"))}, ""},
		{"failed for its own reason: the controller's retry", []flux.Tier{ready(a), answered(failed(b))}, ""},
	}
	for _, s := range steps {
		if got := due(m, s.tiers...); got != s.want {
			t.Errorf("%s: nudged %q, want %q", s.what, got, s.want)
		}
	}
	finishing := condition(tier("c"), "True", "Applied revision: "+rev)
	if got := due(nudges{}, finishing); got != "" {
		t.Errorf("nudged %q between the two patches that end its attempt", got)
	}
	stale := ready(tier("c"))
	stale.LastAppliedRevision, stale.Conditions[0].Message = "main@sha1:old", "Applied revision: main@sha1:old"
	if got := due(nudges{}, stale); got != "c" {
		t.Errorf("a tier that sleeps at an old revision was not nudged, but %q", got)
	}
	for range 5 {
		due(m, ready(a), answered(blocked(b)))
	}
	if got := m[ks("b")].times; got != maxNudges {
		t.Errorf("asked %d times for the same reason, at most %d make sense", got, maxNudges)
	}
	newer := failed(b)
	newer.Generation, newer.Conditions[0].ObservedGeneration = 2, 2
	if got := due(m, ready(a), newer); got != "b" {
		t.Errorf("a new spec is a new reason, nudged %q", got)
	}
}
