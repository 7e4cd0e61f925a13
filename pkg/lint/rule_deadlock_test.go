// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"slices"
	"testing"

	"github.com/kubestandup/kubestandup/pkg/coldstart"
	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

const cdi = `
-- config/cdi.yaml --
apiVersion: cdi.kubevirt.io/v1beta1
kind: CDI
metadata: {name: cdi}
spec: {}
---
apiVersion: cdi.kubevirt.io/v1beta1
kind: StorageProfile
metadata: {name: fast}
spec: {}
---
apiVersion: cdi.kubevirt.io/v1beta1
kind: DataVolume
metadata: {name: golden, namespace: x-vms}
spec: {}
`

var cdiRef = flux.Ref{APIVersion: "cdi.kubevirt.io/v1beta1", Kind: "CDI", Name: "cdi"}

func TestDeadlock(t *testing.T) {
	s := subject(t, cdi+tierFile("config", "wait: true, retryInterval: 30s")+
		tierFile("apps", "dependsOn: [{name: config}]")+"-- apps/a.yaml --\n{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: x-apps}}\n")
	p := s.trigger(t, "config", cdiRef, coldstart.Same)
	operator := flux.Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "cdi", Name: "cdi-operator"}
	p.Operator = &operator
	s.outcome(t, "config", coldstart.Never, s.need(t, "config", "StorageProfile", coldstart.Missing, p), s.need(t, "config", "DataVolume", coldstart.Missing, p))
	s.outcome(t, "apps", coldstart.Blocked)

	f := one(t, s, "CS001")
	if f.Severity != finding.Error || f.Tier.Name != "config" || f.File != "config/cdi.yaml" || f.Line != 6 {
		t.Errorf("%s of %s at %s:%d", f.Severity, f.Tier, f.File, f.Line)
	}
	contains(t, "message", f.Message, "config never comes up", "DataVolume", "StorageProfile", "cdi.kubevirt.io/v1beta1",
		"KubeVirt CDI has reconciled CDI/cdi", "no retry heals it", "the 1 tier below it stays down")
	contains(t, "causes", causes(f), "StorageProfile/fast (config/cdi.yaml:6)", "CDI/cdi (config/cdi.yaml:1)",
		"storageprofiles.cdi.kubevirt.io", "Deployment/cdi/cdi-operator")
	contains(t, "fix", f.Fix, "StorageProfile/fast", "not CDI/cdi up", "name: config-cdi", "- name: config\n", "path: ./config-cdi",
		"retryInterval: 30s", "healthCheckExprs:", "current: has(status.phase) && status.phase == 'Deployed'", "an edge to config-cdi")
	if got := missingKinds(f); !slices.Equal(got, []string{"DataVolume", "StorageProfile"}) {
		t.Errorf("missing %v", got)
	}
}

func TestDeadlockByWhatATierHolds(t *testing.T) {
	widget := `
-- ops/all.yaml --
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: op, namespace: x-ops}
spec: {interval: 1h, chart: {spec: {chart: ./charts/op, sourceRef: {kind: GitRepository, name: flux-system, namespace: flux-system}}}}
---
apiVersion: obs.example.com/v1
kind: Widget
metadata: {name: main, namespace: x-ops}
`
	release := coldstart.Provider{How: coldstart.ByChart, Tier: ks("ops"), Object: hr("x-ops", "op"), Stage: 4, Reach: coldstart.Same}
	start := release
	start.How = coldstart.ByStart
	behind := coldstart.Provider{
		How: coldstart.ByGit, Tier: ks("child"), Stage: 1, Reach: coldstart.Behind, Waits: []flux.Ref{ks("child"), ks("ops")},
		Object: flux.Ref{APIVersion: crdVersion, Kind: crdKind, Name: "widgets.obs.example.com"},
	}
	for name, tc := range map[string]struct {
		provider            coldstart.Provider
		message, cause, fix string
	}{
		"release": {
			release, "only once HelmRelease/x-ops/op is installed, and HelmRelease/x-ops/op waits in the same stage of ops",
			"Widget is registered by the chart of HelmRelease/x-ops/op (ops/all.yaml:1), in ops", "wait: true",
		},
		"operator": {start, "has started", "when it starts", "name: widgets.obs.example.com"},
		"child": {
			behind, "that is in flux-system/child, which itself waits for ops", "Kustomization/flux-system/child waits for ops",
			"- name: child",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := subject(t, widget+tierFile("ops", ""))
			s.outcome(t, "ops", coldstart.Never, s.need(t, "ops", "Widget", coldstart.Missing, tc.provider))
			f := one(t, s, "CS001")
			contains(t, "message", f.Message, tc.message, "no retry heals it")
			contains(t, "causes", causes(f), tc.cause)
			contains(t, "fix", f.Fix, tc.fix, "Move Widget/x-ops/main down")
		})
	}
	t.Run("a chart that nobody knows", func(t *testing.T) {
		s := subject(t, widget+tierFile("ops", ""))
		n := s.need(t, "ops", "Widget", coldstart.Perhaps)
		n.Candidates = []flux.Ref{hr("x-ops", "op")}
		s.outcome(t, "ops", coldstart.Never, n)
		f := one(t, s, "CS001")
		if f.Severity != finding.Warning {
			t.Errorf("a guess is no %s", f.Severity)
		}
		contains(t, "message", f.Message, "may never come up", "perhaps the chart of HelmRelease/x-ops/op, in the same tier")
		none(t, s, "CS002")
	})
	t.Run("a chart that nobody knows, in another tier too", func(t *testing.T) {
		s := subject(t, widget+tierFile("ops", ""))
		n := s.need(t, "ops", "Widget", coldstart.Perhaps)
		n.Candidates = []flux.Ref{hr("x-ops", "op"), hr("x-else", "other")}
		s.outcome(t, "ops", coldstart.ByRetry, n)
		none(t, s, "CS001")
		if f := one(t, s, "CS002"); f.Severity != finding.Info {
			t.Errorf("what may be there is no %s", f.Severity)
		}
	})
}

// What is down for another tier's reason is that tier's finding.
func TestDeadlockIsReportedWhereItIs(t *testing.T) {
	s := subject(t, cdi+tierFile("config", ""))
	s.outcome(t, "config", coldstart.Blocked, s.need(t, "config", "StorageProfile", coldstart.Missing, s.trigger(t, "config", cdiRef, coldstart.Down)))
	none(t, s, "CS001")
	none(t, s, "CS002")

	late := subject(t, cdi+tierFile("config", ""))
	late.outcome(t, "config", coldstart.ByRetry, late.need(t, "config", "StorageProfile", coldstart.Late, late.trigger(t, "config", cdiRef, coldstart.Same)))
	none(t, late, "CS001")

	suspended := subject(t, cdi+tierFile("config", "suspend: true"))
	suspended.outcome(t, "config", coldstart.Suspended, suspended.need(t, "config", "StorageProfile", coldstart.Missing, suspended.trigger(t, "config", cdiRef, coldstart.Same)))
	none(t, suspended, "CS001")
}

func TestVariablesOfItsOwn(t *testing.T) {
	s := subject(t, tierFile("vars", "")+"-- vars/a.yaml --\n{apiVersion: v1, kind: ConfigMap, metadata: {name: vars, namespace: flux-system}}\n")
	object := flux.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "flux-system", Name: "vars"}
	s.outcome(t, "vars", coldstart.Never, coldstart.Need{
		Object: object, When: coldstart.Missing,
		Providers: []coldstart.Provider{{How: coldstart.ByGit, Tier: ks("vars"), Object: object, Stage: 4, Reach: coldstart.Same}},
	})
	f := one(t, s, "CS001")
	contains(t, "message", f.Message, "built with the variables of ConfigMap/flux-system/vars, which it applies itself", "no retry heals it")
	contains(t, "fix", f.Fix, "dependsOn:", "name: vars-variables")
	if f.Severity != finding.Warning {
		t.Errorf("somebody may create it by hand: it is no %s", f.Severity)
	}
}
