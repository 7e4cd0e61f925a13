// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/release"
	"github.com/kubestandup/kubestandup/pkg/tiers"
)

const (
	hr     = "HelmRelease/apps/db"
	nudged = "nudge " + hr + ", wait " + hr
	woken  = "resume " + hr + ", wait " + hr
)

// TestReleases are the cases of stuck releases, and what must not be done to
// each of them.
func TestReleases(t *testing.T) {
	keep := func(w *World) { w.Choices.Uninstalling = keepChoice }
	finish := func(w *World) { w.Choices.Uninstalling = finishChoice }
	allow := func(names ...string) func(*World) { return func(w *World) { w.Choices.Allow = names } }
	old := func(w *World) { w.Choices.OlderThan = time.Hour }
	controller := func(edit func(*Controller)) func(*World) {
		return func(w *World) { edit(w.Controllers[helmController]) }
	}
	uninstall := func(n *tiers.Node) { n.Helm.Upgrade = flux.Attempts{Retries: 1, Remediation: "uninstall"} }
	exhausted := says("Stalled", metav1.ConditionTrue, "RetriesExceeded", "Failed to upgrade after 4 attempt(s)")
	for name, tt := range map[string]struct {
		world *World
		// cause is empty where nothing is to be said at all.
		cause    Cause
		resolves Resolves
		says     string // part of what is said
		acts     string
		refused  string // part of it
	}{
		"HELM-01 pending-upgrade, controller alive and new": {
			world: world(stored(t, release.Superseded, release.Deployed, release.PendingUpgrade).managed()),
			cause: ReleasePending, resolves: When, acts: nudged,
		},
		"HELM-02 the operation is running": {
			world: world(stored(t, release.Deployed, release.PendingUpgrade).began(ago(90 * time.Second)).managed(func(n *tiers.Node) { n.Timeout = 15 * time.Minute })),
			cause: ReleasePending, resolves: Itself, says: "1m30s have passed of 15m",
		},
		"HELM-02 the controller that ran it is gone": {
			world: world(stored(t, release.Deployed, release.PendingUpgrade).began(ago(90*time.Second)).managed(func(n *tiers.Node) { n.Timeout = 15 * time.Minute }),
				controller(func(c *Controller) { c.Started = ago(time.Minute) })),
			cause: ReleasePending, resolves: When, says: "started anew since", acts: nudged,
		},
		"HELM-02 plain Helm, nobody said how old is too old": {
			world: world(stored(t, release.Deployed, release.PendingUpgrade)),
			cause: ReleasePending, resolves: When, refused: "--older-than",
		},
		"HELM-02 plain Helm, younger than what was said": {
			world: world(stored(t, release.Deployed, release.PendingUpgrade).began(ago(time.Minute)), old),
			cause: ReleasePending, resolves: When, refused: "younger than --older-than",
		},
		"HELM-03 suspended by a person": {
			world: world(stored(t, release.Deployed, release.PendingUpgrade).managed(suspendedNode("flux"))),
			cause: ReleasePending, resolves: When, says: "true, by flux since 2026-02-26", acts: woken,
		},
		"HELM-03 suspended in git": {
			world: world(stored(t, release.Deployed, release.PendingUpgrade).managed(suspendedNode("kustomize-controller"))),
			cause: ReleasePending, resolves: When, says: "its manifest in git says suspend: true",
		},
		"HELM-03 held": {
			world: world(stored(t, release.Deployed, release.PendingUpgrade).managed(suspendedNode("flux"), func(n *tiers.Node) { n.Hold = "migration" })),
			cause: ReleasePending, resolves: When, says: "kubestandup.dev/hold says migration",
		},
		"HELM-03 a resume would uninstall": {
			world: world(stored(t, release.Deployed, release.PendingUpgrade).managed(suspendedNode("flux"), func(n *tiers.Node) { n.Helm.TargetNamespace = "other" })),
			cause: ReleasePending, resolves: When, refused: "would uninstall the release: its target namespace is apps, and the spec now says other",
		},
		"HELM-04 the controller keeps dying": {
			world: world(stored(t, release.Deployed, release.PendingUpgrade).managed(),
				controller(func(c *Controller) { c.Restarts, c.LastTermination = 9, "OOMKilled" })),
			cause: ReleasePending, resolves: When, says: "9, the last one OOMKilled", acts: nudged,
		},
		"HELM-05 first install, managed": {
			world: world(stored(t, release.PendingInstall).managed()),
			cause: ReleasePending, resolves: When, acts: nudged,
		},
		"HELM-05 first install, plain Helm": {
			world: world(stored(t, release.PendingInstall).owned("PersistentVolumeClaim", "data"), old),
			cause: ReleasePending, resolves: Never, says: "it is adopted, not deleted", acts: "delete! db.v1",
		},
		"HELM-06 an old pending revision below a deployed one": {
			world: world(stored(t, release.Superseded, release.Superseded, release.PendingUpgrade, release.Deployed)),
		},
		"pending-upgrade of plain Helm over a good one": {
			world: world(stored(t, release.Superseded, release.Deployed, release.PendingUpgrade), old),
			cause: ReleasePending, resolves: Never, says: "revision 2, the newest that was good",
		},
		"the same, its hooks fail": {
			world: world(stored(t, release.Superseded, release.Deployed, release.PendingUpgrade), old, allow("secret/apps/sh.helm.release.v1.db.v3")),
			cause: ReleasePending, resolves: Never, acts: "delete! db.v3",
		},
		"the same, a kind is missing": {
			world: world(stored(t, release.Superseded, release.Deployed, release.PendingUpgrade).owned("Widget", "w", func(o *Owned) { o.Served, o.Live = false, nil }), old),
			cause: ReleasePending, resolves: Never, acts: "delete! db.v3",
		},
		"several pending revisions of plain Helm": {
			world: world(stored(t, release.Deployed, release.PendingUpgrade, release.PendingRollback, release.PendingRollback).owned("Widget", "w", func(o *Owned) { o.Served, o.Live = false, nil }), old),
			cause: ReleasePending, resolves: Never, acts: "delete! db.v2, delete! db.v3, delete! db.v4",
		},
		"a controller older than 0.37": {
			world: world(stored(t, release.Deployed, release.PendingUpgrade).managed(), controller(func(c *Controller) { c.Version = "v0.36.2" })),
			cause: ReleasePending, resolves: Never, says: "does not unlock", acts: "suspend " + hr + ", delete! db.v2, " + woken,
		},
		"HELM-02 no controller runs, but a helm may": {
			world: world(stored(t, release.Deployed, release.PendingUpgrade).began(ago(time.Minute)).managed(), controller(func(c *Controller) { c.Ready, c.Started = 0, time.Time{} })),
			cause: ReleasePending, resolves: Itself, says: "helm-controller does not run, but a helm of somebody's may be at work",
		},
		"no controller runs": {
			world: world(stored(t, release.Deployed, release.PendingUpgrade).managed(), controller(func(c *Controller) { c.Ready = 0 })),
			cause: ReleasePending, resolves: When, says: "helm-controller runs",
		},
		"a dependency is not ready": {
			world: world(stored(t, release.Deployed, release.PendingUpgrade).managed(func(n *tiers.Node) {
				n.Blockers = []tiers.Blocker{{Message: "dependency 'apps/pg' is not ready"}}
			})),
			cause: ReleasePending, resolves: When, says: "dependency 'apps/pg' is not ready",
		},
		"HELM-10 the hook of a deletion fails": {
			world: world(hooked(t, stored(t, release.Uninstalling)).managed(deletedNode, says("Released", metav1.ConditionFalse, "UninstallFailed", "uninstall failed: 1 error(s): hook failed"))),
			cause: ReleaseUninstalling, resolves: When, says: "Job/backup", acts: "skip-hooks! " + hr + ", nudge " + hr + ", wait " + hr,
		},
		"HELM-11 leftovers of the former release": {
			world: world(stored(t, release.PendingInstall).managed().owned("PersistentVolumeClaim", "data", func(o *Owned) {
				o.Live.Deleted, o.Live.Finalizers = ago(time.Hour), []string{"kubernetes.io/pvc-protection"}
			})),
			cause: ReleasePending, resolves: When, says: "PersistentVolumeClaim/apps/data, held by finalizer kubernetes.io/pvc-protection",
		},
		"HELM-14 the records are on another cluster": {
			world: world((&Release{Key: release.Key{Namespace: "apps", Name: "db"}, Remote: true}).managed()),
			cause: ReleaseElsewhere, resolves: When, says: "another cluster",
		},
		"HELM-15 no rollback target": {
			world: world(stored(t, release.Failed).managed(says("Stalled", metav1.ConditionTrue, "MissingRollbackTarget", "missing target release for rollback"))),
			cause: ReleaseNoTarget, resolves: Never, says: "Leave the records alone",
		},
		"HELM-16 retries used up": {
			world: world(stored(t, release.Failed).managed(exhausted)),
			cause: ReleaseExhausted, resolves: Never, acts: "reset " + hr + ", wait " + hr,
		},
		"HELM-16 and a failure would uninstall": {
			world: world(stored(t, release.Failed).managed(exhausted, uninstall)),
			cause: ReleaseExhausted, resolves: Never, acts: "reset! " + hr + ", wait " + hr,
		},
		"HELM-16 no record is left": {
			world: world((&Release{Key: release.Key{Namespace: "apps", Name: "db"}}).managed(exhausted)),
			cause: ReleaseExhausted, resolves: Never, says: "Failed to upgrade after 4 attempt(s)", acts: "reset " + hr + ", wait " + hr,
		},
		"HELM-16 what made it fail still refuses": {
			world: world(stored(t, release.Failed).managed(exhausted, says("Ready", metav1.ConditionFalse, "UpgradeFailed", `failed calling webhook "v.example.org": no endpoints`)), func(w *World) {
				w.Webhooks = []*WebhookConfiguration{{Observed: Observed{Ref: flux.Ref{Kind: "ValidatingWebhookConfiguration", Name: "gone"}}, Webhooks: []Webhook{{
					Name: "v.example.org", FailClosed: true, Service: types.NamespacedName{Namespace: "ops", Name: "v"}, Rules: []Rule{{Groups: []string{""}, Resources: []string{"pods"}}},
				}}}}
				w.Backends = map[types.NamespacedName]*Backend{{Namespace: "ops", Name: "v"}: {Service: types.NamespacedName{Namespace: "ops", Name: "v"}}}
			}),
			cause: ReleaseExhausted, resolves: Never, refused: "ValidatingWebhookConfiguration/gone, which made it fail, still refuses",
		},
		"HELM-16 while it is being uninstalled": {
			world: world(stored(t, release.Uninstalling).managed(exhausted)),
			cause: ReleaseUninstalling, resolves: Never,
		},
		"HELM-16 the spec was changed since": {
			world: world(stored(t, release.Failed).managed(exhausted, func(n *tiers.Node) { n.Generation = 4 })),
		},
		"HELM-17 the label says otherwise": {
			world: world(labelled(stored(t, release.Deployed, release.PendingUpgrade), release.Deployed), old, allow("secret/apps/sh.helm.release.v1.db.v2")),
			cause: ReleasePending, resolves: Never, says: "deployed, which is not what counts", acts: "delete! db.v2",
		},
		"HELM-19 the record is too big": {
			world: world(stored(t, release.Superseded, release.Deployed).managed(says("Ready", metav1.ConditionFalse, "UpgradeFailed",
				`create: failed to create: Secret "sh.helm.release.v1.db.v3" is invalid: data: Too long: must have at most 1048576 bytes`))),
			cause: ReleaseTooBig, resolves: Never, says: "Deleting old revisions does not help",
		},
		"HELM-20 a resume would uninstall": {
			world: world(stored(t, release.Deployed).managed(suspendedNode("flux"), func(n *tiers.Node) { n.Helm.ChartName = "pg" })),
			cause: ReleaseMoves, resolves: When, says: "a resume would UNINSTALL release db: its chart is demo, and the spec now says pg",
		},
		"HELM-23 the deletion lacks rights": {
			world: world(stored(t, release.Deployed).managed(deletedNode, says("Ready", metav1.ConditionFalse, "UninstallFailed", `secrets is forbidden: User "system:serviceaccount:apps:flux" cannot list`))),
			cause: ReleaseHeld, resolves: When, says: "RoleBinding",
		},
		"HELM-24 uninstalled, its records kept": {
			world: world(stored(t, release.Superseded, release.Uninstalled).managed()),
			cause: ReleaseUninstalled, resolves: Never, acts: "suspend " + hr + ", delete! db.v1, delete! db.v2, " + woken,
		},
		"HELM-24 but an object is left": {
			world: world(stored(t, release.Uninstalled).managed().owned("ConfigMap", "db")),
			cause: ReleaseUninstalled, resolves: Never, refused: "ConfigMap/apps/db",
		},
		"HELM-24 install.replace is set": {
			world: world(stored(t, release.Uninstalled).managed(func(n *tiers.Node) { n.Helm.Replace = true })),
		},
		"uninstalling, nobody has chosen": {
			world: world(stored(t, release.Uninstalling).managed().owned("ConfigMap", "db")),
			cause: ReleaseUninstalling, resolves: Never,
		},
		"uninstalling, a live operation": {
			world: world(stored(t, release.Uninstalling).began(ago(time.Minute)).managed(), keep),
			cause: ReleaseUninstalling, resolves: Itself,
		},
		"keep": {
			world: world(stored(t, release.Uninstalling).managed(), keep),
			cause: ReleaseUninstalling, resolves: Never, acts: "suspend " + hr + ", mark-failed! db.v1, " + woken,
		},
		"keep, suspended by somebody else": {
			world: world(stored(t, release.Uninstalling).managed(suspendedNode("flux")), keep),
			cause: ReleaseUninstalling, resolves: Never, acts: "mark-failed! db.v1",
		},
		"keep, suspended by a run that was killed": {
			world: world(stored(t, release.Uninstalling).managed(suspendedNode(manager), ourMark), keep),
			cause: ReleaseUninstalling, resolves: Never, acts: "mark-failed! db.v1, " + woken,
		},
		"keep, where a failed upgrade is uninstalled": {
			world: world(stored(t, release.Uninstalling).managed(uninstall), keep),
			cause: ReleaseUninstalling, resolves: Never, refused: "upgrade.remediation.strategy: uninstall",
		},
		"the same, allowed by name": {
			world: world(stored(t, release.Uninstalling).managed(uninstall), keep, allow("hr/apps/db")),
			cause: ReleaseUninstalling, resolves: Never, acts: "suspend " + hr + ", mark-failed! db.v1, " + woken,
		},
		"keep, while its HelmRelease goes": {
			world: world(stored(t, release.Uninstalling).managed(deletedNode), keep),
			cause: ReleaseUninstalling, resolves: When, refused: "is being deleted",
		},
		"finish": {
			world: world(stored(t, release.Superseded, release.Uninstalling).managed().owned("Service", "db").owned("ConfigMap", "gone", absent).
				owned("Secret", "kept", func(o *Owned) { o.Keep = true }).owned("ConfigMap", "theirs", func(o *Owned) { o.Owner = "release apps/other" }), finish),
			cause: ReleaseUninstalling, resolves: Never,
			acts: "suspend " + hr + ", delete! Service/apps/db, wait " + hr + ", delete! db.v1, delete! db.v2, " + woken,
		},
		"finish, without a HelmRelease": {
			world: world(stored(t, release.Uninstalling).owned("Service", "db"), finish, old),
			cause: ReleaseUninstalling, resolves: Never, acts: "delete! Service/apps/db, wait db.v1, delete! db.v1",
		},
		"finish would lose data": {
			world: world(stored(t, release.Uninstalling).managed().owned("PersistentVolumeClaim", "data"), finish),
			cause: ReleaseUninstalling, resolves: Never, refused: "PersistentVolumeClaim/apps/data holds data: --allow pvc/apps/data",
		},
		"finish would lose resources": {
			world: world(stored(t, release.Uninstalling).managed().owned("Namespace", "n", func(o *Owned) {
				o.Lost = []flux.Ref{{Kind: "Secret", Namespace: "n", Name: "theirs"}}
			}), finish),
			cause: ReleaseUninstalling, resolves: Never, refused: "takes with it Secret/n/theirs",
		},
		"the same, allowed by name ": {
			world: world(stored(t, release.Uninstalling).managed().owned("PersistentVolumeClaim", "data"), finish, allow("pvc/apps/data")),
			cause: ReleaseUninstalling, resolves: Never,
			acts: "suspend " + hr + ", delete! PersistentVolumeClaim/apps/data, wait " + hr + ", delete! db.v1, " + woken,
		},
		"finish, discovery fails": {
			world: world(stored(t, release.Uninstalling).managed().owned("Widget", "w", absent, func(o *Owned) { o.Served, o.Unknown = false, true }), finish),
			cause: ReleaseUninstalling, resolves: Never, refused: "cannot be looked at",
		},
		"finish, while its HelmRelease goes": {
			world: world(stored(t, release.Uninstalling).managed(deletedNode).owned("Service", "db"), finish),
			cause: ReleaseUninstalling, resolves: When, acts: "delete! Service/apps/db, wait " + hr + ", delete! db.v1, nudge " + hr,
		},
		"a kind of the manifest is not served": {
			world: world(stored(t, release.Uninstalling).managed(deletedNode).owned("Widget", "w", absent, func(o *Owned) { o.Served, o.Index = false, 0 })),
			cause: ReleaseUninstalling, resolves: When, says: "Widget/apps/w (v1)", acts: "drop-documents! db.v1, nudge " + hr + ", wait " + hr,
		},
		"a kind of the manifest is served in another version alone": {
			world: world(stored(t, release.Uninstalling).managed(deletedNode).owned("Widget", "w", func(o *Owned) { o.Served, o.APIVersion = false, "v1beta1" })),
			cause: ReleaseUninstalling, resolves: When, says: "Widget/apps/w (v1beta1)", refused: "is there, served as v1: a record that forgets it would leave it behind",
		},
		"the same, finished": {
			world: world(stored(t, release.Uninstalling).managed(deletedNode).owned("Widget", "w", func(o *Owned) { o.Served, o.APIVersion = false, "v1beta1" }), finish),
			cause: ReleaseUninstalling, resolves: When, acts: "delete! Widget/apps/w, wait " + hr + ", delete! db.v1, nudge " + hr,
		},
		"a List holds what is not served, and what is": {
			world: world(stored(t, release.Uninstalling).managed(deletedNode).owned("Widget", "w", absent, func(o *Owned) { o.Served = false }).
				owned("ConfigMap", "c", func(o *Owned) { o.Index = 0 })),
			cause: ReleaseUninstalling, resolves: When, refused: "ConfigMap/apps/c stands in one List",
		},
		"discovery of another kind fails": {
			world: world(stored(t, release.Uninstalling).managed(deletedNode).owned("Widget", "w", absent, func(o *Owned) { o.Served = false }).
				owned("Gadget", "g", absent, func(o *Owned) { o.Served, o.Unknown = false, true })),
			cause: ReleaseUninstalling, resolves: When, refused: "Gadget/apps/g cannot be looked at",
		},
		"finish would take claims with it": {
			world: world(stored(t, release.Uninstalling).managed().owned("StatefulSet", "db", func(o *Owned) {
				o.Lost = []flux.Ref{{Kind: "PersistentVolumeClaim", Namespace: "apps", Name: "data-db-0"}}
			}), finish),
			cause: ReleaseUninstalling, resolves: Never, refused: "StatefulSet/apps/db takes with it PersistentVolumeClaim/apps/data-db-0: --allow statefulset/apps/db",
		},
		"finish, what is left could not be looked at": {
			world: world(unlooked(stored(t, release.Uninstalling)).managed(), finish),
			cause: ReleaseUninstalling, resolves: Never, refused: "could not be looked at: configmaps is forbidden",
		},
		"HELM-24 what is left could not be looked at": {
			world: world(unlooked(stored(t, release.Uninstalled)).managed()),
			cause: ReleaseUninstalled, resolves: Never, refused: "could not be looked at",
		},
		"HELM-24 discovery of a kind fails": {
			world: world(stored(t, release.Uninstalled).managed().owned("Gadget", "g", absent, func(o *Owned) { o.Served, o.Unknown = false, true })),
			cause: ReleaseUninstalled, resolves: Never, refused: "Gadget/apps/g (discovery of v1 fails)",
		},
		"HELM-16 what is left could not be looked at": {
			world: world(unlooked(stored(t, release.Failed)).managed(exhausted)),
			cause: ReleaseExhausted, resolves: Never, refused: "could not be looked at",
		},
		"HELM-11 what is left could not be looked at": {
			world: world(unlooked(stored(t, release.PendingInstall)).managed()),
			cause: ReleasePending, resolves: When, refused: "could not be looked at",
		},
		"being deleted, and not looked at": {
			world: world(unlooked(stored(t, release.Uninstalling)).managed(deletedNode)),
			cause: ReleaseUninstalling, resolves: When, refused: "could not be looked at",
		},
		"finish, a record that names another namespace": {
			world: world(forged(stored(t, release.Uninstalling)).owned("Service", "db"), finish, old),
			cause: ReleaseUninstalling, resolves: Never, refused: "which Helm never does",
		},
		"unreadable, of another release": {
			world: world(forged(broken(stored(t, release.Deployed))).managed()),
			cause: ReleaseUnreadable, resolves: Never, refused: "may be a forgery",
		},
		"unreadable, the only one of a HelmRelease that is deleted": {
			world: world(broken(stored(t, release.Deployed)).managed(deletedNode)),
			cause: ReleaseUnreadable, resolves: Never, refused: "is left behind: --allow release/apps/db",
		},
		"the same, allowed  ": {
			world: world(broken(stored(t, release.Deployed)).managed(deletedNode), allow("release/apps/db")),
			cause: ReleaseUnreadable, resolves: Never, acts: "delete! db.v1",
		},
		"two HelmReleases want it": {
			world: world(shared(stored(t, release.Uninstalling)).managed(), finish),
			cause: ReleaseUninstalling, resolves: Never, refused: "HelmRelease/apps/db and HelmRelease/apps/twin want the same release",
		},
		"finish would take virtual machines with it": {
			world: world(stored(t, release.Uninstalling).managed().owned("CDI", "cdi", func(o *Owned) { o.Ref.APIVersion = "cdi.kubevirt.io/v1beta1" }), finish),
			cause: ReleaseUninstalling, resolves: Never, refused: "CDI/apps/cdi runs virtual machines, or holds their disks",
		},
		"our own suspension is seen": {
			world: world(stored(t, release.Uninstalling).managed(suspendedNode(manager), ourMark), keep),
			cause: ReleaseUninstalling, resolves: Never, says: "a former run of unwedge", acts: "mark-failed! db.v1, " + woken,
		},
		"finish with hooks": {
			world: world(hooked(t, stored(t, release.Uninstalling)).managed().owned("Service", "db"), finish, func(w *World) { w.Choices.Hooks = true }),
			cause: ReleaseUninstalling, resolves: Never,
			acts: "suspend " + hr + ", run-hook! Job/apps/backup, delete! Service/apps/db, wait " + hr + ", delete! db.v1, " + woken,
		},
		"suspended while it is deleted": {
			world: world(stored(t, release.Uninstalling).managed(deletedNode, suspendedNode("flux"))),
			cause: ReleaseUninstalling, resolves: Itself, says: "leaves behind what it owns",
		},
		"our own repair was cut short": {
			world: world(stored(t, release.Failed).managed(suspendedNode(manager), ourMark)),
			cause: ReleaseHeld, resolves: Never, acts: woken,
		},
		"unreadable": {
			world: world(broken(stored(t, release.Deployed, release.Deployed)).managed()),
			cause: ReleaseUnreadable, resolves: Never, says: "truncated", acts: "suspend " + hr + ", delete! db.v2, " + woken,
		},
		"healthy": {world: world(stored(t, release.Deployed).managed())},
	} {
		t.Run(name, func(t *testing.T) {
			v := only(t, tt.world)
			if tt.cause == "" {
				if v != nil {
					t.Fatalf("unexpected verdict %+v", v)
				}
				return
			}
			if v == nil {
				t.Fatal("no verdict")
			}
			said := strings.Join([]string{v.Summary, v.Why, v.ResolvesWhen, v.Repair}, "\n")
			for _, e := range v.Evidence {
				said += "\n" + e.Object.String() + " " + e.Field + " " + e.Value
			}
			if v.Cause != tt.cause || v.ResolvesItself != tt.resolves || acts(v) != tt.acts || !strings.Contains(said, tt.says) {
				t.Errorf("%s, resolves %s, acts %q\nwant %s, %s, %q, and %q in\n%s", v.Cause, v.ResolvesItself, acts(v), tt.cause, tt.resolves, tt.acts, tt.says, said)
			}
			if (v.Refused != "") != (tt.refused != "") || !strings.Contains(v.Refused, tt.refused) {
				t.Errorf("refused %q, want %q", v.Refused, tt.refused)
			}
			chosen := tt.world.Choices.Uninstalling
			if open := v.Choice != nil; open != (name == "uninstalling, nobody has chosen" || name == "HELM-16 while it is being uninstalled") {
				t.Errorf("choice %v, chosen %q", v.Choice, chosen)
			}
			for _, a := range v.Actions {
				if a.Verb == Suspend && !tt.world.Releases[0].Node.Deleted.IsZero() {
					t.Error("a HelmRelease that is being deleted is never suspended")
				}
			}
		})
	}
}

// TestSecretValues: an error that quotes the value of a Secret is cut before it.
func TestSecretValues(t *testing.T) {
	const marker = "marker-of-a-secret-value"
	for text, want := range map[string]string{
		`Secret "db" is invalid: data: Invalid value: "` + marker + `": bad`: `Secret "db" is invalid: data: Invalid value: (left out)`,
		`Deployment "db" is invalid: spec.replicas: Invalid value: -1`:       `Deployment "db" is invalid: spec.replicas: Invalid value: -1`,
		"all is well": "all is well",
	} {
		if got := withoutValues(text); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
	w := world(stored(t, release.Failed).managed(
		says("Stalled", metav1.ConditionTrue, "RetriesExceeded", `Secret "db" is invalid: Invalid value: `+marker),
		says("Ready", metav1.ConditionFalse, "InstallFailed", `Secret "db" is invalid: Invalid value: `+marker)))
	if said := fmt.Sprintf("%+v", only(t, w)); strings.Contains(said, marker) {
		t.Errorf("%s holds the value", said)
	}
}

func unlooked(r *Release) *Release {
	r.OwnedUnknown = errors.New("configmaps is forbidden")
	return r
}

func forged(r *Release) *Release {
	r.Foreign = true
	if r.Record != nil {
		r.Record.ReleaseNamespace = "victim"
	}
	return r
}

func shared(r *Release) *Release {
	r.Others = []flux.Ref{{Kind: flux.HelmReleaseKind, Namespace: "apps", Name: "twin"}}
	return r
}

// TestWhatFinishDeletes is told before, with what it keeps and why.
func TestWhatFinishDeletes(t *testing.T) {
	r := stored(t, release.Superseded, release.Uninstalling).managed().owned("Service", "db").owned("ConfigMap", "gone", absent).
		owned("Secret", "kept", func(o *Owned) { o.Keep = true }).owned("ConfigMap", "theirs", func(o *Owned) { o.Owner = "release apps/other" })
	options := only(t, world(r)).Choice.Options
	finish, keep := options[0], options[1]
	if got := strings.Join(finish.Deletes, ", "); got != "Service/apps/db, Secret/apps/sh.helm.release.v1.db.v1, Secret/apps/sh.helm.release.v1.db.v2" {
		t.Errorf("finish deletes %s", got)
	}
	if got := strings.Join(finish.Keeps, ", "); got != "Secret/apps/kept (helm.sh/resource-policy says keep), ConfigMap/apps/theirs (it now belongs to release apps/other)" {
		t.Errorf("finish keeps %s", got)
	}
	if len(keep.Deletes) > 0 || len(keep.Keeps) == 0 || !strings.Contains(keep.Notes[0], "revision 2 failed instead of uninstalling") {
		t.Errorf("keep: %+v", keep)
	}
	// What is kept goes where a person names it.
	w := world(r, func(w *World) { w.Choices.Allow = []string{"secret/apps/kept"} })
	if got := only(t, w).Choice.Options[0]; !slices.Contains(got.Deletes, "Secret/apps/kept") || len(got.Keeps) != 1 {
		t.Errorf("finish with --allow: %+v", got)
	}
}

// TestOtherOwner: an object that somebody else has taken over is not the
// release's any more.
func TestOtherOwner(t *testing.T) {
	r := stored(t, release.Uninstalling)
	helm := func(name, namespace string) map[string]string {
		return map[string]string{releaseNameMark: name, releaseNamespaceMark: namespace}
	}
	ks := map[string]string{flux.KustomizeGroup + "/name": "infra", flux.KustomizeGroup + "/namespace": "flux-system"}
	for want, m := range map[string]metav1.ObjectMeta{
		"":                                {Annotations: helm("db", "apps")},
		"release apps/other":              {Annotations: helm("other", "apps")},
		"release elsewhere/db":            {Annotations: helm("db", "elsewhere")},
		"nobody that Helm has marked":     {},
		"Kustomization/flux-system/infra": {Labels: ks, Annotations: helm("db", "apps")},
	} {
		if got := otherOwner(&m, r); got != want {
			t.Errorf("%+v: %q, want %q", m, got, want)
		}
	}
}

func ourMark(n *tiers.Node) { n.Unwedge = string(ReleaseUninstalling) }

func absent(o *Owned) { o.Live = nil }

func broken(r *Release) *Release {
	r.Record, r.Broken, r.Status = nil, &release.UnreadableError{Reason: "truncated"}, release.Unknown
	return r
}

func labelled(r *Release, label release.Status) *Release {
	r.Latest().Label = label
	return r
}

func hooked(t *testing.T, r *Release) *Release {
	t.Helper()
	record, err := release.Decode(packed(t, "db", 1, release.Uninstalling, ago(3*time.Hour), "", map[string]any{
		"name": "backup", "kind": "Job", "events": []string{"pre-delete"}, "manifest": "apiVersion: batch/v1\nkind: Job\nmetadata: {name: backup}\n",
	}))
	if err != nil {
		t.Fatal(err)
	}
	r.Record = record
	return r
}
