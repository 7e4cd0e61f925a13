// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

// data reads the objects whose loss would be a loss of data.
func (r *apiReader) data(ctx context.Context) {
	d := &r.world.Data
	if d.Unknown = r.noDefinitions; d.Unknown != "" || !r.needsData() {
		return
	}
	for _, gk := range []schema.GroupKind{{Group: "kubevirt.io", Kind: "VirtualMachineInstance"}, {Group: "cdi.kubevirt.io", Kind: "DataVolume"}} {
		def := r.world.definition(gk)
		if def == nil || def.readable() == "" {
			continue
		}
		r.addData(ctx, query{path: pathOf(def.resource(), "")}, def.apiVersion(), gk.Kind, def.Plural)
	}
	// The label that CDI puts on every claim it fills (pkg/common CDILabelValue).
	r.addData(ctx, query{path: []string{"/api/v1/persistentvolumeclaims"}, selector: "app=containerized-data-importer"},
		"v1", "PersistentVolumeClaim", "persistentvolumeclaims")
}

func (r *apiReader) addData(ctx context.Context, q query, apiVersion, kind, plural string) {
	type item struct {
		Metadata fields `json:"metadata"`
		Status   struct {
			Phase text `json:"phase"`
		} `json:"status"`
	}
	found, err := all(ctx, r.lister, q, func(i *item) (Datum, bool) {
		o := Datum{Ref: i.Metadata.observed(apiVersion, kind).Ref, Plural: plural, Phase: string(i.Status.Phase)}
		switch kind {
		case "DataVolume":
			o.InFlight = !slices.Contains([]string{"Succeeded", "Failed", "Unset", ""}, o.Phase)
		case "PersistentVolumeClaim":
			o.Phase = i.Metadata.Annotations.ImportPhase
			o.InFlight = o.Phase != "" && o.Phase != "Succeeded" && o.Phase != "Failed"
			return o, o.InFlight // a claim that is filled is told by its DataVolume, or outlives it
		}
		return o, true
	})
	if err != nil {
		r.gap(kind+" in all namespaces", err)
		r.world.Data.Unknown = reason(err)
	}
	r.world.Data.Objects = append(r.world.Data.Objects, found...)
}

// needsData is true when a repair of what was seen could touch virtual machines
// or their disks.
func (r *apiReader) needsData() bool {
	for _, d := range r.world.Definitions {
		if virtual(d.Defines.Group) {
			return true
		}
	}
	return false
}

// lock reads the ConfigMap by which cdi-operator knows its CDI resource.
func (r *apiReader) lock(ctx context.Context) {
	for _, t := range r.world.Triggers {
		if t.Relation.ID != "cdi" || t.Phase == phaseDeployed && t.Deleted.IsZero() {
			continue
		}
		namespace := t.Relation.Operator.Namespace
		if d := r.world.operator(t.Relation); d != nil {
			namespace = d.Ref.Namespace
		}
		l := &Lock{Observed: Observed{Ref: flux.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: namespace, Name: "cdi-config"}}}
		m, found, err := object[struct {
			Metadata fields `json:"metadata"`
		}](ctx, r.lister, "/api/v1/namespaces", namespace, "configmaps", "cdi-config")
		switch {
		case err != nil:
			l.Unknown = reason(err)
			r.gap(l.Ref.String(), err)
		case found:
			l.Exists, l.Observed, l.Owner = true, m.Metadata.observed("v1", "ConfigMap"), m.Metadata.owner()
		}
		r.world.Lock = l
		return
	}
}
