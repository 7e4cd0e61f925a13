// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package crds

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/knowledge"
)

// DefinitionManager applies the CRDs of charts. It must stay on them: no tier
// has them, so nobody takes them over, and it is how the next run knows which
// are ours to update. A name that begins with kubectl would be cleaned away by
// whoever applies with fluxcd/pkg/ssa.
const DefinitionManager = "standup"

// Apply is how CRDs are applied.
type Apply struct {
	// DryRun sends everything with dryRun=All and waits for nothing.
	DryRun bool
	// Timeout is how long all of them may take to be served.
	Timeout time.Duration
	// Say is told what is done, one line at a time.
	Say func(string)
	// Redact takes secrets out of the server's words; nil when there are none.
	Redact func(error) error
}

// Act is what was done about a CRD.
type Act string

// The acts.
const (
	Created   Act = "created"
	Updated   Act = "updated"
	Unchanged Act = "unchanged"
	// Left is a CRD that others manage.
	Left Act = "left"
	// Refused is one that is not safe to apply, or impossible.
	Refused Act = "refused"
)

// Reason is why a CRD was left or refused.
type Reason string

// The reasons.
const (
	NotOurs     Reason = "not ours"
	TooBig      Reason = "too big"
	LosesStored Reason = "loses a stored version"
	Deleting    Reason = "being deleted"
	NotAccepted Reason = "not accepted"
)

// Applied is what became of one CRD.
type Applied struct {
	Name   string
	Act    Act
	Reason Reason
	// Why is one sentence, for what was left or refused.
	Why string
	// Differences are what a CRD that was left lacks, or has otherwise. None:
	// it is as the chart has it.
	Differences []string
	// Err is what the server said, nil but for NotAccepted.
	Err error

	kinds       []schema.GroupVersionKind
	established bool
}

// Ref names the CRD.
func (a Applied) Ref() flux.Ref { return definitionRef(a.Name) }

func definitionRef(name string) flux.Ref {
	return flux.Ref{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: name}
}

// ServedDeadlineError says that CRDs are not served in time.
type ServedDeadlineError struct {
	Waited  time.Duration
	Missing []string
}

func (e *ServedDeadlineError) Error() string {
	if len(e.Missing) == 0 {
		return fmt.Sprintf("all CRDs are Established, but after %s discovery does not show all of their kinds", e.Waited)
	}
	return fmt.Sprintf("after %s these CRDs are not Established: %s", e.Waited, finding.And(e.Missing))
}

// ExitCode is 4, past a deadline.
func (*ServedDeadlineError) ExitCode() int { return exitDeadline }

// ApplyDefinitions applies each CRD server-side, without force, and waits until
// all are Established and discoverable. One that exists is updated only when
// nobody but us manages its spec and no stored version would be lost; all that
// is not applied is in the outcome, with the reason. A CRD that is as it should
// be costs a GET and a dry run.
//
// The error is a *RefusedError (exit 6) for the first that was refused, a
// *ServedDeadlineError (exit 4), one of a CRD that will never be Established, or
// the API server's. What was done until then is returned with it.
func (c *Cluster) ApplyDefinitions(ctx context.Context, definitions []*unstructured.Unstructured, a Apply) ([]Applied, error) {
	if a.Redact == nil {
		a.Redact = func(err error) error { return err }
	}
	all, err := c.applyAll(ctx, definitions, a)
	if err != nil {
		return all, err
	}
	if !a.DryRun {
		if err := c.awaitDefinitions(ctx, all, a); err != nil {
			return all, err
		}
	}
	for _, one := range all {
		if one.Act == Refused {
			return all, &RefusedError{one.Ref(), one.Why}
		}
	}
	return all, nil
}

// applyAtOnce bounds how many CRDs are sent side by side. A server takes half a
// second for one of half a megabyte.
const applyAtOnce = 4

// applyAll decides about each CRD and acts. What was not reached because of an
// error is not in the outcome.
func (c *Cluster) applyAll(ctx context.Context, definitions []*unstructured.Unstructured, a Apply) ([]Applied, error) {
	all := make([]Applied, len(definitions))
	var saying sync.Mutex
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(applyAtOnce)
	for i, definition := range definitions {
		group.Go(func() error {
			one, err := c.applyDefinition(groupCtx, definition, a)
			if err != nil {
				return err
			}
			all[i] = one
			if one.Act == Created || one.Act == Updated {
				saying.Lock()
				defer saying.Unlock()
				a.Say(said(one, a.DryRun))
			}
			return nil
		})
	}
	err := group.Wait()
	return slices.DeleteFunc(all, func(one Applied) bool { return one.Act == "" }), err
}

func said(one Applied, dryRun bool) string {
	if dryRun {
		return fmt.Sprintf("CRD %s would be %s (server dry run)", one.Name, one.Act)
	}
	return fmt.Sprintf("CRD %s %s", one.Name, one.Act)
}

// applyDefinition decides about one CRD by what is there now, and acts on
// exactly that.
func (c *Cluster) applyDefinition(ctx context.Context, definition *unstructured.Unstructured, a Apply) (Applied, error) {
	name := definition.GetName()
	definition = definition.DeepCopy()
	dropBlankCABundle(definition)
	out := Applied{Name: name, kinds: knowledge.DefinitionOf(definition).Kinds()}
	there, err := c.dynamic.Resource(customResourceDefinition()).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		there = nil
	} else if err != nil {
		return out, fmt.Errorf("get CRD %s: %w", name, err)
	}
	if there != nil {
		out.established, _ = established(there) // a clash of names is found while waiting
	}
	j := judgeDefinition(definition, there)
	out.Act, out.Reason, out.Why = j.act, j.reason, j.why
	switch j.act {
	case Refused:
		return out, nil
	case Left:
		return c.compare(ctx, out, definition, there, a)
	case Created:
		return c.send(ctx, out, definition, a.DryRun, a)
	}
	pinned := definition.DeepCopy()
	pinned.SetResourceVersion(there.GetResourceVersion())
	leaveCABundle(pinned, there)
	rehearsed, err := c.patch(ctx, pinned, true, false)
	switch {
	case err != nil:
		return c.unsent(out, err, a)
	case sameObject(rehearsed, there):
		out.Act = Unchanged
		return out, nil
	case a.DryRun:
		return out, nil
	}
	out.established = false
	return c.send(ctx, out, pinned, false, a)
}

func (c *Cluster) send(ctx context.Context, out Applied, definition *unstructured.Unstructured, dryRun bool, a Apply) (Applied, error) {
	if _, err := c.patch(ctx, definition, dryRun, false); err != nil {
		return c.unsent(out, err, a)
	}
	return out, nil
}

// patch applies the CRD server-side. force is for rehearsals alone.
func (c *Cluster) patch(ctx context.Context, definition *unstructured.Unstructured, dryRun, force bool) (*unstructured.Unstructured, error) {
	options := metav1.ApplyOptions{FieldManager: DefinitionManager, Force: force && dryRun}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	return c.dynamic.Resource(customResourceDefinition()).Apply(ctx, definition.GetName(), definition, options)
}

// unsent says what became of a CRD that the server did not take. Only what is
// about this one CRD is no error of the whole run.
func (c *Cluster) unsent(out Applied, err error, a Apply) (Applied, error) {
	// Redacting takes the type of an error along with the secret.
	plain := a.Redact(err)
	switch {
	case apierrors.IsConflict(err):
		out.Act, out.Reason, out.Err = Refused, NotAccepted, plain
		out.Why = fmt.Sprintf("others manage fields of it, or changed it in the meantime; run this again: %v", plain)
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err):
		out.Act, out.Reason, out.Err = Refused, NotAccepted, plain
		out.Why = fmt.Sprintf("the server does not accept it: %v", plain)
	default:
		return out, fmt.Errorf("apply CRD %s: %w", out.Name, plain)
	}
	return out, nil
}

// compare finds out how a CRD that others manage differs from the chart's. The
// server itself says, in a dry run, what it would be with the chart's fields:
// only it knows what a field that is not written means.
func (c *Cluster) compare(ctx context.Context, out Applied, definition, there *unstructured.Unstructured, a Apply) (Applied, error) {
	wanted := definition.DeepCopy()
	leaveCABundle(wanted, there)
	rehearsed, err := c.patch(ctx, wanted, true, true)
	switch {
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsConflict(err):
		out.Differences = []string{"it cannot become what the chart has: " + a.Redact(err).Error()}
		return out, nil
	case err != nil:
		return out, fmt.Errorf("compare CRD %s: %w", out.Name, a.Redact(err))
	}
	out.Differences = differences(there, rehearsed)
	return out, nil
}

// awaitDefinitions waits until those that are there are Established, and those
// that are new are in discovery. What was Established and did not change is
// not waited for.
func (c *Cluster) awaitDefinitions(ctx context.Context, all []Applied, a Apply) error {
	start := time.Now()
	limited, cancel := context.WithTimeout(ctx, a.Timeout)
	defer cancel()
	group, groupCtx := errgroup.WithContext(limited)
	var names []string
	var kinds []schema.GroupVersionKind
	for _, one := range all {
		if one.established || one.Act == Refused && one.Reason != LosesStored {
			continue
		}
		names, kinds = append(names, one.Name), append(kinds, one.kinds...)
		group.Go(func() error { return c.awaitEstablished(groupCtx, one.Name) })
	}
	if len(names) == 0 {
		return nil
	}
	err := group.Wait()
	if err == nil {
		err = c.awaitDiscovery(limited, kinds)
	}
	var bad *definitionError
	switch {
	case err == nil:
		what := fmt.Sprintf("%d CRDs", len(names))
		if len(names) == 1 {
			what = "CRD " + names[0]
		}
		a.Say(fmt.Sprintf("%s Established and served after %s", what, time.Since(start).Round(100*time.Millisecond)))
		return nil
	case errors.As(err, &bad):
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	case limited.Err() == nil:
		return err
	}
	return &ServedDeadlineError{Waited: a.Timeout, Missing: c.absent(ctx, names)}
}
