// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

func fromYAML(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

// TestRestorable: a backup holds nothing that the API server would refuse, or
// for which the garbage collector would delete what was restored.
func TestRestorable(t *testing.T) {
	const job = `{apiVersion: batch/v1, kind: Job, metadata: {name: j, labels: {a: b, controller-uid: u, job-name: j}}, spec: {MANUALselector: {matchLabels: {batch.kubernetes.io/controller-uid: u}},
template: {metadata: {labels: {a: b, controller-uid: u, batch.kubernetes.io/controller-uid: u, job-name: j, batch.kubernetes.io/job-name: j}}, spec: {restartPolicy: Never}}}}`
	manual := strings.Replace(job, "MANUAL", "manualSelector: true, ", 1)
	for name, tt := range map[string]struct{ live, want string }{
		"what the API server gives": {
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: n, uid: u, resourceVersion: "1", creationTimestamp: "2026-01-01T00:00:00Z", deletionTimestamp: "2026-01-01T00:00:00Z", deletionGracePeriodSeconds: 0,
generation: 1, managedFields: [{manager: m}], finalizers: [f], ownerReferences: [{apiVersion: v1, kind: X, name: x, uid: y}]}, data: {a: b}, status: {}}`,
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: n, finalizers: [f]}, data: {a: b}}`,
		},
		"a Job": {
			strings.Replace(job, "MANUAL", "", 1),
			`{apiVersion: batch/v1, kind: Job, metadata: {name: j, labels: {a: b}}, spec: {template: {metadata: {labels: {a: b}}, spec: {restartPolicy: Never}}}}`,
		},
		"a Job with a selector of its own": {manual, manual},
		"a Job of somebody else":           {`{apiVersion: x/v1, kind: Job, metadata: {}, spec: {selector: s}}`, `{apiVersion: x/v1, kind: Job, metadata: {}, spec: {selector: s}}`},
		"a claim": {
			`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {annotations: {a: b, pv.kubernetes.io/bind-completed: "yes", pv.kubernetes.io/bound-by-controller: "yes"}}, spec: {volumeName: v}}`,
			`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {annotations: {a: b}}, spec: {volumeName: v}}`,
		},
		"a Service keeps its address": {`{apiVersion: v1, kind: Service, metadata: {}, spec: {clusterIP: 10.0.0.10}}`, `{apiVersion: v1, kind: Service, metadata: {}, spec: {clusterIP: 10.0.0.10}}`},
	} {
		t.Run(name, func(t *testing.T) {
			live, want := fromYAML(t, tt.live), fromYAML(t, tt.want)
			before := live.DeepCopy()
			got, err := yaml.Marshal(restorable(live).Object)
			if err != nil {
				t.Fatal(err)
			}
			if wanted, _ := yaml.Marshal(want.Object); string(got) != string(wanted) {
				t.Errorf("got\n%s\nwant\n%s", got, wanted)
			}
			if !reflect.DeepEqual(live, before) {
				t.Errorf("the live object was changed: %v", live.Object)
			}
		})
	}
}

// TestBackupsInOrder: applied in the order of their names, Namespaces and CRDs
// come first, and the rest in the opposite order of its deletion.
func TestBackupsInOrder(t *testing.T) {
	x := &execution{Execution: Execution{Backups: filepath.Join(t.TempDir(), "backups")}}
	for _, ref := range []flux.Ref{
		{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "apps", Name: "db"},
		{APIVersion: "v1", Kind: "Secret", Namespace: "apps", Name: "db"},
		{APIVersion: "v1", Kind: "Secret", Namespace: "apps", Name: "db"},
		{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "system:../db"},
		{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: "widgets.example.com"},
		{APIVersion: "v1", Kind: "Namespace", Name: "apps"},
		{APIVersion: "example.com/v1", Kind: "Namespace", Name: "other"},
	} {
		a := &Action{Object: ref, Destructive: true}
		live := fromYAML(t, "{apiVersion: "+ref.APIVersion+", kind: "+ref.Kind+", metadata: {name: n}}")
		if err := x.backup(a, live); err != nil {
			t.Fatal(err)
		}
		if err := x.backup(a, live); err != nil || filepath.Dir(a.Backup) != x.Backups {
			t.Errorf("%s: %v", a.Backup, err)
		}
	}
	files, err := os.ReadDir(x.Backups)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range files {
		_, name, _ := strings.Cut(strings.TrimSuffix(f.Name(), ".yaml"), "-")
		_, name, _ = strings.Cut(name, "-")
		got = append(got, name)
		if info, err := f.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", f.Name(), info.Mode(), err)
		}
	}
	want := "Namespace_apps CustomResourceDefinition_widgets.example.com Namespace_other ClusterRole_system_.._db Secret_apps_db Secret_apps_db Deployment_apps_db"
	if strings.Join(got, " ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, " "), want)
	}
}
