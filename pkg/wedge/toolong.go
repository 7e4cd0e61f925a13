// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubestandup/kubestandup/pkg/tiers"
)

// ManagedFields is that an object's managedFields are of a version of its API
// that no longer declares them.
const ManagedFields Cause = "managed-fields-stale"

// applyFailures finds the tiers whose apply the API server refuses for what is
// on the cluster already, and which no retry changes. What helps is not for a
// program to do: it concerns objects that it does not own.
func applyFailures(w *World) []Verdict {
	return slices.DeleteFunc(refusedApplies(w), func(v Verdict) bool { return v.Cause == ManagedFields })
}

// managedFields are those of them that fail at managedFields (BIG-03).
func managedFields(w *World) []Verdict {
	return slices.DeleteFunc(refusedApplies(w), func(v Verdict) bool { return v.Cause != ManagedFields })
}

func refusedApplies(w *World) []Verdict {
	if w.Graph == nil {
		return nil
	}
	var all []Verdict
	for _, n := range w.Graph.Tiers() {
		if n.State != tiers.Retrying && n.State != tiers.Wedged || n.AwaitsDependencies() {
			continue
		}
		message := failure(n)
		var v *Verdict
		var said string
		switch {
		// Its limit is in two wordings (apimachinery field.TooLong, before and
		// since 1.32). A release record that is too big is another matter.
		case strings.Contains(message, "metadata.annotations: Too long"):
			said = line(message, "metadata.annotations: Too long")
			v = tooLong(said)
		case strings.Contains(message, "field not declared in schema"):
			said = line(message, "field not declared in schema")
			v = w.undeclared(said)
		default:
			said = line(message, "status.storedVersions[")
			v = w.unreadDefinition(said)
		}
		if v == nil {
			continue
		}
		v.evidence(n.Ref, "Ready", said)
		v.Object, v.State, v.ResolvesItself = n.Ref, "apply-refused", Never
		all = append(all, *v)
	}
	return all
}

// failure is all that the controller says of what failed.
func failure(n *tiers.Node) string {
	var b strings.Builder
	for _, c := range n.Conditions {
		if c.Status == metav1.ConditionFalse && (c.Type == "Ready" || c.Type == "Released") {
			b.WriteString(c.Message + "\n")
		}
	}
	return b.String()
}

// line is the line of a message that holds the words.
func line(message, words string) string {
	for l := range strings.Lines(message) {
		if strings.Contains(l, words) {
			return strings.TrimSpace(l)
		}
	}
	return firstLine(message)
}

// refusedObject is the object that a message says the API server refuses: as Flux
// names it, or as the API server does.
func refusedObject(message string) string {
	for _, form := range []string{`(\S+/\S+) (?:dry-run|apply) failed`, `\b([A-Z]\w+)\.[a-z0-9.]+ "([^"\s]+)" is invalid`} {
		if found := regexp.MustCompile(form).FindStringSubmatch(message); found != nil {
			return strings.Join(found[1:], "/")
		}
	}
	return ""
}

// tooLong: kubectl's client-side apply keeps the whole manifest in an
// annotation, and a big CRD does not fit (BIG-01).
func tooLong(message string) *Verdict {
	object := cmp.Or(refusedObject(message), "the object that the message names")
	return &Verdict{
		Cause:   TooLong,
		Summary: fmt.Sprintf("the annotations of %s are over the limit of 262144 bytes, so it cannot be applied", object),
		Why: "what fills them is kubectl.kubernetes.io/last-applied-configuration, which a client-side apply leaves behind and Flux neither needs nor removes; " +
			"a retry sends the same",
		Repair: fmt.Sprintf("remove that annotation from %s, on the cluster and in git if it stands there; "+
			"apply it server-side from then on (kubectl apply --server-side in scripts), which writes none", object),
	}
}

// undeclared: server-side apply cannot read what the object says of its owners.
func (w *World) undeclared(message string) *Verdict {
	object := cmp.Or(refusedObject(message), "the object that the message names")
	v := &Verdict{
		Cause:   ManagedFields,
		Summary: fmt.Sprintf("managedFields of %s are of an older version of its API, which had fields that this one does not", object),
		Why:     "server-side apply reads them at each attempt; this is no missing CRD, and a retry changes nothing",
		Repair: fmt.Sprintf("with kustomize-controller v1.8.4 or later, start it with --feature-gates=MigrateAPIVersion=true; "+
			"else remove the entries of the older apiVersion from metadata.managedFields of %s", object),
	}
	if c := w.Controllers[kustomizeController]; c != nil {
		v.evidence(c.Deployment, "image", c.Version)
	}
	return v
}

// unreadDefinition is BIG-04 and BIG-05 where the CRD could not be read: what
// is stored tells which of the two it is, so both are said. One that was read
// is judged by what it has stored: see storedVersions.
func (w *World) unreadDefinition(message string) *Verdict {
	at := regexp.MustCompile(`status\.storedVersions\[\d+\]: Invalid value: "([^"]+)"`).FindStringSubmatch(message)
	if at == nil {
		return nil
	}
	name := strings.TrimPrefix(refusedObject(message), "CustomResourceDefinition/")
	if slices.ContainsFunc(w.Definitions, func(d *Definition) bool { return d.Ref.Name == name }) {
		return nil
	}
	return &Verdict{
		Cause:   StoredVersions,
		Summary: fmt.Sprintf("CRD %s has stored objects as %s, and the manifest in git does not have that version", cmp.Or(name, "that the message names"), at[1]),
		Why:     "the API server takes no CRD that could not read what is stored; a retry sends the same",
		Repair: fmt.Sprintf("where git is older than the cluster, take the newer manifest into git; where it is newer, rewrite every object first "+
			"(for Flux's own CRDs: flux migrate), and take %s out of status.storedVersions only when each was rewritten. "+
			"Never delete the CRD, nor uninstall Flux: every object of the kind would go with it", at[1]),
	}
}
