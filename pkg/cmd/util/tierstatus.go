// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package util

import (
	"fmt"
	"strings"
	"time"

	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/tiers"
)

// TierStatus is the class of the tier and what a person needs to know beyond it. A
// tier that is red because of another one ends in its root cause, whose own row
// says what the matter is.
func TierStatus(n *tiers.Node, now time.Time) string {
	switch n.State {
	case tiers.Ready:
		return string(n.State)
	case tiers.Suspended:
		if n.ReadyStatus() == "True" {
			return n.Why + " (Ready when it was)"
		}
		return n.Why
	case tiers.Blocked:
		text := "blocked by " + blockers(n)
		if n.Root.Depth > 1 {
			text += "; root cause " + nameOf(n, n.Root.Object)
		} else if last := n.Root.Last(); explains(last.Reason) {
			text += ": " + last.Message
		}
		return text
	case tiers.Retrying:
		text := strings.TrimSpace("retrying "+When(n.RetryAt, now)) + ": " + FirstLine(n.Why)
		if n.MayMissKind() {
			text += " (is it a deadlock? kubectl tiers why " + n.Ref.Name + ")"
		}
		return text
	default:
		return string(n.State) + ": " + FirstLine(n.Why)
	}
}

// explains is true where no row of the table says why the blocker blocks.
func explains(r tiers.Reason) bool { return r != tiers.NotReady && r != tiers.Unhealthy }

func blockers(n *tiers.Node) string {
	names := make([]string, 0, len(n.Blockers))
	for _, b := range n.Blockers {
		names = append(names, nameOf(n, b.On))
	}
	return strings.Join(names, ", ")
}

// nameOf is as short as the reader's context allows.
func nameOf(n *tiers.Node, r flux.Ref) string {
	name := r.Name
	if r.Namespace != n.Ref.Namespace {
		name = r.Key()
	}
	if r.Kind != n.Ref.Kind {
		return r.Kind + "/" + name
	}
	return name
}

// When is a moment as a person in a terminal reads it; empty when it is not known.
func When(at, now time.Time) string {
	switch left := at.Sub(now); {
	case at.IsZero():
		return ""
	case left <= 0:
		return "any moment"
	default:
		return fmt.Sprintf("at %s (in %s)", at.Local().Format(time.TimeOnly), left.Round(time.Second))
	}
}

// FirstLine keeps the first line of a controller's message: what follows is the
// list of what it did apply.
func FirstLine(s string) string {
	first, _, _ := strings.Cut(s, "\n")
	return strings.TrimSpace(first)
}

// ShortRevision cuts a commit or a digest to what a person compares.
func ShortRevision(rev string) string {
	const shown = 8
	for _, algorithm := range []string{"sha1:", "sha256:"} {
		if head, sum, ok := strings.Cut(rev, algorithm); ok && len(sum) > shown {
			return head + algorithm + sum[:shown]
		}
	}
	return rev
}
