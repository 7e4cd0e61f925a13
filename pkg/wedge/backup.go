// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
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
	name := fmt.Sprintf("%03d-%s.yaml", x.backups+1, unsafeInName().ReplaceAllString(a.Object.String(), "_"))
	path := filepath.Join(x.Backups, name)
	if err := writeDurably(path, raw); err != nil {
		return fmt.Errorf("backup of %s: %w", a.Object, err)
	}
	x.backups++
	a.Backup = path
	return nil
}

// unsafeInName is what a file's name should not hold. An object's name may
// hold colons and more; it never decides which folder a file goes to.
func unsafeInName() *regexp.Regexp { return regexp.MustCompile(`[^A-Za-z0-9.-]+`) }

// restorable is an object without what the API server gives it, so that it can
// be created again. Its status goes too: a kind that has no status subresource
// would take it, and its controller believe it. (cdi-operator never leaves the
// phase Error of a resource that is new.)
func restorable(live *unstructured.Unstructured) *unstructured.Unstructured {
	u := live.DeepCopy()
	for _, field := range []string{
		"resourceVersion", "uid", "creationTimestamp", "generation", "managedFields", "selfLink",
		"deletionTimestamp", "deletionGracePeriodSeconds",
	} {
		unstructured.RemoveNestedField(u.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(u.Object, "status")
	return u
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
