// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/tiers"
)

// moment is how long the end of a look is waited for at most. It takes a
// fraction of a second, unless a source or the API server does not answer.
const moment = 15 * time.Second

// hidden is true for a tier of which nobody can say just now whether it is
// wedged: its controller has begun to look at it again, and has taken away what
// its last look ended with, to put it back if nothing has changed.
func hidden(t *flux.Tier) bool {
	ready, at := meta.FindStatusCondition(t.Conditions, "Ready"), meta.FindStatusCondition(t.Conditions, "Reconciling")
	// Between two attempts Reconciling stays True, with another reason.
	if t.Suspended || !t.Deleted.IsZero() || ready == nil || at == nil || at.Status != metav1.ConditionTrue || at.Reason != "Progressing" {
		return false
	}
	if t.Ref.Kind == flux.HelmReleaseKind {
		return hiddenRelease(t, ready, at)
	}
	// What has come as far as the health checks was applied.
	return ready.Status == metav1.ConditionUnknown && t.LastOutcome == "ReconciliationFailed" && !strings.HasPrefix(at.Message, "Running health checks")
}

// hiddenRelease: helm-controller takes Stalled away while it fulfils the
// prerequisites, and decides after that whether there is anything left to try
// (v1.6.4 internal/controller reconcileRelease, internal/reconcile
// AtomicRelease). Where it fails at a prerequisite, what it says stays the same
// between two attempts, so that nothing is hidden: Ready then has a reason of
// its own, and not that of the last action.
func hiddenRelease(t *flux.Tier, ready, at *metav1.Condition) bool {
	if ready.Status != metav1.ConditionFalse || at.Message != "Fulfilling prerequisites" {
		return false
	}
	switch ready.Reason {
	case "AccessDenied", "InvalidCELExpression": // never without Stalled at the end
		return true
	case "UninstallFailed": // of a release whose target has changed
		return !meta.IsStatusConditionFalse(t.Conditions, "Released")
	}
	return slices.ContainsFunc(t.Conditions, func(c metav1.Condition) bool {
		return c.Reason == ready.Reason && (c.Type == "Released" || c.Type == "Remediated" || c.Type == "TestSuccess")
	})
}

// untilShown waits until each tier that is hidden, and that somebody has asked
// about, shows what came of the look, and puts that into the world: as the
// watch saw it, since the next look may begin at once.
func (c *Cluster) untilShown(ctx context.Context, w *World) []Gap {
	var gaps []Gap
	var gone []flux.Ref
	var mu sync.Mutex
	var group errgroup.Group
	waited := false
	for i := range w.Flux.Tiers {
		t := &w.Flux.Tiers[i]
		if !hidden(t) || !w.asked.tier(t) {
			continue
		}
		waited = true
		ref := t.Ref
		group.Go(func() error {
			exists, err := c.show(ctx, w, t)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				gaps = append(gaps, Gap{What: ref.String(), Why: err.Error(), Object: &ref})
			}
			if !exists {
				gone = append(gone, ref)
			}
			return nil
		})
	}
	_ = group.Wait()
	if waited {
		w.Flux.Tiers = slices.DeleteFunc(w.Flux.Tiers, func(t flux.Tier) bool { return slices.Contains(gone, t.Ref) })
		w.Graph = tiers.Build(w.Flux, tiers.Options{})
	}
	return gaps
}

// show follows one tier until it is no longer hidden.
func (c *Cluster) show(ctx context.Context, w *World, t *flux.Tier) (exists bool, err error) {
	patience := moment
	if limit := w.Choices.Timeout; limit > 0 {
		patience = min(patience, limit)
	}
	res, _ := flux.ResourceOf(w.Flux.Served, t.Ref.Kind)
	client := c.dynamic.Resource(res.GroupVersionResource()).Namespace(t.Ref.Namespace)
	outstanding := func() string {
		return fmt.Sprintf("it is still being reconciled (%s), and how it is shows when that ends. Run this again",
			firstLine(meta.FindStatusCondition(t.Conditions, "Reconciling").Message))
	}
	exists = true
	err = until(ctx, client, t.Ref.Name, patience, outstanding, func(u *unstructured.Unstructured) (bool, error) {
		if exists = u != nil; !exists {
			return true, nil
		}
		now, err := tierOf(res, u)
		if err == nil {
			*t = *now
		}
		return !hidden(t), err
	})
	return exists, err
}

func tierOf(res flux.Resource, u *unstructured.Unstructured) (*flux.Tier, error) {
	one := flux.NewCache([]flux.Resource{res})
	if err := one.Upsert(res, u); err != nil {
		return nil, err
	}
	s, err := one.Snapshot()
	if err != nil {
		return nil, err
	}
	return &s.Tiers[0], nil
}
