// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"context"

	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/knowledge"
)

// Verify proves what can be proved of a cluster that is up, and says what
// cannot: every tier Ready at its source's revision, every object of every
// inventory there and well, the expected CRDs Established. It changes nothing.
//
// What failed is an error or, where it may only take time, a warning: the step
// then ends in findings. What is unproved or was skipped on purpose is counted
// and named as information, which alone does not: a cluster of which nothing
// better can be known is not for that reason broken. A check of standup.yaml
// that is not true is an error.
//
// The requests are one LIST per kind that the inventories hold and page of 500
// objects, and nothing per tier; Secrets are read by their metadata alone. A
// tier that lacks a kind, and the placeholders of standup.yaml, take a build of
// the tiers as well.
//
// The error is for what could not be looked at.
func Verify(ctx context.Context, env *Env) (*StepReport, error) {
	l, err := env.look(ctx)
	if err != nil {
		return nil, err
	}
	base, err := knowledge.Builtin()
	if err != nil {
		return nil, err
	}
	v := &verify{look: l, base: base, pieces: map[identity]*piece{}, done: map[string]*tally{}}
	if v.unset, err = l.placeholders(ctx); err != nil {
		return nil, err
	}
	if v.aside, err = v.findAside(ctx); err != nil {
		return nil, err
	}
	report := &StepReport{}
	for _, check := range []func(context.Context) (Check, error){v.sources, v.tiers, v.workloads, v.crds, v.placeholderCheck, v.gates} {
		c, err := check(ctx)
		if err != nil {
			return nil, err
		}
		if c.Message != "" || len(c.Findings) > 0 {
			report.Checks = append(report.Checks, c)
		}
	}
	report.Counts = v.counts
	report.close()
	if report.Result != OK {
		report.Next = v.next()
	}
	return report, nil
}

// verify is one look at a cluster that is meant to be up.
type verify struct {
	*look
	base   *knowledge.Base
	counts Counts
	// unset are the variables without a real value.
	unset []placeholder
	// aside are the tiers that are not meant to run, each with the reason.
	aside  map[flux.Ref]string
	checks *checkBook
	// unread are the sources of which nobody can say here what they suspend.
	unread map[flux.Ref]error
	// pieces are the objects of all inventories, each once.
	pieces map[identity]*piece
	// done is what became of the objects of each tier, by tierArg.
	done map[string]*tally
	left left
}

// left is what there is still to do, of all that was found.
type left struct{ deadlocked, unserved, suspended, wedged, late, lateObjects bool }

// next is the command that does most of what is left, empty where only a
// person can mend what was found.
func (v *verify) next() string {
	switch l := v.left; {
	case l.deadlocked, l.unserved:
		return v.env.Command("standup", "crds")
	case l.wedged:
		return v.env.Command("standup", "unwedge")
	case l.suspended:
		return v.env.Command("standup", "resume")
	case l.late:
		return v.env.Command("tiers", "--wait")
	case l.lateObjects: // of tiers that are Ready: nothing else waits for them
		return v.env.Command("standup", "verify")
	}
	return ""
}

// tally is what became of the objects of one tier.
type tally struct{ proved, unproved, failed int }

// of is the tally of a tier.
func (v *verify) of(tier flux.Ref) *tally {
	at := tierArg(tier)
	if v.done[at] == nil {
		v.done[at] = &tally{}
	}
	return v.done[at]
}
