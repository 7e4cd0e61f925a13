// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package bench

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/kubestandup/kubestandup/test/cluster"
)

// buildPlugin builds a plugin as a release has it.
func buildPlugin(b *testing.B, name string) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), name)
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", path, "../cmd/"+name)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("build of %s: %v\n%s", name, err, out)
	}
	return path
}

// measured is what one run of a program took.
type measured struct {
	took time.Duration
	mib  float64
}

// run runs a program against the cluster to its end.
func run(b *testing.B, c *cluster.Cluster, program string, args ...string) measured {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), 10*time.Minute)
	defer cancel()
	home := b.TempDir()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = home
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "KUBECONFIG=" + c.Kubeconfig()}
	began := time.Now()
	out, err := cmd.CombinedOutput()
	took := time.Since(began)
	if err != nil {
		b.Fatalf("%s: %v\n%s", program, err, out)
	}
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		b.Fatal("this system does not tell how much memory a process took")
	}
	return measured{took, float64(usage.Maxrss) / 1024}
}
