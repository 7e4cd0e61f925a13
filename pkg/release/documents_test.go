// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/releaseutil"
)

func describe(documents []Document) []string {
	var all []string
	for _, d := range documents {
		s := fmt.Sprintf("%d %s %s %s/%s", d.Index, d.APIVersion, d.Kind, d.Namespace, d.Name)
		if d.Keep {
			s += " keep"
		}
		all = append(all, s)
	}
	return all
}

func TestDocumentsOfTheRealHelmsRecords(t *testing.T) {
	for file, secret := range golden(t) {
		r, err := FromSecret(secret)
		if err != nil {
			t.Fatal(err)
		}
		documents, err := r.Documents()
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		want := []string{
			"0 v1 ConfigMap /" + r.Name,
			"1 v1 ConfigMap /" + r.Name + "-kept keep",
			"2 v1 Service /" + r.Name,
			"3 v1 ServiceAccount /" + r.Name,
			"3 rbac.authorization.k8s.io/v1 Role " + r.ReleaseNamespace + "/" + r.Name,
		}
		if got := describe(documents); !slices.Equal(got, want) {
			t.Errorf("%s:\n got %q\nwant %q", file, got, want)
		}
		for _, h := range r.Hooks {
			documents, err := h.Documents()
			if got := describe(documents); err != nil || !slices.Equal(got, []string{"0 batch/v1 Job /" + h.Name}) {
				t.Errorf("%s: hook %s: %q, %v", file, h.Name, got, err)
			}
		}
	}
}

func TestDocuments(t *testing.T) {
	for _, tt := range []struct {
		name, manifest string
		want           []string
	}{
		{"nothing", "", nil},
		{"comments and blanks", "---\n# Source: x\n---\n\n--- # one more\n{}\n---\nnull\n", nil},
		{
			"no hyphens, Windows lines, JSON",
			"apiVersion: v1\r\nkind: ConfigMap\r\nmetadata:\r\n  name: a\r\n---\r\n{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"metadata\":{\"name\":\"b\",\"namespace\":\"n\"}}",
			[]string{"0 v1 ConfigMap /a", "1 v1 Secret n/b"},
		},
		{
			"hyphens in a text",
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  x: |\n    ---\n    kind: no\n  y: \"---\"\n",
			[]string{"0 v1 ConfigMap /a"},
		},
		{
			"kept, whatever the value",
			"apiVersion: v1\nkind: A\nmetadata: {name: a, annotations: {helm.sh/resource-policy: ' Keep'}}\n---\n" +
				"apiVersion: v1\nkind: A\nmetadata: {name: b, annotations: {helm.sh/resource-policy: delete}}\n---\n" +
				"apiVersion: v1\nkind: A\nmetadata: {name: c, annotations: {other: keep, number: 1}}\n",
			[]string{"0 v1 A /a keep", "1 v1 A /b keep", "2 v1 A /c"},
		},
		{
			"lists",
			"apiVersion: v1\nkind: List\nmetadata: {annotations: {helm.sh/resource-policy: keep}}\nitems:\n- {apiVersion: v1, kind: A, metadata: {name: a}}\n---\n" +
				"apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleList\nitems:\n- metadata: {name: b}\n- {apiVersion: v1, kind: Other, metadata: {name: o}}\n- {apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: C, metadata: {name: c, annotations: {helm.sh/resource-policy: keep}}}]}\n---\n" +
				"apiVersion: v1\nkind: List\nitems:\n---\napiVersion: v1\nkind: List\nitems: []\n---\napiVersion: v1\nkind: D\nmetadata: {name: d}\n",
			[]string{"0 v1 A /a keep", "1 rbac.authorization.k8s.io/v1 Role /b", "1 v1 Other /o", "1 v1 C /c keep", "4 v1 D /d"},
		},
	} {
		documents, err := documents(tt.manifest)
		if got := describe(documents); err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, %v; want %q", tt.name, got, err, tt.want)
		}
	}
}

func TestDocumentsThatAreNone(t *testing.T) {
	const first = "apiVersion: v1\nkind: A\nmetadata: {name: a}\n---\n"
	for _, tt := range []struct{ name, manifest, want string }{
		{"not YAML", "a: b\n  " + marker + ": [", "document 1 of the manifest: it is not YAML: line "},
		{"a tab", "a:\n\t" + marker + ": b", "it is not YAML: line 2"},
		{"no such alias", "a: *" + marker, "it is not YAML"},
		{"a wrong tag", "a: !!float " + marker, "it is not YAML"},
		{"a text", marker, "it is not an object of Kubernetes"},
		{"a sequence", "- " + marker, "it is not an object of Kubernetes"},
		{"a name that is none", "apiVersion: v1\nkind: A\nmetadata: {name: {" + marker + ": 1}}", "it is not an object of Kubernetes"},
		{"items that are none", "apiVersion: v1\nkind: List\nitems: " + marker, "its items are not objects"},
		{"no kind", "apiVersion: v1\nmetadata: {name: " + marker + "}", "it has no apiVersion or no kind"},
		{"no apiVersion", "kind: A\nmetadata: {name: " + marker + "}", "it has no apiVersion or no kind"},
		{"no name", "apiVersion: v1\nkind: A\nmetadata: {generateName: " + marker + "}", "it has no name"},
		{"an item without a name", "apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: A}]", "it has no name"},
		{"more than a comment", "a: b\n---" + marker, "more than a comment"},
		{"lists without end", strings.Repeat("{apiVersion: v1, kind: List, items: [", 20) + strings.Repeat("]}", 20), "too many lists"},
	} {
		_, err := documents(first + tt.manifest)
		var bad *DocumentError
		if !errors.As(err, &bad) || bad.Index != 1 || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
			continue
		}
		if strings.Contains(fmt.Sprintf("%v %#v", err, err), marker) {
			t.Errorf("%s: %v quotes the manifest", tt.name, err)
		}
	}
}

func TestUninstallOrder(t *testing.T) {
	given := []Document{
		{Kind: "Namespace", Name: "n"},
		{Kind: "Zebra", Name: "z"},
		{Kind: "ConfigMap", Name: "b"},
		{Kind: "CDI", Name: "c2"},
		{Kind: "CustomResourceDefinition"},
		{Kind: "ConfigMap", Name: "a"},
		{Kind: "MutatingWebhookConfiguration"},
		{Kind: "CDI", Name: "c1"},
		{Kind: "ValidatingWebhookConfiguration"},
		{Kind: "Deployment"},
		{Kind: "Service"},
	}
	before := slices.Clone(given)
	var got []string
	for _, d := range UninstallOrder(given) {
		got = append(got, strings.TrimSuffix(d.Kind+"/"+d.Name, "/"))
	}
	want := []string{
		"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "Service", "Deployment", "CustomResourceDefinition",
		"ConfigMap/b", "ConfigMap/a", "Namespace/n", "CDI/c2", "CDI/c1", "Zebra/z",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if !slices.Equal(given, before) {
		t.Error("what was given is sorted too")
	}
}

// Helm 4's order is Helm 3's after the two kinds of webhook configurations.
func TestUninstallOrderIsHelms(t *testing.T) {
	if got := uninstallKinds()[2:]; !slices.Equal(got, []string(releaseutil.UninstallOrder)) {
		t.Errorf("%v, and Helm's is %v", got, releaseutil.UninstallOrder)
	}
}

// The documents are those that Helm 3 finds, in the order in which it sorts them.
func TestDocumentsAreHelms(t *testing.T) {
	for file, secret := range golden(t) {
		r, err := FromSecret(secret)
		if err != nil {
			t.Fatal(err)
		}
		_, sorted, err := releaseutil.SortManifests(releaseutil.SplitManifests(r.Manifest), nil, releaseutil.UninstallOrder)
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		for _, m := range sorted {
			if m.Head.Kind != "List" && m.Head.Metadata != nil { // else a comment
				want = append(want, m.Head.Kind+"/"+m.Head.Metadata.Name)
			}
		}
		documents, err := r.Documents()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, d := range UninstallOrder(documents) {
			if d.Index != 3 { // the List's
				got = append(got, d.Kind+"/"+d.Name)
			}
		}
		slices.Sort(got[1:]) // Helm's split loses the order within a kind
		slices.Sort(want[1:])
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, Helm's are %v", file, got, want)
		}
	}
}
