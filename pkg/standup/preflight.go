// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"context"
	"slices"
	"time"

	"github.com/kubestandup/kubestandup/pkg/tiers"
)

// Preflight looks at everything that a bring-up needs and changes nothing. The
// error is for what could not be looked at; what is wrong with the cluster is
// in the report.
func Preflight(ctx context.Context, env *Env) (*StepReport, error) {
	start := time.Now()
	l, err := env.look(ctx)
	if err != nil {
		return nil, err
	}
	p := &preflight{look: l}
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
	*look
	deadlocked bool
}
