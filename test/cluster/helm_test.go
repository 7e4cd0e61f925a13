// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// chart installs a ConfigMap, and a Job before an upgrade.
func chart(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"Chart.yaml":               "apiVersion: v2\nname: small\nversion: 0.1.0\n",
		"templates/configmap.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\n",
		"templates/hook.yaml": "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: {{ .Release.Name }}\n  annotations: {helm.sh/hook: pre-upgrade}\n" +
			"spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: example.org/a:1}]}}}\n",
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestHelm(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c := New(t, bare())
	for _, major := range []int{3, 4} {
		version, err := c.Helm(ctx, major, "version", "--template", "{{.Version}}")
		if err != nil || !strings.HasPrefix(string(version), fmt.Sprintf("v%d.", major)) {
			t.Errorf("Helm %d is %q, %v", major, version, err)
		}
		name := fmt.Sprintf("web%d", major)
		if _, err := c.Helm(ctx, major, "install", name, chart(t)); err != nil {
			t.Fatal(err)
		}
		var made corev1.ConfigMap
		if err := c.Client().Get(ctx, client.ObjectKey{Namespace: "default", Name: name}, &made); err != nil {
			t.Fatal(err)
		}
		if len(made.ManagedFields) != 1 || made.ManagedFields[0].Manager != "helm" {
			t.Errorf("managers of what Helm %d made: %+v, want helm as on any cluster", major, made.ManagedFields)
		}

		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
		record := client.ObjectKey{Namespace: "default", Name: "sh.helm.release.v1." + name + ".v2"}
		if err := c.HelmKilled(ctx, major, record, "pending-upgrade", job, "upgrade", name, chart(t), "--timeout", "1h"); err != nil {
			t.Fatal(err)
		}
		_, err = c.Helm(ctx, major, "upgrade", name, chart(t))
		if err == nil || !strings.Contains(err.Error(), "another operation (install/upgrade/rollback) is in progress") ||
			!strings.HasPrefix(err.Error(), fmt.Sprintf("helm%d upgrade %s ", major, name)) {
			t.Errorf("an upgrade after Helm %d was killed: %v, want Helm's refusal", major, err)
		}
		record.Name = "no-record"
		if err := c.HelmKilled(ctx, major, record, "deployed", nil, "list", "--all"); err == nil || !strings.Contains(err.Error(), "it ended before the record default/no-record was deployed") {
			t.Errorf("a Helm that ended by itself: %v", err)
		}

		env, err := c.Helm(ctx, major, "env")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(env)) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			if (strings.HasSuffix(name, "_HOME") || strings.HasSuffix(name, "_CACHE")) && !strings.HasPrefix(value, `"`+c.dir+"/") {
				t.Errorf("Helm %d uses the machine's own %s", major, line)
			}
		}
	}
}

func TestHelmEndsWithItsContext(t *testing.T) {
	t.Parallel()
	c := New(t, bare())
	if _, err := c.Helm(t.Context(), 4, "install", "web", chart(t)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	run, err := c.HelmStart(ctx, 4, "upgrade", "web", chart(t), "--timeout", "1h")
	if err != nil {
		t.Fatal(err)
	}
	// It waits for its hook, and would for an hour.
	if err := c.Until(ctx, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}, always); err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := run.Wait(); err == nil || !strings.Contains(err.Error(), "was killed: killed") {
		t.Errorf("%v", err)
	}
	run.Kill() // again
}
