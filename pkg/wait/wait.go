// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wait

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/pager"

	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/tiers"
)

// Options say what to wait for, and how.
type Options struct {
	Targets Targets
	// Timeout of the whole wait; none when zero.
	Timeout time.Duration
	// Nudge asks each tier to reconcile the moment its dependencies are met.
	Nudge bool
	// Resume is what to do about suspended tiers; nil leaves them alone.
	Resume *Resume
	// Limit is how long a tier may take from when its dependencies are met; 0
	// for the timeout that Flux gives it and one retry.
	Limit time.Duration
	// Diagnose looks closer at a tier that failed on a missing kind, and says
	// why no controller will ever heal that, or nothing when a retry will. It
	// is asked once per tier and revision. Nil means that nobody looks.
	// Suspect names further tiers to ask about; nil is allowed.
	Suspect  func(*tiers.Node) bool
	Diagnose func(context.Context, *flux.Snapshot, flux.Ref) (why string, err error)
	// Observe is told of each new graph, from one goroutine at a time; nil is
	// allowed. nudged are the tiers that were just asked to reconcile.
	Observe func(g *tiers.Graph, left, nudged []*tiers.Node)
	// Trouble is told of errors that are being retried; nil is allowed.
	Trouble func(error)
}

// Run waits until the targets are Ready at the current revision of their
// sources. It returns nil then; a *StuckError or *AbsentError (exit 3) when
// waiting longer is useless; a *DeadlineError (exit 4) when a tier or the whole
// wait took too long; ctx.Err() when it was interrupted.
func Run(ctx context.Context, client dynamic.Interface, served []flux.Resource, o Options) error {
	ctx, cancel := context.WithCancel(ctx)
	w := &waiter{
		Options: o, client: client, served: served,
		cache: flux.NewCache(served), clocks: clocks{}, nudges: nudges{},
		asked: map[flux.Ref]string{}, tried: map[flux.Ref]string{}, wedged: map[flux.Ref]verdict{},
		verdicts: make(chan verdict), resumption: newResumption(o.Resume),
	}
	var watches sync.WaitGroup
	defer watches.Wait()
	defer cancel()

	watched := watchedKinds(served)
	w.signals = newSignals(len(watched))
	for _, res := range watched {
		watches.Go(func() { follow(ctx, client, res, w.cache, w.signals) })
	}
	err := w.loop(ctx, len(watched))
	cancel()
	w.drain()
	return err
}

// watchedKinds leaves out what no answer depends on.
func watchedKinds(served []flux.Resource) []flux.Resource {
	var out []flux.Resource
	for _, res := range served {
		if res.Kind != "HelmRepository" {
			out = append(out, res)
		}
	}
	return out
}

type waiter struct {
	Options
	client  dynamic.Interface
	served  []flux.Resource
	cache   *flux.Cache
	signals signals
	clocks  clocks
	nudges  nudges
	// asked is the revision at which each tier was last diagnosed, and tried
	// the attempt of it whose diagnosis failed: the next attempt is asked about.
	asked    map[flux.Ref]string
	tried    map[flux.Ref]string
	wedged   map[flux.Ref]verdict
	verdicts chan verdict
	// resumption is nil for a wait that resumes nothing.
	resumption *resumption
}

// verdict is the answer of Diagnose for a tier at a revision.
type verdict struct {
	tier     flux.Ref
	revision string
	why      string
	err      error
}

func (w *waiter) loop(ctx context.Context, kinds int) error {
	var timeout <-chan time.Time
	if w.Timeout > 0 {
		t := time.NewTimer(w.Timeout)
		defer t.Stop()
		timeout = t.C
	}
	deadline := time.NewTimer(0)
	deadline.Stop()
	defer deadline.Stop()

	var acts chan act
	if w.resumption != nil {
		acts = w.resumption.acts
	}
	var left []*tiers.Node
	for listed := 0; ; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timeout:
			if listed < kinds {
				return &DeadlineError{Allowed: w.Timeout}
			}
			return &DeadlineError{Allowed: w.Timeout, Left: summary(left)}
		case err := <-w.signals.fatal:
			return err
		case err := <-w.signals.trouble:
			w.trouble(err)
			continue
		case <-w.signals.synced:
			listed++
		case v := <-w.verdicts:
			w.judge(v)
		case a := <-acts:
			if err := w.did(a); err != nil {
				return err
			}
		case <-w.signals.changed:
		case <-deadline.C:
		}
		if listed < kinds {
			continue // half a picture would show edges to tiers not yet read
		}
		d, err := w.look(ctx)
		if err != nil {
			return err
		}
		if d.ends() {
			if d, err = w.confirm(ctx); err != nil {
				w.trouble(err)
				continue
			}
			if d.ends() {
				return d.err
			}
		}
		left = d.left
		if !d.next.IsZero() {
			deadline.Reset(time.Until(d.next))
		}
	}
}

// confirm looks again with everything read anew, before the wait ends. The
// watches come back one by one after an API server was away, and tiers that
// are newer than their sources can look Ready, or at rest, and be neither.
func (w *waiter) confirm(ctx context.Context) (decision, error) {
	for _, res := range watchedKinds(w.served) {
		var objs []*unstructured.Unstructured
		pages := pager.New(pager.SimplePageFunc(func(o metav1.ListOptions) (runtime.Object, error) {
			return w.client.Resource(res.GroupVersionResource()).List(ctx, o)
		}))
		err := pages.EachListItem(ctx, metav1.ListOptions{}, func(obj runtime.Object) error {
			u, ok := obj.(*unstructured.Unstructured)
			if !ok {
				return fmt.Errorf("%s: the list delivered a %T", res.Plural, obj)
			}
			objs = append(objs, u)
			return nil
		})
		if err != nil {
			return decision{}, fmt.Errorf("list %s: %w", res.Plural, err)
		}
		if err := w.cache.Replace(res, objs); err != nil {
			return decision{}, err
		}
	}
	return w.look(ctx)
}

// look makes the graph and does what it calls for.
func (w *waiter) look(ctx context.Context) (decision, error) {
	snapshot, err := w.cache.Snapshot()
	if err != nil {
		return decision{}, err
	}
	if len(snapshot.Tiers) == 0 {
		return decision{}, errors.New("the cluster holds no Kustomization and no HelmRelease: nothing to wait for")
	}
	wedged := map[flux.Ref]string{}
	for ref, v := range w.wedged {
		wedged[ref] = v.why
	}
	now := time.Now()
	v := w.view(snapshot, wedged, now)
	if w.outdated(v.Graph) {
		return w.look(ctx)
	}
	w.clocks.update(v, now)
	d := decide(v, w.Targets, w.clocks, now)
	if stuck, ok := errors.AsType[*StuckError](d.err); ok {
		stuck.Diagnosed = wedged[stuck.Root.Object] != ""
	}
	var nudged []*tiers.Node
	if d.err == nil && !d.done {
		w.diagnose(ctx, snapshot, d.left)
		w.start(ctx, v)
		if w.Nudge {
			nudged, err = w.nudges.send(ctx, w.client, w.served, d.left)
			if err := w.nudgeFailed(err); err != nil {
				return d, err
			}
		}
	}
	if w.Observe != nil {
		w.Observe(v.Graph, d.left, nudged)
	}
	if r := w.resumption; r != nil && !r.retry.IsZero() && (d.next.IsZero() || r.retry.Before(d.next)) {
		d.next = r.retry
	}
	return d, nil
}

func (w *waiter) nudgeFailed(err error) error {
	switch {
	case err == nil:
		return nil
	case w.resumption != nil:
		return w.failed(err)
	case !passing(err, len(w.nudges) > 0):
		return err
	}
	w.trouble(err) // the relist after the API server is back tries again
	return nil
}

func (w *waiter) trouble(err error) {
	if err != nil && w.Trouble != nil {
		w.Trouble(err)
	}
}

// outdated drops the verdicts that the cluster has moved past: the tier is
// Ready, or is built from another revision now.
func (w *waiter) outdated(g *tiers.Graph) bool {
	dropped := false
	for ref, v := range w.wedged {
		n := g.Node(ref)
		if n == nil || n.IsReady() || revisionOf(n) != v.revision {
			delete(w.wedged, ref)
			delete(w.asked, ref)
			dropped = true
		}
	}
	return dropped
}

func revisionOf(n *tiers.Node) string {
	return fmt.Sprintf("%d@%s", n.Generation, n.LastAttemptedRevision)
}

// diagnose asks, in the background, about tiers that failed on a missing kind.
func (w *waiter) diagnose(ctx context.Context, s *flux.Snapshot, left []*tiers.Node) {
	if w.Diagnose == nil {
		return
	}
	for _, n := range left {
		rev := revisionOf(n)
		attempt := rev + "/" + n.RetryAt.String()
		if n.State != tiers.Retrying || !n.MayMissKind() && (w.Suspect == nil || !w.Suspect(n)) || w.asked[n.Ref] == rev || w.tried[n.Ref] == attempt {
			continue
		}
		w.asked[n.Ref], w.tried[n.Ref] = rev, attempt
		tier := n.Ref
		go func() {
			why, err := w.Diagnose(ctx, s, tier)
			select {
			case w.verdicts <- verdict{tier, rev, why, err}:
			case <-ctx.Done():
			}
		}()
	}
}

func (w *waiter) judge(v verdict) {
	switch {
	case v.err != nil:
		delete(w.asked, v.tier)
		w.trouble(fmt.Errorf("%s: whether a retry will heal it could not be found out: %w", v.tier, v.err))
	case v.why != "":
		w.wedged[v.tier] = v
	}
}
