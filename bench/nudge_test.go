// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package bench

import (
	"fmt"
	"testing"
	"time"

	"github.com/kubestandup/kubestandup/test/cluster"
)

// BenchmarkNudge lets `kubectl tiers --wait --nudge` bring up the chain of
// BenchmarkResume, all of which is resumed already.
func BenchmarkNudge(b *testing.B) {
	c := cluster.New(b, cluster.Options{Components: []cluster.Component{cluster.SourceController, cluster.KustomizeController}})
	tiers := buildPlugin(b, "kubectl-tiers")
	uid, err := c.UID(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	var took []time.Duration
	for b.Loop() {
		h := newChain(b, c, fmt.Sprintf("nudged-%d", len(took)))
		h.resume(b)
		took = append(took, run(b, c, tiers, "--wait", "--nudge", "--expect-server", c.URL(), "--expect-uid", uid).took)
		h.wantReady(b)
		h.delete(b)
	}
	b.ReportMetric(middle(took).Seconds(), "s/chain")
	b.ReportMetric(0, "ns/op")
}
