// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package crds

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubestandup/kubestandup/pkg/finding"
)

const (
	// etcdLimit is how large one object may be, in bytes: etcd's flag
	// --max-request-bytes, which nobody raises without a need.
	etcdLimit = 1536 << 10
	// etcdMargin is for what the server adds: status, managed fields, times.
	etcdMargin = 16 << 10
)

// judgement is what is to be done about a CRD.
type judgement struct {
	act    Act
	reason Reason
	why    string
}

// judgeDefinition decides what is to be done about a CRD, by what is there; nil
// when nothing is. It is pure.
func judgeDefinition(wanted, there *unstructured.Unstructured) judgement {
	if size := sizeOf(wanted); size > etcdLimit-etcdMargin {
		return judgement{Refused, TooBig, fmt.Sprintf("it takes %d bytes and etcd stores at most %d in one object: "+
			"take a chart that ships it without descriptions, or smaller", size, etcdLimit)}
	}
	switch {
	case there == nil:
		return judgement{act: Created}
	case there.GetDeletionTimestamp() != nil:
		return judgement{Refused, Deleting, "it is being deleted, with every object of its kind; run this again when it has gone, " +
			"or see what holds it: kubectl unwedge"}
	}
	if others := specManagers(there); len(others) != 1 || others[0] != DefinitionManager {
		by := "nobody is recorded to manage its spec"
		if others = slices.DeleteFunc(others, func(m string) bool { return m == DefinitionManager }); len(others) > 0 {
			by = fmt.Sprintf("%s manages its spec", finding.And(others))
			if len(others) > 1 {
				by = fmt.Sprintf("%s manage its spec", finding.And(others))
			}
		}
		return judgement{Left, NotOurs, by}
	}
	if lost := lostVersions(wanted, there); len(lost) > 0 {
		return judgement{Refused, LosesStored, fmt.Sprintf("objects are stored in %s, which the chart's does not have any more, so they could not be read again: "+
			"migrate them and take the version out of status.storedVersions first, or take a chart between", finding.And(lost))}
	}
	return judgement{act: Updated}
}

// sizeOf is how many bytes the object takes in etcd, which holds CRDs as JSON.
func sizeOf(u *unstructured.Unstructured) int {
	raw, err := json.Marshal(u.Object)
	if err != nil {
		return 0 // the server will say what is wrong with it
	}
	return len(raw)
}

// specManagers are the field managers that own a part of the spec, sorted,
// each once. Whoever owns the authority of a conversion webhook alone is none:
// injecting it is what CA injectors are for.
func specManagers(crd *unstructured.Unstructured) []string {
	owners := map[string]bool{}
	for _, entry := range crd.GetManagedFields() {
		if spec, ok := ownedSpec(entry); ok && !onlyCABundle(spec) {
			owners[entry.Manager] = true
		}
	}
	return slices.Sorted(maps.Keys(owners))
}

func ownedSpec(entry metav1.ManagedFieldsEntry) (any, bool) {
	if entry.Subresource != "" || entry.FieldsV1 == nil {
		return nil, false
	}
	raw, err := json.Marshal(entry.FieldsV1)
	if err != nil {
		return nil, false
	}
	var fields map[string]any
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, false
	}
	spec, ok := fields["f:spec"]
	return spec, ok
}

func caBundlePath() []string { return []string{"conversion", "webhook", "clientConfig", "caBundle"} }

// onlyCABundle is true for fields that lead to the authority and nowhere else.
func onlyCABundle(fields any) bool {
	for _, name := range caBundlePath() {
		m, ok := fields.(map[string]any)
		if !ok {
			return false
		}
		delete(m, ".")
		if len(m) != 1 || m["f:"+name] == nil {
			return false
		}
		fields = m["f:"+name]
	}
	return true
}

// leaveCABundle does not ask for an authority where somebody else has set one.
func leaveCABundle(wanted, there *unstructured.Unstructured) {
	for _, entry := range there.GetManagedFields() {
		if entry.Manager == DefinitionManager {
			continue
		}
		if spec, ok := ownedSpec(entry); ok && onlyCABundle(spec) {
			unstructured.RemoveNestedField(wanted.Object, append([]string{"spec"}, caBundlePath()...)...)
		}
	}
}

// dropBlankCABundle takes out an authority that is none. Charts write one (the
// usual is Cg==, a line feed) for an injector to replace, and a server that is
// given it never serves the CRD: what resumes the injector would wait for ever.
func dropBlankCABundle(wanted *unstructured.Unstructured) {
	at := append([]string{"spec"}, caBundlePath()...)
	bundle, found, _ := unstructured.NestedString(wanted.Object, at...)
	if raw, err := base64.StdEncoding.DecodeString(bundle); found && err == nil && strings.TrimSpace(string(raw)) == "" {
		unstructured.RemoveNestedField(wanted.Object, at...)
	}
}

// lostVersions are those in which objects may be stored, and that the wanted
// CRD does not have.
func lostVersions(wanted, there *unstructured.Unstructured) []string {
	has := versionsOf(wanted)
	stored, _, _ := unstructured.NestedStringSlice(there.Object, "status", "storedVersions")
	return slices.DeleteFunc(stored, func(v string) bool { return has[v] != nil })
}

// versionsOf are the entries of spec.versions by name.
func versionsOf(crd *unstructured.Unstructured) map[string]map[string]any {
	list, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	all := map[string]map[string]any{}
	for _, v := range list {
		if m, ok := v.(map[string]any); ok {
			name, _ := m["name"].(string)
			all[name] = m
		}
	}
	return all
}

// sameObject is true when a rehearsed apply changes nothing.
func sameObject(rehearsed, there *unstructured.Unstructured) bool {
	plain := func(u *unstructured.Unstructured) map[string]any {
		u = u.DeepCopy()
		managers := owned(u)
		u.SetManagedFields(nil)
		u.SetResourceVersion("")
		u.SetGeneration(0)
		u.Object["fields"] = managers
		return u.Object
	}
	return equality.Semantic.DeepEqual(plain(rehearsed), plain(there))
}

// owned is what DefinitionManager owns, as text. A field that the chart has
// dropped is dropped by an apply, though another field of the same value stays.
func owned(u *unstructured.Unstructured) string {
	for _, entry := range u.GetManagedFields() {
		if entry.Manager == DefinitionManager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "" && entry.FieldsV1 != nil {
			raw, err := json.Marshal(entry.FieldsV1)
			if err == nil {
				return string(raw)
			}
		}
	}
	return ""
}

// differences are what the CRD lacks, or has otherwise than wanted. Versions
// that it has in addition do no harm.
func differences(there, wanted *unstructured.Unstructured) []string {
	var out []string
	has, needs := versionsOf(there), versionsOf(wanted)
	for _, name := range slices.Sorted(maps.Keys(needs)) {
		if has[name] == nil {
			out = append(out, fmt.Sprintf("version %s is missing", name))
			continue
		}
		for _, field := range slices.Sorted(maps.Keys(union(has[name], needs[name]))) {
			if equality.Semantic.DeepEqual(has[name][field], needs[name][field]) {
				continue
			}
			switch field {
			case "served", "storage":
				out = append(out, fmt.Sprintf("version %s has %s: %v, not %v", name, field, has[name][field], needs[name][field]))
			default:
				out = append(out, fmt.Sprintf("%s of version %s differs", field, name))
			}
		}
	}
	a, _, _ := unstructured.NestedMap(there.Object, "spec")
	b, _, _ := unstructured.NestedMap(wanted.Object, "spec")
	for _, field := range slices.Sorted(maps.Keys(union(a, b))) {
		if field != "versions" && !equality.Semantic.DeepEqual(a[field], b[field]) {
			out = append(out, fmt.Sprintf("spec.%s differs", strings.TrimSpace(field)))
		}
	}
	return out
}

func union(a, b map[string]any) map[string]any {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]any{}
	}
	maps.Copy(all, b)
	return all
}
