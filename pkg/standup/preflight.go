// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"context"
	"slices"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kubestandup/kubestandup/pkg/crds"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/guard"
	"github.com/kubestandup/kubestandup/pkg/tiers"
)

// Env is what the steps work with: one proved cluster.
type Env struct {
	Identity guard.Identity
	// Expected is what the server was compared with; its UID may be empty.
	Expected guard.Expectation
	Config   *rest.Config
	CRDs     *crds.Cluster
	// Command prints a command of ours, ready to be pasted, with the target
	// and the expectation that this run has.
	Command func(plugin, rest string) string
}

// Preflight looks at everything that a bring-up needs and changes nothing. The
// error is for what could not be looked at; what is wrong with the cluster is
// in the report.
func Preflight(ctx context.Context, env *Env) (*StepReport, error) {
	start := time.Now()
	snapshot, err := flux.Read(ctx, env.Config)
	if err != nil {
		return nil, err
	}
	p := &preflight{env: env, snapshot: snapshot, graph: tiers.Build(snapshot, tiers.Options{})}
	report := &StepReport{Name: "preflight"}
	for _, check := range []func(context.Context) (Check, error){
		p.identity, p.kinds, p.controllers, p.sources, p.tiers,
	} {
		c, err := check(ctx)
		if err != nil {
			return nil, err
		}
		report.Checks = append(report.Checks, c)
	}
	report.close()
	report.Seconds = time.Since(start).Seconds()
	switch {
	case p.deadlocked:
		report.Next = env.Command("standup", "crds")
	case report.Result == OK && !p.allReady():
		report.Next = env.Command("tiers", "--wait")
	}
	return report, nil
}

func (p *preflight) allReady() bool {
	return !slices.ContainsFunc(p.graph.Tiers(), func(n *tiers.Node) bool { return n.State != tiers.Ready })
}

type preflight struct {
	env        *Env
	snapshot   *flux.Snapshot
	graph      *tiers.Graph
	deadlocked bool
}
