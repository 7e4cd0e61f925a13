// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/release"
)

// TestPins: what an action is pinned to decides which changes keep it from being
// done, after a write of our own too.
func TestPins(t *testing.T) {
	const uid = types.UID("1")
	ref := flux.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "apps", Name: "db"}
	ours := &pin{uid: uid, resourceVersion: "11", generation: 4}
	for name, tt := range map[string]struct {
		pin        pin
		own        *pin
		uid        types.UID
		version    string
		generation int64
		done       bool
	}{
		"nothing changed":                          {pin{uid: uid, resourceVersion: "10"}, nil, uid, "10", 3, true},
		"anything changed":                         {pin{uid: uid, resourceVersion: "10"}, nil, uid, "12", 3, false},
		"its status changed":                       {pin{uid: uid, generation: 3}, nil, uid, "12", 3, true},
		"its spec changed":                         {pin{uid: uid, generation: 3}, nil, uid, "12", 4, false},
		"made anew":                                {pin{uid: uid, generation: 3}, nil, "2", "12", 3, false},
		"we changed it":                            {pin{uid: uid, resourceVersion: "10"}, ours, uid, "11", 4, true},
		"we changed it, and then somebody":         {pin{uid: uid, resourceVersion: "10"}, ours, uid, "12", 4, false},
		"we changed its spec, and then somebody":   {pin{uid: uid, generation: 3}, ours, uid, "12", 5, false},
		"we changed its spec, and then its status": {pin{uid: uid, generation: 3}, ours, uid, "12", 4, true},
		// A suspension of our own is taken back whatever else has changed.
		"whatever else has changed":                {pin{uid: uid}, ours, uid, "12", 5, true},
		"whatever else has changed, but made anew": {pin{uid: uid}, ours, "2", "12", 5, false},
	} {
		x := &execution{own: map[flux.Ref]pin{}}
		if tt.own != nil {
			x.own[ref] = *tt.own
		}
		live := &unstructured.Unstructured{}
		live.SetUID(tt.uid)
		live.SetResourceVersion(tt.version)
		live.SetGeneration(tt.generation)
		if err := x.verify(&Action{Verb: Resume, Object: ref, pin: tt.pin}, live); (err == nil) != tt.done {
			t.Errorf("%s: %v, to be done: %v", name, err, tt.done)
		}
	}
}

// TestNeverSuspended: what is being deleted, whatever the plan has seen.
func TestNeverSuspended(t *testing.T) {
	live := &unstructured.Unstructured{}
	live.SetUID("1")
	now := metav1.Now()
	live.SetDeletionTimestamp(&now)
	x := &execution{own: map[flux.Ref]pin{}}
	for verb, done := range map[Verb]bool{Suspend: false, Nudge: true, SkipHooks: true} {
		if err := x.verify(&Action{Verb: verb, pin: pin{uid: "1"}}, live); (err == nil) != done {
			t.Errorf("%s: %v, to be done: %v", verb, err, done)
		}
	}
}

// TestWhatIsRefused: a choice that was not made, what is not safe, and, without
// a confirmation, what deletes.
func TestWhatIsRefused(t *testing.T) {
	gentle, harsh := Action{Verb: Nudge}, Action{Verb: Delete, Destructive: true}
	for name, tt := range map[string]struct {
		verdict   Verdict
		confirmed bool
		refused   bool
	}{
		"gentle":                   {Verdict{Actions: []Action{gentle}}, false, false},
		"harsh":                    {Verdict{Actions: []Action{gentle, harsh}}, false, true},
		"harsh, confirmed":         {Verdict{Actions: []Action{gentle, harsh}}, true, false},
		"not safe, confirmed":      {Verdict{Refused: "no", Actions: []Action{gentle}}, true, true},
		"a choice, confirmed":      {Verdict{Choice: &Choice{}}, true, true},
		"nothing to do, confirmed": {Verdict{}, true, false},
	} {
		x := &execution{Execution: Execution{Destructive: tt.confirmed}}
		if got := x.refuses(&tt.verdict); got != tt.refused {
			t.Errorf("%s: refused %v", name, got)
		}
	}
}

// TestRetriedUninstall: helm-controller retries what has failed, so that its
// last attempt has always just begun; what makes it fail is told all the same.
func TestRetriedUninstall(t *testing.T) {
	failed := says("Released", metav1.ConditionFalse, "UninstallFailed", "uninstall failed: hook failed")
	v := only(t, world(hooked(t, stored(t, release.Uninstalling)).began(ago(2*time.Second)).managed(deletedNode, failed)))
	if want := "skip-hooks! " + hr + ", nudge " + hr + ", wait " + hr; acts(v) != want {
		t.Errorf("%s: %s", v.Summary, acts(v))
	}
	v = only(t, world(hooked(t, stored(t, release.Uninstalling)).began(ago(2*time.Second)).managed(deletedNode)))
	if v.State != "running" || len(v.Actions) > 0 {
		t.Errorf("the first attempt: %s: %s", v.State, acts(v))
	}
}

// TestNotYet: an answer that helm-controller will come back to is none.
func TestNotYet(t *testing.T) {
	for reason, want := range map[string]bool{"SourceNotReady": true, "DependencyNotReady": true, "PendingRelease": true, "UpgradeFailed": false, "StateError": false} {
		if notYet(reason) != want {
			t.Errorf("%s: %v", reason, !want)
		}
	}
}
