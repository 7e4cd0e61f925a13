// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubestandup/kubestandup/test/cluster"
	"github.com/kubestandup/kubestandup/test/cluster/programs"
)

//go:embed all:chart
var chart embed.FS

// target is where the records go, below the root of the repository.
const target = "pkg/release/testdata/records"

func run(ctx context.Context, out io.Writer) error {
	root, err := programs.Root()
	if err != nil {
		return err
	}
	if _, err := programs.Build(ctx, out); err != nil {
		return err
	}
	// No controller: the hooks' Jobs never end, and Helm waits until it is killed.
	c, err := cluster.Start(ctx, cluster.Options{Components: []cluster.Component{}})
	if err != nil {
		return err
	}
	defer c.StopAll() //nolint:errcheck // the processes end with this one
	dir, err := os.MkdirTemp("", "kubestandup-chart-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.CopyFS(dir, chart); err != nil {
		return err
	}
	for _, major := range []int{3, 4} {
		w := &writer{
			cluster: c, major: major, chart: filepath.Join(dir, "chart"),
			namespace: fmt.Sprintf("helm%d", major),
			target:    filepath.Join(root, filepath.FromSlash(target), fmt.Sprintf("helm%d", major)),
		}
		n, err := w.write(ctx)
		if err != nil {
			return fmt.Errorf("helm %d: %w", major, err)
		}
		fmt.Fprintf(out, "%d records of Helm %d in %s\n", n, major, filepath.Join(target, fmt.Sprintf("helm%d", major)))
	}
	return nil
}

// writer makes the records of one Helm.
type writer struct {
	cluster *cluster.Cluster
	major   int
	// chart is the folder of the chart, namespace where its releases are, and
	// target the folder that the records are written to.
	chart, namespace, target string
}

func (w *writer) write(ctx context.Context) (int, error) {
	if err := w.cluster.Apply(ctx, "{apiVersion: v1, kind: Namespace, metadata: {name: "+w.namespace+"}}"); err != nil {
		return 0, err
	}
	for _, leave := range []func(context.Context) error{
		w.deployed, w.failed, w.pendingInstall, w.pendingUpgrade, w.pendingRollback, w.uninstalling, w.uninstalled,
	} {
		if err := leave(ctx); err != nil {
			return 0, err
		}
	}
	return w.save(ctx)
}

// deployed leaves v1 superseded and v2 deployed.
func (w *writer) deployed(ctx context.Context) error {
	if err := w.helm(ctx, "install", "web", w.chart); err != nil {
		return err
	}
	return w.helm(ctx, "upgrade", "web", w.chart, "--set", "message=again")
}

// failed leaves v1 failed, and of another release v1 deployed and v2 failed:
// their Services are refused.
func (w *writer) failed(ctx context.Context) error {
	if err := w.refused(ctx, "broken", 1, "install"); err != nil {
		return err
	}
	if err := w.helm(ctx, "install", "worse", w.chart); err != nil {
		return err
	}
	return w.refused(ctx, "worse", 2, "upgrade")
}

func (w *writer) refused(ctx context.Context, name string, revision int, verb string) error {
	if err := w.helm(ctx, verb, name, w.chart, "--set", "clusterIP=192.0.2.1"); err == nil {
		return errors.New("release " + name + ": the API server took its Service, and was to refuse it")
	}
	return w.until(ctx, name, revision, "failed")
}

// pendingInstall leaves v1 pending-install: Helm is killed while it waits for a hook.
func (w *writer) pendingInstall(ctx context.Context) error {
	return w.killed(ctx, "first", 1, "pending-install", "install", "first", w.chart, "--set", "hook=pre-install")
}

// pendingUpgrade leaves v1 deployed and v2 pending-upgrade.
func (w *writer) pendingUpgrade(ctx context.Context) error {
	if err := w.helm(ctx, "install", "next", w.chart); err != nil {
		return err
	}
	return w.killed(ctx, "next", 2, "pending-upgrade", "upgrade", "next", w.chart, "--set", "hook=pre-upgrade")
}

// pendingRollback leaves v1 superseded, v2 deployed and v3 pending-rollback.
func (w *writer) pendingRollback(ctx context.Context) error {
	if err := w.helm(ctx, "install", "back", w.chart, "--set", "hook=pre-rollback"); err != nil {
		return err
	}
	if err := w.helm(ctx, "upgrade", "back", w.chart); err != nil {
		return err
	}
	return w.killed(ctx, "back", 3, "pending-rollback", "rollback", "back", "1")
}

// uninstalling leaves v1 uninstalling, with its hook running for ever, and of
// another release v1 superseded and v2 uninstalling.
func (w *writer) uninstalling(ctx context.Context) error {
	for _, args := range [][]string{{"install", "leaving"}, {"install", "parting"}, {"upgrade", "parting"}} {
		if err := w.helm(ctx, append(args, w.chart, "--set", "hook=pre-delete")...); err != nil {
			return err
		}
	}
	if err := w.killed(ctx, "leaving", 1, "uninstalling", "uninstall", "leaving"); err != nil {
		return err
	}
	return w.killed(ctx, "parting", 2, "uninstalling", "uninstall", "parting")
}

// uninstalled leaves v1 superseded and v2 uninstalled.
func (w *writer) uninstalled(ctx context.Context) error {
	for _, args := range [][]string{{"install", "left", w.chart}, {"upgrade", "left", w.chart}, {"uninstall", "left", "--keep-history"}} {
		if err := w.helm(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) helm(ctx context.Context, args ...string) error {
	_, err := w.cluster.Helm(ctx, w.major, append(args, "--namespace", w.namespace)...)
	return err
}

// killed starts a Helm, and kills it while it waits for its hook.
func (w *writer) killed(ctx context.Context, name string, revision int, status string, args ...string) error {
	hook := &batchv1.Job{}
	hook.Namespace, hook.Name = w.namespace, name+"-hook"
	return w.cluster.HelmKilled(ctx, w.major, w.record(name, revision), status, hook,
		append(args, "--namespace", w.namespace, "--timeout", "1h")...)
}

func (w *writer) record(name string, revision int) client.ObjectKey {
	return client.ObjectKey{Namespace: w.namespace, Name: fmt.Sprintf("sh.helm.release.v1.%s.v%d", name, revision)}
}

func (w *writer) until(ctx context.Context, name string, revision int, status string) error {
	secret := &corev1.Secret{}
	secret.Namespace, secret.Name = w.namespace, w.record(name, revision).Name
	return w.cluster.Until(ctx, secret, func() bool { return secret.Labels["status"] == status })
}

// save writes a file per record, in the place of those of an earlier run.
func (w *writer) save(ctx context.Context) (int, error) {
	if err := os.RemoveAll(w.target); err != nil {
		return 0, err
	}
	if err := os.MkdirAll(w.target, 0o755); err != nil {
		return 0, err
	}
	var secrets corev1.SecretList
	if err := w.cluster.Client().List(ctx, &secrets, client.InNamespace(w.namespace), client.MatchingLabels{"owner": "helm"}); err != nil {
		return 0, err
	}
	for i := range secrets.Items {
		s := &secrets.Items[i]
		s.APIVersion, s.Kind = "v1", "Secret"
		var text bytes.Buffer
		encoder := json.NewEncoder(&text)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(s); err != nil {
			return 0, err
		}
		name := fmt.Sprintf("%s.v%s.%s.json", s.Labels["name"], s.Labels["version"], s.Labels["status"])
		if err := os.WriteFile(filepath.Join(w.target, name), text.Bytes(), 0o644); err != nil {
			return 0, err
		}
	}
	return len(secrets.Items), nil
}
