// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"testing"
	"time"

	"github.com/kubestandup/kubestandup/pkg/standup/config"
	"github.com/kubestandup/kubestandup/pkg/tiers"
)

// TestUndone: what Flux takes over at the next apply of the container.
func TestUndone(t *testing.T) {
	said := stay{rule: "tier-skipped"}
	for name, tc := range map[string]struct {
		change func(*tiers.Node)
		stay   stay
		want   bool
	}{
		"kubectl has set it":      {func(n *tiers.Node) { n.SuspendedBy = "kubectl-patch" }, said, true},
		"flux has":                {func(n *tiers.Node) { n.SuspendedBy = "flux" }, said, false},
		"we have":                 {func(n *tiers.Node) { n.SuspendedBy = keeper }, said, false},
		"it is meant to run":      {func(n *tiers.Node) { n.SuspendedBy = "kubectl-patch" }, stay{}, false},
		"nothing contains it":     {func(n *tiers.Node) { n.SuspendedBy, n.ContainedBy = "kubectl-patch", nil }, said, false},
		"it is not suspended":     {func(n *tiers.Node) { n.SuspendedBy, n.Suspended = "kubectl-patch", false }, said, false},
		"somebody is deleting it": {func(n *tiers.Node) { n.SuspendedBy, n.Deleted = "kubectl-patch", time.Now() }, said, false},
	} {
		child := sleeping("child")
		child.Owner = tierRef("root")
		n := resumerOf(&config.Config{}, sleeping("root"), child).last.Node(tierRef("child"))
		tc.change(n)
		if got := undone(n, tc.stay); got != tc.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}
