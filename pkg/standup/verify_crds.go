// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// crds proves the CRDs of crds.expect: one whose kind is served is Established.
// Only of the others the cluster is asked why.
func (v *verify) crds(ctx context.Context) (Check, error) {
	c := Check{Name: "crds"}
	expected := v.env.File.CRDs.Expect
	if len(expected) == 0 {
		return c, nil
	}
	look, err := v.served(ctx)
	if err != nil {
		return c, err
	}
	established, good := servedCRDs(look.Served), 0
	for _, name := range expected {
		ref := flux.Ref{APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "CustomResourceDefinition", Name: name}
		_, counted := v.pieces[identityOf(ref)] // a tier has applied it, too
		if established[name] {
			good++
			if !counted {
				v.counts.Proved++
			}
			continue
		}
		if !counted {
			v.counts.Failed++
		}
		v.left.unserved = true
		why, err := v.notEstablished(ctx, name)
		if err != nil {
			return c, err
		}
		c.Findings = append(c.Findings, finding.Finding{
			Rule: "crd-missing", Severity: finding.Error, Object: &ref,
			Message: fmt.Sprintf("%s, which crds.expect of standup.yaml names, %s", ref, why),
			Fix:     v.env.Command("standup", "crds"),
		})
	}
	c.Message = fmt.Sprintf("%d of %d expected are Established", good, len(expected))
	return c, nil
}

// notEstablished is why the kind of a CRD is not served.
func (v *verify) notEstablished(ctx context.Context, name string) (string, error) {
	client, err := dynamic.NewForConfig(v.env.Config)
	if err != nil {
		return "", fmt.Errorf("client for %s: %w", v.env.Config.Host, err)
	}
	gvr := schema.GroupVersionResource{Group: apiextensionsv1.GroupName, Version: "v1", Resource: "customresourcedefinitions"}
	crd, err := client.Resource(gvr).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return "does not exist", nil
	case apierrors.IsForbidden(err):
		return "is not served, and why may not be asked: " + firstLine(err.Error()), nil
	case err != nil:
		return "", fmt.Errorf("get CustomResourceDefinition/%s: %w", name, err)
	}
	return whyNotServed(crd), nil
}

func whyNotServed(crd *unstructured.Unstructured) string {
	if crd.GetDeletionTimestamp() != nil {
		return "is being deleted"
	}
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	for _, item := range conditions {
		m, _ := item.(map[string]any)
		kind, _ := m["type"].(string)
		if message, _ := m["message"].(string); m["status"] == "False" && (kind == "NamesAccepted" || kind == "Established") {
			return "is not Established: " + firstLine(message)
		}
	}
	return "is not Established"
}
