// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/chart"
	"github.com/kubestandup/kubestandup/pkg/coldstart"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// released is a HelmRelease, and what was found out about its chart.
type released struct {
	build.Object
	tier   flux.Ref
	chart  coldstart.Chart
	broken *chart.BrokenError
	// err is why nothing more can be rendered.
	err error
}

// fill finds what the releases of a cluster install: rendered where the charts
// can be had, else as the knowledge says. What is broken is in the answer. The
// error is for a chart that takes all memory, and for a done context.
func (s *shelf) fill(ctx context.Context, world *coldstart.Cluster) ([]*released, error) {
	var all []*released
	seen := map[flux.Ref]bool{}
	for i := range world.Tiers {
		t := &world.Tiers[i]
		for _, o := range releases(t) {
			if key := coldstart.Key(o.Ref()); !seen[key] {
				seen[key] = true
				all = append(all, &released{Object: o, tier: t.Tier})
			}
		}
	}
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, r := range all {
		group.Go(func() error {
			if ctx.Err() == nil {
				r.chart, r.broken, r.err = s.chart(ctx, r.Object)
			}
			return ctx.Err()
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("charts of %s: %w", s.cluster.Entry, err)
	}
	if err := s.again(ctx, all); err != nil {
		return nil, err
	}
	world.Charts = map[flux.Ref]coldstart.Chart{}
	var broken []*released
	for _, r := range all {
		world.Charts[coldstart.Key(r.Ref())] = r.chart
		if r.broken != nil {
			broken = append(broken, r)
		}
	}
	return broken, nil
}

// again renders one by one the charts that were rendered together and took too
// much memory together: one of them may have taken it all. What cannot be
// stopped ends the program, and so does what takes too much alone.
func (s *shelf) again(ctx context.Context, all []*released) error {
	var tried []*released
	for _, r := range all {
		var running interface{ Running() bool }
		if errors.As(r.err, &running) && running.Running() {
			return s.ends(r)
		}
		if r.err != nil {
			tried = append(tried, r)
		}
	}
	for _, r := range tried {
		r.chart, r.broken, r.err = s.chart(ctx, r.Object)
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("charts of %s: %w", s.cluster.Entry, ctx.Err())
		case r.err != nil:
			return s.ends(r)
		}
	}
	return nil
}

// ends is the error that nothing comes after: its exit code is not that of the
// chart.
func (s *shelf) ends(r *released) error {
	at := ""
	if p := s.cluster.Locate(r.tier, r.Ref()); p.File != "" {
		at = fmt.Sprintf(" (%s:%d)", p.File, p.Line)
	}
	return fmt.Errorf("%s%s keeps the rest from being looked at: %v", r.Ref(), at, r.err) //nolint:errorlint // the exit code is 1
}
