// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wait

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/guard"
	"github.com/kubestandup/kubestandup/pkg/tiers"
)

// nudges remember what was asked of each tier.
type nudges map[flux.Ref]*nudge

type nudge struct {
	token string
	// cause is what the tier had when it was asked: its spec and its revision.
	cause string
	times int
}

// maxNudges bounds how often one tier is asked for the same reason. A
// dependency is read by the controller uncached, so once nearly always does.
const maxNudges = 3

// due picks the tiers that a nudge would bring on: all that they depend on is
// there, and their controller is not at work on them but asleep.
func (m nudges) due(left []*tiers.Node) []*tiers.Node {
	var out []*tiers.Node
	for _, n := range left {
		if len(n.Blockers) > 0 || !n.Deleted.IsZero() || !asleep(n) {
			continue
		}
		last := m[n.Ref]
		switch {
		case last == nil || last.cause != causeOf(n):
			out = append(out, n)
		case n.LastHandledReconcileAt < last.token: // not answered yet, nor a later one of somebody else's
		case n.AwaitsDependencies() && last.times < maxNudges:
			out = append(out, n) // asked, answered, and the answer was too early
		}
	}
	return out
}

func (m nudges) sent(n *tiers.Node, token string) {
	if last := m[n.Ref]; last != nil && last.cause == causeOf(n) {
		last.token, last.times = token, last.times+1
		return
	}
	m[n.Ref] = &nudge{token: token, cause: causeOf(n), times: 1}
}

func causeOf(n *tiers.Node) string {
	return fmt.Sprintf("%d@%s", n.Generation, n.SourceRevision())
}

// asleep is true when the controller has ended its last attempt and waits for
// a timer: nudging one that is at work would only queue another attempt.
func asleep(n *tiers.Node) bool {
	return n.State == tiers.Retrying ||
		n.State == tiers.Progressing && n.ReadyStatus() == metav1.ConditionTrue && !n.AtWork() && !finishing(n)
}

// finishing is true in the moment between the two patches by which a
// controller ends a good attempt: the conditions come first, the revision and
// the generation that they are about right after (fluxcd/pkg/runtime/patch).
func finishing(n *tiers.Node) bool {
	c := meta.FindStatusCondition(n.Conditions, "Ready")
	return c != nil && c.ObservedGeneration == n.Generation && strings.HasSuffix(c.Message, n.SourceRevision())
}

// send nudges every tier that is due. A tier that vanished meanwhile is left.
func (m nudges) send(ctx context.Context, client dynamic.Interface, served []flux.Resource, left []*tiers.Node) ([]*tiers.Node, error) {
	due := m.due(left)
	for _, n := range due {
		token, err := flux.Nudge(ctx, client, served, n.Ref)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		m.sent(n, token)
	}
	return due, nil
}

// passing is true for an error of the way to the API server, or of an API
// server that is overloaded or coming up: what follows the watches through a
// restart must not end the wait.
func passing(err error, allowedBefore bool) bool {
	if refused, ok := errors.AsType[*guard.RefusedError](err); ok {
		return refused.Transient
	}
	var coded interface{ ExitCode() int }
	if errors.As(err, &coded) { // the guard's word is final
		return false
	}
	if apierrors.IsForbidden(err) {
		return allowedBefore // until an API server that comes up has read its RBAC
	}
	status := apierrors.ReasonForError(err)
	return status == metav1.StatusReasonUnknown || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) ||
		apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err)
}
