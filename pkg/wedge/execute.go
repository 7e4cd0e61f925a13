// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

// resumeTimeout bounds the resume that a repair which was interrupted still
// owes.
const resumeTimeout = 15 * time.Second

// Execution is how a plan is carried out.
type Execution struct {
	// Destructive is true when actions that delete may be done.
	Destructive bool
	// Backups is the directory that backups go to. It is made, mode 0700, when
	// the first one is written.
	Backups string
	// Timeout is how long each wait may take.
	Timeout time.Duration
	// Say is told of each action before (its Result is empty) and after it;
	// Waits of what an action that waits is still waiting for.
	Say   func(*Verdict, *Action)
	Waits func(*Action, string)
}

// Tally is how the actions of an execution ended.
type Tally struct {
	Done, Skipped, Failed, Late int
	// Refused are verdicts that were left alone: a choice was not made, a
	// deletion not confirmed, or it is not safe.
	Refused int
}

// Execute carries out a plan, and notes in it how each action ended. A verdict
// that cannot be repaired does not keep the others from it. The error is for
// what ends the whole run: the context, or a server that is not proved.
func (c *Cluster) Execute(ctx context.Context, w *World, verdicts []Verdict, e Execution) (Tally, error) {
	if e.Waits == nil {
		e.Waits = func(*Action, string) {}
	}
	x := &execution{
		Execution: e, cluster: c, world: w,
		own: map[flux.Ref]pin{}, tokens: map[flux.Ref]string{}, deleted: map[flux.Ref]types.UID{},
	}
	for i := range verdicts {
		v := &verdicts[i]
		if x.refuses(v) {
			x.tally.Refused++
			for j := range v.Actions {
				v.Actions[j].Result = Skipped
			}
			continue
		}
		if err := x.repair(ctx, v); err != nil {
			return x.tally, err
		}
	}
	return x.tally, ctx.Err()
}

// refuses is true for a verdict that this execution may not repair.
func (x *execution) refuses(v *Verdict) bool {
	if v.Choice != nil || v.Refused != "" {
		return true
	}
	return !x.Destructive && v.Destructive()
}

// Destructive is true for a verdict one of whose actions deletes something.
func (v *Verdict) Destructive() bool {
	for i := range v.Actions {
		if v.Actions[i].Destructive {
			return true
		}
	}
	return false
}

type execution struct {
	Execution

	cluster *Cluster
	world   *World
	tally   Tally
	// own is what objects became by our own writes, which later actions of the
	// plan could not foresee.
	own     map[flux.Ref]pin
	tokens  map[flux.Ref]string
	deleted map[flux.Ref]types.UID
	backups int
}

// skip is the reason why an action is not done: the world has moved.
type skip struct{ why string }

func (s *skip) Error() string { return s.why }

// late says that a wait took too long.
type late struct{ why string }

func (l *late) Error() string { return l.why }

// exitCoder is an error that ends the run: the guard's.
type exitCoder interface{ ExitCode() int }

// NotReached is the message of an action that an earlier one kept from being
// done.
const NotReached = "not reached"

// repair does the actions of one verdict in order, up to the first that does
// not succeed. A tier that it has suspended is resumed in any case.
func (x *execution) repair(ctx context.Context, v *Verdict) error {
	var stopped error
	suspended := false
	for i := range v.Actions {
		a := &v.Actions[i]
		if stopped != nil && (a.Verb != Resume || !suspended) {
			a.Result, a.Message = Skipped, NotReached
			continue
		}
		x.Say(v, a)
		err := x.act(ctx, a, stopped != nil)
		x.note(a, err)
		x.Say(v, a)
		// A suspension whose answer was lost may have arrived.
		suspended = suspended || a.Verb == Suspend && !errors.As(err, new(*skip))
		if err == nil {
			continue
		}
		if a.Verb == Resume && suspended {
			a.Message += "; it is still suspended: run this again, which ends what is left"
		}
		if stopped == nil {
			stopped = err
		}
		var ends exitCoder
		if errors.As(err, &ends) && ends.ExitCode() == exitWrongServer {
			return err
		}
	}
	return ctx.Err()
}

// How errors of other packages count.
const (
	exitDeadline    = 4
	exitWrongServer = 5 // ends the run
	exitRefused     = 6
)

func (x *execution) note(a *Action, err error) {
	var moved *skip
	var slow *late
	var coded exitCoder
	switch {
	case err == nil:
		a.Result = Done
		x.tally.Done++
	case errors.Is(err, context.Canceled):
		a.Result, a.Message = Failed, "interrupted"
		x.tally.Failed++
	case errors.As(err, &coded) && coded.ExitCode() == exitRefused:
		a.Result, a.Message = Skipped, err.Error()
		x.tally.Refused++
	case errors.As(err, &coded) && coded.ExitCode() == exitDeadline:
		a.Result, a.Message = Failed, err.Error()
		x.tally.Late++
	case errors.As(err, &moved):
		a.Result, a.Message = Skipped, moved.why
		x.tally.Skipped++
	case errors.As(err, &slow):
		a.Result, a.Message = Failed, slow.why
		x.tally.Late++
	default:
		a.Result, a.Message = Failed, withoutValues(err.Error())
		x.tally.Failed++
	}
}

// act looks at what must still hold, and does one action. One that the run
// owes is done although the run was interrupted.
func (x *execution) act(ctx context.Context, a *Action, owed bool) error {
	if owed {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), resumeTimeout)
		defer cancel()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, c := range a.while {
		if err := x.holds(ctx, c); err != nil {
			return err
		}
	}
	err := a.step.run(ctx, x, a)
	for owed && unreachable(err) {
		select {
		case <-ctx.Done():
			return err
		case <-time.After(retryPause):
			err = a.step.run(ctx, x, a)
		}
	}
	return err
}

// retryPause is between two tries to reach an API server that is away.
const retryPause = 500 * time.Millisecond

// unreachable is true for an error of the network: the API server may be back
// in a moment.
func unreachable(err error) bool {
	return utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err) || utilnet.IsHTTP2ConnectionLost(err)
}

func (x *execution) holds(ctx context.Context, c condition) error {
	live, err := x.get(ctx, c.object)
	if err != nil {
		return err
	}
	if live == nil {
		return &skip{fmt.Sprintf("%s is gone", c.object)}
	}
	got, found, err := unstructured.NestedFieldNoCopy(live.Object, c.path...)
	if err != nil || found != (c.want != nil) || found && got != c.want {
		return &skip{fmt.Sprintf("%s has changed: %s is %v, not %v", c.object, fieldPath(c.path), valueOr(got, "unset"), valueOr(c.want, "unset"))}
	}
	return nil
}

func valueOr(v any, none string) any {
	if v == nil {
		return none
	}
	return v
}

func fieldPath(path []string) string {
	out := ""
	for i, p := range path {
		if i > 0 {
			out += "."
		}
		out += p
	}
	return out
}

// verify compares an object with what the plan saw, or with what we made of it
// since.
func (x *execution) verify(a *Action, live *unstructured.Unstructured) error {
	want := a.pin
	if own, ours := x.own[a.Object]; ours {
		want = pin{uid: own.uid}
		switch {
		case a.pin.generation != 0:
			want.generation = own.generation
		case a.pin.resourceVersion != "":
			want.resourceVersion = own.resourceVersion
		}
	}
	switch {
	case want.uid != "" && live.GetUID() != want.uid:
		return &skip{fmt.Sprintf("%s was deleted and made anew since the plan", a.Object)}
	case want.resourceVersion != "" && live.GetResourceVersion() != want.resourceVersion,
		want.generation != 0 && live.GetGeneration() != want.generation:
		return &skip{fmt.Sprintf("%s was changed since the plan: run again to see it as it is now", a.Object)}
	case a.Verb == Suspend && live.GetDeletionTimestamp() != nil:
		// Its finalizer would let go and orphan what it owns.
		return &skip{fmt.Sprintf("%s is being deleted", a.Object)}
	}
	return nil
}

// wrote remembers what an object became by a write of ours.
func (x *execution) wrote(ref flux.Ref, u *unstructured.Unstructured) {
	x.own[ref] = pin{uid: u.GetUID(), resourceVersion: u.GetResourceVersion(), generation: u.GetGeneration()}
}
