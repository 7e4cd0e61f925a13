// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// standstill waits until nothing can change by itself: every tier is Ready,
// suspended, waits for one that is not Ready, or has failed so many times with
// everything that there is. A repository of which ends is true is done with
// after coldAttempts such failures: its outcome is kept, and it is put to rest, for
// every retry costs the others time.
func (w *coldWatch) standstill(ctx context.Context, c client.Client, attempts int, ends func(*coldRepo) bool) error {
	for {
		var final []*coldRepo
		all := false
		err := w.await(ctx, func() (bool, string) {
			var moving []string
			final = nil
			for _, r := range w.repos {
				if w.ended[r.id] != nil {
					continue
				}
				moving = append(moving, w.moving(r, attempts)...)
				if ends(r) && len(w.moving(r, coldAttempts)) == 0 {
					final = append(final, r)
				}
			}
			slices.Sort(moving)
			all = len(moving) == 0
			return all || len(final) > 0, strings.Join(moving, "\n")
		})
		if err != nil {
			return err
		}
		for _, r := range final {
			if err := w.end(ctx, c, r); err != nil {
				return err
			}
		}
		if all {
			return nil
		}
	}
}

// moving are the tiers and releases of a repository that may change.
func (w *coldWatch) moving(r *coldRepo, attempts int) []string {
	var moving []string
	seen := false
	for key, tier := range w.tiers {
		if !r.owns(key.Namespace) {
			continue
		}
		seen = true
		if why := w.moves(r, tier, attempts); why != "" {
			moving = append(moving, fmt.Sprintf("  %s %s: %s", r.name, key, why))
		}
	}
	if !seen || len(w.ticks) == 0 {
		moving = append(moving, fmt.Sprintf("  %s: its root is not there yet", r.name))
	}
	for key, hr := range w.releases {
		// What its controller will make of it takes a few of its retries, which
		// are not much further apart than the ticks.
		if r.owns(key.Namespace) && attempts > 1 && !hr.Spec.Suspend && !releaseReady(hr) && w.ticksSince(r) < 5 {
			moving = append(moving, fmt.Sprintf("  %s HelmRelease %s", r.name, key))
		}
	}
	return moving
}

// end keeps what became of a repository, and suspends what is not Ready.
func (w *coldWatch) end(ctx context.Context, c client.Client, r *coldRepo) error {
	outcomes := w.outcomes(r)
	w.mu.Lock()
	w.ended[r.id] = outcomes
	var awake []client.Object
	for key, tier := range w.tiers {
		if r.owns(key.Namespace) && !tierReady(tier.newest) {
			awake = append(awake, tierOf(key.Namespace, key.Name))
		}
	}
	for key, hr := range w.releases {
		if r.owns(key.Namespace) && !releaseReady(hr) {
			awake = append(awake, &helmv2.HelmRelease{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}})
		}
	}
	w.mu.Unlock()
	for _, o := range awake {
		if err := c.Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"suspend":true}}`)), client.FieldOwner("test")); err != nil {
			return err
		}
	}
	return nil
}

// every repository ends; none does; and without releases does it end before
// helm-controller runs.
func every(*coldRepo) bool { return true }

func none(*coldRepo) bool { return false }

func (w *coldWatch) withoutReleases(r *coldRepo) bool {
	for key := range w.releases {
		if r.owns(key.Namespace) {
			return false
		}
	}
	return true
}

// ticksSince counts the ticks of the clock since the repository got further. The
// clock is a tier that fails for ever: a tick is as long as any tier's retry,
// however busy the machine and the controller are.
func (w *coldWatch) ticksSince(r *coldRepo) int {
	n, _ := slices.BinarySearch(w.ticks, w.progress[r.id]+1)
	return len(w.ticks) - n
}

// moves says why a tier may still change, or "".
func (w *coldWatch) moves(r *coldRepo, tier *coldTier, attempts int) string {
	k := tier.newest
	ready := coldCondition(k)
	switch {
	case k.Spec.Suspend, tierReady(k), terminal(ready.Reason):
		return ""
	case ready.Reason == "DependencyNotReady":
		return w.dependencyMoves(r, k)
	case tier.applied: // and its health is not what it should be
		if w.ticksSince(r) < 4 {
			return "its health may change: " + ready.Message
		}
		return ""
	case len(tier.starts) == 0: // its source is not there, or has nothing
		if ready.Reason == "ArtifactFailed" && w.ticksSince(r) >= 3 {
			return ""
		}
		return "not tried yet: " + ready.Message
	}
	failed := 0
	for _, f := range tier.failures {
		if f.started > w.progress[r.id] {
			failed++
		}
	}
	if failed < attempts {
		return fmt.Sprintf("%d failures since something changed", failed)
	}
	return ""
}

func (w *coldWatch) dependencyMoves(r *coldRepo, k *kustomizev1.Kustomization) string {
	for _, d := range k.Spec.DependsOn {
		key := types.NamespacedName{Namespace: d.Namespace, Name: d.Name}
		if key.Namespace == "" {
			key.Namespace = k.Namespace
		}
		dep := w.tiers[key]
		if d.ReadyExpr == "" && (dep == nil || !tierReady(dep.newest)) {
			return ""
		}
		if d.ReadyExpr != "" && w.ticksSince(r) >= 3 {
			return "" // it was asked often enough
		}
	}
	return "its dependencies are ready: " + client.ObjectKeyFromObject(k).String()
}
