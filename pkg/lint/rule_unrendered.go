// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"strings"

	"github.com/kubestandup/kubestandup/pkg/coldstart"
	"github.com/kubestandup/kubestandup/pkg/finding"
)

func unrendered() Rule {
	return Rule{
		ID: "CS015", Name: "never-rendered", Severity: finding.Warning,
		Title: "A chart leaves out objects on a cold cluster, since the API that its templates ask for comes later, and is never rendered again.",
		Check: func(s *Subject) []finding.Finding {
			l := newLook(s)
			var all []finding.Finding
			if s.Prediction == nil {
				return nil
			}
			for i := range s.Prediction.Releases {
				r := &s.Prediction.Releases[i]
				for _, n := range r.Unrendered {
					all = append(all, l.unrendered(r, n))
				}
			}
			return all
		},
	}
}

func (l *look) unrendered(r *coldstart.Release, n coldstart.Need) finding.Finding {
	p := n.Providers[0]
	severity, when := finding.Info, "may come after it is installed"
	if n.When == coldstart.Missing {
		severity, when = finding.Warning, "comes after it is installed"
	}
	f := l.report("CS015", severity, r.Tier, r.Release, fmt.Sprintf(
		"the chart of %s makes %s only where the server has %s, which %s, from %s: then they are left out on a cold cluster without a word, and stay so until the chart or its values change",
		r.Release, finding.Some(refs(users([]coldstart.Need{n}))), n.Kind.GroupVersion(), when, l.name(p.Tier)))
	f.Causes = []string{
		l.place(r.Tier, r.Release) + " is rendered when it is installed: its templates ask .Capabilities.APIVersions",
		l.providerCause(brought{p, []coldstart.Need{n}}),
	}
	if n.When == coldstart.Missing {
		f.Fix = fmt.Sprintf("Apply the CRD of %s in a tier that %s depends on; or set a value of the chart that makes it not ask, where it has one.", n.Kind.Kind, l.name(r.Tier))
		return f
	}
	f.Fix = strings.TrimSpace("Let the tier wait, in " + addTo(l, r.Tier, specYAML{DependsOn: []dependencyYAML{dependsOn(r.Tier, p.Tier)}}))
	if coldstart.Key(p.Tier) == coldstart.Key(r.Tier) {
		f.Fix = fmt.Sprintf("Let %s depend on %s (spec.dependsOn of the HelmRelease), or move it into a tier that depends on this one.", r.Release, p.About())
	}
	return f
}
