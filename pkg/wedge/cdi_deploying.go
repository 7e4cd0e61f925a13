// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/knowledge"
)

// cdiDeploying decides by objects what the operator's complaint about
// cdi-apiserver-signer-bundle means: that ConfigMap is filled by a Pod of one
// of its Deployments, and nobody has to make it by hand.
func (w *World) cdiDeploying(t *TriggerState, op *Workload) Verdict {
	v := Verdict{
		Cause: CDIError, Object: t.Ref, State: t.Phase, ResolvesItself: When,
		Why: "the operator goes on by itself; a missing ConfigMap cdi-apiserver-signer-bundle is a consequence, and is not to be made by hand",
	}
	w.evidenceCDI(&v, t, op)
	var absent, waiting []string
	for _, name := range []string{"cdi-apiserver", "cdi-deployment"} {
		i := slices.IndexFunc(w.Workloads, func(d *Workload) bool { return d.Ref.Namespace == op.Ref.Namespace && d.Ref.Name == name })
		switch {
		case i < 0:
			absent = append(absent, name)
			v.evidence(flux.Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: op.Ref.Namespace, Name: name}, "", "does not exist")
		case w.Workloads[i].Available == 0:
			d := w.Workloads[i]
			v.evidence(d.Ref, "status.availableReplicas", fmt.Sprintf("%d of %d", d.Available, d.Wanted))
			waiting = append(waiting, w.workloadKeeper(d).why)
		}
	}
	switch {
	case len(waiting) > 0:
		v.Summary = fmt.Sprintf("%s is being deployed and its Pods do not start: %s", t.Ref, strings.Join(waiting, "; "))
		v.ResolvesWhen = "as soon as its Pods are Ready"
		v.Repair = "mend what keeps the Pods from being scheduled or started: a nodeSelector or architecture that no node has " +
			"(spec.infra.nodePlacement, which has to be as the operator's own), or an image that cannot be pulled"
	case len(absent) > 0:
		v.Summary = fmt.Sprintf("%s is being deployed, and the operator has not made %s", t.Ref, strings.Join(absent, " and "))
		v.ResolvesWhen = "as soon as the operator gets as far as its Deployments"
		v.Repair = "look at the conditions and the events of the CDI resource: they say what the operator could not make"
		if op.Available == 0 {
			v.Repair = "mend what keeps the operator from running: " + w.workloadKeeper(op).why
		}
	default:
		v.Summary = fmt.Sprintf("%s is being deployed; its Deployments are available", t.Ref)
		v.ResolvesItself, v.ResolvesWhen = Itself, "as soon as the operator has looked again"
	}
	return v
}

// cdiIsMissing is true when CDI's first-order CRD is there and no resource.
func (w *World) cdiIsMissing() bool {
	d := w.definition(cdiKind())
	return d != nil && d.Deleted.IsZero() && !slices.ContainsFunc(w.Triggers, func(t *TriggerState) bool {
		return t.Ref.GroupVersionKind().GroupKind() == cdiKind()
	})
}

// cdiMissing is an operator that waits for the resource that sets it off.
func (w *World) cdiMissing() (Verdict, bool) {
	if !w.cdiIsMissing() || w.Unread[PartDefinitions] != "" {
		return Verdict{}, false
	}
	op := w.operator(&knowledge.Relation{Operator: &knowledge.Operator{Labels: map[string]string{"operator.cdi.kubevirt.io": "", "name": "cdi-operator"}}})
	if op == nil {
		return Verdict{}, false
	}
	v := Verdict{
		Cause: CDIError, Object: op.Ref, State: "no-resource", ResolvesItself: When,
		Summary:      "cdi-operator is there, and no CDI resource: it creates none of its CRDs, no cdi-apiserver and no cdi-apiserver-signer-bundle before there is one",
		ResolvesWhen: "as soon as a CDI resource is applied",
		Why:          "the operator waits for its resource",
		Repair:       "apply the CDI resource. The ConfigMap cdi-apiserver-signer-bundle is not to be made by hand",
	}
	v.evidence(w.definition(cdiKind()).Ref, "its objects", "none")
	for _, d := range w.Diagnoses {
		for i := range d.Triggers {
			if t := &d.Triggers[i]; t.Kind == cdiKind() && t.Object != nil {
				v.Repair = fmt.Sprintf("%s holds the CDI resource and is not applied: %s", d.Tier, d.Why)
				v.evidence(d.Tier, "build", d.Why)
			}
		}
	}
	return v, true
}
