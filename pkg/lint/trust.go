// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"cmp"
	"slices"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubestandup/kubestandup/pkg/coldstart"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// Trust is what the verdicts of a cluster rest on that nobody looked at.
type Trust struct {
	// ByName are the kinds that rest on what is known of charts by their names.
	ByName *ByName `json:"byName,omitempty"`
	// Assumed are the objects that tiers and HelmReleases do not come up
	// without, and that no tier makes: they are taken to be there.
	Assumed []flux.Ref `json:"assumed,omitempty"`
	// Before are charts that are taken to be installed before Flux is.
	Before []InstalledBefore `json:"installedBefore,omitempty"`
	// Unseen are objects of which a controller makes others that nobody looked at:
	// ResourceSets of Flux Operator.
	Unseen []flux.Ref `json:"unseen,omitempty"`
	// Unfetched are the charts that could not be fetched, and of which it is
	// known by their names alone what they register.
	Unfetched []Unfetched `json:"unfetched,omitempty"`
}

// Any is true where something was taken on trust.
func (t *Trust) Any() bool {
	return t.ByName != nil || len(t.Assumed)+len(t.Before)+len(t.Unseen)+len(t.Unfetched) > 0
}

// ByName is what is known of charts that were not rendered.
type ByName struct {
	// Kinds counts the kinds that tiers use and that the charts register.
	Kinds int `json:"kinds"`
	// Charts are their names and versions.
	Charts []string `json:"charts"`
}

// InstalledBefore is what a file of the repository installs before Flux is
// there.
type InstalledBefore struct {
	File   string   `json:"file"`
	Charts []string `json:"charts"`
}

// Unfetched is a chart that could not be fetched.
type Unfetched struct {
	Object  flux.Ref `json:"object"`
	Chart   string   `json:"chart,omitempty"`
	Version string   `json:"version,omitempty"`
	Why     string   `json:"why"`
}

func (c *examined) trust() Trust {
	return Trust{ByName: c.byName(), Assumed: c.assumed(), Before: c.before(), Unseen: c.unseen(), Unfetched: c.unfetched()}
}

// byName are the kinds whose likeliest source is a chart that was not rendered,
// or a controller that such a chart runs.
func (c *examined) byName() *ByName {
	kinds := map[schema.GroupKind]bool{}
	var charts []string
	for _, use := range c.subject.Prediction.Kinds {
		if use.Before != "" || len(use.Need.Providers) == 0 {
			continue
		}
		p := use.Need.Providers[0]
		by := p.About()
		if p.Operator != nil && !isRelease(by) {
			by = *p.Operator
		}
		chart := c.subject.World.Charts[coldstart.Key(by)]
		if !isRelease(by) || chart.Basis != coldstart.Known {
			continue
		}
		kinds[use.Need.Kind.GroupKind()] = true
		charts = append(charts, chartName(chart))
	}
	if len(kinds) == 0 {
		return nil
	}
	slices.Sort(charts)
	return &ByName{Kinds: len(kinds), Charts: slices.Compact(charts)}
}

// assumed are the ConfigMaps and Secrets that a build or a release needs and
// that no tier makes. What a controller is to make of an object of another kind
// is among them: whether it does is not known.
func (c *examined) assumed() []flux.Ref {
	there := map[flux.Ref]bool{}
	for i := range c.subject.World.Tiers {
		if t := &c.subject.World.Tiers[i]; t.Result != nil {
			for _, o := range t.Result.Objects {
				there[coldstart.Key(o.Ref())] = true
			}
		}
	}
	for release, chart := range c.subject.World.Charts {
		for _, ref := range made(release, chart) {
			there[ref] = true
		}
	}
	lacking := map[flux.Ref]bool{}
	for i := range c.subject.World.Tiers {
		t := &c.subject.World.Tiers[i]
		if t.Result == nil {
			continue
		}
		for _, ref := range t.Result.Absent {
			lacking[coldstart.Key(ref)] = true
		}
		for _, o := range releases(t) {
			for _, ref := range valuesFrom(o.Unstructured) {
				lacking[ref] = true
			}
		}
	}
	var all []flux.Ref
	for ref := range lacking {
		if !there[ref] {
			ref.APIVersion = "v1"
			all = append(all, ref)
		}
	}
	slices.SortFunc(all, flux.Ref.Compare)
	return all
}

// unseen are the ResourceSets of the tiers.
func (c *examined) unseen() []flux.Ref {
	var all []flux.Ref
	for i := range c.subject.World.Tiers {
		t := &c.subject.World.Tiers[i]
		if t.Result == nil {
			continue
		}
		for _, o := range t.Result.Objects {
			if isResourceSet(o) && !o.Ignored {
				all = append(all, o.Ref())
			}
		}
	}
	slices.SortFunc(all, flux.Ref.Compare)
	return slices.Compact(all)
}

// valuesFrom are the objects that a HelmRelease is not installed without.
func valuesFrom(o *unstructured.Unstructured) []flux.Ref {
	var hr helmv2.HelmRelease
	_ = runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &hr) // it was decoded before
	var all []flux.Ref
	for _, from := range hr.Spec.ValuesFrom {
		if !from.Optional {
			all = append(all, flux.Ref{Kind: from.Kind, Namespace: o.GetNamespace(), Name: from.Name})
		}
	}
	return all
}

// before are what files of the repository install before Flux: whether somebody
// uses them is not known. What brings Flux itself is not among them.
func (c *examined) before() []InstalledBefore {
	names := map[string][]string{}
	for _, i := range c.subject.World.Bootstrap {
		if name := cmp.Or(i.Project, i.Chart, i.Name); name != "flux-operator" && name != "flux-instance" && name != "flux2" {
			names[i.By] = append(names[i.By], name)
		}
	}
	var all []InstalledBefore
	for file, charts := range names {
		slices.Sort(charts)
		all = append(all, InstalledBefore{File: file, Charts: slices.Compact(charts)})
	}
	slices.SortFunc(all, func(a, b InstalledBefore) int { return strings.Compare(a.File, b.File) })
	return all
}

func (c *examined) unfetched() []Unfetched {
	if !c.fetches {
		return nil
	}
	var all []Unfetched
	for release, chart := range c.subject.World.Charts {
		if chart.Basis == coldstart.Known && chart.Why != "" {
			all = append(all, Unfetched{Object: release, Chart: chart.Name, Version: chart.Version, Why: chart.Why})
		}
	}
	slices.SortFunc(all, func(a, b Unfetched) int { return a.Object.Compare(b.Object) })
	return all
}

// clause is an error in a few words: the first line of it.
func clause(err error) string {
	const most = 160
	text, _, _ := strings.Cut(strings.TrimSpace(err.Error()), "\n")
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return text
}
