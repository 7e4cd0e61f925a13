// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"math"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/coldstart"
	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

func ignoredHealthChecks() Rule {
	return Rule{
		ID: "HG002", Name: "ignored-health-checks", Severity: finding.Warning,
		Title: "healthChecks stand beside wait: true, which ignores them.",
		Check: func(s *Subject) []finding.Finding {
			l := newLook(s)
			var all []finding.Finding
			for i := range s.World.Tiers {
				tier := s.World.Tiers[i].Tier
				if spec := l.spec(tier); spec.Wait && len(spec.HealthChecks) > 0 {
					all = append(all, l.ignoredChecks(tier, spec.HealthChecks))
				}
			}
			return all
		},
	}
}

func (l *look) ignoredChecks(tier flux.Ref, checks []checkRef) finding.Finding {
	var foreign, own []string
	for _, c := range checks {
		ref := flux.Ref{APIVersion: c.APIVersion, Kind: c.Kind, Namespace: c.Namespace, Name: c.Name}
		if l.appliesNamed(tier, ref) {
			own = append(own, ref.String())
			continue
		}
		foreign = append(foreign, ref.String())
	}
	name := l.name(tier)
	severity := finding.Warning
	message := fmt.Sprintf("%s has healthChecks beside wait: true, which ignores them: it waits for everything that it applies, and for nothing else", name)
	switch f := l.followed(tier); {
	case f == nil || !f.Whole():
		severity = finding.Info
		message += ". What that is is not known here, so that they may be needless or missing"
		own, foreign = nil, nil
	case len(foreign) > 0:
		message = fmt.Sprintf("%s has healthChecks beside wait: true, which ignores them: it is Ready without %s, which it does not apply", name, finding.Some(foreign))
	}
	f := l.report("HG002", severity, tier, tier, message)
	f.Causes = []string{l.place(tier, tier) + " sets both; kustomize-controller looks at healthChecks only where wait is not set"}
	if len(own) > 0 {
		f.Causes = append(f.Causes, fmt.Sprintf("%s applies %s, so that wait covers %s", name, finding.Some(own), finding.Verb(len(own), "it", "them")))
	}
	wait := false
	switch {
	case len(foreign) > 0:
		f.Fix = "Take wait out where the healthChecks are meant, with everything that has to be waited for in them:\n" +
			specYAML{Wait: &wait, HealthChecks: checksOf(checks)}.text()
	default:
		f.Fix = fmt.Sprintf("Take spec.healthChecks out of %s: wait: true waits for more.", l.place(tier, tier))
	}
	return f
}

func checksOf(checks []checkRef) []checkYAML {
	var all []checkYAML
	for _, c := range checks {
		all = append(all, checkYAML{APIVersion: c.APIVersion, Kind: c.Kind, Name: c.Name, Namespace: c.Namespace})
	}
	return all
}

// appliesNamed takes a reference as a health check writes it: its namespace is
// the tier's where none is given, and its version may be another one.
func (l *look) appliesNamed(tier, object flux.Ref) bool {
	return slices.ContainsFunc(l.objects(l.followed(tier)), func(o build.Object) bool {
		r := o.Ref()
		return r.Kind == object.Kind && r.Name == object.Name && r.Group() == object.Group() &&
			(r.Namespace == object.Namespace || object.Namespace == "" && (r.Namespace == "" || r.Namespace == tier.Namespace))
	})
}

func unprovedEffect() Rule {
	return Rule{
		ID: "HG003", Name: "unproved-effect", Severity: finding.Info,
		Title: "Tiers depend on one whose Ready does not prove that its resources have taken effect.",
		Check: func(s *Subject) []finding.Finding {
			l := newLook(s)
			var all []finding.Finding
			told := l.toldKinds()
			for i := range s.World.Tiers {
				all = append(all, l.unproved(&s.World.Tiers[i].Tier, told)...)
			}
			return all
		},
	}
}

// toldKinds are the tiers, and the kinds of each, that CS001 and HG001 are about
// already.
func (l *look) toldKinds() map[string]bool {
	told := map[string]bool{}
	tell := func(tier flux.Ref, needs []coldstart.Need) {
		for _, n := range needs {
			told[tier.Key()+" "+n.Kind.GroupKind().String()] = true
		}
	}
	for _, d := range l.deadlocks() {
		tell(d.Tier, d.needs)
	}
	for _, h := range l.hollowGates() {
		for _, d := range h.late {
			tell(d.Tier, d.needs())
		}
	}
	return told
}

func (l *look) unproved(tier *flux.Ref, told map[string]bool) []finding.Finding {
	dependants := l.dependants(*tier)
	if len(dependants) == 0 || l.Book == nil {
		return nil
	}
	spec := l.spec(*tier)
	var all []finding.Finding
	seen := map[string]bool{}
	for _, o := range l.objects(l.followed(*tier)) {
		gk := o.GroupVersionKind().GroupKind()
		effect := l.Book.Effect(gk)
		if effect == nil || seen[gk.String()] || told[tier.Key()+" "+gk.String()] {
			continue
		}
		seen[gk.String()] = true
		g := gate{tier: *tier}
		g.expect(spec, exprOf(gk, &effect.Ready))
		var objects []flux.Ref
		for _, other := range l.objects(l.followed(*tier)) {
			if other.GroupVersionKind().GroupKind() == gk {
				objects = append(objects, other.Ref())
			}
		}
		if len(g.add.HealthCheckExprs) == 0 && (spec.Wait || l.checks(*tier, objects[0])) {
			continue
		}
		g.watch(l, spec, objects, nil)
		var names []string
		for _, d := range dependants {
			names = append(names, l.name(d.Ref))
		}
		f := l.report("HG003", finding.Info, *tier, objects[0], fmt.Sprintf(
			"%s %s on %s, whose Ready does not prove that %s has taken effect: %s",
			finding.Some(names), finding.Verb(len(names), "depends", "depend"), l.name(*tier), finding.Some(refs(objects)), effect.Why))
		f.Causes = []string{l.place(*tier, objects[0]) + " counts as healthy as soon as it is applied"}
		f.Fix = fmt.Sprintf("Where that matters, prove it in %s", g.text(l))
		all = append(all, f)
	}
	return all
}

func jobRunsAgain() Rule {
	return Rule{
		ID: "HG005", Name: "job-runs-again", Severity: finding.Warning,
		Title: "A Job that removes itself when it is done is created again at each interval.",
		Check: func(s *Subject) []finding.Finding {
			l := newLook(s)
			var all []finding.Finding
			for i := range s.World.Tiers {
				f := &s.World.Tiers[i]
				if l.spec(f.Tier).Wait {
					continue
				}
				for _, o := range l.objects(f) {
					ttl, found, _ := unstructured.NestedInt64(o.Object, "spec", "ttlSecondsAfterFinished")
					if !found || o.GetKind() != "Job" || o.GroupVersionKind().Group != "batch" {
						continue
					}
					all = append(all, l.again(f.Tier, o.Ref(), ttl))
				}
			}
			return all
		},
	}
}

func (l *look) again(tier, job flux.Ref, ttl int64) finding.Finding {
	every := l.spec(tier).Interval.Duration
	interval := short(every)
	every = max(every, time.Duration(min(ttl, math.MaxInt32))*time.Second) // it stays until it is deleted
	f := l.report("HG005", finding.Warning, tier, job, fmt.Sprintf(
		"%s runs again every %s: it is deleted %ds after it is done, and %s applies it anew at its next interval",
		job, short(every), ttl, l.name(tier)))
	f.Causes = []string{
		fmt.Sprintf("%s has ttlSecondsAfterFinished: %d", l.place(tier, job), ttl),
		fmt.Sprintf("%s has interval: %s", l.place(tier, tier), interval),
	}
	f.Fix = "Take spec.ttlSecondsAfterFinished out, so that the finished Job stays; a CronJob where it is meant to run again."
	return f
}
