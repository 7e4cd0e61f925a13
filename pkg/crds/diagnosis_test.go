// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package crds

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/knowledge"
)

const (
	cdi            = "apiVersion: cdi.kubevirt.io/v1beta1\nkind: CDI\nmetadata: {name: cdi}\n"
	storageProfile = "apiVersion: cdi.kubevirt.io/v1beta1\nkind: StorageProfile\nmetadata: {name: longhorn-vm}\n"
	dataVolume     = "apiVersion: cdi.kubevirt.io/v1beta1\nkind: DataVolume\nmetadata: {name: golden, namespace: vms}\n"
	widget         = "apiVersion: obs.example.com/v1\nkind: Widget\nmetadata: {name: main, namespace: obs}\n"
	widgetClass    = "apiVersion: cdi.kubevirt.io/v1beta1\nkind: StorageProfile\nmetadata: {name: x}\n"
	release        = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: obs-operator, namespace: obs}\n"
	configMap      = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: vms}\n"
	widgetCRD      = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.obs.example.com}
spec:
  group: obs.example.com
  names: {kind: Widget, plural: widgets}
  versions: [{name: v1, served: true}, {name: v1alpha1, served: false}]
`
	template = `apiVersion: templates.gatekeeper.sh/v1
kind: ConstraintTemplate
metadata: {name: k8srequiredlabels}
spec: {crd: {spec: {names: {kind: K8sRequiredLabels}}}}
`
	constraint = "apiVersion: constraints.gatekeeper.sh/v1beta1\nkind: K8sRequiredLabels\nmetadata: {name: ns-owner}\n"
)

// objects builds what a tier holds; stages are as kustomize-controller has them.
func objects(t *testing.T, manifests ...string) []build.Object {
	t.Helper()
	var out []build.Object
	for _, m := range manifests {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(m), &u.Object); err != nil {
			t.Fatal(err)
		}
		out = append(out, build.Object{Unstructured: u, Stage: build.Stage(u, nil)})
	}
	return out
}

func ignored(o []build.Object, kind string) []build.Object {
	for i := range o {
		o[i].Ignored = o[i].GetKind() == kind
	}
	return o
}

// serving is a server that serves exactly these, as group/version/kind.
func serving(kinds ...string) *Served {
	s := &Served{kinds: map[schema.GroupVersionKind]Resource{}, unknown: map[schema.GroupVersion]error{}}
	for _, k := range append(kinds, "/v1/ConfigMap", "apiextensions.k8s.io/v1/CustomResourceDefinition", "helm.toolkit.fluxcd.io/v2/HelmRelease") {
		p := strings.Split(k, "/")
		s.kinds[schema.GroupVersionKind{Group: p[0], Version: p[1], Kind: p[2]}] = Resource{Plural: strings.ToLower(p[2]) + "s"}
	}
	return s
}

func builtin(t *testing.T) *knowledge.Base {
	t.Helper()
	base, err := knowledge.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	return base
}

func none(schema.GroupKind) []unstructured.Unstructured { return nil }

func TestJudge(t *testing.T) {
	const cdiKind = "cdi.kubevirt.io/v1beta1/CDI"
	exists := func(gk schema.GroupKind) []unstructured.Unstructured {
		if gk.Kind != "CDI" {
			return nil
		}
		return []unstructured.Unstructured{*objects(t, strings.Replace(cdi, "name: cdi", "name: of-another-tier", 1))[0].Unstructured}
	}
	otherTemplate := func(gk schema.GroupKind) []unstructured.Unstructured {
		if gk.Kind != "ConstraintTemplate" {
			return nil
		}
		return []unstructured.Unstructured{*objects(t, strings.ReplaceAll(template, "K8sRequiredLabels", "K8sOther"))[0].Unstructured}
	}
	tests := map[string]struct {
		objects []build.Object
		served  *Served
		live    func(schema.GroupKind) []unstructured.Unstructured
		want    Verdict
		missing string // kinds, in order
		kept    string // triggers
		says    string
	}{
		"incident 2: the trigger and its kind": {
			objects: objects(t, cdi, storageProfile, configMap), served: serving(cdiKind),
			want: Deadlock, missing: "StorageProfile", kept: "CDI/cdi", says: "no retry heals this",
		},
		"the whole missing set, not the one that Flux names": {
			objects: objects(t, dataVolume, cdi, storageProfile), served: serving(cdiKind),
			want: Deadlock, missing: "DataVolume StorageProfile", kept: "CDI/cdi", says: "DataVolume and StorageProfile",
		},
		"CRD-06: the trigger's own CRD is not there either": {
			objects: objects(t, cdi, dataVolume), served: serving(),
			want: Deadlock, missing: "CDI DataVolume", kept: "CDI/cdi",
		},
		"the trigger is on the cluster: the operator is slow": {
			objects: objects(t, cdi, storageProfile), served: serving(cdiKind), live: exists,
			want: Heals, missing: "StorageProfile", says: "has not created StorageProfile yet",
		},
		"the trigger is in another tier": {
			objects: objects(t, dataVolume), served: serving(cdiKind),
			want: Heals, missing: "DataVolume", says: "neither on the cluster nor in this tier",
		},
		"the trigger is not applied by Flux at all": {
			objects: ignored(objects(t, cdi, storageProfile), "CDI"), served: serving(cdiKind),
			want: Heals, missing: "StorageProfile",
		},
		"what is ignored is not missing": {
			objects: ignored(objects(t, cdi, storageProfile), "StorageProfile"), served: serving(cdiKind),
			want: NowServed,
		},
		"CRD-02: a CRD and its resource": {
			objects: objects(t, widgetCRD, widget), served: serving(), want: NowServed,
		},
		"CRD-01: a release of the same stage may bring it": {
			objects: objects(t, release, widget), served: serving(),
			want: Heals, missing: "Widget", says: "if HelmRelease/obs/obs-operator brings it, this is a deadlock",
		},
		"nothing known creates it": {
			objects: objects(t, widget), served: serving(),
			want: Heals, missing: "Widget", says: "nothing that is known creates Widget",
		},
		"CRD-12 of a second-order kind": {
			objects: objects(t, cdi, strings.Replace(storageProfile, "v1beta1", "v1alpha1", 1)), served: serving(cdiKind, "cdi.kubevirt.io/v1beta1/StorageProfile"),
			want: Heals, missing: "StorageProfile", says: "served as v1beta1 and not as v1alpha1",
		},
		"CRD-03: a template and its constraint": {
			objects: objects(t, template, constraint), served: serving("templates.gatekeeper.sh/v1/ConstraintTemplate"),
			want: Deadlock, missing: "K8sRequiredLabels", kept: "ConstraintTemplate/k8srequiredlabels",
		},
		"another template is no reason to expect this kind": {
			objects: objects(t, template, constraint), served: serving("templates.gatekeeper.sh/v1/ConstraintTemplate"), live: otherTemplate,
			want: Deadlock, missing: "K8sRequiredLabels", kept: "ConstraintTemplate/k8srequiredlabels",
		},
		"CRD-05: the kinds are there by now": {
			objects: objects(t, cdi, storageProfile), served: serving(cdiKind, "cdi.kubevirt.io/v1beta1/StorageProfile"),
			want: NowServed, says: "has only not looked again",
		},
		"CRD-12: served in another version": {
			objects: objects(t, widget), served: serving("obs.example.com/v1beta1/Widget"),
			want: Heals, missing: "Widget",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			live := tc.live
			if live == nil {
				live = none
			}
			d := judge(flux.Ref{Kind: "Kustomization", Name: "platform-config"}, tc.objects, tc.served, builtin(t), live)
			var missing, kept []string
			for _, m := range d.Missing {
				missing = append(missing, m.Kind.Kind)
			}
			for _, k := range d.Kept() {
				kept = append(kept, k.Object.Ref().String())
			}
			if d.Verdict != tc.want || strings.Join(missing, " ") != tc.missing || strings.Join(kept, " ") != tc.kept {
				t.Errorf("got %s, missing %v, kept %v; want %s, %q, %q", d.Verdict, missing, kept, tc.want, tc.missing, tc.kept)
			}
			if !strings.Contains(d.Why, tc.says) {
				t.Errorf("says %q, which does not hold %q", d.Why, tc.says)
			}
		})
	}
}

// TestATriggerThatWasAppliedInAnEarlierStage: what a missing kind of the last
// stage keeps back is the last stage, not what came before it.
func TestATriggerThatWasAppliedInAnEarlierStage(t *testing.T) {
	o := objects(t, cdi, widgetClass)
	o[0].Stage = build.StageClasses
	d := judge(flux.Ref{}, o, serving("cdi.kubevirt.io/v1beta1/CDI"), builtin(t), none)
	if d.Verdict != Heals || len(d.Kept()) != 0 {
		t.Errorf("got %s, kept %v", d.Verdict, d.Kept())
	}
}

// TestAGroupThatDiscoveryFailedFor: CRD-13, unknown is not absent.
func TestAGroupThatDiscoveryFailedFor(t *testing.T) {
	served := serving()
	served.unknown[schema.GroupVersion{Group: "obs.example.com", Version: "v1"}] = errors.New("503")
	d := judge(flux.Ref{}, objects(t, widget), served, builtin(t), nil)
	if d.Verdict != Heals || len(d.Missing) != 0 || len(d.Undecided) != 1 || !strings.Contains(d.Why, "cannot be said") {
		t.Errorf("got %+v", d)
	}
}

func TestOtherVersionsAreNamed(t *testing.T) {
	d := judge(flux.Ref{}, objects(t, widget), serving("obs.example.com/v1beta1/Widget"), builtin(t), nil)
	if !slices.Equal(d.Missing[0].OtherVersions, []string{"v1beta1"}) {
		t.Errorf("got %v", d.Missing[0].OtherVersions)
	}
}

func TestTheReportNamesWhoCreatesAKind(t *testing.T) {
	d := judge(flux.Ref{}, objects(t, cdi, storageProfile, widget), serving("cdi.kubevirt.io/v1beta1/CDI"), builtin(t),
		none)
	got := d.Report()
	if len(got) != 2 || !strings.Contains(got[0].CreatedBy, "KubeVirt CDI") || got[1].CreatedBy != "" {
		t.Errorf("got %+v", got)
	}
	if names := d.Kept()[0].definitions(); !slices.Equal(names, []string{"storageprofiles.cdi.kubevirt.io"}) {
		t.Errorf("waits for %v, of which the tier needs one", names)
	}
}
