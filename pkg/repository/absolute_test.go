// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"path/filepath"
	"testing"
)

// TestAnAbsoluteEntry is one of the tree where it is inside of it.
func TestAnAbsoluteEntry(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r := &Repository{Dir: dir}
	inside := filepath.Join(t.TempDir(), "absent")
	for name, want := range map[string]string{
		"clusters/a": "clusters/a", "../x": "../x", dir: ".", filepath.Dir(dir): filepath.Dir(dir), inside: inside,
	} {
		if got := r.relative(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
