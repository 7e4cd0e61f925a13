// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/kubestandup/kubestandup/test/bringup"
)

// buildPlugins builds the three plugins and puts kubectl beside them: a PATH
// that holds nothing else.
func (d *demo) buildPlugins(ctx context.Context) error {
	start := time.Now()
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", d.bin()+string(filepath.Separator),
		"./cmd/kubectl-standup", "./cmd/kubectl-tiers", "./cmd/kubectl-unwedge")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	build.Stderr = os.Stderr
	d.say("building the plugins (a few minutes the first time)\n")
	if err := os.MkdirAll(d.bin(), 0o700); err != nil {
		return err
	}
	if err := build.Run(); err != nil {
		return fmt.Errorf("build of the plugins: %w", err)
	}
	d.parts = append(d.parts, part{"the plugins are built", time.Since(start)})
	return nil
}

// command is a call of kubectl in the checkout, as a person would make it.
func (d *demo) command(ctx context.Context, args ...string) (*exec.Cmd, error) {
	kubectl := filepath.Join(d.bin(), "kubectl")
	if _, err := os.Lstat(kubectl); errors.Is(err, os.ErrNotExist) {
		if err := os.Symlink(d.cluster.Program("kubectl"), kubectl); err != nil {
			return nil, err
		}
	}
	cmd := exec.CommandContext(ctx, kubectl, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Dir = d.checkout()
	cmd.Env = append(os.Environ(), "PATH="+d.bin(), "KUBECONFIG="+d.cluster.Kubeconfig())
	return cmd, nil
}

// kubectl shows a command and its output, and fails when it does not end with
// the exit code that belongs there.
func (d *demo) kubectl(ctx context.Context, want int, args ...string) error {
	d.say("\n$ kubectl %s\n", strings.Join(args, " "))
	cmd, err := d.command(ctx, args...)
	if err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	err = cmd.Run()
	if got := cmd.ProcessState.ExitCode(); got != want {
		return fmt.Errorf("kubectl %s: exit code %d, want %d: %w", strings.Join(args, " "), got, want, err)
	}
	if want != 0 {
		d.say("(exit code %d)\n", want)
	}
	return nil
}

// writeConfig makes standup.yaml, as a person would, beside the cluster's
// entry point.
func (d *demo) writeConfig(ctx context.Context) error {
	uid, err := d.cluster.UID(ctx)
	if err != nil {
		return err
	}
	text := bringup.StandupYAML(d.cluster.URL(), uid)
	d.say("\n$ cat standup.yaml\n%s", text)
	return os.WriteFile(filepath.Join(d.checkout(), "standup.yaml"), []byte(text), 0o600)
}
