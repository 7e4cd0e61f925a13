// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package knowledge

import (
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Chart is what a chart that is known by name registers, for where it cannot
// be rendered.
type Chart struct {
	// Name is the chart's own, as in Chart.yaml.
	Name string `json:"name"`
	// Repositories are parts of the URLs from which the chart of that name
	// comes (charts.jetstack.io, ghcr.io/cilium). Empty where the name is
	// enough to tell it.
	Repositories []string `json:"repositories,omitempty"`
	// Versions is the range of the chart's versions of which this holds, as in
	// the version of a HelmRelease. Empty for all that are in use.
	Versions string `json:"versions,omitempty"`
	// Registers are the kinds, Groups the API groups of which it registers
	// every kind, where all of its switches are on.
	Registers []Kind   `json:"registers,omitempty"`
	Groups    []string `json:"groups,omitempty"`
	// Switches are the values that decide whether it registers them: one that
	// is on is enough. Empty where nothing switches them off.
	Switches []Switch `json:"switches,omitempty"`
	// Folder is true when the CRDs lie in its crds/ folder, so that
	// spec.install.crds of a HelmRelease decides too.
	Folder bool `json:"folder,omitempty"`
	// Parts are further kinds that have switches of their own.
	Parts []Part `json:"parts,omitempty"`
	// Separate is the chart that registers the kinds where this one does not.
	Separate string `json:"separate,omitempty"`
	// Webhooks are what the chart's pods are asked about.
	Webhooks *Webhooks `json:"webhooks,omitempty"`
	// Relations are those whose controller the chart runs, by ID.
	Relations  []string   `json:"relations,omitempty"`
	Sources    []string   `json:"sources"`
	Confidence Confidence `json:"confidence"`
	Note       string     `json:"note,omitempty"`
}

// Webhooks are those of a chart with failurePolicy Fail: until its pods answer,
// the API server takes no object that they are asked about.
type Webhooks struct {
	// Groups are the API groups of those objects.
	Groups []string `json:"groups"`
	// Switches are the values that decide whether there are any: one that is on
	// is enough. Empty where nothing switches them off.
	Switches []Switch `json:"switches,omitempty"`
}

// Part is some of the kinds of a chart; its fields are as those of Chart.
type Part struct {
	Registers []Kind   `json:"registers,omitempty"`
	Groups    []string `json:"groups,omitempty"`
	Switches  []Switch `json:"switches,omitempty"`
	Folder    bool     `json:"folder,omitempty"`
}

// Switch is a value of a chart, true or false.
type Switch struct {
	// Path leads to the value, with dots: crds.enabled.
	Path string `json:"path"`
	// Default is what the chart itself says.
	Default bool `json:"default,omitempty"`
}

// On says whether the chart registers its kinds with these values. It says
// nothing of Parts: see Split.
func (c *Chart) On(values map[string]any) bool { return anyOn(c.Switches, values) }

// Kinds are the kinds that the chart registers when it is on, without those
// that only Groups names and those of Parts.
func (c *Chart) Kinds() []schema.GroupKind {
	all := make([]schema.GroupKind, 0, len(c.Registers))
	for _, k := range c.Registers {
		all = append(all, k.GroupKind())
	}
	return all
}

// Split divides the chart by these values: on has what it then registers, off
// what its switches keep from being registered, with these switches. Either has
// no Parts; off is nil where nothing is kept. Where skip is true, as it is for
// spec.install.crds: Skip, what lies in the crds/ folder is in neither.
func (c *Chart) Split(values map[string]any, skip bool) (on, off *Chart) {
	divided := [2]Chart{*c, *c}
	for i := range divided {
		d := &divided[i]
		d.Registers, d.Groups, d.Switches, d.Parts, d.Folder = nil, nil, nil, nil, false
	}
	if c.Webhooks != nil && !anyOn(c.Webhooks.Switches, values) {
		divided[0].Webhooks = nil
	}
	divided[1].Webhooks = nil
	kept := false
	for _, p := range c.parts() {
		into := &divided[0]
		switch {
		case p.Folder && skip:
			continue
		case !anyOn(p.Switches, values):
			into, kept = &divided[1], true
		}
		into.Registers = append(into.Registers, p.Registers...)
		into.Groups = append(into.Groups, p.Groups...)
		into.Switches = append(into.Switches, p.Switches...)
		into.Folder = into.Folder || p.Folder
	}
	if !kept {
		return &divided[0], nil
	}
	return &divided[0], &divided[1]
}

// parts are the chart's own kinds, and its Parts.
func (c *Chart) parts() []Part {
	if len(c.Registers)+len(c.Groups) == 0 {
		return c.Parts
	}
	return append([]Part{{Registers: c.Registers, Groups: c.Groups, Switches: c.Switches, Folder: c.Folder}}, c.Parts...)
}

func anyOn(switches []Switch, values map[string]any) bool {
	return len(switches) == 0 || slices.ContainsFunc(switches, func(s Switch) bool { return s.on(values) })
}

// on is what {{ if .Values.path }} makes of the values over the chart's own.
func (s Switch) on(values map[string]any) bool {
	var value any = values
	for name := range strings.SplitSeq(s.Path, ".") {
		m, isMap := value.(map[string]any)
		if !isMap {
			return false // null deletes what the chart says (helm coalesce.go)
		}
		var given bool
		if value, given = m[name]; !given {
			return s.Default
		}
	}
	switch value := value.(type) {
	case nil:
		return false
	case bool:
		return value
	case string:
		return value != ""
	case float64:
		return value != 0
	case int64:
		return value != 0
	case []any:
		return len(value) > 0
	case map[string]any:
		return len(value) > 0
	}
	return true
}

// same is true when both are rows of one chart, so that one replaces the other.
func (c *Chart) same(other *Chart) bool {
	return c.Name == other.Name && c.Versions == other.Versions && slices.Equal(c.Repositories, other.Repositories)
}

// holds is whether the row is of this version of the chart; of a range, of the
// newest version in it, which is what source-controller takes.
func (c *Chart) holds(version string) bool {
	if c.Versions == "" {
		return true
	}
	in, err := semver.NewConstraint(c.Versions)
	if err != nil {
		return false
	}
	v := newest(version)
	return v != nil && in.Check(v)
}

// from is whether the row names the repository.
func (c *Chart) from(url string) bool {
	return slices.ContainsFunc(c.Repositories, func(part string) bool { return strings.Contains(url, part) })
}

// Chart finds what is known of a chart of whatever version, nil for nothing.
// url is where it comes from, as its source writes it; empty for not known.
func (b *Base) Chart(name, url string) *Chart { return b.ChartAt(name, url, "") }

// ChartAt finds what is known of a version, or of a range of versions, of a
// chart, nil for nothing.
func (b *Base) ChartAt(name, url, version string) *Chart {
	if b.index == nil {
		return nil
	}
	var anywhere *Chart
	for _, c := range b.named[name] {
		switch {
		case !c.holds(version):
		case len(c.Repositories) == 0:
			anywhere = c
		case c.from(url):
			return c // said of that repository: better than what is said of all
		}
	}
	return anywhere
}

// ChartsOf are the charts that register the kind, with whatever values: first
// those that name it.
func (b *Base) ChartsOf(gk schema.GroupKind) []Chart {
	if b.index == nil {
		return nil
	}
	var all []Chart
	for _, c := range b.makers[gk] {
		all = append(all, *c)
	}
	for _, c := range b.makersOfGroup[gk.Group] {
		if !slices.Contains(b.makers[gk], c) {
			all = append(all, *c)
		}
	}
	return all
}

// Effect says when an object of a kind has taken effect, of which no kstatus
// and no Ready condition tells.
type Effect struct {
	Group string `json:"group"`
	Kind  string `json:"kind"`
	// Ready is the entry of healthCheckExprs that proves it.
	Ready Ready `json:"ready"`
	// Why is what goes wrong where it is not waited for, in one sentence.
	Why        string     `json:"why"`
	Sources    []string   `json:"sources"`
	Confidence Confidence `json:"confidence"`
}

// GroupKind names the kind.
func (e Effect) GroupKind() schema.GroupKind {
	return schema.GroupKind{Group: e.Group, Kind: e.Kind}
}
