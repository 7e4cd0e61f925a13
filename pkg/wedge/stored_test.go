// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"reflect"
	"strings"
	"testing"
)

func widgetsStored(versions []Version, stored ...string) *Definition {
	d := crd("obs.example.com", "Widget", "widgets", versions...)
	d.StoredVersions, d.Pruning = stored, &Pruning{}
	return d
}

func crdRefused(version, wording string) string {
	return `CustomResourceDefinition/widgets.obs.example.com dry-run failed (Invalid): CustomResourceDefinition.apiextensions.k8s.io "widgets.obs.example.com" is invalid: ` +
		`status.storedVersions[0]: Invalid value: "` + version + `": ` + wording
}

const (
	sinceMissing = "missing from spec.versions; v1beta1 was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in v1beta1"
	mustAppear   = "must appear in spec.versions"
)

// TestBIG04 is an upgrade that is refused because objects may be stored in a
// version that the new manifest has not: rewrite all, then take it off the
// status, then apply.
func TestBIG04(t *testing.T) {
	both := []Version{{"v1beta1", true, false}, {"v1", true, true}}
	for _, wording := range []string{sinceMissing, mustAppear} {
		w := apiWorld(
			defines(widgetsStored(both, "v1beta1", "v1"), crd("obs.example.com", "Other", "others")),
			fluxHas(kustomization("infra", isNot("Ready", "ReconciliationFailed", crdRefused("v1beta1", wording))), kustomization("apps", isSo("Ready", "x", ""))),
		)
		v := one(t, storedVersions(w))
		crd := "CustomResourceDefinition/widgets.obs.example.com"
		does(t, v, Never, "rewrite "+crd, "patch "+crd, "nudge Kustomization/flux-system/infra")
		mentions(t, v, "v1beta1, v1", "never deleted")
		if got := v.Actions[0].step.(rewriteStep).resource.String(); got != "obs.example.com/v1, Resource=widgets" {
			t.Errorf("it rewrites %s", got)
		}
		patch := v.Actions[1].step.(patchStep)
		want := []op{{"test", "/status/storedVersions", []string{"v1beta1", "v1"}}, {"replace", "/status/storedVersions", []string{"v1"}}}
		if patch.subresource != "status" || !reflect.DeepEqual(patch.ops, want) {
			t.Errorf("patch %+v", patch)
		}
	}
}

func TestBIG04BeforeTheUpgrade(t *testing.T) {
	crd := "CustomResourceDefinition/widgets.obs.example.com"
	unserved := []Version{{"v1beta1", false, false}, {"v1", true, true}}
	v := one(t, storedVersions(apiWorld(defines(widgetsStored(unserved, "v1beta1", "v1")))))
	does(t, v, Never, "rewrite "+crd, "patch "+crd)
	if v.State != "stored-unserved" {
		t.Errorf("state %s", v.State)
	}
	for what, tt := range map[string]struct {
		pruning *Pruning
		says    string
	}{
		"fields would be lost": {&Pruning{Fields: []string{".spec.a of v1beta1", ".spec.b[].c of v1beta1"}}, "the schema of v1 lacks fields that objects may hold: .spec.a of v1beta1, .spec.b[].c of v1beta1."},
		"very many":            {&Pruning{Fields: strings.Split(strings.Repeat("x", 12), "")}, ", and 2 more."},
		"it cannot be told":    {&Pruning{Unknown: "you may not"}, "could not be compared, so it cannot be told whether writing its objects as v1 would lose fields: you may not"},
		"nobody has looked":    {nil, "were not compared"},
	} {
		t.Run(what, func(t *testing.T) {
			d := widgetsStored(unserved, "v1beta1", "v1")
			d.Pruning = tt.pruning
			v := one(t, storedVersions(apiWorld(defines(d))))
			does(t, v, Never)
			if !strings.Contains(v.Refused, tt.says) {
				t.Errorf("refused: %s", v.Refused)
			}
			d.Conversion = &Conversion{}
			does(t, one(t, storedVersions(apiWorld(defines(d)))), Never, "rewrite "+crd, "patch "+crd) // the webhook's answer
		})
	}
	t.Run("the storage version is not among them", func(t *testing.T) {
		v := one(t, storedVersions(apiWorld(defines(widgetsStored(unserved, "v1beta1")))))
		does(t, v, Never)
		if v.Refused == "" {
			t.Error("it is not refused")
		}
	})
	for what, d := range map[string]*Definition{
		"one version":                  widgetsStored([]Version{{"v1", true, true}}, "v1"),
		"both are served":              widgetsStored([]Version{{"v1beta1", true, false}, {"v1", true, true}}, "v1beta1", "v1"),
		"an old one was never stored":  widgetsStored(unserved, "v1"),
		"the CRD itself is going away": goingCRD("obs.example.com", "Widget", "widgets"),
	} {
		t.Run(what, func(t *testing.T) { none(t, storedVersions(apiWorld(defines(d)))) })
	}
}

// TestBIG05 is the opposite: git is older than the cluster. Nothing on the
// cluster is changed.
func TestBIG05(t *testing.T) {
	now := []Version{{"v1beta1", true, false}, {"v1beta2", true, true}}
	v := one(t, storedVersions(apiWorld(
		defines(widgetsStored(now, "v1beta1", "v1beta2")),
		fluxHas(kustomization("flux-system", isNot("Ready", "ReconciliationFailed", crdRefused("v1beta2", mustAppear)))),
	)))
	does(t, v, Never)
	mentions(t, v, "git is older than the cluster", "Kustomization/flux-system/flux-system", "Nothing on the cluster is to be changed")
}

// Another CRD's refusal is not this one's, though the message names both.
func TestRefusalOfAnotherCRD(t *testing.T) {
	both := []Version{{"v1beta1", true, false}, {"v1", true, true}}
	text := `CustomResourceDefinition/widgets.obs.example.com configured; CustomResourceDefinition.apiextensions.k8s.io "others.obs.example.com" is invalid: ` +
		`status.storedVersions[0]: Invalid value: "v1beta1": ` + mustAppear
	none(t, storedVersions(apiWorld(
		defines(widgetsStored(both, "v1beta1", "v1")), fluxHas(kustomization("infra", isNot("Ready", "x", text))),
	)))
}
