// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wait

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/tiers"
)

// view is a graph, and what a wait makes of it.
type view struct {
	*tiers.Graph
	// resuming is true for a wait that resumes tiers.
	resuming bool
	// pending are the suspended tiers that are still to be resumed.
	pending map[flux.Ref]bool
	// acting is true while one of them is being resumed, or can be.
	acting bool
	// out are the tiers that stay as they are, or are held back by these.
	out map[flux.Ref]bool
	// applied are the containers that have applied what they have.
	applied map[flux.Ref]bool
	// limit is how long each tier may take, 0 for what Flux gives it.
	limit time.Duration
}

// view makes the graph of a snapshot, and says what the wait makes of it.
func (w *waiter) view(s *flux.Snapshot, wedged map[flux.Ref]string, now time.Time) *view {
	v := &view{limit: w.Limit, pending: map[flux.Ref]bool{}, out: map[flux.Ref]bool{}, applied: map[flux.Ref]bool{}}
	var why map[flux.Ref]string
	if w.resumption != nil {
		v.pending, why = w.resumption.awake(s)
	}
	v.Graph = tiers.Build(s, tiers.Options{Wedged: wedged})
	if w.resumption != nil {
		w.resumption.see(v, why, now)
		w.settle(v)
	}
	return v
}

// isLeft is true for a tier that is waited for and not there yet.
func (v *view) isLeft(n *tiers.Node) bool {
	switch {
	case v.out[n.Ref]:
		return false
	case v.pending[n.Ref]:
		return true
	}
	return n.State != tiers.Ready && n.State != tiers.Suspended
}

// ready is true when all that a suspended tier needs is there: then it is to be
// resumed.
func (v *view) ready(n *tiers.Node) bool {
	return v.turn(n) && !slices.ContainsFunc(n.Blockers, noArtifact)
}

func noArtifact(b tiers.Blocker) bool { return b.Reason == tiers.NoArtifact }

// turn is true when a suspended tier comes next, as far as other tiers go. For
// its source's first artifact it waits in its own time.
func (v *view) turn(n *tiers.Node) bool {
	if !v.pending[n.Ref] || v.out[n.Ref] {
		return false
	}
	for _, b := range n.Blockers {
		if b.Reason != tiers.NoArtifact && b.Reason != tiers.Unhealthy {
			return false
		}
	}
	for _, d := range n.DependsOn {
		// Resumed a moment later it would no longer be Ready, so that this one
		// would have to be asked twice.
		if dep := v.Node(d.Ref); dep != nil && v.pending[dep.Ref] {
			return false
		}
	}
	c := n.ContainedBy
	return c == nil || !v.pending[c.Ref] && v.applied[c.Ref]
}

// applies is true for a container that has yet to apply what it has, and may at
// any time.
func (v *view) applies(c *tiers.Node) bool {
	return c != nil && !v.pending[c.Ref] && !v.applied[c.Ref] && c.State != tiers.Suspended && c.State != tiers.Wedged &&
		!slices.ContainsFunc(c.Blockers, func(b tiers.Blocker) bool { return b.Reason != tiers.Unhealthy && !noArtifact(b) })
}

// hasApplied is true when a tier has applied all of its source's revision, be
// it well or not: what it contains is then as git has it.
func hasApplied(n *tiers.Node) bool {
	if n.IsReady() {
		return true
	}
	if n.SourceRevision() == "" || n.LastAttemptedRevision != n.SourceRevision() {
		return false
	}
	// kustomize-controller internal/controller checkHealth, v1.9.6.
	if c := meta.FindStatusCondition(n.Conditions, "Reconciling"); c != nil && c.Status == metav1.ConditionTrue &&
		c.ObservedGeneration >= n.Generation && strings.HasPrefix(c.Message, "Running health checks") {
		return true
	}
	c := meta.FindStatusCondition(n.Conditions, "Ready")
	return c != nil && c.Status == metav1.ConditionFalse && c.Reason == "HealthCheckFailed" && c.ObservedGeneration >= n.Generation
}

// suspend shows the tiers that are still to be resumed as what they are, in
// the graph that was made as if they were not suspended.
func (v *view) suspend(of func(flux.Ref) string) {
	for _, n := range v.Tiers() {
		if v.pending[n.Ref] {
			n.State, n.Why = tiers.Suspended, of(n.Ref)
			if n.Root == nil {
				n.Root = &tiers.RootCause{Object: n.Ref}
			}
		}
		if n.Root != nil && v.pending[n.Root.Object] && n.Root.State != tiers.Wedged {
			n.Root.State, n.Root.Message = tiers.Suspended, of(n.Root.Object)
		}
	}
}
