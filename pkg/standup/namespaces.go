// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/pager"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// listNamespaces takes one LIST of metadata a page.
func listNamespaces(ctx context.Context, cfg *rest.Config) (map[string]bool, error) {
	client, err := metadata.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	there := map[string]bool{}
	list := func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).List(ctx, o)
	}
	err = pager.New(list).EachListItem(ctx, metav1.ListOptions{}, func(o runtime.Object) error {
		there[o.(*metav1.PartialObjectMetadata).Name] = true
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list namespaces: %w", err)
	}
	return there, nil
}

// namespaces reports the Namespaces that objects of a tier are in and that will
// not be there when it is applied (CRD-15): like a kind that is not served, that
// keeps back all of a stage.
func (k *kindsLook) namespaces(there map[string]bool) {
	made := map[string][]built{}
	for at, objects := range k.b.objects {
		if at.kind == "Namespace" && at.group == "" {
			made[at.name] = objects
		}
	}
	at := map[string]int{}
	for i := range k.b.all {
		f := &k.b.all[i]
		if f.Result == nil || isRemote(f.Kustomization) {
			continue
		}
		in := map[string]flux.Ref{}
		for _, o := range f.Result.Objects {
			ns := o.GetNamespace()
			if _, known := in[ns]; ns != "" && !there[ns] && !known && !o.Ignored && k.namespaced(o) {
				in[ns] = o.Ref()
			}
		}
		for _, ns := range slices.Sorted(maps.Keys(in)) {
			found, bad := k.namespaceFinding(f, ns, in[ns], made[ns])
			if !bad {
				continue
			}
			if i, told := at[found.Message]; told {
				k.findings[i].Causes = append(k.findings[i].Causes, found.Causes...)
				continue
			}
			at[found.Message] = len(k.findings)
			k.findings = append(k.findings, found)
		}
	}
}

// namespaced is false for an object of a kind that is served, and in no
// namespace, whatever its manifest says.
func (k *kindsLook) namespaced(o build.Object) bool {
	if k.crdsLook == nil || k.crdsLook.Served == nil {
		return true
	}
	res, served := k.crdsLook.Served.Resource(o.GroupVersionKind())
	return !served || res.Namespaced
}

func (k *kindsLook) namespaceFinding(f *build.Followed, ns string, object flux.Ref, by []built) (finding.Finding, bool) {
	found := finding.Finding{
		Rule: "namespace-missing", Severity: finding.Error, Tier: &f.Tier,
		Object:  &flux.Ref{APIVersion: "v1", Kind: "Namespace", Name: ns},
		Message: fmt.Sprintf("Namespace/%s does not exist, and no tier builds it", ns),
		Causes:  []string{fmt.Sprintf("%s of %s is in it", object, f.Tier)},
		Fix:     "add it to that tier in git, or to one that it depends on",
	}
	for _, o := range by {
		if bare(o.tier.Tier) == bare(f.Tier) {
			return found, false // of the first stage
		}
	}
	if cause, ok := k.best(f, by, func(built) string { return "" }); ok {
		if cause.severity == finding.Info {
			return found, false
		}
		found.Rule, found.Severity, found.Fix = "namespace-race", cause.severity, cause.fix
		found.Message = fmt.Sprintf("Namespace/%s does not exist, and comes with %s, which nothing says is applied first", ns, cause.createdBy)
		return found, true
	}
	for at, objects := range k.b.objects {
		if at.group != flux.HelmGroup || at.kind != flux.HelmReleaseKind {
			continue
		}
		for _, o := range objects {
			if makes, when := createsNamespace(o, ns); makes {
				found.Causes = append(found.Causes, fmt.Sprintf("%s of %s creates it%s", o.Ref(), o.tier.Tier, when))
				if o.GetNamespace() != ns && k.earlier.than(f.Tier, o.tier.Tier) {
					return found, false
				}
			}
		}
	}
	if before, _ := k.uninstalled(f); len(before) > 0 {
		found.Severity = finding.Warning
		found.Causes = append(found.Causes, "a chart that is installed before may make it: "+strings.Join(shorten(before), ", "))
	}
	return found, true
}

// createsNamespace is true for a HelmRelease with install.createNamespace. It
// makes the Namespace of its target, once it exists itself.
func createsNamespace(o built, ns string) (makes bool, when string) {
	create, _, _ := unstructured.NestedBool(o.Unstructured.Object, "spec", "install", "createNamespace")
	target, _, _ := unstructured.NestedString(o.Unstructured.Object, "spec", "targetNamespace")
	if target == "" {
		target = o.GetNamespace()
	}
	if o.GetNamespace() == ns {
		when = ", but only once it is in it itself"
	}
	return create && target == ns, when
}
