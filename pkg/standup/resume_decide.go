// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/tiers"
	"github.com/kubestandup/kubestandup/pkg/wedge"
)

// decide says why a tier is left as it is. What git says, and what a resume
// would delete, is asked last: to know it, the tiers are built.
func (r *resumer) decide(ctx context.Context, l *look, n *tiers.Node) (stay, error) {
	if s := l.said(n, r.isSuspended(n), r.unset); s.rule != "" || !r.isSuspended(n) {
		return s, nil
	}
	if s, err := l.suspendedInGit(ctx, n); s.rule != "" || err != nil {
		return s, err
	}
	return r.deletes(ctx, l, n)
}

// isSuspended also knows the tiers that the wait shows as if they were not.
func (r *resumer) isSuspended(n *tiers.Node) bool { return n.Suspended || r.chosen[n.Ref] }

// deletes is for a tier whose resume would delete what nobody has asked to.
func (r *resumer) deletes(ctx context.Context, l *look, n *tiers.Node) (stay, error) {
	s := stay{severity: finding.Error, refused: true}
	anyway := fmt.Sprintf("flux resume %s %s -n %s", strings.ToLower(n.Ref.Kind), n.Ref.Name, n.Ref.Namespace)
	if why := wedge.WouldUninstall(n.Tier); why != "" {
		s.rule, s.why = "resume-uninstalls", "helm-controller would UNINSTALL its release: "+why
		s.fix = "undo that change in git first; to lose the release all the same: " + anyway
		return s, nil
	}
	gone, err := l.pruned(ctx, n)
	if unknown, ok := errors.AsType[*unknownPruneError](err); ok {
		s.rule, s.why = "resume-may-prune", fmt.Sprintf("what its prune would delete cannot be told: %v", unknown.error)
		s.fix = "mend that, then " + r.env.Command("standup", "resume") + "; to resume it all the same: " + anyway
		return s, nil
	}
	if err != nil || len(gone) == 0 {
		return stay{}, err
	}
	s.rule, s.why = "resume-prunes", fmt.Sprintf("its prune would DELETE what git no longer has in it: %s", listed(gone))
	s.fix = "if these shall go: " + anyway + ", then " + r.env.Command("standup", "resume") +
		"; if not, bring them back in git, or annotate them kustomize.toolkit.fluxcd.io/prune: disabled"
	return s, nil
}

// suspendedSource is for a source that tiers are built from. It is no tier, and
// may be pinned on purpose.
func suspendedSource(s *flux.Source, count int) stay {
	needed := "one tier is built from it"
	if count > 1 {
		needed = fmt.Sprintf("%d tiers are built from it", count)
	}
	out := stay{
		rule: "source-suspended", severity: finding.Warning,
		fix: fmt.Sprintf("if it is meant to run: flux resume source %s %s -n %s", fluxSource(s.Ref.Kind), s.Ref.Name, s.Ref.Namespace),
	}
	if s.Artifact == nil {
		out.why = "it is suspended and has no artifact, so nothing can be built from it; " + needed
		return out
	}
	out.harmless = true
	out.why = fmt.Sprintf("it is suspended at %s, so no new revision arrives; %s", s.Artifact.Revision, needed)
	return out
}

// unknownNames are the names of tiers that shall stay suspended, in resume.skip
// and in the blocks of variables, which no tier has, on the cluster or in git:
// who mistypes one resumes what was to stay.
func (l *look) unknownNames(ctx context.Context) ([]string, error) {
	var refs []flux.Ref
	wanted := slices.Clone(l.env.File.Resume.Skip)
	for _, v := range l.env.File.Variables {
		wanted = append(wanted, v.Blocks...)
	}
	for _, n := range l.graph.Tiers() {
		refs = append(refs, n.Ref)
	}
	_, unknown := named(wanted, refs)
	if len(unknown) == 0 {
		return nil, nil
	}
	known, err := l.tierRefs(ctx)
	if err != nil {
		return nil, err
	}
	_, unknown = named(unknown, known)
	return unknown, nil
}

func (r *resumer) unknownName(name string) finding.Finding {
	return finding.Finding{
		Rule: "name-unknown", Severity: finding.Warning,
		Message: fmt.Sprintf("%s says that %s stays suspended, and no tier is called that", r.env.file(), name),
		Fix:     "correct the name, or take it out; those that there are: " + r.env.Command("tiers", "--releases -A"),
	}
}
