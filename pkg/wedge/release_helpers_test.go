// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/release"
	"github.com/kubestandup/kubestandup/pkg/tiers"
)

// noon is when the tests happen; the operations of records began at nine.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return noon.Add(-d) }

// packed is a record as Helm stores it.
func packed(t *testing.T, name string, number int, status release.Status, began time.Time, manifest string, hooks ...map[string]any) []byte {
	t.Helper()
	raw, err := json.Marshal(map[string]any{
		"name": name, "namespace": "apps", "version": number, "manifest": manifest, "hooks": hooks,
		"info":         map[string]any{"status": status, "first_deployed": began, "last_deployed": began, "description": "as a test has it"},
		"chart":        map[string]any{"metadata": map[string]any{"name": "demo", "version": "1.2.3"}},
		"apply_method": "ssa",
	})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(raw); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return []byte(base64.StdEncoding.EncodeToString(b.Bytes()))
}

// stored is a release by the name of db whose revisions have these states.
func stored(t *testing.T, states ...release.Status) *Release {
	t.Helper()
	r := &Release{Key: release.Key{Namespace: "apps", Name: "db"}}
	for i, s := range states {
		r.Revisions = append(r.Revisions, release.Revision{
			Key: r.Key, Version: i + 1, Label: s, UID: types.UID(fmt.Sprint("u", i+1)), ResourceVersion: fmt.Sprint(100 + i),
			Created: ago(3 * time.Hour), Modified: ago(3 * time.Hour),
		})
	}
	last := states[len(states)-1]
	record, err := release.Decode(packed(t, "db", len(states), last, ago(3*time.Hour), "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: db}\n"))
	if err != nil {
		t.Fatal(err)
	}
	r.Record, r.Status, r.Good = record, last, newestGood(r)
	return r
}

// began moves the operation of the newest record.
func (r *Release) began(at time.Time) *Release {
	r.Record.LastDeployed, r.Latest().Modified = at, at
	return r
}

// managed gives the release a HelmRelease.
func (r *Release) managed(edit ...func(*tiers.Node)) *Release {
	r.Node = &tiers.Node{Tier: &flux.Tier{
		Ref: flux.Ref{APIVersion: "helm.toolkit.fluxcd.io/v2", Kind: flux.HelmReleaseKind, Namespace: "apps", Name: "db"},
		UID: "hr", Generation: 3, ObservedGeneration: 3, Timeout: 5 * time.Minute,
		Helm: &flux.Helm{Storage: "apps", History: []flux.HelmSnapshot{{Name: "db", Namespace: "apps", Version: 1, ChartName: "demo"}}},
	}, State: tiers.Retrying}
	for _, e := range edit {
		e(r.Node)
	}
	return r
}

func suspendedNode(by string) func(*tiers.Node) {
	return func(n *tiers.Node) { n.Suspended, n.SuspendedBy, n.SuspendedSince = true, by, ago(72*time.Hour) }
}

func deletedNode(n *tiers.Node) { n.Deleted = ago(3 * time.Hour) }

func says(kind string, status metav1.ConditionStatus, reason, message string) func(*tiers.Node) {
	return func(n *tiers.Node) {
		n.Conditions = append(n.Conditions, metav1.Condition{
			Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: 3, LastTransitionTime: metav1.NewTime(ago(2 * time.Hour)),
		})
	}
}

// owned adds an object of the manifest that is on the cluster.
func (r *Release) owned(kind, name string, edit ...func(*Owned)) *Release {
	o := Owned{
		Document: release.Document{APIVersion: "v1", Kind: kind, Name: name, Index: len(r.Owned)},
		Ref:      flux.Ref{APIVersion: "v1", Kind: kind, Namespace: "apps", Name: name}, Served: true,
	}
	o.Live = &Observed{Ref: o.Ref, UID: "x", ResourceVersion: "1"}
	for _, e := range edit {
		e(&o)
	}
	r.Owned = append(r.Owned, o)
	return r
}

// world is one with this release, and a helm-controller that has run for a day.
func world(r *Release, edit ...func(*World)) *World {
	w := &World{Now: noon, Releases: []*Release{r}, Controllers: map[string]*Controller{helmController: {
		Deployment: flux.Ref{Kind: "Deployment", Namespace: "flux-system", Name: helmController},
		Wanted:     1, Ready: 1, Version: "v1.6.3", Started: ago(24 * time.Hour),
	}}}
	for _, e := range edit {
		e(w)
	}
	return w
}

// only is the one verdict that the release causes have on the world.
func only(t *testing.T, w *World) *Verdict {
	t.Helper()
	var all []Verdict
	for _, j := range []judge{
		releaseElsewhere, releaseUnreadable, releaseUninstalling, releasePending, releaseUninstalled,
		releaseExhausted, releaseNoTarget, releaseTooBig, releaseMoves, releaseHeld,
	} {
		all = append(all, j(w)...)
	}
	switch len(all) {
	case 0:
		return nil
	case 1:
		return &all[0]
	}
	t.Fatalf("%d verdicts, want one: %+v", len(all), all)
	return nil
}

// acts is a plan in a line: "suspend HelmRelease/apps/db, delete! Secret/…".
func acts(v *Verdict) string {
	var out []string
	for _, a := range v.Actions {
		mark := ""
		if a.Destructive {
			mark = "!"
		}
		out = append(out, fmt.Sprintf("%s%s %s", a.Verb, mark, strings.TrimPrefix(a.Object.String(), "Secret/apps/sh.helm.release.v1.")))
	}
	return strings.Join(out, ", ")
}
