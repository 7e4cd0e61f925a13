// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"fmt"
	"strings"
	"time"

	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/release"
)

// suspendedBy says who suspended a tier, and when.
func suspendedBy(t *flux.Tier) string {
	if t.SuspendedBy == "" {
		return "true"
	}
	return fmt.Sprintf("true, by %s since %s", t.SuspendedBy, t.SuspendedSince.UTC().Format(time.RFC3339))
}

// stays is why a suspended tier should stay so, empty when nothing says it:
// somebody holds it by annotation, or its manifest in git says so.
func stays(t *flux.Tier) string {
	switch {
	case !t.Suspended || t.Unwedge != "":
		return ""
	case t.Hold != "":
		return "annotation kubestandup.dev/hold says " + t.Hold
	case t.SuspendedBy == "kustomize-controller":
		return "its manifest in git says suspend: true"
	}
	return ""
}

// moves is why helm-controller would uninstall the release at its next
// reconcile: its spec names another one than it has installed
// (internal/action/reset.go ReleaseTargetChanged). Empty when it would not.
func (w *World) moves(r *Release) string {
	if r.Node == nil || r.Node.Helm == nil {
		return ""
	}
	h, now := r.Node.Helm, r.latestSnapshot()
	if now == nil {
		return ""
	}
	for _, c := range []struct{ what, had, wants string }{
		{"storage namespace", h.Storage, wantedStorage(r.Node.Tier)},
		{"target namespace", now.Namespace, wantedNamespace(r.Node.Tier)},
		{"release name", now.Name, wantedName(r.Node.Tier)},
	} {
		if c.had != "" && c.had != c.wants {
			return fmt.Sprintf("its %s is %s, and the spec now says %s", c.what, c.had, c.wants)
		}
	}
	// A path names a folder; the chart in it may be called otherwise.
	if path := strings.ContainsAny(h.ChartName, "/."); h.ChartName != "" && !path && now.ChartName != "" &&
		h.ChartNameChange != "InPlaceUpdate" && h.ChartName != now.ChartName {
		return fmt.Sprintf("its chart is %s, and the spec now says %s (upgrade.chartNameChangeStrategy: InPlaceUpdate would keep it)", now.ChartName, h.ChartName)
	}
	return ""
}

func wantedStorage(t *flux.Tier) string {
	if t.Helm.StorageNamespace != "" {
		return t.Helm.StorageNamespace
	}
	return t.Ref.Namespace
}

func wantedNamespace(t *flux.Tier) string {
	if t.Helm.TargetNamespace != "" {
		return t.Helm.TargetNamespace
	}
	return t.Ref.Namespace
}

func wantedName(t *flux.Tier) string {
	return release.NameFor(t.Helm.ReleaseName, t.Helm.TargetNamespace, t.Ref.Name)
}

// keyOf is where the records of a HelmRelease are: where its status says, and
// else where its spec does.
func keyOf(t *flux.Tier) release.Key {
	k := release.Key{Namespace: wantedStorage(t), Name: wantedName(t)}
	if t.Helm.Storage != "" {
		k.Namespace = t.Helm.Storage
	}
	if now := latestSnapshot(t); now != nil && now.Name != "" {
		k.Name = now.Name
	}
	return k
}

func (r *Release) latestSnapshot() *flux.HelmSnapshot { return latestSnapshot(r.Node.Tier) }

// latestSnapshot is the newest entry of status.history, nil when there is none.
func latestSnapshot(t *flux.Tier) *flux.HelmSnapshot {
	var latest *flux.HelmSnapshot
	for i := range t.Helm.History {
		if s := &t.Helm.History[i]; latest == nil || s.Version > latest.Version {
			latest = s
		}
	}
	return latest
}

// rollout says what a reconcile would bring: the version that was tried last,
// and the one that the source has now.
func rollout(r *Release) string {
	n := r.Node
	was, now := n.LastAttemptedRevision, n.SourceRevision()
	said := "chart " + was
	if was == "" {
		said = "its chart"
	}
	if now != "" && now != was {
		said = fmt.Sprintf("chart %s, where %s was tried last", now, valueOr(nonEmpty(was), "nothing"))
	}
	if n.Generation != n.ObservedGeneration && !n.Suspended { // a suspension is a change of the spec, too
		said += ", with a spec that was changed since"
	}
	return said
}

func nonEmpty(s string) any {
	if s == "" {
		return nil
	}
	return s
}
