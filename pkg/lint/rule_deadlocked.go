// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/coldstart"
	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

func forceInDeadlock() Rule {
	return Rule{
		ID: "CS009", Name: "force-in-deadlock", Severity: finding.Warning,
		Title: "A deadlocked tier deletes objects by force and never recreates them.",
		Check: func(s *Subject) []finding.Finding {
			l := newLook(s)
			var all []finding.Finding
			for _, d := range l.deadlocks() {
				if d.guessed {
					continue
				}
				if by := l.forced(d.Tier); by != "" {
					f := l.report("CS009", finding.Warning, d.Tier, d.Tier, fmt.Sprintf(
						"%s is deadlocked (CS001) and has %s: while its kinds are missing, each attempt deletes what has a changed immutable field already in its dry run, and never gets to apply it again",
						l.name(d.Tier), by))
					f.Causes = []string{l.place(d.Tier, d.Tier) + " keeps back " + finding.Some(kindNames(d.needs)) + ", and so its whole stage"}
					f.Fix = fmt.Sprintf("Resolve CS001 first, or take %s out of %s until then.", by, l.name(d.Tier))
					all = append(all, f)
				}
			}
			return all
		},
	}
}

// forced names what forces, empty for nothing.
func (l *look) forced(tier flux.Ref) string {
	if l.spec(tier).Force {
		return "spec.force: true"
	}
	for _, o := range l.objects(l.followed(tier)) {
		if marked(o, "force", "enabled") {
			return fmt.Sprintf("%s/force: enabled on %s", flux.KustomizeGroup, o.Ref())
		}
	}
	return ""
}

// marked reads an annotation or label of Flux as it does (fluxcd/pkg/ssa/utils
// AnyInMetadata).
func marked(o build.Object, name, value string) bool {
	key := flux.KustomizeGroup + "/" + name
	return strings.EqualFold(o.GetAnnotations()[key], value) || strings.EqualFold(o.GetLabels()[key], value)
}

func teardownTwin() Rule {
	return Rule{
		ID: "CS010", Name: "teardown-twin", Severity: finding.Info,
		Title: "What deadlocks when a tier comes up hangs when it is deleted.",
		Check: func(s *Subject) []finding.Finding {
			l := newLook(s)
			var all []finding.Finding
			for _, d := range l.deadlocks() {
				how := prunes(l.spec(d.Tier))
				if d.guessed || how == "" || d.needs[0].Kind.Kind == "" || !l.takesAlong(d) {
					continue
				}
				f := l.report("CS010", finding.Info, d.Tier, d.Tier, fmt.Sprintf(
					"where %s is up already, deleting it may hang: with %s it deletes %s, with which %s, and where that is sooner it cannot look for %s any more (no matches for kind) and keeps its finalizer",
					l.name(d.Tier), how, kept(d.providers[0]), goes(kindNames(d.needs)), finding.Some(refs(users(d.needs)))))
				f.Causes = []string{"kustomize-controller takes a kind that is not served for an error when it deletes, not for an object that is gone"}
				f.Fix = fmt.Sprintf("The fix of CS001 is the fix of this too: in a tier below %s they are deleted while their kind is still there.", l.name(d.Tier))
				all = append(all, f)
			}
			return all
		},
	}
}

// takesAlong is true where the CRDs go when what brought them does: they belong
// to the trigger, or are among the templates of the chart.
func (l *look) takesAlong(d stuck) bool {
	for i, p := range d.providers {
		switch p.How {
		case coldstart.ByTrigger:
			if p.Relation != nil && p.Relation.Trace != nil && p.Relation.Trace.Owned {
				return true
			}
		case coldstart.ByChart:
			for _, o := range l.World.Charts[coldstart.Key(p.About())].Objects {
				if o.GetKind() == crdKind && crdOf(o, d.needs[i].Kind.GroupKind()) && o.GetAnnotations()["helm.sh/resource-policy"] != "keep" {
					return true
				}
			}
		}
	}
	return false
}

func goes(kinds []string) string {
	return fmt.Sprintf("the %s of %s %s", finding.Verb(len(kinds), "CRD", "CRDs"), finding.Some(kinds), finding.Verb(len(kinds), "goes", "go"))
}

// prunes says by which field the tier deletes what it applied, empty where it
// leaves it.
func prunes(s kustomizev1.KustomizationSpec) string {
	switch s.DeletionPolicy {
	case kustomizev1.DeletionPolicyDelete, kustomizev1.DeletionPolicyWaitForTermination:
		return "deletionPolicy: " + s.DeletionPolicy
	case kustomizev1.DeletionPolicyOrphan:
		return ""
	}
	if s.Prune {
		return "prune: true"
	}
	return ""
}
