// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/kubestandup/kubestandup/pkg/finding"
)

// kubeconfig warns of credentials that stop working when the cluster does:
// those of an OIDC issuer that this very cluster serves.
func (p *preflight) kubeconfig(ctx context.Context) (Check, error) {
	credentials := p.env.Credentials
	c := Check{Message: credentials.String()}
	issuer, err := url.Parse(credentials.Issuer)
	if err != nil || issuer.Host == "" {
		return c, nil //nolint:nilerr // there is no issuer
	}
	host := strings.ToLower(issuer.Hostname())
	why := ""
	server, err := url.Parse(p.env.Identity.URL)
	switch {
	case err == nil && server.Hostname() == host:
		why = "that is the API server's own host"
	case below(host, p.env.File.Cluster.Domain):
		why = fmt.Sprintf("that is below cluster.domain %s of standup.yaml", p.env.File.Cluster.Domain)
	default:
		b, err := p.builds(ctx)
		if err != nil {
			return c, err
		}
		why = b.serves(host)
	}
	if why == "" {
		return c, nil
	}
	c.Findings = append(c.Findings, finding.Finding{
		Rule: "kubeconfig-oidc", Severity: finding.Warning,
		Message: fmt.Sprintf("the credentials depend on OIDC issuer %s, which this very cluster serves: once it is down, they cannot be renewed", credentials.Issuer),
		Causes:  []string{why},
		Fix:     "keep a kubeconfig with a client certificate at hand: break-glass is certificate-based",
	})
	return c, nil
}

// serves is which tier's object serves a host, empty where none does.
func (b *builds) serves(host string) string {
	for _, claim := range b.claims() {
		for _, name := range claim.hosts {
			if covers(name, host) {
				return fmt.Sprintf("%s of %s claims %s", claim.object, claim.tier, name)
			}
		}
	}
	return ""
}
