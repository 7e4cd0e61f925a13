// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/standup/config"
	"github.com/kubestandup/kubestandup/pkg/tiers"
	"github.com/kubestandup/kubestandup/pkg/wedge"
)

const rev = "main@sha1:aaaa"

func git() flux.Ref { return flux.Ref{Kind: "GitRepository", Namespace: "flux-system", Name: "repo"} }

func tier(name string, status metav1.ConditionStatus, reason, message string, dependsOn ...string) flux.Tier {
	t := flux.Tier{
		Ref: flux.Ref{Kind: "Kustomization", Namespace: "flux-system", Name: name}, Source: git(),
		Generation: 1, ObservedGeneration: 1, LastAppliedRevision: rev, RetryInterval: time.Minute,
		Conditions: []metav1.Condition{{Type: "Ready", Status: status, Reason: reason, Message: message, ObservedGeneration: 1}},
	}
	for _, d := range dependsOn {
		t.DependsOn = append(t.DependsOn, flux.Dependency{Ref: flux.Ref{Kind: "Kustomization", Namespace: "flux-system", Name: d}})
	}
	return t
}

func looking(all ...flux.Tier) *preflight {
	s := &flux.Snapshot{
		Tiers: all, Served: []flux.Resource{{Kind: "Kustomization"}, {Group: flux.SourceGroup, Kind: "GitRepository"}},
		Sources: []flux.Source{{Ref: git(), Artifact: &flux.Artifact{Revision: rev}}},
	}
	return lookingAt(s)
}

// lookingAt is a look at a cluster with these builds, and with no variables.
func lookingAt(s *flux.Snapshot, all ...build.Followed) *preflight {
	b := &builds{all: all, unfetched: map[flux.Ref]error{}, variables: fakeVariables{}}
	b.index()
	p := newPreflight(context.Background(), &look{
		env:      &Env{File: &config.Config{}, Command: func(plugin, rest string) string { return "kubectl " + plugin + " " + rest }},
		snapshot: s, graph: tiers.Build(s, tiers.Options{}), built: b,
	})
	p.namespaceNames = func() (map[string]bool, error) { return map[string]bool{"flux-system": true, "apps": true}, nil }
	p.world = func() (*wedge.World, error) { return &wedge.World{}, nil }
	return p
}

// fakeVariables are the ConfigMaps and Secrets of a cluster, by Kind/ns/name.
// One that is nil may not be read.
type fakeVariables map[string]map[string]string

func (v fakeVariables) ConfigMap(_ context.Context, namespace, name string) (map[string]string, error) {
	key, resource := "ConfigMap/"+namespace+"/"+name, schema.GroupResource{Resource: "configmaps"}
	data, ok := v[key]
	switch {
	case !ok:
		return nil, apierrors.NewNotFound(resource, name)
	case data == nil:
		return nil, apierrors.NewForbidden(resource, name, errors.New("no"))
	}
	return data, nil
}

func (v fakeVariables) Secret(_ context.Context, namespace, name string) (map[string][]byte, error) {
	key, resource := "Secret/"+namespace+"/"+name, schema.GroupResource{Resource: "secrets"}
	data, ok := v[key]
	switch {
	case !ok:
		return nil, apierrors.NewNotFound(resource, name)
	case data == nil:
		return nil, apierrors.NewForbidden(resource, name, errors.New("no"))
	}
	raw := map[string][]byte{}
	for name, value := range data {
		raw[name] = []byte(value)
	}
	return raw, nil
}

// TestAStandupYAMLThatFluxTakesForAManifest says how to keep it out.
func TestAStandupYAMLThatFluxTakesForAManifest(t *testing.T) {
	p := looking(tier("root", "False", "BuildFailed", "failed to decode Kubernetes YAML from /tmp/x/clusters/prod/standup.yaml: missing Resource metadata"))
	c, err := p.tiers(t.Context())
	if err != nil || len(c.Findings) != 1 || c.Findings[0].Suggestion != config.Header || !strings.Contains(c.Findings[0].Fix, "begin with these lines") {
		t.Errorf("got %+v, %v", c.Findings, err)
	}
}

func TestEachRootCauseIsReportedOnce(t *testing.T) {
	p := looking(
		tier("platform", "True", "", ""),
		tier("config", "False", "BuildFailed", "boom\nand more", "platform"),
		tier("vms", "False", "DependencyNotReady", "", "config"),
		tier("wave-0", "False", "DependencyNotReady", "", "config"),
		tier("wave-1", "False", "DependencyNotReady", "", "wave-0"),
		tier("lost", "False", "DependencyNotReady", "", "gone"),
	)
	c, err := p.tiers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if c.Message != "1 of 6 Ready" || len(c.Findings) != 2 {
		t.Fatalf("got %q and %d findings: %+v", c.Message, len(c.Findings), c.Findings)
	}
	missing, failing := c.Findings[0], c.Findings[1]
	if missing.Rule == "tier-failing" {
		missing, failing = failing, missing
	}
	if failing.Rule != "tier-failing" || failing.Severity != finding.Error || !strings.Contains(failing.Message, "boom; it holds up 3 other tiers") {
		t.Errorf("got %+v", failing)
	}
	if missing.Rule != "tier-blocked" || !strings.Contains(missing.Causes[0], "flux-system/gone does not exist") {
		t.Errorf("got %+v", missing)
	}
}

func TestTierFindings(t *testing.T) {
	suspended := tier("x", "True", "", "")
	suspended.Suspended = true
	cycle := tier("x", "False", "DependencyNotReady", "", "x")
	tests := map[string]struct {
		tier     flux.Tier
		rule     string
		severity finding.Severity
		fix      string
	}{
		"suspended": {suspended, "tier-suspended", finding.Warning, "flux resume kustomization x -n flux-system"},
		"at work":   {tier("x", "Unknown", "Progressing", "…"), "tier-progressing", finding.Info, "kubectl tiers --wait"},
		"a cycle":   {cycle, "tier-wedged", finding.Error, "git"},
		"failing":   {tier("x", "False", "BuildFailed", "boom"), "tier-failing", finding.Error, "Flux goes on by itself"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := looking(tc.tier)
			f, err := p.tierFinding(t.Context(), p.graph.Tiers()[0])
			if err != nil || f.Rule != tc.rule || f.Severity != tc.severity || !strings.Contains(f.Fix, tc.fix) {
				t.Errorf("got %+v, %v", f, err)
			}
		})
	}
}

func TestSourceFindings(t *testing.T) {
	failed := []metav1.Condition{{Type: "Ready", Status: "False", Message: "authentication required"}}
	unreachable := []metav1.Condition{{Type: "Ready", Status: "False", Message: "dial tcp: no such host"}}
	artifact := &flux.Artifact{Revision: rev}
	tests := map[string]struct {
		source flux.Source
		rule   string
		blocks bool
	}{
		"well":                 {flux.Source{Ref: git(), Artifact: artifact}, "", false},
		"never fetched":        {flux.Source{Ref: git()}, "source-without-artifact", true},
		"refused":              {flux.Source{Ref: git(), Conditions: failed}, "source-not-authenticated", true},
		"fetched, but refused": {flux.Source{Ref: git(), Artifact: artifact, Conditions: failed}, "source-not-authenticated", true},
		"fetched, but failing": {flux.Source{Ref: git(), Artifact: artifact, Conditions: unreachable}, "source-not-ready", true},
		"suspended, and empty": {flux.Source{Ref: git(), Suspended: true}, "source-without-artifact", true},
		"suspended":            {flux.Source{Ref: git(), Artifact: artifact, Suspended: true}, "source-suspended", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f, bad := looking().sourceFinding(&tc.source, 2)
			if bad != (tc.rule != "") || bad && (f.Rule != tc.rule || f.Blocks != tc.blocks) {
				t.Errorf("got %+v, %t", f, bad)
			}
			if len(tc.source.Conditions) > 0 && !strings.Contains(f.Message, tc.source.Conditions[0].Message) {
				t.Errorf("%q does not say why", f.Message)
			}
		})
	}
}

func TestControllerFindings(t *testing.T) {
	zero, one := int32(0), int32(1)
	down := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "helm-controller"}, Spec: appsv1.DeploymentSpec{Replicas: &one}}
	if f := looking().controllerFinding("helm-controller", down); !f.Blocks || !strings.Contains(f.Message, "no available replica") {
		t.Errorf("got %+v", f)
	}
	down.Spec.Replicas = &zero
	if f := looking().controllerFinding("helm-controller", down); !strings.Contains(f.Message, "scaled to zero") || !strings.Contains(f.Fix, "--replicas=1") {
		t.Errorf("got %+v", f)
	}
	// It may run elsewhere, so nothing is blocked by not seeing it.
	if f := looking().controllerFinding("helm-controller", nil); f.Blocks || f.Severity != finding.Warning {
		t.Errorf("got %+v", f)
	}
}

func TestImageVersion(t *testing.T) {
	for image, want := range map[string]string{
		"ghcr.io/fluxcd/helm-controller:v1.6.4":                 "v1.6.4",
		"localhost:5000/fluxcd/helm-controller:v1.6.4@sha256:0": "v1.6.4",
		"localhost:5000/fluxcd/helm-controller":                 "",
	} {
		d := &appsv1.Deployment{}
		d.Spec.Template.Spec.Containers = []corev1.Container{{Image: image}}
		if got := imageVersion(d); got != want {
			t.Errorf("%s: got %s, want %s", image, got, want)
		}
	}
}

func TestWhatAStepEndsIn(t *testing.T) {
	with := func(s ...finding.Severity) Result {
		r := StepReport{}
		for _, severity := range s {
			r.Checks = append(r.Checks, Check{Findings: []finding.Finding{{Severity: severity}}})
		}
		r.close()
		return r.Result
	}
	if with() != OK || with(finding.Info) != OK || with(finding.Info, finding.Warning) != Findings || with(finding.Error) != Findings {
		t.Error("exit 3 is for errors and warnings, and for nothing else")
	}
}
