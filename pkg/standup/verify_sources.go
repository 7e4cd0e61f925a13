// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"context"
	"fmt"

	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// sources proves that what the tiers are Ready at is what git has: a source
// that cannot be fetched stays at an older revision, and its tiers stay green.
func (v *verify) sources(ctx context.Context) (Check, error) {
	c := Check{Name: "sources"}
	p := newPreflight(ctx, v.look)
	used, static, err := p.usedSources(ctx)
	if err != nil {
		return c, err
	}
	fetched, all := 0, 0
	for i := range v.snapshot.Sources {
		s := &v.snapshot.Sources[i]
		count := used[bare(s.Ref)]
		if count == 0 || static[bare(s.Ref)] {
			continue
		}
		all++
		f, bad := p.sourceFinding(s, count)
		if !bad {
			fetched++
			continue
		}
		f.Blocks = false // no step comes after this one
		if s.Suspended && s.Artifact != nil {
			f.Severity = finding.Info // pinned, as somebody may want it to be
		}
		c.Findings = append(c.Findings, f)
	}
	if c.Findings, err = p.withoutCharts(ctx, c.Findings); err != nil {
		return c, err
	}
	c.Message = fmt.Sprintf("%d of %d that tiers are built from are fetched", fetched, all)
	absent, order := map[flux.Ref]int{}, []flux.Ref{}
	for _, n := range v.graph.Tiers() {
		if n.Origin == nil && ofSource(n) && v.aside[n.Ref] == "" {
			if absent[bare(n.Source)]++; absent[bare(n.Source)] == 1 {
				order = append(order, n.Source)
			}
		}
	}
	for _, ref := range order {
		c.Findings = append(c.Findings, finding.Finding{
			Rule: "source-missing", Severity: finding.Error, Object: &ref,
			Message: fmt.Sprintf("%s does not exist; %s", ref, neededBy(absent[bare(ref)])),
			Fix:     "create it, or change the reference in git",
		})
	}
	return c, nil
}
