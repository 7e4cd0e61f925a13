// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubestandup/kubestandup/pkg/coldstart"
	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/knowledge"
)

func chartWithoutCRDs() Rule {
	return Rule{
		ID: "CS005", Name: "chart-without-crds", Severity: finding.Error,
		Title: "A HelmRelease installs a chart that registers no CRDs with these values, and a tier needs its kinds.",
		Check: func(s *Subject) []finding.Finding {
			l := newLook(s)
			var all []finding.Finding
			for _, r := range l.releases() {
				if off := l.off(r); off != nil {
					all = append(all, l.withoutCRDs(r, off)...)
				}
			}
			return all
		},
	}
}

// off is what is known of the chart of a release that leaves its CRDs out.
func (l *look) off(r flux.Ref) *knowledge.Chart { return l.World.Charts[coldstart.Key(r)].Off }

// brings is true when the chart would register the kind.
func brings(c *knowledge.Chart, gk schema.GroupKind) bool {
	return slices.Contains(c.Groups, gk.Group) ||
		slices.ContainsFunc(c.Registers, func(k knowledge.Kind) bool { return k.GroupKind() == gk })
}

// switchedOff are the releases whose charts would register the kind.
func (l *look) switchedOff(gk schema.GroupKind) []flux.Ref {
	var all []flux.Ref
	for _, r := range l.releases() {
		if off := l.off(r); off != nil && brings(off, gk) {
			all = append(all, r)
		}
	}
	return all
}

func (l *look) withoutCRDs(r flux.Ref, off *knowledge.Chart) []finding.Finding {
	var needs []coldstart.Need
	var by []flux.Ref
	var causes []string
	add := func(user flux.Ref, n coldstart.Need, why []string) {
		lacks := n.When == coldstart.Missing || n.When == coldstart.Perhaps
		if !lacks || len(n.Providers) > 0 || len(n.OtherVersions) > 0 || n.Kind.Kind == "" || !brings(off, n.Kind.GroupKind()) {
			return
		}
		needs, causes = append(needs, n), append(causes, why...)
		if !slices.Contains(by, user) {
			by = append(by, user)
		}
	}
	l.eachNeed(func(o *coldstart.Outcome, n coldstart.Need) {
		add(o.Tier, n, l.needCauses(o.Tier, []coldstart.Need{n}))
	})
	for _, user := range l.Prediction.Releases {
		for _, n := range user.Needs {
			if user.Attempted {
				add(user.Release, n, l.chartCauses(user, []coldstart.Need{n}))
			}
		}
	}
	if len(needs) == 0 {
		return nil
	}
	tier := l.tierOf(r)
	severity := finding.Warning
	for _, n := range needs {
		if n.When == coldstart.Missing {
			severity = finding.Error
		}
	}
	unless := ""
	if severity == finding.Warning {
		unless = " unless " + l.candidates(needs[0].Candidates) + " does, whose content is not known:"
	}
	f := l.report("CS005", severity, tier, r, fmt.Sprintf(
		"%s installs chart %s, which registers no CRDs with these values, and nothing else registers %s:%s %s %s on a cold cluster, and no retry heals it",
		r, off.Name, described(needs), unless, finding.Some(l.names(by)), finding.Verb(len(by), "fails", "fail")))
	f.Causes = causes
	f.Missing = missing(needs)
	f.Fix = l.switchOn(r, off)
	return []finding.Finding{f}
}

// tierOf is the Kustomization that applies an object.
func (l *look) tierOf(object flux.Ref) flux.Ref {
	for i := range l.World.Tiers {
		if tier := l.World.Tiers[i].Tier; l.applies(tier, object) {
			return tier
		}
	}
	return flux.Ref{}
}

// switchOn is the value that makes the chart register its kinds.
func (l *look) switchOn(r flux.Ref, off *knowledge.Chart) string {
	if len(off.Switches) == 0 {
		switch {
		case off.Separate != "":
			return fmt.Sprintf("Install chart %s, which registers the kinds, in a HelmRelease that this one depends on.", off.Separate)
		case off.Folder:
			return fmt.Sprintf("Take spec.install.crds: Skip out of %s, or apply the CRDs in a tier that this one depends on.", l.place(l.tierOf(r), r))
		}
		return "Apply the CRDs of the chart's release in a tier that this one depends on."
	}
	values := map[string]any{}
	at, path := values, strings.Split(off.Switches[0].Path, ".")
	for _, name := range path[:len(path)-1] {
		next := map[string]any{}
		at[name] = next
		at = next
	}
	at[path[len(path)-1]] = true
	return "Switch them on in " + addTo(l, r, specYAML{Values: values})
}
