// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// identity holds by the time a step runs: the shell has proved it.
func (p *preflight) identity(context.Context) (Check, error) {
	i := p.env.Identity
	said := "as expected"
	if p.env.Expected.UID == "" {
		said = "the URL is as expected, the UID was not compared: add --expect-uid"
	}
	return Check{Message: fmt.Sprintf("%s, UID %s, CA %s: %s", i.URL, i.UID, i.CA(), said)}, nil
}

// fluxKinds are those of Flux that the cluster serves. One that no controller
// needs is missing without harm.
func (p *preflight) fluxKinds(context.Context) (Check, error) {
	served := make([]string, 0, len(p.snapshot.Served))
	for _, r := range p.snapshot.Served {
		served = append(served, r.Kind+" "+r.Version)
	}
	c := Check{Message: strings.Join(served, ", ")}
	if !slices.ContainsFunc(p.snapshot.Served, func(r flux.Resource) bool { return r.Group == flux.SourceGroup }) {
		c.Findings = append(c.Findings, finding.Finding{
			Rule: "flux-sources-not-served", Severity: finding.Error, Blocks: true,
			Message: "the cluster serves tiers and no source of any kind: Flux is only half installed",
			Fix:     "install Flux again, whole: flux install",
		})
	}
	return c, nil
}
