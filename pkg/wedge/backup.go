// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

// backup writes the object of a destructive action to a file that `kubectl
// apply --server-side` restores, before the action is done. The file is
// private, and on disk when backup returns.
func (x *execution) backup(a *Action, live *unstructured.Unstructured) error {
	if !a.Destructive || a.Backup != "" {
		return nil
	}
	if err := os.MkdirAll(x.Backups, 0o700); err != nil {
		return fmt.Errorf("backup of %s: %w", a.Object, err)
	}
	raw, err := yaml.Marshal(restorable(live).Object)
	if err != nil {
		return fmt.Errorf("backup of %s: %w", a.Object, err)
	}
	name := backupName(a.Object, x.backups)
	path := filepath.Join(x.Backups, name)
	if err := writeDurably(path, raw); err != nil {
		return fmt.Errorf("backup of %s: %w", a.Object, err)
	}
	x.backups++
	a.Backup = path
	return nil
}

// lastBackup is more than a run will ever write.
const lastBackup = 999999

// backupName orders the files as they have to be applied, which kubectl does in
// the order of their names: Namespaces and CRDs before what needs them, the rest
// in the opposite order of its deletion, so that what an object was deleted
// before is there again when it is.
func backupName(ref flux.Ref, before int) string {
	rank := 5
	switch {
	case ref.Kind == "Namespace" && ref.Group() == "":
		rank = 0
	case ref.Kind == "CustomResourceDefinition":
		rank = 1
	}
	return fmt.Sprintf("%d-%06d-%s.yaml", rank, lastBackup-before, unsafeInName().ReplaceAllString(ref.String(), "_"))
}

// unsafeInName is what a file's name should not hold. An object's name may
// hold colons and more; it never decides which folder a file goes to.
func unsafeInName() *regexp.Regexp { return regexp.MustCompile(`[^A-Za-z0-9.-]+`) }

// restorable is an object without what the API server gives it, so that it can
// be created again. Its status goes too: a kind that has no status subresource
// would take it, and its controller believe it. (cdi-operator never leaves the
// phase Error of a resource that is new.) Nor has it owners: with an owner that
// is gone too, the garbage collector would delete it again.
func restorable(live *unstructured.Unstructured) *unstructured.Unstructured {
	u := live.DeepCopy()
	for _, field := range []string{
		"resourceVersion", "uid", "creationTimestamp", "generation", "managedFields", "selfLink",
		"deletionTimestamp", "deletionGracePeriodSeconds", "ownerReferences",
	} {
		unstructured.RemoveNestedField(u.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(u.Object, "status")
	switch (schema.GroupKind{Group: u.GroupVersionKind().Group, Kind: u.GetKind()}) {
	case schema.GroupKind{Group: "batch", Kind: "Job"}:
		withoutGenerated(u)
	case schema.GroupKind{Kind: "PersistentVolumeClaim"}:
		// They say that the volume is bound to it, which knows the former claim
		// by its UID: the new one would be Lost.
		for _, name := range []string{"pv.kubernetes.io/bind-completed", "pv.kubernetes.io/bound-by-controller"} {
			unstructured.RemoveNestedField(u.Object, "metadata", "annotations", name)
		}
	}
	return u
}

// withoutGenerated takes off a Job what the API server made from its UID, and
// refuses in one that has another (pkg/registry/batch/job strategy.go
// generateSelector). With manualSelector all of it is somebody's own.
func withoutGenerated(job *unstructured.Unstructured) {
	if manual, _, _ := unstructured.NestedBool(job.Object, "spec", "manualSelector"); manual {
		return
	}
	unstructured.RemoveNestedField(job.Object, "spec", "selector")
	for _, labels := range [][]string{{"metadata", "labels"}, {"spec", "template", "metadata", "labels"}} {
		for _, name := range []string{"controller-uid", "batch.kubernetes.io/controller-uid", "job-name", "batch.kubernetes.io/job-name"} {
			unstructured.RemoveNestedField(job.Object, append(slices.Clone(labels), name)...)
		}
	}
}

// writeDurably makes a new file, mode 0600, and returns once it is on disk.
func writeDurably(path string, data []byte) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.Write(data); err != nil {
		return err
	}
	return f.Sync()
}
