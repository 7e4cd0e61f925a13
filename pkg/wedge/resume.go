// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/tiers"
)

// WouldUninstall is why the next reconcile of a HelmRelease uninstalls its
// release, as a resume of a suspended one starts it; empty when it does not,
// and for every other tier.
func WouldUninstall(t *flux.Tier) string {
	return (&World{}).moves(&Release{Node: &tiers.Node{Tier: t}})
}
