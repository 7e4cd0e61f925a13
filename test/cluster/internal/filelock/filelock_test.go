// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package filelock

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
)

func TestOneHolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := Try(path)
	if err != nil || first == nil {
		t.Fatalf("first: %v, %v", first, err)
	}
	if second, err := Try(path); err != nil || second != nil {
		t.Fatalf("held, and taken again: %v, %v", second, err)
	}
	first.Release()
	first.Release()
	again, err := Try(path)
	if err != nil || again == nil {
		t.Fatalf("released, and not to be had: %v, %v", again, err)
	}
	again.Release()
}

func TestAcquireWaits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := Try(path)
	if err != nil {
		t.Fatal(err)
	}
	// It is let go by the second's own report that it waits.
	calls := 0
	second, err := Acquire(t.Context(), path, func() { calls++; first.Release() })
	if err != nil || calls != 1 {
		t.Fatalf("%v after %d calls", err, calls)
	}
	defer second.Release()

	ctx, cancel := context.WithCancel(t.Context())
	if _, err := Acquire(ctx, path, cancel); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the context's", err)
	}
}

func TestNoSuchFolder(t *testing.T) {
	if _, err := Try(filepath.Join(t.TempDir(), "none", "lock")); err == nil {
		t.Error("no error")
	}
	var none *Lock
	none.Release()
}
