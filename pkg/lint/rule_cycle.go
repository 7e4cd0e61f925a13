// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"strings"

	"github.com/kubestandup/kubestandup/pkg/coldstart"
	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

func cycle() Rule {
	return Rule{
		ID: "DG001", Name: "cycle", Severity: finding.Error,
		Title: "Tiers wait for each other in a loop.",
		Check: func(s *Subject) []finding.Finding {
			l := newLook(s)
			var all []finding.Finding
			for _, loop := range l.loops() {
				if loop.container() < 0 {
					all = append(all, l.reportLoop(loop))
				}
			}
			return all
		},
	}
}

func rootWaitsForChild() Rule {
	return Rule{
		ID: "DG006", Name: "root-waits-for-child", Severity: finding.Error,
		Title: "A tier waits for what it applies, and that depends on it.",
		Check: func(s *Subject) []finding.Finding {
			l := newLook(s)
			var all []finding.Finding
			for _, loop := range l.loops() {
				if at := loop.container(); at >= 0 {
					all = append(all, l.reportRoot(loop, at))
				}
			}
			return all
		},
	}
}

func (l *look) path(c loop) string {
	var names []string
	for _, s := range c {
		names = append(names, l.name(s.from.Ref))
	}
	return strings.Join(append(names, names[0]), " → ")
}

func (l *look) stepCause(s step) string {
	from, to := l.place(s.from.Ref, s.from.Ref), l.name(s.to.Ref)
	switch s.how {
	case byWait:
		return fmt.Sprintf("%s has wait: true and applies %s, for whose Ready it waits", from, to)
	case byCheck:
		return fmt.Sprintf("%s has a health check on %s", from, to)
	case byApply:
		return fmt.Sprintf("%s is applied by %s, and so not there before that is attempted", from, to)
	}
	return fmt.Sprintf("%s depends on %s", from, to)
}

func (l *look) reportLoop(c loop) finding.Finding {
	start := c[0].from
	message := fmt.Sprintf("%s: each waits for the next, so that none of them is ever applied", l.path(c))
	if len(c) == 1 {
		message = fmt.Sprintf("%s depends on itself, so that it is never applied", l.name(start.Ref))
	}
	if n := l.behind(c); n > 0 {
		message += fmt.Sprintf(", and the %s below %s down", finding.Count(n, "tier"), finding.Verb(n, "stays", "stay"))
	}
	f := l.report("DG001", finding.Error, start.Ref, start.Ref, message)
	for _, s := range c {
		f.Causes = append(f.Causes, l.stepCause(s))
	}
	if source, n := l.unsorted(c); n > 0 {
		f.Causes = append(f.Causes, fmt.Sprintf("while the loop is there, a new commit of %s reconciles none of its %s at once: "+
			"kustomize-controller cannot sort them (circular dependency detected), and each waits for its own interval", source, finding.Count(n, "tier")))
	}
	last := c[len(c)-1]
	for _, s := range c {
		if s.how == byEdge {
			last = s // the last edge is as good as any other
		}
	}
	f.Fix = fmt.Sprintf("Take one edge out of the loop, the one that is wrong: %s out of spec.dependsOn of %s, say.",
		l.name(last.to.Ref), l.place(last.from.Ref, last.from.Ref))
	if last.how != byEdge {
		f.Fix = fmt.Sprintf("Break the loop: %s must not wait for %s.", l.name(last.from.Ref), l.name(last.to.Ref))
	}
	return f
}

// behind is the number of tiers outside of the loop that wait for it.
func (l *look) behind(c loop) int {
	below := 0
	for _, s := range c {
		below = max(below, l.below(s.from.Ref))
	}
	return max(0, below-(len(c)-1))
}

// unsorted is the source whose Kustomizations lose event-driven reconciliation
// because of a loop of edges, and how many they are.
func (l *look) unsorted(c loop) (flux.Ref, int) {
	source := c[0].from.Source
	for _, s := range c {
		if s.how != byEdge || !isKustomization(s.from.Ref) || coldstart.Key(s.from.Source) != coldstart.Key(source) {
			return source, 0
		}
	}
	n := 0
	for _, t := range l.Graph.Tiers() {
		if isKustomization(t.Ref) && coldstart.Key(t.Source) == coldstart.Key(source) {
			n++
		}
	}
	return source, n
}

func (l *look) reportRoot(c loop, at int) finding.Finding {
	container, child := c[at].from, c[at].to
	chain := []string{}
	for i := range c {
		if s := c[(at+1+i)%len(c)]; s.how == byEdge {
			chain = append(chain, l.name(s.from.Ref))
		}
	}
	by := fmt.Sprintf("%s depends on %s", l.name(child.Ref), l.name(container.Ref))
	if len(chain) > 1 {
		by = fmt.Sprintf("%s depends on it by way of %s", l.name(child.Ref), finding.And(chain[1:]))
	}
	how := "wait: true"
	if c[at].how == byCheck {
		how = "a health check on it"
	}
	f := l.report("DG006", finding.Error, container.Ref, container.Ref, fmt.Sprintf(
		"%s applies %s and waits for it (%s), and %s: %s is never Ready, and %s is never applied",
		l.name(container.Ref), l.name(child.Ref), how, by, l.name(container.Ref), finding.And(chain)))
	for _, s := range c {
		f.Causes = append(f.Causes, l.stepCause(s))
	}
	f.Fix = fmt.Sprintf("Take %s out of spec.dependsOn of %s: a tier is applied by %s, so it needs no edge to it. Where the edge is wanted, take wait out of %s.",
		l.name(container.Ref), l.place(c[(at-1+len(c))%len(c)].from.Ref, c[(at-1+len(c))%len(c)].from.Ref), l.name(container.Ref), l.name(container.Ref))
	return f
}
