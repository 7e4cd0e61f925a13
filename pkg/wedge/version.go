// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

// versionsNotServed are tiers that lack a kind which is served, only in other
// versions: the error is that of a missing kind, and the repair is another.
func versionsNotServed(w *World) []Verdict {
	var out []Verdict
	told := map[flux.Ref]map[schema.GroupVersionKind]bool{}
	add := func(tier flux.Ref, gvk schema.GroupVersionKind, served []string) *Verdict {
		if len(served) == 0 || told[tier][gvk] {
			return nil
		}
		if told[tier] == nil {
			told[tier] = map[schema.GroupVersionKind]bool{}
		}
		told[tier][gvk] = true
		out = append(out, w.unservedVersion(tier, gvk, served))
		return &out[len(out)-1]
	}
	for _, d := range w.Diagnoses {
		for _, m := range d.Missing {
			if v := add(d.Tier, m.Kind, m.OtherVersions); v != nil {
				for i, o := range m.Objects {
					if i < mostEvidence {
						v.evidence(o, "apiVersion", o.APIVersion)
					}
				}
			}
		}
	}
	if w.Served == nil {
		return out
	}
	noMatch := regexp.MustCompile(`no matches for kind "([^"]+)" in version "([^"]+)"`)
	for _, m := range w.messages() {
		for _, found := range noMatch.FindAllStringSubmatch(m.text, -1) {
			gvk := schema.FromAPIVersionAndKind(found[2], found[1])
			if _, ok := w.Served.Resource(gvk); ok || w.Served.Unknown(gvk.GroupVersion()) != nil {
				continue // it is served by now, or nobody can tell
			}
			if v := add(m.tier, gvk, w.Served.Versions(gvk.GroupKind())); v != nil {
				v.evidence(m.tier, m.field, m.text)
			}
		}
	}
	return out
}

func (w *World) unservedVersion(tier flux.Ref, gvk schema.GroupVersionKind, served []string) Verdict {
	v := Verdict{
		Cause: VersionNotServed, Object: tier, State: "version-not-served", ResolvesItself: Never,
		Summary: fmt.Sprintf("%s needs %s in version %s; the CRD exists and serves %s", tier, gvk.GroupKind(), gvk.Version, strings.Join(served, ", ")),
		Why:     "a retry finds the same CRD again: nothing updates it",
		Repair: fmt.Sprintf("either write the manifest in %s, or apply the CRD of the newer release by server-side apply (kubectl standup crds). "+
			"The CRD is not deleted: every %s would go with it", strings.Join(served, " or "), gvk.Kind),
	}
	d := w.definition(gvk.GroupKind())
	if d == nil {
		return v
	}
	v.evidence(d.Ref, "spec.versions served", strings.Join(served, ", "))
	release := w.releaseOf(d)
	switch {
	case release != nil:
		v.evidence(d.Ref, "applied by", release.Ref.String())
		v.Why = fmt.Sprintf("%s brings the CRD, and by default an upgrade creates new CRDs and leaves those that exist as they are (spec.upgrade.crds)", release.Ref)
		v.Repair = fmt.Sprintf("set spec.upgrade.crds: CreateReplace on %s, or apply the chart's CRD by server-side apply (kubectl standup crds); "+
			"or write the manifest in %s. The CRD is not deleted: every %s would go with it", release.Ref, strings.Join(served, " or "), gvk.Kind)
		if !isTrue(release.Conditions, "Ready") {
			v.ResolvesItself, v.ResolvesWhen = When, fmt.Sprintf("when %s, which is not Ready, still has to upgrade and replaces CRDs", release.Ref)
		}
	case d.Owner.Tier.Name != "":
		v.evidence(d.Ref, "applied by", d.Owner.Tier.String())
		v.Repair = fmt.Sprintf("bring the CRD that %s applies to a release that has %s. %s", d.Owner.Tier, gvk.Version, v.Repair)
	}
	return v
}

// releaseOf is the HelmRelease that brought a definition; nil when none is
// known to have.
func (w *World) releaseOf(d *Definition) *flux.Tier {
	if w.Flux == nil {
		return nil
	}
	for i := range w.Flux.Tiers {
		t := &w.Flux.Tiers[i]
		if t.Ref.Kind == flux.HelmReleaseKind &&
			(t.Ref.Key() == d.Owner.Tier.Key() && d.Owner.Tier.Kind == flux.HelmReleaseKind || t.Ref.Key() == d.Owner.Release) {
			return t
		}
	}
	return nil
}
