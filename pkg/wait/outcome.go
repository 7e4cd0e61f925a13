// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wait

import (
	"fmt"
	"strings"
	"time"

	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/tiers"
)

// The exit codes of the ends that are no success.
const (
	exitNotReady = 3
	exitDeadline = 4
)

// StuckError says that waiting longer is useless: a tier that is waited for
// has a root cause that no controller will remove by itself.
type StuckError struct {
	Tier flux.Ref
	Root tiers.RootCause
	// Diagnosed is true when it was Options.Diagnose that found the wedge.
	Diagnosed bool
}

func (e *StuckError) Error() string {
	if e.Tier == e.Root.Object {
		return fmt.Sprintf("%s is %s and will not become Ready by itself: %s", e.Tier, e.Root.State, e.Root.Message)
	}
	return fmt.Sprintf("%s will not become Ready by itself; the root cause is %s, %s: %s",
		e.Tier, e.Root.Object, e.Root.State, e.Root.Message)
}

// ExitCode is 3, not ready.
func (*StuckError) ExitCode() int { return exitNotReady }

// DeadlineError says that a tier, or the whole wait, took longer than allowed.
type DeadlineError struct {
	// Tier is the one whose own deadline passed, the zero Ref when it was
	// the timeout of the whole wait.
	Tier flux.Ref
	// Allowed is how long the tier, or the wait, was given.
	Allowed time.Duration
	// Left are the tiers that were not Ready, with their root causes.
	Left []Left
}

// Left is one tier that was not Ready in the end.
type Left struct {
	Tier  flux.Ref
	State tiers.State
	Root  tiers.RootCause
}

func (e *DeadlineError) Error() string {
	var b strings.Builder
	if e.Tier.Name != "" {
		fmt.Fprintf(&b, "%s did not become Ready within %s of its dependencies being met", e.Tier, e.Allowed)
	} else {
		fmt.Fprintf(&b, "timed out after %s", e.Allowed)
	}
	switch len(e.Left) {
	case 0:
	case 1:
		b.WriteString("; not Ready: " + e.Left[0].String())
	default:
		fmt.Fprintf(&b, "; %d tiers are not Ready:", len(e.Left))
		for _, l := range e.Left {
			b.WriteString("\n  " + l.String())
		}
	}
	return b.String()
}

// ExitCode is 4, past a deadline.
func (*DeadlineError) ExitCode() int { return exitDeadline }

func (l Left) String() string {
	if l.Root.Object == l.Tier {
		return fmt.Sprintf("%s (%s: %s)", l.Tier, l.State, l.Root.Message)
	}
	return fmt.Sprintf("%s (%s; root cause %s, %s: %s)", l.Tier, l.State, l.Root.Object, l.Root.State, l.Root.Message)
}

// AbsentError says that a tier was named that does not exist, and that nothing
// is left in motion that could create it.
type AbsentError struct {
	// Tier is the zero Ref when no tier at all matched what to wait for.
	Tier flux.Ref
}

func (e *AbsentError) Error() string {
	if e.Tier.Name == "" {
		return "no tier matches what to wait for, and every other tier is at rest, so nothing will create one; " +
			"see `kubectl tiers --releases -A` for those that there are"
	}
	return fmt.Sprintf("%s does not exist, and every other tier is at rest, so nothing will create it; "+
		"see `kubectl tiers` for the names that there are", e.Tier)
}

// ExitCode is 3, not ready.
func (*AbsentError) ExitCode() int { return exitNotReady }
