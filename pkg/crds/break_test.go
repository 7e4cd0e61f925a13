// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package crds

import (
	"errors"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/knowledge"
)

const kubeVirt = "apiVersion: kubevirt.io/v1\nkind: KubeVirt\nmetadata: {name: kubevirt, namespace: virt}\n"

// trigger is the one of a tier that holds these manifests and lacks the kinds
// which the first of them creates.
func trigger(t *testing.T, served *Served, manifests ...string) Trigger {
	t.Helper()
	d := judge(flux.Ref{Kind: flux.KustomizationKind, Namespace: "flux-system", Name: "tier"}, objects(t, manifests...), served, builtin(t), none)
	if len(d.Kept()) != 1 {
		t.Fatalf("triggers %+v, want one that is kept back", d.Triggers)
	}
	return d.Kept()[0]
}

// TestRefusals are those that need no look at the cluster; test/e2e has the
// others.
func TestRefusals(t *testing.T) {
	unserved := trigger(t, serving(), cdi, storageProfile)
	encrypted := trigger(t, serving("cdi.kubevirt.io/v1beta1/CDI"), cdi, storageProfile)
	encrypted.Object.Encrypted = true
	for want, tr := range map[string]Trigger{
		"CDI/cdi is not applied: its own CRD is not Established; the tier that installs KubeVirt CDI has not run yet: see `kubectl tiers`": unserved,
		"CDI/cdi is not applied: it holds encrypted values, which only Flux can decrypt":                                                   encrypted,
	} {
		err := (&Cluster{}).refuse(t.Context(), tr, Operator{})
		var refused *RefusedError
		if !errors.As(err, &refused) || refused.ExitCode() != 6 || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

// TestWhatFluxWouldNotApply is not applied in its place.
func TestWhatFluxWouldNotApply(t *testing.T) {
	d := &Diagnosis{Rejected: errors.New("Secret/vms/x is SOPS encrypted"), redact: func(err error) error { return err }}
	err := (&Cluster{}).stillKept(t.Context(), d, flux.Ref{Kind: "CDI", Name: "cdi"})
	var refused *RefusedError
	if !errors.As(err, &refused) || err.Error() != "CDI/cdi is not applied: Flux would not apply it either: Secret/vms/x is SOPS encrypted" {
		t.Errorf("got %v", err)
	}
}

func TestTheNamespaceThatATriggerNeeds(t *testing.T) {
	elsewhere := Operator{Deployment: flux.Ref{Kind: "Deployment", Namespace: "storage", Name: "cdi-operator"}}
	clusterWide := trigger(t, serving("cdi.kubevirt.io/v1beta1/CDI"), cdi, storageProfile)
	namespaced := trigger(t, serving("kubevirt.io/v1/KubeVirt"), kubeVirt,
		"apiVersion: kubevirt.io/v1\nkind: VirtualMachine\nmetadata: {name: x, namespace: vms}\n")
	// kustomize's namespace transformer gives one to every object.
	stamped := trigger(t, serving("cdi.kubevirt.io/v1beta1/CDI"), cdi, storageProfile)
	stamped.Object.SetNamespace("default")
	unknown := clusterWide
	unknown.Relation.Operator = nil
	for name, tt := range map[string]struct {
		trigger  Trigger
		operator Operator
		want     string
	}{
		"where the operator was seen":        {clusterWide, elsewhere, "storage"},
		"where it usually is":                {clusterWide, Operator{}, "cdi"},
		"its own":                            {namespaced, elsewhere, "virt"},
		"one that a cluster-wide one cannot": {stamped, Operator{}, "cdi"},
		"nobody knows":                       {unknown, Operator{}, ""},
	} {
		if got := tt.trigger.namespace(tt.operator); got != tt.want {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}

// TestOnlyTheLackingKindsAreWaitedFor: the operator of this cluster may be of a
// release that does not have them all.
func TestOnlyTheLackingKindsAreWaitedFor(t *testing.T) {
	tr := trigger(t, serving("cdi.kubevirt.io/v1beta1/CDI"), cdi, storageProfile, dataVolume)
	if got := tr.definitions(); !slices.Equal(got, []string{"datavolumes.cdi.kubevirt.io", "storageprofiles.cdi.kubevirt.io"}) {
		t.Errorf("got %q", got)
	}
	derived := trigger(t, serving("templates.gatekeeper.sh/v1/ConstraintTemplate"), template, constraint)
	if got := derived.definitions(); !slices.Equal(got, []string{"k8srequiredlabels.constraints.gatekeeper.sh"}) {
		t.Errorf("got %q", got)
	}
	if tr.Kinds() != "DataVolume and StorageProfile" || tr.String() != "CDI/cdi" {
		t.Errorf("%s creates %s", tr.String(), tr.Kinds())
	}
}

func TestATriggerIsNamedByWhatIsKnownOfIt(t *testing.T) {
	live := Trigger{Kind: schema.GroupKind{Group: "cdi.kubevirt.io", Kind: "CDI"}, Live: []flux.Ref{{Kind: "CDI", Name: "other"}}}
	if live.String() != "CDI/other" {
		t.Errorf("got %s", live.String())
	}
	live.Live = nil
	if live.String() != "CDI.cdi.kubevirt.io" {
		t.Errorf("got %s", live.String())
	}
}

func TestTheDeadlineSaysWhatTheOperatorDoes(t *testing.T) {
	err := &DeadlineError{
		Trigger: flux.Ref{Kind: "CDI", Name: "cdi"}, Waited: 5 * time.Minute, Missing: []string{"a", "b", "c"},
		Operator: Operator{System: "KubeVirt CDI"},
	}
	want := "CDI/cdi was applied, but after 5m0s these are not served: a, b and c\nno operator of KubeVirt CDI was seen on this cluster"
	if err.Error() != want || err.ExitCode() != 4 {
		t.Errorf("got %q, %d", err.Error(), err.ExitCode())
	}
}

func TestWhatACRDDefines(t *testing.T) {
	d := knowledge.DefinitionOf(objects(t, widgetCRD)[0].Unstructured)
	if d.Kind.Group != "obs.example.com" || d.Kind.Kind != "Widget" || !slices.Equal(d.Versions, []string{"v1"}) {
		t.Errorf("%+v: a version that is not served does not count", d)
	}
	d = knowledge.DefinitionOf(&unstructured.Unstructured{Object: map[string]any{"spec": "?"}})
	if d.Kind.Group != "" || d.Kind.Kind != "" || d.Versions != nil {
		t.Errorf("%+v of nonsense", d)
	}
}

// TestOneOfSeveralLiveTriggers: for kinds that follow from what the trigger
// says, one that says something else is none.
func TestOneOfSeveralLiveTriggers(t *testing.T) {
	d := &Diagnosis{Missing: []Missing{{Kind: schema.GroupVersionKind{Group: "constraints.gatekeeper.sh", Version: "v1beta1", Kind: "K8sRequiredLabels"}}}}
	live := []unstructured.Unstructured{
		*objects(t, "apiVersion: templates.gatekeeper.sh/v1\nkind: ConstraintTemplate\nmetadata: {name: other}\nspec: {crd: {spec: {names: {kind: Other}}}}\n")[0].Unstructured,
		*objects(t, "apiVersion: templates.gatekeeper.sh/v1\nkind: ConstraintTemplate\nmetadata: {name: broken}\n")[0].Unstructured,
		*objects(t, template)[0].Unstructured,
	}
	var gatekeeper knowledge.Relation
	for _, r := range builtin(t).ByTrigger(schema.GroupKind{Group: "templates.gatekeeper.sh", Kind: "ConstraintTemplate"}) {
		gatekeeper = r
	}
	got := d.creators(gatekeeper, live, []schema.GroupVersionKind{d.Missing[0].Kind})
	if len(got) != 1 || got[0].Name != "k8srequiredlabels" {
		t.Errorf("got %v", got)
	}
}
