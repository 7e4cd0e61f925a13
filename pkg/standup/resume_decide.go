// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/standup/config"
	"github.com/kubestandup/kubestandup/pkg/tiers"
	"github.com/kubestandup/kubestandup/pkg/wedge"
)

// stay is why a tier is left as it is. The zero value is for one that is not.
type stay struct {
	rule     string
	severity finding.Severity
	// why completes a sentence that begins with what stays.
	why, fix string
	// refused is true where a resume would delete something.
	refused bool
	// harmless is true for a source that holds nobody up.
	harmless bool
}

// kustomizeManager is the field manager of what git says, and for a moment of
// what kubectl has said: kustomize-controller takes that over to undo it
// (fluxcd/pkg/ssa patch.go, v0.78.0).
const kustomizeManager = "kustomize-controller"

// decide says why a tier is left as it is. What git says, and what a resume
// would delete, is asked last: to know it, the tiers are built.
func (r *resumer) decide(ctx context.Context, l *look, n *tiers.Node) (stay, error) {
	if s := r.meant(n); s.rule != "" || !r.isSuspended(n) {
		return s, nil
	}
	if s, err := l.suspendedInGit(ctx, n); s.rule != "" || err != nil {
		return s, err
	}
	return r.deletes(ctx, l, n)
}

// isSuspended also knows the tiers that the wait shows as if they were not.
func (r *resumer) isSuspended(n *tiers.Node) bool { return n.Suspended || r.chosen[n.Ref] }

// meant is what was said about a tier: by whoever deletes it, in standup.yaml,
// or on the tier itself. To delete, or to be blocked by a placeholder, a tier
// need not be suspended.
func (r *resumer) meant(n *tiers.Node) stay {
	suspended := r.isSuspended(n)
	for i := range r.unset {
		if p := &r.unset[i]; namesRef(p.Blocks, n.Ref) {
			s := stay{
				rule: "placeholder-blocks", severity: finding.Warning,
				why: fmt.Sprintf("%s %s, and standup.yaml says that this blocks it", p.Variable.Name, p.state()),
				fix: fmt.Sprintf("give %s its value in git, then %s", p.Variable.Name, r.env.Command("standup", "resume")),
			}
			if !suspended {
				s.why += "; it is not suspended, so that Flux goes on trying, and it is not waited for"
			}
			return s
		}
	}
	switch {
	case !n.Deleted.IsZero():
		return stay{
			rule: "tier-deleting", severity: finding.Warning,
			why: "it is being deleted since " + n.Deleted.UTC().Format(time.RFC3339) + ", so it is never touched",
			fix: "see what holds it: " + r.env.Command("unwedge", wedge.Arg(n.Ref)),
		}
	case !suspended:
		return stay{}
	case n.Unwedge != "":
		return stay{
			rule: "tier-in-repair", severity: finding.Warning,
			why: "kubectl unwedge has suspended it for a repair (" + n.Unwedge + ") that was not ended",
			fix: "end it: " + r.env.Command("unwedge", wedge.Arg(n.Ref)+" --apply"),
		}
	case n.Hold != "":
		return stay{rule: "tier-held", severity: finding.Info, why: "annotation kubestandup.dev/hold says: " + n.Hold}
	case slices.ContainsFunc(r.env.File.Resume.Skip, func(name string) bool { return config.NamesTier(name, n.Ref) }):
		return stay{rule: "tier-skipped", severity: finding.Info, why: "resume.skip of " + r.file() + " names it"}
	}
	return stay{}
}

func (r *resumer) file() string {
	if r.env.File.Path != "" {
		return r.env.File.Path
	}
	return config.FileName
}

// suspendedInGit is for a tier whose manifest says so: Flux would suspend it
// again at the next apply of what contains it.
func (l *look) suspendedInGit(ctx context.Context, n *tiers.Node) (stay, error) {
	s := stay{
		rule: "tier-suspended-in-git", severity: finding.Info, why: "its manifest in git says suspend: true",
		fix: "if it is meant to run, change it there: Flux would suspend it again",
	}
	b, err := l.builds(ctx)
	if err != nil {
		return stay{}, err
	}
	o, ok := b.authored(n.Ref)
	switch {
	case !ok && n.SuspendedBy == kustomizeManager:
		return s, nil // what contains it could not be built
	case !ok:
		return stay{}, nil
	}
	if suspend, _, _ := unstructured.NestedBool(o.Object.Object, "spec", "suspend"); !suspend {
		return stay{}, nil
	}
	s.why += fmt.Sprintf(" (%s applies it)", o.tier.Tier)
	return s, nil
}

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
	if unknown, ok := isUnknown(err); ok {
		s.rule, s.why = "resume-may-prune", fmt.Sprintf("what its prune would delete cannot be told: %v", unknown)
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
