// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/coldstart"
	"github.com/kubestandup/kubestandup/pkg/finding"
)

// unbuilt reports the tiers of a cluster that do not build, in Flux's words.
func (c *examined) unbuilt() []finding.Finding {
	s := c.subject
	var all []finding.Finding
	for i := range s.World.Tiers {
		t := &s.World.Tiers[i]
		if t.Err == nil {
			continue
		}
		words := strings.TrimPrefix(t.Err.Error(), "kustomization "+t.Tier.Key()+": ")
		f := finding.Finding{
			Rule: buildFailed, Severity: finding.Error, Object: &t.Tier, Tier: &t.Tier,
			Message: fmt.Sprintf("%s does not build, so that Flux applies nothing of it: %s", t.Tier, words),
			Fix:     "mend what the message names; Flux stops at the first mistake, as this does",
		}
		var remote *build.RemoteBaseError
		var unknown *build.UnknownError
		switch {
		case errors.As(t.Err, &remote):
			f.Rule, f.Severity = remoteBase, finding.Warning
			f.Message = fmt.Sprintf("%s is built from remote base %s, which was not fetched: what the tier applies %sis not known", t.Tier, remote.Base, beside(t))
			f.Fix = "copy the base into the repository, so that a cold start does not need its server either; --remote-bases fetches it"
		case errors.As(t.Err, &unknown):
			f.Rule, f.Severity = unknownField, finding.Info
			f.Message = fmt.Sprintf("%s cannot be built here: its %s depends on a variable whose value the repository does not hold", t.Tier, unknown.Field)
			f.Fix = "nothing, where the cluster holds the value; give the variable a default to have the tier looked at: ${NAME:=default}"
		}
		at, known := build.PositionOf(t.Err)
		if at.File = path.Join(c.base(t), at.File); !known {
			at = s.tierAt(t.Tier)
		}
		f.File, f.Line = at.File, at.Line
		if below := blockedBehind(s, i); below > 0 && f.Severity == finding.Error {
			f.Causes = append(f.Causes, fmt.Sprintf("%d more %s for it", below, finding.Verb(below, "tier waits", "tiers wait")))
		}
		all = append(all, f)
	}
	return all
}

// beside leaves out of what is not known what the tree holds.
func beside(t *build.Followed) string {
	if t.Result == nil {
		return ""
	}
	return fmt.Sprintf("beside %s ", finding.Count(len(t.Result.Objects), "object"))
}

// blockedBehind counts the tiers that are never attempted because of this one.
func blockedBehind(s *Subject, i int) int {
	behind := map[string]bool{s.World.Tiers[i].Tier.Key(): true}
	for {
		before := len(behind)
		for _, o := range s.Prediction.Outcomes {
			for _, b := range o.BlockedBy {
				if o.Verdict == coldstart.Blocked && behind[b.Key()] {
					behind[o.Tier.Key()] = true
				}
			}
		}
		if len(behind) == before {
			return before - 1
		}
	}
}

// base is the folder of the repository that the files of a tier are relative to.
func (c *examined) base(t *build.Followed) string {
	if c.cluster == nil || coldstart.Key(build.SourceOf(t.Kustomization)) != coldstart.Key(c.cluster.Source) {
		return ""
	}
	return c.cluster.Base
}
