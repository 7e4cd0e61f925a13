// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"

	"github.com/kubestandup/kubestandup/pkg/coldstart"
	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// ofReleases asks about every HelmRelease that is tried at all: what is wrong
// with one that is kept back shows when its tier is mended.
func (l *look) ofReleases(ask func(coldstart.Release) []finding.Finding) []finding.Finding {
	var all []finding.Finding
	if l.Prediction == nil {
		return nil
	}
	for _, r := range l.Prediction.Releases {
		if r.Attempted {
			all = append(all, ask(r)...)
		}
	}
	return all
}

// chartCauses says which objects of the chart need the kinds.
func (l *look) chartCauses(r coldstart.Release, needs []coldstart.Need) []string {
	var causes []string
	for _, n := range needs {
		causes = append(causes, fmt.Sprintf("the chart of %s holds %s of %s, and Helm maps every object to its kind before it creates any",
			l.place(r.Tier, r.Release), finding.Some(refs(users([]coldstart.Need{n}))), n.Kind.GroupVersion()))
	}
	return causes
}

// releaseTail says what a release that is never installed keeps down.
func (l *look) releaseTail(r coldstart.Release) string {
	n := 0
	if l.spec(r.Tier).Wait || l.checks(r.Tier, r.Release) {
		n = l.below(r.Tier)
	}
	if n <= 0 {
		return "no retry heals it"
	}
	return fmt.Sprintf("no retry heals it, and as %s waits for it, the %s below that %s down", l.name(r.Tier), finding.Count(n, "tier"), finding.Verb(n, "stays", "stay"))
}

// deadlockedRelease is for a chart that holds resources together with what
// registers their kinds (CS001).
func (l *look) deadlockedRelease(r coldstart.Release) []finding.Finding {
	var needs []coldstart.Need
	var providers []coldstart.Provider
	for _, n := range r.Needs {
		if p := keptBack(n); p != nil {
			needs, providers = append(needs, n), append(providers, *p)
		}
	}
	if len(needs) == 0 {
		return nil
	}
	p := providers[0]
	exist := finding.Verb(len(kindNames(needs)), "exists", "exist")
	message := fmt.Sprintf("%s is never installed on a cold cluster: its chart holds %s, which %s only once %s, and that is in the same chart: %s",
		r.Release, described(needs), exist, onceInChart(p), l.releaseTail(r))
	fix := fmt.Sprintf("Keep %s out of the first install (most charts have a value for it), and apply %s in a tier that depends on %s with wait: true there.",
		finding.Some(refs(users(needs))), finding.Verb(len(users(needs)), "it", "them"), l.name(r.Tier))
	if p.Object.Kind == crdKind {
		fix = "Put the CRDs into the chart's crds/ folder, which is applied first; or apply them in a tier that " + l.name(r.Tier) + " depends on."
	}
	f := l.report("CS001", finding.Error, r.Tier, r.Release, message)
	f.Causes = l.chartCauses(r, needs)
	for _, b := range bring(needs, providers) {
		f.Causes = append(f.Causes, l.providerCause(b))
	}
	f.Causes = unique(f.Causes)
	f.Missing = missing(needs)
	f.Fix = fix
	return []finding.Finding{f}
}

func onceInChart(p coldstart.Provider) string {
	if p.Object.Kind == crdKind {
		return p.Object.Name + " of its own templates is created"
	}
	return once(coldstart.Provider{How: p.How, Relation: p.Relation, Object: p.Object})
}

// unregisteredRelease is for a chart with kinds that nothing brings (CS002).
func (l *look) unregisteredRelease(r coldstart.Release) []finding.Finding {
	sure, perhaps := []coldstart.Need{}, []coldstart.Need{}
	for _, n := range r.Needs {
		switch {
		case len(n.Providers) > 0 || len(l.switchedOff(n.Kind.GroupKind())) > 0:
		case n.When == coldstart.Missing:
			sure = append(sure, n)
		case n.When == coldstart.Perhaps && !onlyItself(n, r.Release):
			perhaps = append(perhaps, n)
		}
	}
	var all []finding.Finding
	if len(sure) > 0 {
		message := fmt.Sprintf("%s installs a chart with %s, which nothing in the repository registers: unless something outside of it does before, it is never installed on a cold cluster; %s",
			r.Release, described(sure), l.releaseTail(r))
		severity, fix := finding.Warning, l.install(sure)
		if others := sure[0].OtherVersions; len(others) > 0 {
			severity, fix = finding.Error, inServedVersion(sure[0])
			message = fmt.Sprintf("%s installs a chart with %s, and what registers the kind serves %s: it is never installed; %s",
				r.Release, described(sure), finding.And(others), l.releaseTail(r))
		}
		f := l.releaseFinding(r, severity, message, sure)
		f.Fix = fix
		all = append(all, f)
	}
	if len(perhaps) > 0 {
		all = append(all, l.releaseFinding(r, finding.Info, fmt.Sprintf("%s installs a chart with %s, which nothing known registers; %s may, whose content is not known",
			r.Release, described(perhaps), l.candidates(perhaps[0].Candidates)), perhaps))
	}
	return all
}

// onlyItself is true where the one thing of unknown content is the release that
// needs the kind.
func onlyItself(n coldstart.Need, r flux.Ref) bool {
	return len(n.Candidates) > 0 && !slices.ContainsFunc(n.Candidates, func(c flux.Ref) bool { return !same(c, r) })
}

func (l *look) releaseFinding(r coldstart.Release, severity finding.Severity, message string, needs []coldstart.Need) finding.Finding {
	f := l.report("CS002", severity, r.Tier, r.Release, message)
	f.Causes = l.chartCauses(r, needs)
	f.Missing = missing(needs)
	f.Fix = l.install(needs)
	return f
}

// lateRelease is for a chart that needs kinds which come about without an edge.
// helm-controller tries again after seconds, so it is information (CS004).
func (l *look) lateRelease(r coldstart.Release) []finding.Finding {
	var needs []coldstart.Need
	var providers []coldstart.Provider
	for _, n := range r.Needs {
		if p := n.Nearest(); p != nil && n.When == coldstart.Late && p.Reach != coldstart.Proved {
			needs, providers = append(needs, n), append(providers, *p)
		}
	}
	if len(needs) == 0 {
		return nil
	}
	all := bring(needs, providers)
	f := l.report("CS004", finding.Info, r.Tier, r.Release, fmt.Sprintf(
		"%s installs a chart with %s, which %s only once %s, and nothing makes it wait for that: on a cold cluster its first attempts may fail with `ensure CRDs are installed first`, and are repeated after seconds, then minutes",
		r.Release, described(needs), finding.Verb(len(kindNames(needs)), "exists", "exist"), onces(all)))
	f.Causes = l.chartCauses(r, needs)
	for _, b := range all {
		f.Causes = append(f.Causes, l.providerCause(b))
	}
	f.Causes = unique(f.Causes)
	f.Missing = missing(needs)
	p := all[0].Provider
	switch {
	case isRelease(p.About()) && !same(p.About(), r.Release):
		f.Fix = "Let it wait, in " + addTo(l, r.Release, specYAML{DependsOn: []dependencyYAML{dependsOn(r.Release, p.About())}})
	case coldstart.Key(p.Tier) != coldstart.Key(r.Tier) && !l.waitsAlready(p.Tier, r.Tier):
		f.Fix = "Let its tier wait, in " + addTo(l, r.Tier, specYAML{DependsOn: []dependencyYAML{dependsOn(r.Tier, p.Tier)}})
	default:
		f.Fix = fmt.Sprintf("Move %s into a tier that depends on the one of %s, or leave it to the retry.", r.Release, kept(p))
	}
	return []finding.Finding{f}
}
