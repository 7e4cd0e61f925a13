// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/dynamic"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/crds"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/tiers"
	"github.com/kubestandup/kubestandup/pkg/wait"
	"github.com/kubestandup/kubestandup/pkg/wedge"
)

const exitRefused = 6

// ResumeRefusedError says that tiers were not resumed, since that would delete
// something.
type ResumeRefusedError struct{ Tiers []flux.Ref }

func (e *ResumeRefusedError) Error() string {
	return fmt.Sprintf("%s: not resumed, since that would delete what is there; the report names it, and how to resume it all the same", listed(e.Tiers))
}

// ExitCode is 6, refused.
func (*ResumeRefusedError) ExitCode() int { return exitRefused }

// ResumeNameError says that standup.yaml wants tiers to stay suspended that do
// not exist. Nothing was resumed: the one that is meant is likely another.
type ResumeNameError struct {
	File  string
	Names []string
}

func (e *ResumeNameError) Error() string {
	return fmt.Sprintf("%s says that %s stays suspended, and no tier is called that: nothing was resumed, since it may be misspelt; correct it, then run this again",
		e.File, strings.Join(e.Names, ", "))
}

// ExitCode is 6, refused.
func (*ResumeNameError) ExitCode() int { return exitRefused }

// ResumeMovedError says that tiers were not resumed, since they were changed in
// the same moment.
type ResumeMovedError struct{ Tiers []flux.Ref }

func (e *ResumeMovedError) Error() string {
	return fmt.Sprintf("%s: not resumed, since somebody changed it in the same moment; run this again to see it as it is now", listed(e.Tiers))
}

// Resume un-suspends the tiers that are meant to run, each as soon as all that
// it depends on is Ready, nudges what sleeps, and waits until all are Ready. The
// order is that of the live graph, so that a tier that comes with a commit in
// the middle is waited for, too. Run again, it does only what is left.
//
// It stops at the first tier that is wedged (*wait.StuckError, exit 3) or past
// its deadline (*wait.DeadlineError, exit 4). A *ResumeRefusedError (exit 6) or
// a *ResumeMovedError comes after everything else was done; ctx.Err() when it
// was interrupted. The report says in every case what was done and what is left.
func Resume(ctx context.Context, env *Env) (*StepReport, error) {
	l, err := env.look(ctx)
	if err != nil {
		return nil, err
	}
	r := newResumer(env, l)
	if err := r.plan(ctx); err != nil {
		return nil, err
	}
	if len(r.unknown) > 0 && r.allBuilt(ctx) {
		err := &ResumeNameError{File: env.file(), Names: r.unknown}
		return r.report(err), err
	}
	if env.DryRun {
		return r.rehearsal(), r.refused()
	}
	err = r.run(ctx)
	if ctx.Err() != nil && err != nil {
		env.say(fmt.Sprintf("Interrupted after %s; %s", time.Since(r.began).Round(time.Second), r.leftWords()))
	}
	if err == nil {
		err = errors.Join(r.refused(), r.movedError())
	}
	return r.report(err), err
}

// resumer is one run of the step.
type resumer struct {
	env   *Env
	began time.Time
	unset []placeholder
	// stays are the tiers that are left as they are, and the sources that are
	// suspended.
	stays map[flux.Ref]stay
	// chosen are the suspended tiers that are meant to run.
	chosen map[flux.Ref]bool
	// unknown are the names in resume.skip that no tier has.
	unknown []string

	mu   sync.Mutex
	look *look

	// What follows is written by the loop of the wait alone.
	last    *tiers.Graph
	left    []*tiers.Node
	resumed []flux.Ref
	moved   []flux.Ref
	since   map[flux.Ref]time.Time
}

func newResumer(env *Env, l *look) *resumer {
	return &resumer{
		env: env, look: l, began: time.Now(), last: l.graph,
		stays: map[flux.Ref]stay{}, chosen: map[flux.Ref]bool{}, since: map[flux.Ref]time.Time{},
	}
}

// plan decides about every suspended tier and source.
func (r *resumer) plan(ctx context.Context) error {
	l := r.look
	var err error
	if r.unset, err = l.placeholders(ctx); err != nil {
		return err
	}
	if r.unknown, err = l.unknownNames(ctx); err != nil {
		return err
	}
	used := map[flux.Ref]int{}
	for _, n := range l.graph.Tiers() {
		s, err := r.decide(ctx, l, n)
		switch {
		case err != nil:
			return err
		case s.rule != "":
			r.stays[n.Ref] = s
		case n.Suspended:
			r.chosen[n.Ref] = true
		}
		if n.Origin != nil && s.rule == "" {
			used[n.Origin.Ref]++
		}
	}
	for i := range l.snapshot.Sources {
		if s := &l.snapshot.Sources[i]; s.Suspended && used[s.Ref] > 0 {
			r.stays[s.Ref] = suspendedSource(s, used[s.Ref])
		}
	}
	return nil
}

// allBuilt is true where every tier that is in git is known: a name that none of
// them has is then a mistake.
func (r *resumer) allBuilt(ctx context.Context) bool {
	b, err := r.look.builds(ctx)
	return err == nil && !slices.ContainsFunc(b.all, func(f build.Followed) bool { return f.Result == nil })
}

// excluded is what the wait leaves out. A suspended source that has an artifact
// holds nobody up: Flux goes on building from it.
func (r *resumer) excluded() map[flux.Ref]string {
	out := map[flux.Ref]string{}
	for ref, s := range r.stays {
		if !s.harmless {
			out[ref] = s.why
		}
	}
	return out
}

func (r *resumer) run(ctx context.Context) error {
	client, err := dynamic.NewForConfig(r.env.Config)
	if err != nil {
		return fmt.Errorf("client for %s: %w", r.env.Config.Host, err)
	}
	r.announce()
	if err := r.keepAll(ctx, client); err != nil {
		return err
	}
	return wait.Run(ctx, client, r.look.snapshot.Served, wait.Options{
		Targets: wait.Targets{Releases: true}, Nudge: true, Limit: r.env.File.Resume.Timeout,
		Resume:   &wait.Resume{Tiers: r.chosen, Left: r.excluded(), Judge: r.judge, Did: r.did},
		Diagnose: r.diagnose, Suspect: failedRelease, Observe: r.observe, Trouble: r.env.warn,
	})
}

// judge looks once more at a tier that is about to be resumed.
func (r *resumer) judge(ctx context.Context, n *tiers.Node) (string, error) {
	l, err := r.lookAt(ctx, n)
	if err != nil {
		return "", err
	}
	s, err := r.decide(ctx, l, n)
	if err != nil || s.rule == "" {
		return "", err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stays[n.Ref] = s
	return s.why, nil
}

// lookAt is a look that has the tier and its source as they are now: what was
// seen at first may be outdated when its turn comes.
func (r *resumer) lookAt(ctx context.Context, n *tiers.Node) (*look, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.look.graph.Node(n.Ref)
	if was != nil && was.UID == n.UID && was.Generation == n.Generation && was.SourceRevision() == n.SourceRevision() {
		return r.look, nil
	}
	fresh, err := r.env.look(ctx)
	if err != nil {
		return nil, err
	}
	r.look = fresh
	return fresh, nil
}

// failedRelease is true for a release that fails and is retried: whether a retry
// can heal it, its record tells.
func failedRelease(n *tiers.Node) bool {
	return n.Ref.Kind == flux.HelmReleaseKind && !n.AwaitsDependencies()
}

func (r *resumer) diagnose(ctx context.Context, s *flux.Snapshot, tier flux.Ref) (string, error) {
	if tier.Kind == flux.HelmReleaseKind {
		return r.wedged(ctx, tier)
	}
	d, err := r.env.CRDs.Diagnose(ctx, s, tier)
	if err != nil || d.Verdict != crds.Deadlock {
		return "", err
	}
	return d.Why, nil
}

// wedged is what unwedge says of a release that no controller heals.
func (r *resumer) wedged(ctx context.Context, release flux.Ref) (string, error) {
	name := wedge.Arg(release)
	world, err := r.env.Wedges.Observe(ctx, wedge.Choices{Names: []string{name}})
	if err != nil {
		return "", err
	}
	for _, v := range wedge.Judge(world) {
		if v.About(name) && v.ResolvesItself == wedge.Never {
			return firstLine(v.Summary), nil
		}
	}
	return "", nil
}

func (r *resumer) did(d wait.Done) {
	ref := d.Tier.Ref
	switch {
	case d.Moved:
		r.moved = append(r.moved, ref)
		r.env.say(fmt.Sprintf("%s skipped: %s", ref, d.Stays))
	case d.Stays != "":
		r.env.say(fmt.Sprintf("%s stays suspended: %s", ref, d.Stays))
	default:
		r.resumed = append(r.resumed, ref)
		r.since[ref] = time.Now()
		r.env.say(ref.String() + " resumed")
	}
}

// observe tells when a tier has come up.
func (r *resumer) observe(g *tiers.Graph, left, nudged []*tiers.Node) {
	r.last, r.left = g, left
	now := time.Now()
	for _, n := range left {
		if _, known := r.since[n.Ref]; !known && n.State != tiers.Suspended {
			r.since[n.Ref] = now
		}
	}
	for _, n := range g.Tiers() {
		if began, waited := r.since[n.Ref]; waited && n.State == tiers.Ready {
			if r.env.Observe == nil { // else it is shown there
				r.env.say(fmt.Sprintf("%s Ready after %s", n.Ref, now.Sub(began).Round(100*time.Millisecond)))
			}
			delete(r.since, n.Ref)
		}
	}
	if r.env.Observe != nil {
		r.env.Observe(g, left, nudged)
	}
}

// refused is the error for the tiers whose resume would delete something, nil
// when there is none.
func (r *resumer) refused() error {
	var refs []flux.Ref
	for _, ref := range r.staying() {
		if r.stays[ref].refused {
			refs = append(refs, ref)
		}
	}
	if refs == nil {
		return nil
	}
	return &ResumeRefusedError{Tiers: refs}
}

func (r *resumer) movedError() error {
	if r.moved == nil {
		return nil
	}
	return &ResumeMovedError{Tiers: r.moved}
}

func (env *Env) say(line string) {
	if env.Say != nil {
		env.Say(line)
	}
}

func (env *Env) warn(err error) {
	if env.Warn != nil {
		env.Warn(err)
	}
}
