// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubestandup/kubestandup/pkg/coldstart"
)

// The gate that is written out is the one that the tier lacks, and no more.
func TestGates(t *testing.T) {
	trigger := cdi
	release := `
-- config/hr.yaml --
{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {name: op, namespace: x-ops}, spec: {interval: 1h, chart: {spec: {chart: ./op, sourceRef: {kind: GitRepository, name: flux-system}}}}}
`
	const expr = "healthCheckExprs: [{apiVersion: cdi.kubevirt.io/v1beta1, kind: CDI, current: \"true\"}]"
	const phase = "current: has(status.phase) && status.phase == 'Deployed'"
	for name, tc := range map[string]struct {
		spec string
		how  coldstart.How
		want []string
		not  []string
	}{
		"a trigger, no gate":             {"", coldstart.ByTrigger, []string{"wait: true", phase}, nil},
		"a trigger under wait":           {"wait: true", coldstart.ByTrigger, []string{phase}, []string{"wait:"}},
		"a trigger beside healthChecks":  {"healthChecks: [{apiVersion: v1, kind: ConfigMap, name: x}]", coldstart.ByTrigger, []string{phase, "kind: CDI\n      name: cdi"}, []string{"wait: true"}},
		"a trigger, half of it":          {expr, coldstart.ByTrigger, []string{"wait: true"}, []string{"healthCheckExprs"}},
		"a trigger, all of it":           {expr + ", wait: true", coldstart.ByTrigger, nil, nil},
		"a release, no gate":             {"", coldstart.ByChart, []string{"wait: true"}, []string{"healthCheck"}},
		"a release under wait":           {"wait: true", coldstart.ByChart, nil, nil},
		"a release that is checked":      {"healthChecks: [{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, name: op, namespace: x-ops}]", coldstart.ByChart, nil, nil},
		"a release beside others":        {"healthChecks: [{apiVersion: v1, kind: ConfigMap, name: x}]", coldstart.ByChart, []string{"kind: HelmRelease"}, []string{"wait"}},
		"what registers at start":        {"", coldstart.ByStart, []string{"healthChecks", "name: storageprofiles.cdi.kubevirt.io"}, []string{"wait"}},
		"what registers, under wait":     {"wait: true", coldstart.ByStart, []string{"wait: false", "ignores healthChecks while wait is true"}, nil},
		"a CRD that the tier has itself": {"", coldstart.ByGit, nil, nil},
		"a CRD, and any gate":            {"wait: true", coldstart.ByGit, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := subject(t, trigger+release+tierFile("config", tc.spec))
			l := newLook(s)
			p := s.trigger(t, "config", cdiRef, coldstart.Hollow)
			p.How = tc.how
			if tc.how == coldstart.ByChart {
				p.Object, p.Relation = hr("x-ops", "op"), nil
			}
			g := l.gateFor(ks("config"), []brought{{p, []coldstart.Need{s.need(t, "config", "StorageProfile", coldstart.Late, p)}}})
			if g.none() != (len(tc.want) == 0) {
				t.Errorf("nothing to add: %v\n%s", g.none(), g.text(l))
			}
			text := g.text(l)
			contains(t, "gate", text, tc.want...)
			for _, w := range tc.not {
				if strings.Contains(text, w) {
					t.Errorf("gate holds %q:\n%s", w, text)
				}
			}
		})
	}
}

// wait: true would wait for the children too: a tier that applies tiers gets a
// health check.
func TestGateOfAContainer(t *testing.T) {
	s := subject(t, cdi+tierFile("config", "")+"-- config/child.yaml --\n"+tierYAML("child", "")+"-- child/own.yaml --\n")
	p := s.trigger(t, "config", cdiRef, coldstart.Hollow)
	l := newLook(s)
	text := l.gateFor(ks("config"), []brought{{p, []coldstart.Need{s.need(t, "config", "StorageProfile", coldstart.Late, p)}}}).text(l)
	contains(t, "gate", text, "healthChecks:", "kind: CDI", "healthCheckExprs:")
	if strings.Contains(text, "wait") {
		t.Errorf("it would wait for child:\n%s", text)
	}
}

// A trigger that a chart holds: the release is Ready before it is reconciled.
func TestGateOfATriggerInAChart(t *testing.T) {
	s := subject(t, tierFile("ops", "wait: true")+"-- ops/hr.yaml --\n{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {name: op, namespace: x-ops}, spec: {interval: 1h, chart: {spec: {chart: ./op, sourceRef: {kind: GitRepository, name: flux-system}}}}}\n"+
		tierFile("vms", "dependsOn: [{name: ops}]")+"-- vms/p.yaml --\n{apiVersion: cdi.kubevirt.io/v1beta1, kind: StorageProfile, metadata: {name: fast}}\n")
	release := hr("x-ops", "op")
	s.World.Charts[coldstart.Key(release)] = coldstart.Chart{Basis: coldstart.Rendered, Objects: []*unstructured.Unstructured{
		manifestOf(t, "{apiVersion: cdi.kubevirt.io/v1beta1, kind: CDI, metadata: {name: cdi}}"),
	}}
	p := s.trigger(t, "ops", cdiRef, coldstart.Hollow)
	p.Release = &release
	s.outcome(t, "vms", coldstart.ByRetry, s.need(t, "vms", "StorageProfile", coldstart.Late, p))
	f := one(t, s, "HG001")
	contains(t, "message", f.Message, "HelmRelease/x-ops/op is Ready when CDI/cdi is applied")
	contains(t, "fix", f.Fix, "HelmRelease/x-ops/op (ops/hr.yaml:1):\nspec:\n  healthCheckExprs:")
}

// One finding per gate, whoever depends on it; the longest retry is told.
func TestHollowGateOfSeveralDependants(t *testing.T) {
	profile := func(tier string) string {
		return tierFile(tier, "dependsOn: [{name: config}]") + "-- " + tier + "/p.yaml --\n{apiVersion: cdi.kubevirt.io/v1beta1, kind: " +
			map[string]string{"one": "StorageProfile", "two": "DataVolume"}[tier] + ", metadata: {name: fast, namespace: x-a}}\n"
	}
	s := subject(t, tierFile("config", "wait: true")+"-- config/cdi.yaml --\n{apiVersion: cdi.kubevirt.io/v1beta1, kind: CDI, metadata: {name: cdi}}\n"+profile("one")+profile("two"))
	p := s.trigger(t, "config", cdiRef, coldstart.Hollow)
	s.outcome(t, "config", coldstart.AtOnce)
	s.outcome(t, "one", coldstart.ByRetry, s.need(t, "one", "StorageProfile", coldstart.Late, p))
	s.outcome(t, "two", coldstart.ByRetry, s.need(t, "two", "DataVolume", coldstart.Late, p))
	s.Prediction.Outcomes[1].Retry, s.Prediction.Outcomes[1].RetryIsInterval = 30e9, false
	f := one(t, s, "HG001")
	contains(t, "message", f.Message, "config is Ready before StorageProfile and DataVolume", "the first attempt of one and two", "after 1h (spec.interval")
	if got := missingKinds(f); !slices.Equal(got, []string{"DataVolume", "StorageProfile"}) || f.Tier.Name != "config" || f.File != "clusters/test/config.yaml" {
		t.Errorf("%v of %s in %s", got, f.Tier, f.File)
	}
	none(t, s, "HG003")
}
