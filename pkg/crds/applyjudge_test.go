// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package crds

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// definition is a CRD of these versions.
func definition(t *testing.T, versions ...string) *unstructured.Unstructured {
	t.Helper()
	var list []string
	for i, v := range versions {
		list = append(list, `{name: `+v+`, served: true, storage: `+map[bool]string{true: "true", false: "false"}[i == 0]+
			`, schema: {openAPIV3Schema: {type: object}}}`)
	}
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets}
  versions: [`+strings.Join(list, ", ")+`]
`), &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

type manages struct{ manager, subresource, fields string }

const (
	wholeSpec  = `{"f:spec":{"f:group":{},"f:versions":{}}}`
	authority  = `{"f:spec":{"f:conversion":{"f:webhook":{"f:clientConfig":{"f:caBundle":{}}}}}}`
	conversion = `{"f:spec":{"f:conversion":{"f:strategy":{},"f:webhook":{"f:clientConfig":{"f:caBundle":{}}}}}}`
	labelsOnly = `{"f:metadata":{"f:labels":{"f:x":{}}}}`
	statusOnly = `{"f:status":{"f:conditions":{}}}`
)

// managed is the CRD as a server has it.
func managed(u *unstructured.Unstructured, stored []string, all ...manages) *unstructured.Unstructured {
	u = u.DeepCopy()
	var entries []metav1.ManagedFieldsEntry
	for _, m := range all {
		entries = append(entries, metav1.ManagedFieldsEntry{
			Manager: m.manager, Operation: metav1.ManagedFieldsOperationApply, Subresource: m.subresource,
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(m.fields),
		})
	}
	u.SetManagedFields(entries)
	if err := unstructured.SetNestedStringSlice(u.Object, stored, "status", "storedVersions"); err != nil {
		panic(err)
	}
	return u
}

func TestWhatIsDoneAboutACRD(t *testing.T) {
	t.Parallel()
	wanted := definition(t, "v1", "v1beta1")
	ours := manages{DefinitionManager, "", wholeSpec}
	server := manages{"kube-apiserver", "status", statusOnly}
	big := wanted.DeepCopy()
	big.SetAnnotations(map[string]string{"x": strings.Repeat("x", etcdLimit)})
	going := managed(wanted, []string{"v1"}, ours)
	now := metav1.Now()
	going.SetDeletionTimestamp(&now)
	for _, tt := range []struct {
		name          string
		wanted, there *unstructured.Unstructured
		act           Act
		reason        Reason
		why           string
	}{
		{"nothing is there", wanted, nil, Created, "", ""},
		{"ours alone", wanted, managed(wanted, []string{"v1"}, ours, server), Updated, "", ""},
		{"others label it", wanted, managed(wanted, nil, ours, manages{"argocd", "", labelsOnly}), Updated, "", ""},
		{"others inject the authority", wanted, managed(wanted, nil, ours, manages{"cainjector", "", authority}), Updated, "", ""},
		{"others write its status", wanted, managed(wanted, nil, ours, manages{"x", "status", wholeSpec}), Updated, "", ""},
		{"others manage more of the conversion", wanted, managed(wanted, nil, ours, manages{"operator", "", conversion}), Left, NotOurs, "operator manages its spec"},
		{"others manage it", wanted, managed(wanted, nil, manages{"helm-controller", "", wholeSpec}, server), Left, NotOurs, "helm-controller manages its spec"},
		{"two others manage it with us", wanted, managed(wanted, nil, ours, manages{"b", "", wholeSpec}, manages{"a", "", wholeSpec}), Left, NotOurs, "a and b manage its spec"},
		{"another manages it with us", wanted, managed(wanted, nil, ours, manages{"zeal", "", wholeSpec}), Left, NotOurs, "zeal manages its spec"},
		{"nobody manages it", wanted, managed(wanted, nil), Left, NotOurs, "nobody is recorded to manage its spec"},
		{"a stored version would be lost", definition(t, "v1"), managed(wanted, []string{"v1alpha1", "v1beta1", "v1"}, ours), Refused, LosesStored, "objects are stored in v1alpha1 and v1beta1"},
		{"others' stored version is not our matter", definition(t, "v1"), managed(wanted, []string{"v1beta1"}, manages{"x", "", wholeSpec}), Left, NotOurs, "x manages"},
		{"too big, new", big, nil, Refused, TooBig, "etcd stores at most 1572864"},
		{"too big, there", big, managed(wanted, nil, ours), Refused, TooBig, "in one object"},
		{"being deleted", wanted, going, Refused, Deleting, "it is being deleted, with every object of its kind"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := judgeDefinition(tt.wanted, tt.there)
			if got.act != tt.act || got.reason != tt.reason || !strings.Contains(got.why, tt.why) {
				t.Errorf("got  %+v\nwant %s, %s, %s", got, tt.act, tt.reason, tt.why)
			}
		})
	}
}

// TestTheLargestCRD: what is just below the limit is sent.
func TestTheLargestCRD(t *testing.T) {
	t.Parallel()
	u := definition(t, "v1")
	u.SetAnnotations(map[string]string{"x": ""})
	room := etcdLimit - etcdMargin - sizeOf(u)
	u.SetAnnotations(map[string]string{"x": strings.Repeat("x", room)})
	if raw, _ := json.Marshal(u.Object); len(raw) != etcdLimit-etcdMargin {
		t.Fatalf("%d bytes", len(raw))
	}
	if got := judgeDefinition(u, nil); got.act != Created {
		t.Errorf("got %+v", got)
	}
	u.SetAnnotations(map[string]string{"x": strings.Repeat("x", room+1)})
	if got := judgeDefinition(u, nil); got.reason != TooBig {
		t.Errorf("got %+v", got)
	}
}

func TestTheAuthorityIsLeft(t *testing.T) {
	t.Parallel()
	with := func() *unstructured.Unstructured {
		u := definition(t, "v1")
		if err := unstructured.SetNestedField(u.Object, "Cg==", "spec", "conversion", "webhook", "clientConfig", "caBundle"); err != nil {
			t.Fatal(err)
		}
		return u
	}
	has := func(u *unstructured.Unstructured) bool {
		_, found, _ := unstructured.NestedString(u.Object, "spec", "conversion", "webhook", "clientConfig", "caBundle")
		return found
	}
	ours := manages{DefinitionManager, "", wholeSpec}
	u := with()
	leaveCABundle(u, managed(u, nil, ours, manages{"cainjector", "", authority}))
	if has(u) {
		t.Error("we would take the authority from who injects it")
	}
	u = with()
	leaveCABundle(u, managed(u, nil, ours, manages{DefinitionManager, "", authority}))
	if !has(u) {
		t.Error("our own authority is gone")
	}
}

func TestSameObject(t *testing.T) {
	t.Parallel()
	there := managed(definition(t, "v1"), []string{"v1"}, manages{DefinitionManager, "", wholeSpec})
	there.SetResourceVersion("7")
	there.SetGeneration(1)
	for _, tt := range []struct {
		name   string
		change func(*unstructured.Unstructured)
		same   bool
	}{
		{"nothing", func(*unstructured.Unstructured) {}, true},
		{"what an apply always changes", func(u *unstructured.Unstructured) {
			u.SetResourceVersion("8")
			entries := u.GetManagedFields()
			now := metav1.Now()
			entries[0].Time = &now
			u.SetManagedFields(entries)
		}, true},
		{"a label", func(u *unstructured.Unstructured) { u.SetLabels(map[string]string{"a": "b"}) }, false},
		{"the spec", func(u *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(u.Object, "Cluster", "spec", "scope")
		}, false},
		{"what we own", func(u *unstructured.Unstructured) {
			u.SetManagedFields(managed(u, nil, manages{DefinitionManager, "", labelsOnly}).GetManagedFields())
		}, false},
	} {
		rehearsed := there.DeepCopy()
		tt.change(rehearsed)
		if got := sameObject(rehearsed, there); got != tt.same {
			t.Errorf("%s: got %v", tt.name, got)
		}
	}
}

func TestDifferences(t *testing.T) {
	t.Parallel()
	wanted := definition(t, "v1", "v1beta1")
	for _, tt := range []struct {
		name   string
		change func(*unstructured.Unstructured) *unstructured.Unstructured
		want   []string
	}{
		{"none", func(u *unstructured.Unstructured) *unstructured.Unstructured { return u }, nil},
		{"one more version", func(*unstructured.Unstructured) *unstructured.Unstructured {
			return definition(t, "v1", "v1beta1", "v1alpha1")
		}, nil},
		{"a version less, and another is stored", func(*unstructured.Unstructured) *unstructured.Unstructured { return definition(t, "v1beta1") }, []string{
			"version v1 is missing", "version v1beta1 has storage: true, not false",
		}},
		{"names and a schema", func(u *unstructured.Unstructured) *unstructured.Unstructured {
			u = u.DeepCopy()
			_ = unstructured.SetNestedField(u.Object, "Gadget", "spec", "names", "kind")
			list, _, _ := unstructured.NestedSlice(u.Object, "spec", "versions")
			list[0].(map[string]any)["schema"] = map[string]any{}
			_ = unstructured.SetNestedSlice(u.Object, list, "spec", "versions")
			return u
		}, []string{"schema of version v1 differs", "spec.names differs"}},
	} {
		if got := differences(tt.change(wanted), wanted); !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestWhatTheServerSays about one CRD does not stop the others, and holds no
// secret.
func TestWhatTheServerSays(t *testing.T) {
	t.Parallel()
	a := Apply{Redact: func(err error) error {
		if text := strings.ReplaceAll(err.Error(), "secret", "*****"); text != err.Error() {
			return errors.New(text)
		}
		return err
	}}
	gr := schema.GroupResource{Resource: "customresourcedefinitions"}
	for _, err := range []error{
		apierrors.NewConflict(gr, "x", errors.New("a secret")),
		apierrors.NewInvalid(schema.GroupKind{Kind: "CustomResourceDefinition"}, "secret", nil),
		apierrors.NewBadRequest("a secret"),
		apierrors.NewRequestEntityTooLargeError("a secret"),
	} {
		one, fatal := (&Cluster{}).unsent(Applied{Name: "x"}, err, a)
		if fatal != nil || one.Act != Refused || one.Reason != NotAccepted || strings.Contains(one.Why, "secret") || !strings.Contains(one.Why, "*****") {
			t.Errorf("got %+v, %v", one, fatal)
		}
	}
	for _, err := range []error{apierrors.NewForbidden(gr, "x", errors.New("no")), errors.New("connection refused")} {
		if _, fatal := (&Cluster{}).unsent(Applied{Name: "x"}, err, a); !errors.Is(fatal, err) || fatal.Error() != "apply CRD x: "+err.Error() {
			t.Errorf("got %v", fatal)
		}
	}
}

func TestServedDeadline(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]*ServedDeadlineError{
		"after 1s these CRDs are not Established: a and b":                                  {Waited: 1e9, Missing: []string{"a", "b"}},
		"all CRDs are Established, but after 1s discovery does not show all of their kinds": {Waited: 1e9},
	} {
		if err.Error() != want || err.ExitCode() != 4 {
			t.Errorf("got %s (%d), want %s", err, err.ExitCode(), want)
		}
	}
}

func TestWhoCreates(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"storageprofiles.cdi.kubevirt.io": "creates it once it has reconciled a CDI",
		"cdis.cdi.kubevirt.io":            "registers it",
		"things.example.com":              "",
	} {
		got := whoCreates(builtin(t), name)
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func TestDropBlankCABundle(t *testing.T) {
	t.Parallel()
	at := append([]string{"spec"}, caBundlePath()...)
	for bundle, want := range map[string]bool{"Cg==": false, "": false, "IAo=": false, "LS0tLS1CRUdJTg==": true, "not base64": true} {
		u := definition(t, "v1")
		if err := unstructured.SetNestedField(u.Object, bundle, at...); err != nil {
			t.Fatal(err)
		}
		dropBlankCABundle(u)
		if got, found, _ := unstructured.NestedString(u.Object, at...); found != want || found && got != bundle {
			t.Errorf("%q: got %q, %t", bundle, got, found)
		}
	}
	u := definition(t, "v1")
	if dropBlankCABundle(u); !reflect.DeepEqual(u, definition(t, "v1")) {
		t.Errorf("got %v", u)
	}
}
