// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

// Package filelock is a lock between processes: held by an open file, it is
// let go by the kernel however its holder ends, so no stale lock exists.
package filelock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// Lock is a lock that is held.
type Lock struct{ file *os.File }

// Try takes the lock of the file at path, which it creates. It returns nil
// and no error when somebody else holds it.
func Try(path string) (*Lock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return &Lock{f}, nil
	}
	f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, nil
	}
	return nil, fmt.Errorf("lock %s: %w", path, err)
}

// Acquire waits for the lock until ctx ends. waiting, when not nil, is called
// once if somebody else holds it.
func Acquire(ctx context.Context, path string, waiting func()) (*Lock, error) {
	// flock cannot be interrupted, and a goroutine blocked in it would take the
	// lock after the caller has gone: so it is asked for again and again.
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		lock, err := Try(path)
		if err != nil || lock != nil {
			return lock, err
		}
		if waiting != nil {
			waiting()
			waiting = nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("lock %s is held by another process: %w", path, context.Cause(ctx))
		case <-tick.C:
		}
	}
}

// Release lets the lock go. It is safe on nil and when called again.
func (l *Lock) Release() {
	if l != nil && l.file != nil {
		l.file.Close()
		l.file = nil
	}
}
