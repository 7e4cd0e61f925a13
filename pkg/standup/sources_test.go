// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/wedge"
)

// TestSourcesOfReleases are found through the HelmChart, and one of type oci
// has no state of its own.
func TestSourcesOfReleases(t *testing.T) {
	ref := func(kind, name string) flux.Ref { return flux.Ref{Kind: kind, Namespace: "apps", Name: name} }
	failed := []metav1.Condition{{Type: "Ready", Status: "False", Message: "no such host"}}
	good := &flux.Artifact{Revision: "1.0.0"}
	s := &flux.Snapshot{
		Served: []flux.Resource{{Kind: "HelmChart"}, {Kind: "OCIRepository"}},
		Tiers: []flux.Tier{
			{Ref: ref(flux.HelmReleaseKind, "http"), Source: ref("HelmChart", "http")},
			{Ref: ref(flux.HelmReleaseKind, "oci"), Source: ref("HelmChart", "oci")},
			{Ref: ref(flux.HelmReleaseKind, "new"), Source: ref("HelmChart", "not-made-yet")},
			{Ref: ref(flux.HelmReleaseKind, "lost"), Source: ref("OCIRepository", "lost")},
			{Ref: ref(flux.HelmReleaseKind, "lost2"), Source: ref("OCIRepository", "lost")},
			{Ref: ref(flux.HelmReleaseKind, "comes"), Source: ref("OCIRepository", "comes")},
		},
		Sources: []flux.Source{
			{Ref: ref("HelmChart", "http")}, // its HelmRepository is the cause
			{Ref: ref("HelmChart", "oci"), Conditions: failed},
			{Ref: ref("HelmRepository", "http"), Artifact: good, Conditions: failed},
			{Ref: ref("HelmRepository", "oci")},
			{Ref: ref("HelmRepository", "unused")},
		},
	}
	p := lookingAt(s, builtTier(t, "maker", "{}", "{apiVersion: source.toolkit.fluxcd.io/v1, kind: OCIRepository, metadata: {name: comes, namespace: apps}}"))
	p.raw = map[string][]*unstructured.Unstructured{
		"HelmChart": {
			yamlObject(t, "{kind: HelmChart, metadata: {name: http, namespace: apps}, spec: {sourceRef: {kind: HelmRepository, name: http}}}"),
			yamlObject(t, "{kind: HelmChart, metadata: {name: oci, namespace: apps}, spec: {sourceRef: {kind: HelmRepository, name: oci}}}"),
		},
		"HelmRepository": {yamlObject(t, "{kind: HelmRepository, metadata: {name: oci, namespace: apps}, spec: {type: oci}}")},
	}
	c, err := p.sources(t.Context())
	if err != nil || len(c.Findings) != 4 {
		t.Fatalf("got %+v, %v", c.Findings, err)
	}
	for i, want := range []struct {
		rule, says string
		severity   finding.Severity
		blocks     bool
	}{
		{"source-without-artifact", "HelmChart/apps/oci has no artifact", finding.Error, true},
		{"source-not-ready", "HelmRepository/apps/http cannot be fetched", finding.Error, true},
		{"source-missing", "it comes with Kustomization/flux-system/maker", finding.Info, false},
		{"source-missing", "OCIRepository/apps/lost does not exist; 2 tiers are built from it", finding.Error, true},
	} {
		f := c.Findings[i]
		if f.Rule != want.rule || !strings.Contains(f.Message, want.says) || f.Severity != want.severity || f.Blocks != want.blocks {
			t.Errorf("got %+v, want %+v", f, want)
		}
	}
}

// TestWhatToDoAboutASource: by its kind, and not before it was tried.
func TestWhatToDoAboutASource(t *testing.T) {
	failed := []metav1.Condition{{Type: "Ready", Status: "False", Message: "boom"}}
	for _, tt := range []struct {
		kind       string
		conditions []metav1.Condition
		artifact   *flux.Artifact
		fix        string
	}{
		{"GitRepository", failed, nil, "its ref or its credentials"},
		{"GitRepository", failed, &flux.Artifact{}, "its ref or its credentials"},
		{"GitRepository", nil, nil, "wait a moment"},
		{"OCIRepository", []metav1.Condition{{Type: "Ready", Status: "Unknown"}}, nil, "wait a moment"},
		{"HelmChart", failed, nil, "spec.chart of the HelmRelease"},
		{"ExternalArtifact", nil, nil, "source-watcher"},
	} {
		s := &flux.Source{Ref: flux.Ref{Kind: tt.kind, Namespace: "x", Name: "y"}, Conditions: tt.conditions, Artifact: tt.artifact}
		if f, bad := looking().sourceFinding(s, 1); !bad || !strings.Contains(f.Fix, tt.fix) || !f.Blocks {
			t.Errorf("%s: got %+v", tt.kind, f)
		}
	}
}

// TestArtifactsThatCannotBeFetched: by us, where Flux can.
func TestArtifactsThatCannotBeFetched(t *testing.T) {
	p := looking(tier("a", "True", "", ""))
	p.built.unfetched[bare(git())] = errors.New("no way there")
	c, err := p.sources(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if f := one(t, c.Findings, "source-artifact-unfetched"); !f.Blocks || !strings.Contains(f.Message, "no way there") {
		t.Errorf("got %+v", f)
	}
	// A source that Flux cannot fetch is told once.
	p.snapshot.Sources[0].Conditions = []metav1.Condition{{Type: "Ready", Status: "False", Message: "boom"}}
	if c, err = p.sources(t.Context()); err != nil || fmt.Sprint(rules(c)) != "[source-not-ready]" {
		t.Errorf("got %+v, %v", c.Findings, err)
	}
}

// TestRefusedCredentials: in the words of git servers and registries.
func TestRefusedCredentials(t *testing.T) {
	for _, tt := range []struct {
		condition metav1.Condition
		want      bool
	}{
		{metav1.Condition{Type: "FetchFailed", Status: "True", Reason: "AuthenticationFailed", Message: "secret not found"}, true},
		{metav1.Condition{Type: "Ready", Status: "False", Reason: "GitOperationFailed", Message: "failed to checkout and determine revision: unable to clone: authentication required: Unauthorized"}, true},
		{metav1.Condition{Type: "Ready", Status: "False", Message: "ssh: handshake failed: ssh: unable to authenticate, attempted methods [none publickey]"}, true},
		{metav1.Condition{Type: "Ready", Status: "False", Message: "failed to fetch: 401 Unauthorized"}, true},
		{metav1.Condition{Type: "Ready", Status: "False", Message: "commit 4014031 not found"}, false},
		{metav1.Condition{Type: "Ready", Status: "True", Message: "authentication required"}, false},
		{metav1.Condition{Type: "ArtifactInStorage", Status: "False", Message: "unauthorized"}, false},
	} {
		if got := refused([]metav1.Condition{tt.condition}); got != tt.want {
			t.Errorf("%+v: got %t", tt.condition, got)
		}
	}
}

// TestSinceWhenASourceFails: three failures in a row are a bad hour, more are
// worth a word.
func TestSinceWhenASourceFails(t *testing.T) {
	p := looking()
	p.snapshot.Taken = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	for after, says := range map[time.Duration]bool{time.Hour: false, 3 * time.Hour: false, 5 * time.Hour: true} {
		s := &flux.Source{Ref: git(), Interval: time.Hour, Artifact: &flux.Artifact{}, Conditions: []metav1.Condition{{
			Type: "Ready", Status: "False", Message: "boom", LastTransitionTime: metav1.NewTime(p.snapshot.Taken.Add(-after)),
		}}}
		f, _ := p.sourceFinding(s, 1)
		if strings.Contains(f.Message, "for 5 intervals") != says {
			t.Errorf("after %s: %s", after, f.Message)
		}
	}
}

// TestWedgesAreToldOnce: what another check says is not said again.
func TestWedgesAreToldOnce(t *testing.T) {
	for _, tt := range []struct {
		verdict wedge.Verdict
		want    bool
	}{
		{wedge.Verdict{Cause: wedge.ColdStart}, true},
		{wedge.Verdict{Cause: wedge.Cycle}, true},
		{wedge.Verdict{Cause: wedge.ControllerMissing, State: "scaled-to-zero"}, true},
		{wedge.Verdict{Cause: wedge.ControllerMissing, State: "absent"}, false},
		{wedge.Verdict{Cause: wedge.ReleaseUninstalling}, false},
		{wedge.Verdict{Cause: wedge.APIUnavailable}, false},
	} {
		if got := saidElsewhere(&tt.verdict); got != tt.want {
			t.Errorf("%+v: got %t", tt.verdict, got)
		}
	}
}

// TestGapsAreSaid: silence is no health.
func TestGapsAreSaid(t *testing.T) {
	p := looking(tier("a", "True", "", ""))
	known := ks("a")
	p.world = func() (*wedge.World, error) {
		return &wedge.World{Gaps: []wedge.Gap{{What: "Helm releases", Why: "forbidden"}, {What: "which kinds a lacks", Why: "x", Object: &known}}}, nil
	}
	c, err := p.wedges(t.Context())
	if err != nil || len(c.Findings) != 1 || c.Findings[0].Severity != finding.Warning || !strings.Contains(c.Findings[0].Message, "Helm releases could not be looked at: forbidden") {
		t.Errorf("got %+v, %v", c, err)
	}
}
