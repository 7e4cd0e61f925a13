// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"sort"
	"testing"

	"github.com/fluxcd/pkg/ssa"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// everyKind has an object of each kind that Flux ranks, and of some that it does
// not, in two groups, namespaces and names each.
func everyKind() []*unstructured.Unstructured {
	kinds := slices.Concat(ssa.ReconcileOrder.First, ssa.ReconcileOrder.Last,
		[]string{"Pod", "APIService", "Kustomization", "ValidatingAdmissionPolicy", "VirtualMachineClass"})
	var all []*unstructured.Unstructured
	for _, kind := range kinds {
		for _, apiVersion := range []string{"v1", "a.example.com/v1", "z.example.com/v1"} {
			for _, namespace := range []string{"", "x-a", "x-b"} {
				for _, name := range []string{"one", "two"} {
					o := &unstructured.Unstructured{}
					o.SetAPIVersion(apiVersion)
					o.SetKind(kind)
					o.SetNamespace(namespace)
					o.SetName(name)
					all = append(all, o)
				}
			}
		}
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// TestOrderIsThatOfFlux sorts objects of one stage as the controller does.
func TestOrderIsThatOfFlux(t *testing.T) {
	theirs := everyKind()
	var ours []Object
	for _, o := range theirs {
		ours = append(ours, Object{Unstructured: o, Stage: StageRest})
	}
	sort.Sort(ssa.SortableUnstructureds(theirs))
	sortToApply(ours)
	for i, want := range theirs {
		if got := ours[i].Unstructured; got != want {
			t.Fatalf("at %d of %d: %s %s, want %s %s", i, len(theirs),
				got.GroupVersionKind(), got.GetNamespace()+"/"+got.GetName(), want.GroupVersionKind(), want.GetNamespace()+"/"+want.GetName())
		}
	}
}

// TestOrderIsByStageFirst has a webhook, the last of its stage, before a CRD.
func TestOrderIsByStageFirst(t *testing.T) {
	var all []Object
	for stage, kind := range map[int]string{
		StageRest: "CustomResourceDefinition", StageCustom: "Namespace", StageClasses: "Pod", StageDefinitions: "ValidatingWebhookConfiguration",
	} {
		o := &unstructured.Unstructured{}
		o.SetKind(kind)
		all = append(all, Object{Unstructured: o, Stage: stage})
	}
	sortToApply(all)
	for i, want := range []int{StageDefinitions, StageClasses, StageCustom, StageRest} {
		if all[i].Stage != want {
			t.Errorf("at %d: stage %d, want %d", i, all[i].Stage, want)
		}
	}
}

// TestOwnerLabelsAreThoseOfFlux marks an object with labels of its own, one of
// them an owner's, and one without any.
func TestOwnerLabelsAreThoseOfFlux(t *testing.T) {
	objects := func() []*unstructured.Unstructured {
		labelled, bare := &unstructured.Unstructured{}, &unstructured.Unstructured{}
		labelled.SetLabels(map[string]string{"a": "b", "kustomize.toolkit.fluxcd.io/name": "other"})
		return []*unstructured.Unstructured{labelled, bare}
	}
	ours, theirs := objects(), objects()
	setOwnerLabels(ours, "apps", "flux-system")
	ssa.NewResourceManager(nil, nil, ssa.Owner{Field: "kustomize-controller", Group: "kustomize.toolkit.fluxcd.io"}).
		SetOwnerLabels(theirs, "apps", "flux-system")
	if !reflect.DeepEqual(ours, theirs) {
		t.Errorf("ours %v and %v, theirs %v and %v", ours[0], ours[1], theirs[0], theirs[1])
	}
}
