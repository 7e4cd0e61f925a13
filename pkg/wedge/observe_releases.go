// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/release"
	"github.com/kubestandup/kubestandup/pkg/tiers"
)

// readers is how many records are read, and held decoded, at a time.
const readers = 4

// observeReleases reads the metadata of every release record, and decodes the
// newest record of each release that may be wedged: all but those whose
// HelmRelease is Ready and whose label agrees, and those that nobody has asked
// about.
func (c *Cluster) observeReleases(ctx context.Context, w *World) []Gap {
	histories, err := release.List(ctx, c.cfg, "")
	if err != nil {
		return []Gap{{What: "Helm releases", Why: err.Error()}}
	}
	w.Releases = join(histories, w.Graph)
	var mu sync.Mutex
	var gaps []Gap
	gap := func(r *Release, err error) {
		mu.Lock()
		defer mu.Unlock()
		object := r.Object()
		gaps = append(gaps, Gap{What: "Helm release " + r.Key.String(), Why: err.Error(), Object: &object})
	}
	var group errgroup.Group
	group.SetLimit(readers)
	for _, r := range w.Releases {
		if !r.worthALook() {
			continue
		}
		if r.Unlooked = !w.asked.release(r); r.Unlooked {
			continue
		}
		group.Go(func() error {
			if err := c.readRecord(ctx, r); err != nil {
				gap(r, err)
				return nil
			}
			if r.Record != nil && r.objectsMatter() {
				if r.OwnedUnknown = c.readOwned(ctx, w.Served, r); r.OwnedUnknown != nil {
					gap(r, r.OwnedUnknown)
				}
			}
			if r.Record != nil && !r.recordMatters() {
				r.Record = nil // 200 decoded charts are a lot of memory
			}
			return nil
		})
	}
	_ = group.Wait()
	slices.SortFunc(gaps, func(a, b Gap) int { return strings.Compare(a.What, b.What) })
	return gaps
}

// join puts records and HelmReleases together.
func join(histories []release.History, g *tiers.Graph) []*Release {
	byKey := map[release.Key]*Release{}
	var all []*Release
	for i := range histories {
		h := &histories[i]
		r := &Release{Key: h.Key, Revisions: h.Revisions}
		r.Status = r.Latest().Label
		byKey[h.Key] = r
		all = append(all, r)
	}
	for _, r := range all {
		r.Good = newestGood(r)
	}
	if g == nil {
		return all
	}
	for _, n := range g.Tiers() {
		if n.Ref.Kind != flux.HelmReleaseKind || n.Helm == nil {
			continue
		}
		key := keyOf(n.Tier)
		r := byKey[key]
		if r == nil || n.Remote {
			r = &Release{Key: key, Remote: n.Remote}
			all = append(all, r)
		}
		if r.Node != nil {
			r.Others = append(r.Others, n.Ref)
			continue
		}
		r.Node = n
		if ns := wantedNamespace(n.Tier); ns != key.Namespace && byKey[release.Key{Namespace: ns, Name: key.Name}] != nil {
			r.Namesake = &release.Key{Namespace: ns, Name: key.Name}
		}
	}
	return all
}

// newestGood is the newest record below the highest that succeeded, as its
// label says: the deployed one, or else the newest superseded one.
func newestGood(r *Release) *release.Revision {
	older := r.Revisions[:len(r.Revisions)-1]
	for _, status := range []release.Status{release.Deployed, release.Superseded} {
		for i := len(older) - 1; i >= 0; i-- {
			if older[i].Label == status {
				return &older[i]
			}
		}
	}
	return nil
}

// worthALook is true for a release whose newest record is decoded.
func (r *Release) worthALook() bool {
	if len(r.Revisions) == 0 || r.Remote {
		return false
	}
	return r.Node == nil || r.Node.State != tiers.Ready || r.Latest().Label != release.Deployed
}

// readRecord decodes the newest record.
func (c *Cluster) readRecord(ctx context.Context, r *Release) error {
	record, err := release.Get(ctx, c.core, *r.Latest())
	if apierrors.IsNotFound(err) {
		return nil // it was cleaned up meanwhile
	}
	var broken *release.UnreadableError
	if errors.As(err, &broken) {
		r.Broken, r.Status = broken, release.Unknown
		return nil
	}
	if err != nil {
		return fmt.Errorf("get %s: %w", secretRef(*r.Latest()), err)
	}
	if record.Name != r.Key.Name {
		r.Broken, r.Status = &release.UnreadableError{Reason: fmt.Sprintf("its payload is that of another release, %s", record.Name)}, release.Unknown
		r.Foreign = true
		return nil
	}
	r.Record, r.Status = record, record.Status
	r.Foreign = r.Node == nil && record.ReleaseNamespace != r.Namespace
	return nil
}

// objectsMatter is true where a verdict asks what of the release is there.
func (r *Release) objectsMatter() bool {
	switch r.Status {
	case release.Uninstalling, release.Uninstalled:
		return true
	case release.PendingUpgrade, release.PendingRollback:
		return r.Node == nil
	case release.PendingInstall, release.Failed:
		return r.Node == nil && r.Status.Pending() || r.Latest().Version == 1
	}
	return r.deleting()
}

// recordMatters is true where a verdict says something of the record.
func (r *Release) recordMatters() bool {
	return r.Status != release.Deployed && r.Status != release.Superseded || r.Latest().Label != r.Status ||
		r.Node != nil && r.Node.State != tiers.Ready
}
