// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/coldstart"
	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/tiers"
)

func missingSource() Rule {
	return Rule{
		ID: "DG009", Name: "missing-source", Severity: finding.Warning,
		Title: "A tier, or a HelmRelease, is built from a source that nothing in the repository defines.",
		Check: func(s *Subject) []finding.Finding {
			l := newLook(s)
			var all []finding.Finding
			for _, m := range l.missingSources() {
				all = append(all, l.reportSource(m))
			}
			return all
		},
	}
}

// sourceless is a source that no tier applies, and what is built from it.
type sourceless struct {
	source flux.Ref
	users  []sourceUser
}

type sourceUser struct{ tier, object flux.Ref }

// missingSources are the sources that are used and that nothing of the cluster
// defines, in the order in which they are first used.
func (l *look) missingSources() []*sourceless {
	defined := l.definedSources()
	var all []*sourceless
	use := func(source, tier, object flux.Ref) {
		source = coldstart.Key(source)
		switch {
		case source.Name == "" || defined[source] || build.IsUnknown(source.Key()):
			return
		case source.Kind == "ExternalArtifact" || source.Kind == "HelmChart":
			return // controllers make these
		}
		i := slices.IndexFunc(all, func(m *sourceless) bool { return m.source == source })
		if i < 0 {
			i = len(all)
			all = append(all, &sourceless{source: source})
		}
		user := sourceUser{tier, object}
		if !slices.Contains(all[i].users, user) {
			all[i].users = append(all[i].users, user)
		}
	}
	l.eachSource(use)
	return all
}

// eachSource calls for each source that a tier, or a HelmRelease of it, is built
// from.
func (l *look) eachSource(use func(source, tier, object flux.Ref)) {
	for i := range l.World.Tiers {
		f := &l.World.Tiers[i]
		if f.Kustomization == nil || f.Remote || l.spec(f.Tier).Suspend {
			continue
		}
		use(build.SourceOf(f.Kustomization), f.Tier, f.Tier)
		if l.spec(f.Tier).KubeConfig != nil {
			continue // what it applies is for another cluster
		}
		for _, o := range l.objects(f) {
			if isRelease(o.Ref()) {
				use(chartSource(o), f.Tier, o.Ref())
			}
		}
	}
}

// definition is a source, as a tier applies it.
type definition struct {
	source, tier flux.Ref
	// there is true of one that is there before Flux is: that of a root, which is
	// applied together with it, and one that Flux is told to leave alone.
	there bool
	// elsewhere is true of one that is applied to another cluster.
	elsewhere bool
}

// definitions are what tiers and their charts may define sources by.
func (l *look) definitions() []definition {
	var all []definition
	for i := range l.World.Tiers {
		f := &l.World.Tiers[i]
		if len(f.Parents) == 0 && f.Kustomization != nil {
			all = append(all, definition{coldstart.Key(build.SourceOf(f.Kustomization)), f.Tier, true, false})
		}
		if f.Result == nil {
			continue
		}
		for _, o := range f.Result.Objects {
			if o.GroupVersionKind().Group == flux.SourceGroup {
				all = append(all, definition{coldstart.Key(o.Ref()), f.Tier, o.Ignored, f.Remote})
			}
		}
		for _, r := range releases(f) {
			for _, ref := range made(r.Ref(), l.World.Charts[coldstart.Key(r.Ref())]) {
				all = append(all, definition{ref, f.Tier, false, f.Remote})
			}
		}
	}
	return all
}

// definedSources are those of the definitions.
func (l *look) definedSources() map[flux.Ref]bool {
	defined := map[flux.Ref]bool{}
	for _, d := range l.definitions() {
		defined[d.source] = true
	}
	return defined
}

// chartSource is where a HelmRelease has its chart from; the zero Ref where git
// does not say, or suspends it.
func chartSource(o build.Object) flux.Ref {
	var hr helmv2.HelmRelease
	_ = runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &hr) // it was decoded before
	var kind, namespace, name string
	switch {
	case hr.Spec.Suspend:
		return flux.Ref{}
	case hr.Spec.ChartRef != nil:
		kind, namespace, name = hr.Spec.ChartRef.Kind, hr.Spec.ChartRef.Namespace, hr.Spec.ChartRef.Name
	case hr.Spec.Chart != nil:
		ref := hr.Spec.Chart.Spec.SourceRef
		kind, namespace, name = ref.Kind, ref.Namespace, ref.Name
	}
	if namespace == "" {
		namespace = o.GetNamespace()
	}
	return flux.Ref{Kind: kind, Namespace: namespace, Name: name}
}

// mayDefine are what is not known of the cluster and may define a source: tiers
// whose own source is there, ResourceSets, and charts that bring Flux's objects.
func (l *look) mayDefine() []string {
	missing := map[flux.Ref]bool{}
	for _, m := range l.missingSources() {
		missing[m.source] = true
	}
	var all []string
	for i := range l.World.Tiers {
		f := &l.World.Tiers[i]
		if !f.Whole() && (f.Outside == nil || !missing[coldstart.Key(*f.Outside)]) {
			all = append(all, l.name(f.Tier))
		}
		for _, o := range l.objects(f) {
			if isResourceSet(o) {
				all = append(all, o.Ref().String())
			}
			if isRelease(o.Ref()) {
				chart := l.World.Charts[coldstart.Key(o.Ref())]
				if chart.Basis != coldstart.Rendered && strings.Contains(chart.Name, "flux") {
					all = append(all, o.Ref().String())
				}
			}
		}
	}
	return unique(all)
}

func (l *look) reportSource(m *sourceless) finding.Finding {
	severity, but := finding.Warning, ""
	if may := l.mayDefine(); len(may) > 0 {
		severity = finding.Info
		but = fmt.Sprintf(", unless %s %s it, whose content is not known", finding.Some(may), finding.Verb(len(may), "brings", "bring"))
	}
	first := m.users[0]
	var names []string
	for _, u := range m.users {
		names = append(names, l.name(u.object))
	}
	f := l.report("DG009", severity, first.tier, first.object, fmt.Sprintf(
		"%s %s built from %s, which no manifest that this cluster applies defines%s: on a cold cluster nothing comes of %s until somebody creates the source by hand",
		finding.Some(names), finding.Verb(len(names), "is", "are"), m.source, but, finding.Verb(len(names), "it", "them")))
	for _, u := range m.users {
		f.Causes = append(f.Causes, fmt.Sprintf("%s names it", l.place(u.tier, u.object)))
	}
	f.Fix = fmt.Sprintf("Apply %s %s of that name and namespace, in a tier that comes before, or mend the name.", article(m.source.Kind), m.source.Kind)
	if near := l.nearSource(m.source); near.Name != "" {
		f.Fix = fmt.Sprintf("Did you mean %s? A namespace that is not given is that of what names the source.", near)
	}
	return f
}

// nearSource is the source that may have been meant: of that name in another
// namespace or of another kind, or of a name that differs by two letters.
func (l *look) nearSource(r flux.Ref) flux.Ref {
	var best flux.Ref
	least := 3
	for _, src := range sortedRefs(l.definedSources()) {
		d := tiers.Distance(src.Name, r.Name)
		if d > 0 && (src.Kind != r.Kind || src.Namespace != r.Namespace || d >= len(r.Name)-1) {
			continue
		}
		if d < least && strings.HasSuffix(src.Kind, "Repository") {
			best, least = src, d
		}
	}
	return best
}

func sortedRefs(all map[flux.Ref]bool) []flux.Ref {
	var refs []flux.Ref
	for ref := range all {
		refs = append(refs, ref)
	}
	slices.SortFunc(refs, flux.Ref.Compare)
	return refs
}
