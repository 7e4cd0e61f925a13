// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/crds"
	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/knowledge"
	"github.com/kubestandup/kubestandup/pkg/standup/config"
	"github.com/kubestandup/kubestandup/pkg/wedge"
)

const (
	widgetCRD = "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: widgets.example.com}, " +
		"spec: {group: example.com, names: {kind: Widget}, versions: [{name: v1, served: true}, {name: v0, served: false}]}}"
	widgetSystem = "{apiVersion: example.com/v1, kind: WidgetSystem, metadata: {name: sys}}"
	release      = "{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {name: widgets, namespace: apps}}"
)

func widget() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
}

// creates is a relation by which Widgets come to be.
func widgetRelation(triggers ...knowledge.Trigger) knowledge.Relation {
	return knowledge.Relation{
		ID: "widgets", System: "Widgets", Triggers: triggers,
		Creates: []knowledge.Kind{{Group: "example.com", Kind: "Widget", Plural: "widgets"}},
	}
}

func widgetTrigger() knowledge.Trigger {
	return knowledge.Trigger{Group: "example.com", Kind: "WidgetSystem", Plural: "widgetsystems"}
}

// lacking is a look in which tier "user" lacks the Widgets.
func lacking(p *preflight, edit func(*crds.Diagnosis)) *preflight {
	p.crdsLook = &crds.Look{}
	for i := range p.built.all {
		d := &crds.Diagnosis{Tier: p.built.all[i].Tier, Verdict: crds.NowServed}
		if d.Tier.Name == "user" {
			d.Verdict = crds.Heals
			d.Missing = []crds.Missing{{Kind: widget()}}
			edit(d)
		}
		p.judged[bare(d.Tier)] = d
	}
	return p
}

// TestWhyAKindIsMissing: each cause, and that what comes by itself is no
// trouble.
func TestWhyAKindIsMissing(t *testing.T) {
	relation := widgetRelation(widgetTrigger())
	start := widgetRelation()
	nothing := func(*crds.Diagnosis) {}
	by := func(r knowledge.Relation) func(*crds.Diagnosis) {
		return func(d *crds.Diagnosis) { d.Missing[0].CreatedBy = []knowledge.Relation{r} }
	}
	running := crds.Operator{System: "Widgets", Deployment: flux.Ref{Kind: "Deployment", Name: "operator"}, Wanted: 1, Available: 1}
	down := running
	down.Available, down.Pods = 0, []string{"Pod operator-0 is not Ready: ImagePullBackOff"}
	for name, tt := range map[string]struct {
		maker, user string
		objects     []string // of maker
		beside      []string // of user
		diagnosis   func(*crds.Diagnosis)
		definition  *wedge.Definition
		operator    crds.Operator
		rule        string
		severity    finding.Severity
		says        string
	}{
		"nobody knows": {diagnosis: nothing, rule: "kind-unknown", severity: finding.Error, says: "no tier builds its CRD"},
		"an earlier tier has the CRD": {
			user: "{dependsOn: [{name: maker}]}", objects: []string{widgetCRD}, diagnosis: nothing,
			rule: "kind-later", severity: finding.Info, says: "it comes with Kustomization/flux-system/maker",
		},
		"another tier has the CRD": {
			objects: []string{widgetCRD}, diagnosis: nothing,
			rule: "kind-race", severity: finding.Warning, says: "add dependsOn: [{name: maker, namespace: flux-system}]",
		},
		"a later tier has the CRD": {
			maker: "{dependsOn: [{name: user}]}", objects: []string{widgetCRD}, diagnosis: nothing,
			rule: "kind-too-late", severity: finding.Error, says: "applied only after what needs it",
		},
		"an earlier tier has the trigger": {
			user: "{dependsOn: [{name: maker}]}", objects: []string{widgetSystem}, diagnosis: by(relation),
			rule: "kind-later", severity: finding.Info, says: "once the operator has reconciled its WidgetSystem/sys",
		},
		"another tier has the trigger": {
			objects: []string{widgetSystem}, diagnosis: by(relation), rule: "kind-race", severity: finding.Warning, says: "no edge says",
		},
		"the trigger is nowhere": {
			diagnosis: by(relation), operator: running, rule: "kind-untriggered", severity: finding.Error,
			says: "Widgets creates it when it reconciles a WidgetSystem, and there is none",
		},
		"its operator starts with it": {
			diagnosis: by(start), operator: running, rule: "kind-awaited", severity: finding.Warning, says: "Widgets registers it when it starts",
		},
		"the trigger is applied": {
			diagnosis: func(d *crds.Diagnosis) {
				by(relation)(d)
				d.Triggers = []crds.Trigger{{Relation: relation, Creates: []schema.GroupVersionKind{widget()}, Live: []flux.Ref{{Kind: "WidgetSystem", Name: "live"}}}}
			}, operator: running,
			rule: "kind-awaited", severity: finding.Warning, says: "WidgetSystem/live is on the cluster, and its operator has not created it",
		},
		"the trigger is applied, the operator is down": {
			diagnosis: func(d *crds.Diagnosis) {
				by(relation)(d)
				d.Triggers = []crds.Trigger{{Relation: relation, Creates: []schema.GroupVersionKind{widget()}, Live: []flux.Ref{{Kind: "WidgetSystem", Name: "live"}}}}
			}, operator: down,
			rule: "kind-awaited", severity: finding.Error, says: "Pod operator-0 is not Ready: ImagePullBackOff",
		},
		"another version": {
			diagnosis: func(d *crds.Diagnosis) { d.Missing[0].OtherVersions = []string{"v1beta1"} },
			rule:      "kind-version", severity: finding.Error, says: "is served as v1beta1 and not as v1",
		},
		"names are taken": {
			diagnosis: nothing, definition: &wedge.Definition{
				Defines: widget().GroupKind(), Conditions: []metav1.Condition{{Type: "NamesAccepted", Status: "False", Reason: "KindConflict", Message: "taken"}},
			},
			rule: "kind-not-established", severity: finding.Error, says: "is not NamesAccepted: KindConflict: taken",
		},
		"stale discovery": {
			diagnosis: nothing, definition: &wedge.Definition{
				Defines: widget().GroupKind(), Conditions: []metav1.Condition{{Type: "Established", Status: "True"}},
			},
			rule: "kind-stale-discovery", severity: finding.Warning, says: "is Established",
		},
		"a release comes first": {
			user: "{dependsOn: [{name: maker}]}", objects: []string{release}, diagnosis: nothing,
			rule: "kind-later", severity: finding.Info, says: "HelmRelease/apps/widgets",
		},
		"a release without an edge": {
			objects: []string{release}, diagnosis: nothing, rule: "kind-race", severity: finding.Warning, says: "HelmRelease/apps/widgets",
		},
		"a release beside it": {
			beside: []string{release},
			diagnosis: func(d *crds.Diagnosis) {
				d.Bringers = []flux.Ref{{Kind: "HelmRelease", Namespace: "apps", Name: "widgets"}}
			},
			rule: "kind-perhaps-deadlock", severity: finding.Error, says: "if HelmRelease/apps/widgets brings it, this is a deadlock",
		},
		"nobody can say": {
			diagnosis: func(d *crds.Diagnosis) { d.Missing, d.Undecided = nil, []schema.GroupVersionKind{widget()} },
			rule:      "kind-undecided", severity: finding.Error, says: "kubectl standup unwedge apiservice/v1.example.com",
		},
		"a deadlock that has not happened": {
			beside: []string{widgetSystem},
			diagnosis: func(d *crds.Diagnosis) {
				by(relation)(d)
				d.Verdict, d.Why = crds.Deadlock, "deadlock: WidgetSystem/sys would create Widget"
				d.Triggers = []crds.Trigger{{Relation: relation, Creates: []schema.GroupVersionKind{widget()}, Kept: true, Object: &build.Object{}}}
			}, operator: down,
			rule: "crd-deadlock", severity: finding.Error, says: "it has not failed by it yet: suspended",
		},
		"a deadlock although a later tier has the trigger too": {
			maker: "{dependsOn: [{name: user}]}", objects: []string{widgetSystem}, beside: []string{widgetSystem},
			diagnosis: func(d *crds.Diagnosis) {
				by(relation)(d)
				d.Verdict = crds.Deadlock
				d.Triggers = []crds.Trigger{{Relation: relation, Creates: []schema.GroupVersionKind{widget()}, Kept: true, Object: &build.Object{}}}
			}, operator: running,
			rule: "crd-deadlock", severity: finding.Error, says: "the operator of Widgets, Deployment/operator, has 1 of 1 replicas available",
		},
		"a race where another tier has the trigger too": {
			objects: []string{widgetSystem}, beside: []string{widgetSystem},
			diagnosis: func(d *crds.Diagnosis) {
				by(relation)(d)
				d.Verdict = crds.Deadlock
				d.Triggers = []crds.Trigger{{Relation: relation, Creates: []schema.GroupVersionKind{widget()}, Kept: true, Object: &build.Object{}}}
			},
			rule: "kind-race", severity: finding.Warning, says: "add dependsOn",
		},
		"no deadlock where an earlier tier has the trigger too": {
			user: "{dependsOn: [{name: maker}]}", objects: []string{widgetSystem}, beside: []string{widgetSystem},
			diagnosis: func(d *crds.Diagnosis) {
				by(relation)(d)
				d.Verdict = crds.Deadlock
				d.Triggers = []crds.Trigger{{Relation: relation, Creates: []schema.GroupVersionKind{widget()}, Kept: true, Object: &build.Object{}}}
			},
			rule: "kind-later", severity: finding.Info, says: "it comes with Kustomization/flux-system/maker",
		},
	} {
		t.Run(name, func(t *testing.T) {
			spec := func(s string) string {
				if s == "" {
					return "{}"
				}
				return s
			}
			p := lacking(lookingAtBuilds(builtTier(t, "maker", spec(tt.maker), tt.objects...), builtTier(t, "user", spec(tt.user), tt.beside...)), tt.diagnosis)
			p.operators["widgets"] = tt.operator
			if tt.definition != nil {
				tt.definition.Ref = flux.Ref{Kind: "CustomResourceDefinition", Name: "widgets.example.com"}
				p.world = func() (*wedge.World, error) {
					return &wedge.World{API: wedge.API{Definitions: []*wedge.Definition{tt.definition}}}, nil
				}
			}
			c, err := p.kinds(t.Context())
			if err != nil || len(c.Findings) != 1 {
				t.Fatalf("got %+v, %v", c.Findings, err)
			}
			f := c.Findings[0]
			if f.Rule != tt.rule || f.Severity != tt.severity || f.Blocks || f.Fix == "" || !strings.Contains(text(f), tt.says) || f.Tier.Name != "user" {
				t.Errorf("got %+v", f)
			}
			if f.Rule != ruleDeadlock && (len(f.Missing) != 1 || f.Missing[0].Kind != "Widget" || !strings.Contains(f.Message, "Widget ")) {
				t.Errorf("got %+v", f)
			}
		})
	}
}

// TestTiersThatWillNotBuild are told before they are resumed, and once.
func TestTiersThatWillNotBuild(t *testing.T) {
	broken := func(err error, spec string) build.Followed {
		f := builtTier(t, "broken", spec)
		f.Result, f.Err = nil, err
		return f
	}
	for name, tt := range map[string]struct {
		tier     build.Followed
		retrying bool
		severity finding.Severity
	}{
		"not tried yet":    {broken(errors.New("no such file"), "{}"), false, finding.Error},
		"a remote base":    {broken(&build.RemoteBaseError{Base: "https://x", File: "y"}, "{}"), false, finding.Warning},
		"it says so":       {broken(errors.New("no such file"), "{}"), true, ""},
		"variables say so": {broken(errors.New("substitute from 'ConfigMap/vars' error: not found"), fromMap), false, ""},
	} {
		p := lookingAtBuilds(tt.tier)
		if tt.retrying {
			p = lookingAt(&flux.Snapshot{Tiers: []flux.Tier{tier("broken", "False", "BuildFailed", "no such file")}}, tt.tier)
		}
		c, err := lacking(p, nil).kinds(t.Context())
		if err != nil || (len(c.Findings) == 1) != (tt.severity != "") || tt.severity != "" && c.Findings[0].Severity != tt.severity {
			t.Errorf("%s: got %+v, %v", name, c.Findings, err)
		}
		if !strings.Contains(c.Message, "of 1 nothing is known") {
			t.Errorf("%s: got %q", name, c.Message)
		}
	}
}

// TestTiersOfOtherClusters: what a kubeConfig leads to serves other kinds.
func TestTiersOfOtherClusters(t *testing.T) {
	p := lacking(lookingAtBuilds(builtTier(t, "user", "{kubeConfig: {secretRef: {name: x}}}")), func(*crds.Diagnosis) {})
	if c, err := p.kinds(t.Context()); err != nil || len(c.Findings) != 0 {
		t.Errorf("got %+v, %v", c, err)
	}
}

// TestAnExpectedCRDThatMayNotBeLookedAt is no CRD that is there.
func TestAnExpectedCRDThatMayNotBeLookedAt(t *testing.T) {
	cfg, served := (&wire{}).serve(t)
	base, err := knowledge.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	p := lookingAtBuilds()
	p.crdsLook = &crds.Look{Served: served}
	p.env.File.CRDs.Expect = []string{"things.example.org", "gone.example.org"}
	if p.env.CRDs, err = crds.New(cfg, nil, base); err != nil {
		t.Fatal(err)
	}
	k := &kindsLook{preflight: p, b: p.built}
	if err := k.expected(t.Context()); err != nil || len(k.findings) != 1 {
		t.Fatalf("got %+v, %v", k.findings, err)
	}
	if f := k.findings[0]; f.Severity != finding.Error || f.Object.Name != "gone.example.org" || !strings.Contains(f.Message, "could not be looked at") || !strings.Contains(f.Message, "forbidden") {
		t.Errorf("got %+v", f)
	}
}

// TestOneCauseIsOneFinding, however many tiers lack however many kinds.
func TestOneCauseIsOneFinding(t *testing.T) {
	p := lookingAtBuilds(builtTier(t, "user", "{}"), builtTier(t, "other", "{}"))
	p = lacking(p, func(d *crds.Diagnosis) {
		gadget := widget()
		gadget.Kind = "Gadget"
		d.Missing = append(d.Missing, crds.Missing{Kind: gadget})
	})
	p.judged[bare(ks("other"))].Missing = []crds.Missing{{Kind: widget()}}
	c, err := p.kinds(t.Context())
	if err != nil || len(c.Findings) != 1 || len(c.Findings[0].Missing) != 2 || len(c.Findings[0].Causes) != 2 ||
		!strings.HasPrefix(c.Findings[0].Message, "Widget, Gadget is not served") {
		t.Errorf("got %+v, %v", c.Findings, err)
	}
}

// TestKindsThatTheStepBrings: what standup.yaml expects, and names charts for,
// is no riddle.
func TestKindsThatTheStepBrings(t *testing.T) {
	chart := []config.FromChart{{HelmRelease: "apps/widgets"}}
	for _, tt := range []struct {
		file config.CRDs
		want bool
	}{
		{config.CRDs{Expect: []string{"widgets.example.com"}, FromCharts: chart}, true},
		{config.CRDs{Expect: []string{"widgets.example.com"}}, false},
		{config.CRDs{Expect: []string{"gears.example.com", "widgets.example.org"}, FromCharts: chart}, false},
	} {
		p := lookingAtBuilds()
		p.env.File = &config.Config{CRDs: tt.file}
		cause, ok := (&kindsLook{preflight: p}).byStep(nil, nil, &crds.Missing{Kind: widget()})
		if ok != tt.want || ok && (cause.severity != finding.Info || !strings.Contains(cause.fix, "standup crds")) {
			t.Errorf("%+v: got %+v, %t", tt.file, cause, ok)
		}
	}
}
