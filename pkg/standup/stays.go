// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubestandup/kubestandup/pkg/finding"
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
	// aside is true where somebody has said that the tier is not to run.
	aside bool
	// refused is true where a resume would delete something.
	refused bool
	// harmless is true for a source that holds nobody up.
	harmless bool
}

// kustomizeManager is the field manager of what git says, and for a moment of
// what kubectl has said: kustomize-controller takes that over to undo it
// (fluxcd/pkg/ssa patch.go, v0.78.0).
const kustomizeManager = "kustomize-controller"

// said is what was said about a tier: by whoever deletes it, in standup.yaml, or
// on the tier itself. To be deleted, or blocked by a placeholder, a tier need
// not be suspended.
func (l *look) said(n *tiers.Node, suspended bool, unset []placeholder) stay {
	for i := range unset {
		if p := &unset[i]; namesRef(p.Blocks, n.Ref) {
			return l.blockedBy(p, suspended)
		}
	}
	switch {
	case !n.Deleted.IsZero():
		return stay{
			rule: "tier-deleting", severity: finding.Warning,
			why: "it is being deleted since " + n.Deleted.UTC().Format(time.RFC3339) + ", so it is never touched",
			fix: "see what holds it: " + l.env.Command("unwedge", wedge.Arg(n.Ref)),
		}
	case !suspended:
		return stay{}
	case n.Unwedge != "":
		return stay{
			rule: "tier-in-repair", severity: finding.Warning,
			why: "kubectl unwedge has suspended it for a repair (" + n.Unwedge + ") that was not ended",
			fix: "end it: " + l.env.Command("unwedge", wedge.Arg(n.Ref)+" --apply"),
		}
	case n.Hold != "":
		return stay{rule: "tier-held", severity: finding.Info, aside: true, why: "annotation kubestandup.dev/hold says: " + n.Hold}
	case slices.ContainsFunc(l.env.File.Resume.Skip, func(name string) bool { return config.NamesTier(name, n.Ref) }):
		return stay{rule: "tier-skipped", severity: finding.Info, aside: true, why: "resume.skip of " + l.env.file() + " names it"}
	}
	return stay{}
}

// blockedBy is for a tier that a placeholder blocks. Where that is known to be
// one, standup.yaml has said so, and it is no news.
func (l *look) blockedBy(p *placeholder, suspended bool) stay {
	s := stay{
		rule: "placeholder-blocks", severity: finding.Info, aside: true,
		why: fmt.Sprintf("%s %s, and %s says that this blocks it", p.Variable.Name, p.state(), l.env.file()),
		fix: fmt.Sprintf("give %s its value in git, then %s", p.Variable.Name, l.env.Command("standup", "resume")),
	}
	if p.Unread != nil {
		s.severity = finding.Warning
	}
	if !suspended {
		s.why += "; it is not suspended, so that Flux goes on trying, and it is not waited for"
	}
	return s
}

// suspendedInGit is for a tier whose manifest says so: Flux would suspend it
// again at the next apply of what contains it.
func (l *look) suspendedInGit(ctx context.Context, n *tiers.Node) (stay, error) {
	s := stay{
		rule: "tier-suspended-in-git", severity: finding.Info, aside: true, why: "its manifest in git says suspend: true",
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

// file is how a person knows the standup.yaml.
func (env *Env) file() string {
	if env.File.Path != "" {
		return env.File.Path
	}
	return config.FileName
}
