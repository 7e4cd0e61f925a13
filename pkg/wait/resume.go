// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wait

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/tiers"
)

// Resume is what a wait does about suspended tiers: those that are meant to run
// are resumed, each as soon as all that it needs is there.
//
// A tier that is suspended while the wait runs is somebody's decision and stays
// so, whoever resumed it before.
type Resume struct {
	// Tiers are the suspended ones that are meant to run.
	Tiers map[flux.Ref]bool
	// Left are tiers that stay as they are, and sources that give nothing, with
	// why. Neither they nor what they hold back is waited for.
	Left map[flux.Ref]string
	// Judge looks once more at a tier that is about to be resumed, and says why
	// it must stay as it is, or nothing. It may take its time.
	Judge func(context.Context, *tiers.Node) (why string, err error)
	// Did is told what became of each tier, from one goroutine at a time.
	Did func(Done)
}

// Done is how the resumption of a tier ended.
type Done struct {
	Tier *tiers.Node
	// Stays is why the tier was left suspended after all, empty when it was
	// resumed.
	Stays string
	// Moved is true when it stays because somebody changed it in the same moment.
	Moved bool
}

// retryAfter is how long after a write that failed it is tried again, where no
// event comes sooner.
const retryAfter = time.Second

// maxForbidden bounds how often a write is tried that is forbidden after others
// were allowed: an API server that comes up forbids all until it has read its
// RBAC.
const maxForbidden = 5

// resumption is the state of a wait's Resume.
type resumption struct {
	Resume
	// busy are the tiers that a goroutine is at.
	busy map[flux.Ref]bool
	// resumed are the generations that the tiers had after it.
	resumed map[flux.Ref]int64
	// unsure are the tiers whose write had no answer.
	unsure map[flux.Ref]bool
	// refusals count the writes that were forbidden.
	refusals int
	// retry is when what failed is tried again; the zero time when nothing did.
	retry   time.Time
	applied map[flux.Ref]string
	acts    chan act
}

func newResumption(r *Resume) *resumption {
	if r == nil {
		return nil
	}
	return &resumption{
		Resume: *r, busy: map[flux.Ref]bool{}, resumed: map[flux.Ref]int64{}, unsure: map[flux.Ref]bool{},
		applied: map[flux.Ref]string{}, acts: make(chan act),
	}
}

// awake shows the tiers that are still to be resumed as if they were not
// suspended, so that their status tells what blocks them, and says which they
// are.
func (r *resumption) awake(s *flux.Snapshot) (pending map[flux.Ref]bool, why map[flux.Ref]string) {
	pending, why = map[flux.Ref]bool{}, map[flux.Ref]string{}
	for i := range s.Tiers {
		t := &s.Tiers[i]
		_, stays := r.Left[t.Ref]
		after, done := r.resumed[t.Ref]
		// What is being resumed is pending until the answer is there: the watch
		// may be quicker.
		if !r.Tiers[t.Ref] || stays || !t.Suspended && !r.busy[t.Ref] || done && t.Generation >= after {
			continue
		}
		pending[t.Ref], why[t.Ref] = true, t.SuspendedWhy()+", to be resumed"
		t.Suspended = false
	}
	return pending, why
}

// see completes the view of a graph that awake has prepared.
func (r *resumption) see(v *view, why map[flux.Ref]string, now time.Time) {
	v.resuming = true
	held := HeldBack(v.Graph, r.Left, v.pending)
	for _, n := range v.Tiers() {
		// Once applied, it is so until it is built from something else: between
		// two attempts a tier cannot be told from one that has applied nothing.
		if hasApplied(n) {
			r.applied[n.Ref] = causeOf(n)
		}
		v.applied[n.Ref] = r.applied[n.Ref] == causeOf(n)
		_, stays := r.Left[n.Ref]
		hold, back := held[n.Ref]
		v.out[n.Ref] = stays || back && !(hold.Applied && (v.pending[n.Ref] || !v.applied[n.Ref]))
	}
	v.suspend(func(ref flux.Ref) string { return why[ref] })
	v.acting = len(r.busy) > 0 || !r.retry.IsZero()
	for ref := range v.pending {
		n := v.Node(ref)
		_, sent := r.resumed[ref]
		v.acting = v.acting || sent || v.turn(n) || v.applies(n.ContainedBy)
	}
	if !r.retry.IsZero() && !now.Before(r.retry) {
		r.retry = time.Time{}
	}
}

// start begins to resume every tier that has all it needs.
func (w *waiter) start(ctx context.Context, v *view) {
	r := w.resumption
	if r == nil || !r.retry.IsZero() {
		return
	}
	for _, n := range v.Tiers() {
		if _, sent := r.resumed[n.Ref]; sent || r.busy[n.Ref] || !v.ready(n) {
			continue
		}
		r.busy[n.Ref] = true
		go func() { r.acts <- w.attempt(ctx, n) }()
	}
}

// did takes in how an attempt ended. The error ends the wait.
func (w *waiter) did(a act) error {
	r, n := w.resumption, a.node
	delete(r.busy, n.Ref)
	switch {
	case a.err != nil:
		r.unsure[n.Ref] = r.unsure[n.Ref] || a.sent
		return w.failed(a.err)
	case a.stays != "":
		r.Left[n.Ref] = a.stays
		r.tell(Done{Tier: n, Stays: a.stays, Moved: a.moved})
		return nil
	}
	r.refusals = 0
	w.isResumed(n, a.object.GetGeneration())
	res, _ := flux.ResourceOf(w.served, n.Ref.Kind)
	return w.cache.Upsert(res, a.object)
}

func (w *waiter) isResumed(n *tiers.Node, generation int64) {
	w.resumption.resumed[n.Ref] = generation
	delete(w.resumption.unsure, n.Ref)
	// Its new spec made its controller look at it already.
	w.nudges[n.Ref] = &nudge{cause: fmt.Sprintf("%d@%s", generation, n.SourceRevision())}
	w.resumption.tell(Done{Tier: n})
}

// settle takes for done what was sent, had no answer, and shows.
func (w *waiter) settle(v *view) {
	for ref := range w.resumption.unsure {
		n := v.Node(ref)
		switch {
		case n == nil:
			delete(w.resumption.unsure, ref)
		case !v.pending[ref] && !n.Suspended:
			w.isResumed(n, n.Generation)
		}
	}
}

func (r *resumption) tell(d Done) {
	if r.Did != nil {
		r.Did(d)
	}
}

// failed decides whether a write that failed is tried again.
func (w *waiter) failed(err error) error {
	r := w.resumption
	if apierrors.IsForbidden(err) {
		r.refusals++
	}
	again := apierrors.IsConflict(err) || passing(err, len(r.resumed) > 0 && r.refusals < maxForbidden)
	if !again {
		return err
	}
	w.trouble(err)
	r.retry = time.Now().Add(retryAfter)
	return nil
}

// drain waits for what was sent when the wait ends, so that it is told.
func (w *waiter) drain() {
	if w.resumption == nil {
		return
	}
	for len(w.resumption.busy) > 0 {
		_ = w.did(<-w.resumption.acts) // the wait has an end already
	}
}
