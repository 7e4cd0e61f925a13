// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"context"
	"errors"
	"slices"

	"github.com/kubestandup/kubestandup/pkg/crds"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// Rehearse lets the API server check, as a dry run, what a plan would apply,
// and notes where that is refused. The error is the context's.
func (c *Cluster) Rehearse(ctx context.Context, verdicts []Verdict) error {
	for i := range verdicts {
		v := &verdicts[i]
		for j := range v.Actions {
			a := &v.Actions[j]
			s, breaks := a.step.(breakStep)
			if !breaks {
				continue
			}
			err := c.crds.Break(ctx, s.diagnosis, crds.Break{DryRun: true, Say: a.said})
			var refused *crds.RefusedError
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case errors.As(err, &refused):
				v.Refused = refused.Error()
			case err != nil:
				a.Message = err.Error()
			}
		}
	}
	return nil
}

// said collects what a step says while it runs.
func (a *Action) said(line string) {
	if a.Message != "" {
		a.Message += "; "
	}
	a.Message += line
}

// Called are the objects by a name that were seen: tiers, releases, objects of
// the API's own state, and whatever else a person has named.
func (w *World) Called(name string) []flux.Ref {
	all := append(w.refs(), w.Named[name].Found...)
	if w.Graph != nil {
		for _, n := range w.Graph.Tiers() {
			all = append(all, n.Ref)
		}
	}
	for _, r := range w.Releases {
		if latest := r.Latest(); latest != nil {
			all = append(all, secretRef(*latest))
		}
	}
	var called []flux.Ref
	for _, ref := range all {
		if Matches(name, ref) && !slices.Contains(called, ref) {
			called = append(called, ref)
		}
	}
	return called
}
