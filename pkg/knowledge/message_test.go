// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package knowledge_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	ssaerrors "github.com/fluxcd/pkg/ssa/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/knowledge"
)

var profile = schema.GroupVersionKind{Group: "cdi.kubevirt.io", Version: "v1beta1", Kind: "StorageProfile"}

func of(gvk schema.GroupVersionKind, namespace, name string) knowledge.MissingKind {
	apiVersion := gvk.GroupVersion().String()
	return knowledge.MissingKind{
		Object: flux.Ref{APIVersion: apiVersion, Kind: gvk.Kind, Namespace: namespace, Name: name}, Kind: gvk, Certain: true,
	}
}

func deleted(m knowledge.MissingKind) knowledge.MissingKind {
	m.Deleting = true
	return m
}

func TestMissingKinds(t *testing.T) {
	volume := schema.GroupVersionKind{Group: "cdi.kubevirt.io", Version: "v1beta1", Kind: "DataVolume"}
	noVersion := schema.GroupVersionKind{Group: "cdi.kubevirt.io", Kind: "StorageProfile"}
	tests := []struct {
		name, message string
		want          []knowledge.MissingKind
	}{
		{
			"cluster-scoped", `StorageProfile/local dry-run failed: no matches for kind "StorageProfile" in version "cdi.kubevirt.io/v1beta1"`,
			[]knowledge.MissingKind{of(profile, "", "local")},
		},
		{
			"namespaced", `DataVolume/vms/d dry-run failed: no matches for kind "DataVolume" in version "cdi.kubevirt.io/v1beta1"`,
			[]knowledge.MissingKind{of(volume, "vms", "d")},
		},
		{
			"with the log of earlier stages", "StorageProfile/local dry-run failed: no matches for kind \"StorageProfile\" in version \"cdi.kubevirt.io/v1beta1\"\nNamespace/cdi created\nClusterRole/system:reader configured\n",
			[]knowledge.MissingKind{of(profile, "", "local")},
		},
		{
			"first miss of a new client", `StorageProfile/local dry-run failed: unable to retrieve the complete list of server APIs: cdi.kubevirt.io/v1beta1: no matches for cdi.kubevirt.io/v1beta1, Resource=`,
			[]knowledge.MissingKind{of(profile, "", "local")},
		},
		{
			"the same without an object", `unable to retrieve the complete list of server APIs: cdi.kubevirt.io/v1beta1: no matches for cdi.kubevirt.io/v1beta1, Resource=`,
			[]knowledge.MissingKind{{Kind: schema.GroupVersionKind{Group: "cdi.kubevirt.io", Version: "v1beta1"}, Certain: true}},
		},
		{
			"old controller", `StorageProfile/local dry-run failed, error: no matches for kind "StorageProfile" in version "cdi.kubevirt.io/v1beta1"`,
			[]knowledge.MissingKind{of(profile, "", "local")},
		},
		{
			"old controller with a reason", `DataVolume/vms/d dry-run failed, reason: NotFound, error: no matches for kind "DataVolume" in version "cdi.kubevirt.io/v1beta1"`,
			[]knowledge.MissingKind{of(volume, "vms", "d")},
		},
		{
			"with a reason", `DataVolume/vms/d dry-run failed (NotFound): no matches for kind "DataVolume" in version "cdi.kubevirt.io/v1beta1"`,
			[]knowledge.MissingKind{of(volume, "vms", "d")},
		},
		{
			"as an event", `Reconciliation failed after 1.2s, next try in 2m0s: StorageProfile/local dry-run failed: no matches for kind "StorageProfile" in version "cdi.kubevirt.io/v1beta1"`,
			[]knowledge.MissingKind{of(profile, "", "local")},
		},
		{
			"by group", `StorageProfile/local dry-run failed: no matches for kind "StorageProfile" in group "cdi.kubevirt.io"`,
			[]knowledge.MissingKind{{Object: flux.Ref{Kind: "StorageProfile", Name: "local"}, Kind: noVersion, Certain: true}},
		},
		{
			"in several versions", `StorageProfile/local dry-run failed: no matches for kind "StorageProfile" in versions ["cdi.kubevirt.io/v1beta1" "cdi.kubevirt.io/v1"]`,
			[]knowledge.MissingKind{of(profile, "", "local")},
		},
		{
			"core group", `Widget/a/b dry-run failed: no matches for kind "Widget" in version "v1"`,
			[]knowledge.MissingKind{of(schema.GroupVersionKind{Version: "v1", Kind: "Widget"}, "a", "b")},
		},
		{
			"name with a colon", `K/a:b:c dry-run failed: no matches for kind "K" in version "example.com/v1"`,
			[]knowledge.MissingKind{of(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "K"}, "", "a:b:c")},
		},
		{
			"CRD deleted under the controller", `CDI/cdi namespace not specified: the server could not find the requested resource`,
			[]knowledge.MissingKind{{Object: flux.Ref{Kind: "CDI", Name: "cdi"}, Kind: schema.GroupVersionKind{Kind: "CDI"}}},
		},
		{
			"namespaced CRD deleted under the controller", `DataVolume/vms/d not found: the server could not find the requested resource`,
			[]knowledge.MissingKind{{Object: flux.Ref{Kind: "DataVolume", Namespace: "vms", Name: "d"}, Kind: schema.GroupVersionKind{Kind: "DataVolume"}, Certain: true}},
		},
		{
			"pruning", `delete failed, errors: StorageProfile/local query failed: no matches for kind "StorageProfile" in version "cdi.kubevirt.io/v1beta1"`,
			[]knowledge.MissingKind{deleted(of(profile, "", "local"))},
		},
		{
			"pruning, first miss", `StorageProfile/local query failed: unable to retrieve the complete list of server APIs: cdi.kubevirt.io/v1beta1: no matches for cdi.kubevirt.io/v1beta1, Resource=`,
			[]knowledge.MissingKind{deleted(of(profile, "", "local"))},
		},
		{
			"Helm, all of them", "Helm install failed for release virt/cdi with chart cdi@1.0.0: unable to build kubernetes objects from release manifest: [resource mapping not found for name: \"local\" namespace: \"\" from \"\": no matches for kind \"StorageProfile\" in version \"cdi.kubevirt.io/v1beta1\"\nensure CRDs are installed first, resource mapping not found for name: \"d\" namespace: \"vms\" from \"\": no matches for kind \"DataVolume\" in version \"cdi.kubevirt.io/v1beta1\"\nensure CRDs are installed first]",
			[]knowledge.MissingKind{of(profile, "", "local"), of(volume, "vms", "d")},
		},
		{"a namespace is missing, not a kind", `HelmRelease/media/player not found: namespaces "media" not found`, nil},
		{"refused for another reason", `X/n dry-run failed (Forbidden): x is forbidden`, nil},
		{"timeout", `timeout waiting for: [CDI/cdi status: 'InProgress']`, nil},
		{"nothing", ``, nil},
		{"cut off", `StorageProfile/local dry-run failed: no matches for kind "StorageProfile" in vers`, nil},
		{"not of the API", `K/a dry-run failed: no matches for kind "K" in version "a/b/c"`, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := knowledge.MissingKinds(tt.message); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("%s\ngot  %+v\nwant %+v", tt.message, got, tt.want)
			}
		})
	}
}

// TestMissingKindsOfTheRealErrors: the messages that the libraries make now.
func TestMissingKindsOfTheRealErrors(t *testing.T) {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(profile)
	o.SetName("local")
	for _, cause := range []error{
		&meta.NoKindMatchError{GroupKind: profile.GroupKind(), SearchedVersions: []string{"v1beta1"}},
		&meta.NoResourceMatchError{PartialResource: profile.GroupVersion().WithResource("")},
	} {
		message := ssaerrors.NewDryRunErr(cause, o).Error()
		if got, want := knowledge.MissingKinds(message), []knowledge.MissingKind{of(profile, "", "local")}; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", message, got, want)
		}
	}
	if got := knowledge.MissingKinds(ssaerrors.NewDryRunErr(errors.New("other"), o).Error()); got != nil {
		t.Errorf("got %+v, want nothing", got)
	}
}

func FuzzMissingKinds(f *testing.F) {
	f.Add(`StorageProfile/local dry-run failed: no matches for kind "StorageProfile" in version "cdi.kubevirt.io/v1beta1"`)
	f.Add(`a/b/c query failed: no matches for kind "K" in versions ["g/v" "g/w"]`)
	f.Add(`CDI/cdi namespace not specified: the server could not find the requested resource`)
	f.Add("resource mapping not found for name: \"d\" namespace: \"vms\" from \"\": no matches for kind \"K\" in group \"g\"\n")
	f.Fuzz(func(t *testing.T, message string) {
		for _, m := range knowledge.MissingKinds(message) {
			for _, text := range []string{m.Kind.Kind, m.Object.Name, m.Object.Namespace} {
				if !strings.Contains(message, text) {
					t.Errorf("%q is not in the message", text)
				}
				if strings.ContainsAny(text, "\n") {
					t.Errorf("%q spans lines", text)
				}
			}
			if m.Kind.Empty() {
				t.Error("nothing is missing")
			}
		}
	})
}
