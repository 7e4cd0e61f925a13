// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package bench

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	// startTime is what --help may take, startSize how large a stripped plugin
	// may be, in bytes.
	startTime, startSize = 50 * time.Millisecond, 60_000_000
	// startRuns is how many times each plugin starts for one figure.
	startRuns = 31
)

// BenchmarkStart starts each plugin, as a release has it, for its help.
//
// The median is what a person sees, and on a busy machine it is several times
// what the plugin needs. So it fails by the processor time of the run that was
// disturbed least: that is no less than the time on an idle machine, since
// nothing of a start waits.
func BenchmarkStart(b *testing.B) {
	for _, name := range []string{"kubectl-standup", "kubectl-tiers", "kubectl-unwedge"} {
		b.Run(name, func(b *testing.B) {
			program := buildPlugin(b, name)
			var took, processor []time.Duration
			for b.Loop() {
				for range startRuns {
					wall, cpu := start(b, program)
					took, processor = append(took, wall), append(processor, cpu)
				}
			}
			slices.Sort(took)
			least := slices.Min(processor)
			b.ReportMetric(milliseconds(took[len(took)/2]), "ms/median")
			b.ReportMetric(milliseconds(least), "ms/least-processor")
			b.ReportMetric(0, "ns/op")
			if least > startTime {
				b.Errorf("%s --help takes %s of a processor at best, want at most %s", name, least, startTime)
			}
			info, err := os.Stat(program)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(info.Size())/1e6, "MB")
			if info.Size() > startSize {
				b.Errorf("%s has %d bytes, want at most %d", name, info.Size(), startSize)
			}
		})
	}
}

// start shows the plugin's help, and tells for how long, and how much of a
// processor that took.
func start(b *testing.B, program string) (wall, processor time.Duration) {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), program, "--help")
	cmd.Env = []string{"HOME=" + b.TempDir()}
	began := time.Now()
	out, err := cmd.CombinedOutput()
	wall = time.Since(began)
	if err != nil || !strings.Contains(string(out), "Usage:") {
		b.Fatalf("%s --help: %v\n%s", program, err, out)
	}
	return wall, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1000 }
