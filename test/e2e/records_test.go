// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package e2e

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubestandup/kubestandup/pkg/release"
	"github.com/kubestandup/kubestandup/test/cluster"
)

// helmChart has a hook of the events that values name.
const helmChart = "../records/chart"

// realHelmsReadEditedRecords kills both Helms in the middle, marks what they
// left as failed, and lets them go on: each on its own records, and Helm 4 on
// Helm 3's, as after an upgrade of Flux.
func realHelmsReadEditedRecords(t *testing.T, c *cluster.Cluster) {
	ctx := t.Context()
	for _, tt := range []struct {
		writer, reader int
		verb, hook     string
		revision       int
		status         release.Status
		refusal        string
	}{
		{3, 3, "upgrade", "pre-upgrade", 2, release.PendingUpgrade, "another operation (install/upgrade/rollback) is in progress"},
		{4, 4, "upgrade", "pre-upgrade", 2, release.PendingUpgrade, "another operation (install/upgrade/rollback) is in progress"},
		{3, 4, "upgrade", "pre-upgrade", 2, release.PendingUpgrade, "another operation (install/upgrade/rollback) is in progress"},
		{3, 3, "uninstall", "pre-delete", 1, release.Uninstalling, "has no deployed releases"},
		{4, 4, "uninstall", "pre-delete", 1, release.Uninstalling, "has no deployed releases"},
		{3, 4, "uninstall", "pre-delete", 1, release.Uninstalling, "has no deployed releases"},
	} {
		ns := fmt.Sprintf("%s-%d-%d", tt.verb, tt.writer, tt.reader)
		t.Run(ns, func(t *testing.T) {
			if err := c.Apply(ctx, "{apiVersion: v1, kind: Namespace, metadata: {name: "+ns+"}}"); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Helm(ctx, tt.writer, "install", "web", helmChart, "-n", ns, "--set", "hook="+tt.hook); err != nil {
				t.Fatal(err)
			}
			args := []string{tt.verb, "web", "-n", ns, "--timeout", "1h"}
			if tt.verb == "upgrade" {
				args = append(args, helmChart, "--set", "hook="+tt.hook)
			}
			stuck := release.Revision{Key: release.Key{Namespace: ns, Name: "web"}, Version: tt.revision}
			key := client.ObjectKey{Namespace: ns, Name: stuck.Secret()}
			job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web-hook"}}
			if err := c.HelmKilled(ctx, tt.writer, key, string(tt.status), job, args...); err != nil {
				t.Fatal(err)
			}
			// Without a value Helm takes those of the revision before, and its hook.
			upgrade := []string{"upgrade", "web", helmChart, "-n", ns, "--set", "hook="}
			if _, err := c.Helm(ctx, tt.reader, upgrade...); err == nil || !strings.Contains(err.Error(), tt.refusal) {
				t.Fatalf("Helm %d went on, or says otherwise: %v", tt.reader, err)
			}

			markFailed(t, c, key, tt.status)
			out, err := c.Helm(ctx, tt.reader, "status", "web", "-n", ns, "-o", "json")
			if err != nil {
				t.Fatal(err)
			}
			var seen struct {
				Info struct {
					Status      string `json:"status"`
					Description string `json:"description"`
				} `json:"info"`
			}
			if err := json.Unmarshal(out, &seen); err != nil || seen.Info.Status != "failed" || seen.Info.Description != "Marked failed" {
				t.Errorf("Helm %d reads %+v, %v", tt.reader, seen, err)
			}
			before := configMapUID(t, c, ns, "web")
			if _, err := c.Helm(ctx, tt.reader, upgrade...); err != nil {
				t.Errorf("Helm %d cannot go on from the edited record: %v", tt.reader, err)
			}
			if after := configMapUID(t, c, ns, "web"); after != before {
				t.Error("the object of the release was recreated")
			}
			histories, err := release.List(ctx, c.Config(), ns)
			if err != nil || len(histories) != 1 {
				t.Fatalf("%+v, %v", histories, err)
			}
			latest := histories[0].Latest()
			if latest.Version != tt.revision+1 || latest.Label != release.Deployed || latest.Modified.Before(latest.Created) {
				t.Errorf("Helm %d made v%d, %s", tt.reader, latest.Version, latest.Label)
			}
		})
	}

	all, err := release.List(ctx, c.Config(), "")
	if err != nil || len(all) != 6 {
		t.Errorf("%d histories in the cluster, %v", len(all), err)
	}
	events, err := c.Audit(ctx)
	if err != nil {
		t.Fatal(err)
	}
	lists := events.Where(func(e cluster.Event) bool {
		return e.Verb == "list" && e.UserAgent == "test" && strings.Contains(e.URI, "owner%3Dhelm")
	})
	if len(lists) != 2*6+1 {
		t.Errorf("%d lists of records, want one each time:\n%s", len(lists), lists)
	}
}

// markFailed edits a record as unwedge does: payload and label in one patch,
// tested against what was read.
func markFailed(t *testing.T, c *cluster.Cluster, key client.ObjectKey, was release.Status) {
	t.Helper()
	core, err := typedcorev1.NewForConfig(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	histories, err := release.List(t.Context(), c.Config(), key.Namespace)
	if err != nil || len(histories) != 1 {
		t.Fatalf("%+v, %v", histories, err)
	}
	record, err := release.Get(t.Context(), core, *histories[0].Latest())
	if err != nil {
		t.Fatal(err)
	}
	if record.Secret() != key.Name || record.Status != was || len(record.Hooks) != 1 || record.Hooks[0].LastRun.Phase != "Running" {
		t.Fatalf("read %s, %s, hooks %+v", record.Secret(), record.Status, record.Hooks)
	}
	data, err := record.WithStatus(release.Failed, "Marked failed")
	if err != nil {
		t.Fatal(err)
	}
	patch := fmt.Sprintf(`[{"op":"test","path":"/metadata/resourceVersion","value":%q},
		{"op":"replace","path":"/data/release","value":%q},
		{"op":"replace","path":"/metadata/labels/status","value":"failed"}]`,
		record.ResourceVersion, base64.StdEncoding.EncodeToString(data))
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	if err := c.Client().Patch(t.Context(), secret, client.RawPatch("application/json-patch+json", []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

func configMapUID(t *testing.T, c *cluster.Cluster, ns, name string) string {
	t.Helper()
	var cm corev1.ConfigMap
	if err := c.Client().Get(t.Context(), client.ObjectKey{Namespace: ns, Name: name}, &cm); err != nil {
		t.Fatal(err)
	}
	return string(cm.UID)
}
