// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"strings"

	"github.com/kubestandup/kubestandup/pkg/coldstart"
	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/tiers"
)

func missingDependency() Rule {
	return Rule{
		ID: "DG002", Name: "missing-dependency", Severity: finding.Error,
		Title: "A tier depends on one that does not exist.",
		Check: func(s *Subject) []finding.Finding {
			l := newLook(s)
			return l.eachEdge(func(n *tiers.Node, d flux.Dependency) (finding.Finding, bool) {
				if l.Graph.Node(d.Ref) != nil || l.otherKind(d.Ref) != nil {
					return finding.Finding{}, false
				}
				return l.missingEdge(n, d.Ref), true
			})
		},
	}
}

func wrongKindDependency() Rule {
	return Rule{
		ID: "DG003", Name: "wrong-kind-dependency", Severity: finding.Error,
		Title: "A Kustomization depends on a HelmRelease, or a HelmRelease on a Kustomization, which Flux never follows.",
		Check: func(s *Subject) []finding.Finding {
			l := newLook(s)
			return l.eachEdge(func(n *tiers.Node, d flux.Dependency) (finding.Finding, bool) {
				other := l.otherKind(d.Ref)
				if l.Graph.Node(d.Ref) != nil || other == nil {
					return finding.Finding{}, false
				}
				return l.wrongKind(n, d.Ref, other), true
			})
		},
	}
}

func suspendedDependency() Rule {
	return Rule{
		ID: "DG004", Name: "suspended-dependency", Severity: finding.Warning,
		Title: "A tier depends on one that git suspends.",
		Check: func(s *Subject) []finding.Finding {
			l := newLook(s)
			return l.eachEdge(func(n *tiers.Node, d flux.Dependency) (finding.Finding, bool) {
				dep := l.Graph.Node(d.Ref)
				if dep == nil || !dep.Suspended || n.Suspended || d.ReadyExpr != "" {
					return finding.Finding{}, false
				}
				f := l.edge("DG004", finding.Warning, n, fmt.Sprintf(
					"%s depends on %s, which git suspends: on a cold cluster that is never reconciled, so %s stays down until somebody resumes it",
					l.name(n.Ref), l.name(dep.Ref), l.name(n.Ref)), l.below(n.Ref))
				f.Causes = []string{l.place(n.Ref, n.Ref) + " depends on it", l.place(dep.Ref, dep.Ref) + " has suspend: true"}
				f.Fix = fmt.Sprintf("Take suspend out of %s, or the edge out of %s; where both shall wait, suspend %s too.",
					l.name(dep.Ref), l.name(n.Ref), l.name(n.Ref))
				return f, true
			})
		},
	}
}

func crossSource() Rule {
	return Rule{
		ID: "DG005", Name: "cross-source-dependency", Severity: finding.Info,
		Title: "A tier depends on one of another source, whose revision Flux does not compare.",
		Check: func(s *Subject) []finding.Finding {
			l := newLook(s)
			var all []finding.Finding
			for _, n := range l.Graph.Tiers() {
				var on, sources []string
				for _, d := range n.DependsOn {
					dep := l.Graph.Node(d.Ref)
					if dep == nil || !isKustomization(n.Ref) || d.ReadyExpr != "" || coldstart.Key(dep.Source) == coldstart.Key(n.Source) {
						continue
					}
					on, sources = append(on, l.name(dep.Ref)), append(sources, dep.Source.String())
				}
				if len(on) == 0 {
					continue
				}
				f := l.edge("DG005", finding.Info, n, fmt.Sprintf(
					"%s is built from %s and depends on %s of %s: Flux compares revisions only within one source, so it may go ahead with a Ready of an older commit",
					l.name(n.Ref), n.Source, finding.Some(on), finding.Some(unique(sources))), 0)
				f.Causes = []string{l.place(n.Ref, n.Ref) + " depends on " + finding.Some(on)}
				f.Fix = "Build both from one source where a change spans both; a first start is ordered all the same."
				all = append(all, f)
			}
			return all
		},
	}
}

// eachEdge asks about every dependency, of tiers in the order of the graph.
func (l *look) eachEdge(ask func(*tiers.Node, flux.Dependency) (finding.Finding, bool)) []finding.Finding {
	var all []finding.Finding
	for _, n := range l.Graph.Tiers() {
		for _, d := range n.DependsOn {
			if f, found := ask(n, d); found {
				all = append(all, f)
			}
		}
	}
	return all
}

func (l *look) edge(rule string, severity finding.Severity, n *tiers.Node, message string, below int) finding.Finding {
	if below > 0 {
		message += fmt.Sprintf(", with the %s below it", finding.Count(below, "tier"))
	}
	return l.report(rule, severity, n.Ref, n.Ref, message)
}

// otherKind is the tier of the same name and of the other kind.
func (l *look) otherKind(r flux.Ref) *tiers.Node {
	switch r.Kind {
	case flux.KustomizationKind:
		r.Kind = flux.HelmReleaseKind
	case flux.HelmReleaseKind:
		r.Kind = flux.KustomizationKind
	}
	return l.Graph.Node(r)
}

func (l *look) wrongKind(n *tiers.Node, on flux.Ref, other *tiers.Node) finding.Finding {
	f := l.edge("DG003", finding.Error, n, fmt.Sprintf(
		"%s depends on %s, and there is no such %s, only a %s of that name: Flux follows no edge from one kind to the other, so %s never comes up",
		l.name(n.Ref), on.Key(), on.Kind, other.Ref.Kind, l.name(n.Ref)), l.below(n.Ref))
	f.Causes = []string{l.place(n.Ref, n.Ref) + " depends on it", l.place(l.tierOf(other.Ref), other.Ref) + " is what is there"}
	holder := l.tierOf(other.Ref)
	switch {
	case on.Kind == flux.KustomizationKind && holder.Name != "" && coldstart.Key(holder) != coldstart.Key(n.Ref):
		f.Fix = fmt.Sprintf("Depend on %s, which applies %s, and let its Ready prove that it is installed:\n", l.name(holder), other.Ref)
		f.Fix += writeTo(l, n.Ref, ", in place of "+on.Name+" in spec.dependsOn", specYAML{DependsOn: []dependencyYAML{dependsOn(n.Ref, holder)}})
		if g := l.gateFor(holder, []brought{{Provider: coldstart.Provider{How: coldstart.ByChart, Tier: holder, Object: other.Ref}}}); !g.none() {
			f.Fix += "and in " + g.text(l)
		}
		f.Fix = strings.TrimSpace(f.Fix)
	case on.Kind == flux.KustomizationKind:
		f.Fix = fmt.Sprintf("Depend on the Kustomization that applies %s, with wait: true there.", other.Ref)
	default:
		f.Fix = fmt.Sprintf("Take the edge out of %s and give the Kustomization that applies it a dependsOn on %s.", n.Ref, on.Key())
	}
	return f
}

func (l *look) missingEdge(n *tiers.Node, on flux.Ref) finding.Finding {
	severity, but := finding.Error, ""
	if unknown, unbuilt := l.unknownTiers(n.Ref); len(unknown) > 0 {
		severity = finding.Warning
		if unbuilt {
			severity = finding.Info // why it does not build is reported by itself
		}
		but = fmt.Sprintf(", unless %s %s it, whose content is not known", finding.Some(unknown), finding.Verb(len(unknown), "brings", "bring"))
	}
	f := l.edge("DG002", severity, n, fmt.Sprintf(
		"%s depends on %s, and there is no such %s%s: %s never comes up", l.name(n.Ref), on.Key(), on.Kind, but, l.name(n.Ref)), l.below(n.Ref))
	f.Causes = []string{l.place(n.Ref, n.Ref) + " depends on it"}
	f.Fix = fmt.Sprintf("Take %s out of its dependsOn, or apply a %s of that name.", on.Key(), on.Kind)
	if near := l.near(on); near != nil {
		f.Causes = append(f.Causes, l.place(near.Ref, near.Ref)+" is near to it")
		f.Fix = fmt.Sprintf("Did you mean %s? A namespace that is not given is the dependant's own. Then, in %s", near.Ref.Key(),
			strings.TrimSpace(writeTo(l, n.Ref, ", in place of "+on.Name+" in spec.dependsOn", specYAML{DependsOn: []dependencyYAML{dependsOn(n.Ref, near.Ref)}})))
	}
	return f
}

// unknownTiers are those that may hold tiers which nobody has seen, but for
// those that are not applied before what waits for them is Ready. unbuilt is true
// where one of them is of the repository itself and does not build.
func (l *look) unknownTiers(waits flux.Ref) (all []string, unbuilt bool) {
	tier := waits
	if isRelease(waits) {
		tier = l.tierOf(waits)
	}
	behind := l.without(tier, waits)
	for i := range l.World.Tiers {
		if f := &l.World.Tiers[i]; !f.Whole() && !behind[coldstart.Key(f.Tier)] {
			all = append(all, l.name(f.Tier))
			unbuilt = unbuilt || f.Err != nil
		}
	}
	return all, unbuilt
}

// near is the tier that may have been meant: of the name in another namespace,
// or of a name that differs by two letters at most.
func (l *look) near(r flux.Ref) *tiers.Node {
	var best *tiers.Node
	least := 3
	for _, n := range l.Graph.Tiers() {
		if n.Ref.Kind != r.Kind {
			continue
		}
		d := tiers.Distance(n.Ref.Name, r.Name)
		if d > 0 && (n.Ref.Namespace != r.Namespace || d >= len(r.Name)-1) {
			continue
		}
		if d < least {
			best, least = n, d
		}
	}
	return best
}
