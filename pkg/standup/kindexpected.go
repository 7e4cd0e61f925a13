// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/knowledge"
)

// expected reports the CRDs of crds.expect that are not Established.
func (k *kindsLook) expected(ctx context.Context) error {
	names := k.env.File.CRDs.Expect
	if len(names) == 0 {
		return nil
	}
	look, err := k.served(ctx)
	if err != nil {
		return err
	}
	established := servedCRDs(look.Served)
	for _, name := range names {
		if established[name] {
			continue
		}
		why, err := k.env.CRDs.Unestablished(ctx, name)
		if why == "" && err == nil {
			continue
		}
		ref := flux.Ref{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: name}
		f := finding.Finding{
			Rule: "crd-expected", Severity: finding.Warning, Object: &ref,
			Message: fmt.Sprintf("%s, which crds.expect of standup.yaml names, is not served: %s", ref, why),
			Fix:     k.env.Command("standup", "crds"),
		}
		if err != nil {
			f.Severity, f.Message = finding.Error, fmt.Sprintf("whether %s is there could not be looked at: %v", ref, err)
		}
		if by := k.b.definesCRD(name); by != nil && err == nil {
			f.Severity = finding.Info
			f.Message += fmt.Sprintf("; it comes with %s", by.Tier)
			f.Fix = "wait for that tier"
		}
		k.findings = append(k.findings, f)
	}
	return nil
}

// definesCRD is the tier that builds a CRD, or a trigger that creates it; nil
// when none does.
func (b *builds) definesCRD(name string) *build.Followed {
	if o := b.objects[identity{"apiextensions.k8s.io", "CustomResourceDefinition", "", name}]; len(o) > 0 {
		return o[0].tier
	}
	base, err := knowledge.Builtin()
	if err != nil {
		return nil
	}
	for at, objects := range b.objects {
		for _, r := range base.ByTrigger(schema.GroupKind{Group: at.group, Kind: at.kind}) {
			for _, o := range objects {
				kinds, err := r.Derived(o.Unstructured)
				if err == nil && slices.ContainsFunc(kinds, func(k knowledge.Kind) bool { return k.CRD() == name }) {
					return o.tier
				}
			}
		}
	}
	return nil
}
