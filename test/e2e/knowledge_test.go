// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package e2e

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubestandup/kubestandup/pkg/knowledge"
	"github.com/kubestandup/kubestandup/test/cluster"
)

// TestKnowledgeOfCDI: the real cdi-operator creates the CRDs that the data file
// says, no more and no fewer, with the names, scopes, versions and traces that
// it says, once it reconciles the trigger and not before; and its Deployment is
// found where the data file says.
func TestKnowledgeOfCDI(t *testing.T) {
	t.Parallel()
	base, err := knowledge.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	cdi := base.ByTrigger(schema.GroupKind{Group: "cdi.kubevirt.io", Kind: "CDI"})[0]

	c := cluster.New(t, cluster.Options{Kubelet: true, Components: []cluster.Component{cluster.ControllerManager}})
	if err := c.InstallCDI(t.Context()); err != nil {
		t.Fatal(err)
	}
	var deployments appsv1.DeploymentList
	if err := c.Client().List(t.Context(), &deployments, client.MatchingLabels(cdi.Operator.Labels)); err != nil {
		t.Fatal(err)
	}
	if len(deployments.Items) != 1 || deployments.Items[0].Name != cdi.Operator.Deployment || deployments.Items[0].Namespace != cdi.Operator.Namespace {
		t.Errorf("the labels %v find %d Deployments, want %s/%s alone", cdi.Operator.Labels, len(deployments.Items), cdi.Operator.Namespace, cdi.Operator.Deployment)
	}
	before := crds(t, c)
	if names := keys(before); !slices.Equal(names, []string{cdi.Triggers[0].CRD()}) {
		t.Errorf("registered by the installer: %q, want the trigger's CRD alone", names)
	}

	if err := c.Apply(t.Context(), "apiVersion: "+cdi.Triggers[0].Ready.APIVersion+"\nkind: CDI\nmetadata: {name: cdi}\nspec: {}\n"); err != nil {
		t.Fatal(err)
	}
	for _, kind := range cdi.Creates {
		crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: kind.CRD()}}
		if err := c.Until(t.Context(), crd, func() bool { return established(crd) }); err != nil {
			t.Fatal(err)
		}
		compareCRD(t, kind, crd, cdi.Trace)
	}
	want := []string{cdi.Triggers[0].CRD()}
	for _, kind := range cdi.Creates {
		want = append(want, kind.CRD())
	}
	slices.Sort(want)
	if got := keys(crds(t, c)); !slices.Equal(got, want) {
		t.Errorf("the operator created %q, the data file says %q", got, want)
	}
}

func compareCRD(t *testing.T, kind knowledge.Kind, crd *apiextensionsv1.CustomResourceDefinition, trace *knowledge.Trace) {
	t.Helper()
	var versions []string
	for _, v := range crd.Spec.Versions {
		if v.Served {
			versions = append(versions, v.Name)
		}
	}
	if crd.Spec.Group != kind.Group || crd.Spec.Names.Kind != kind.Kind || string(crd.Spec.Scope) != string(kind.Scope) || !slices.Equal(versions, kind.Versions) {
		t.Errorf("%s is %s %s %s %v, the data file says %+v", crd.Name, crd.Spec.Group, crd.Spec.Names.Kind, crd.Spec.Scope, versions, kind)
	}
	if owner := metav1.GetControllerOf(crd); trace.Owned != (owner != nil && owner.Kind == "CDI") {
		t.Errorf("%s is controlled by %v", crd.Name, owner)
	}
	for label := range trace.Labels {
		if _, ok := crd.Labels[label]; !ok {
			t.Errorf("%s lacks label %s", crd.Name, label)
		}
	}
	for _, annotation := range trace.Annotations {
		if _, ok := crd.Annotations[annotation]; !ok {
			t.Errorf("%s lacks annotation %s", crd.Name, annotation)
		}
	}
	if !slices.ContainsFunc(crd.ManagedFields, func(m metav1.ManagedFieldsEntry) bool { return slices.Contains(trace.Managers, m.Manager) }) {
		t.Errorf("%s is managed by none of %q: %v", crd.Name, trace.Managers, crd.ManagedFields)
	}
}

func established(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return slices.ContainsFunc(crd.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
	})
}

func crds(t *testing.T, c *cluster.Cluster) map[string]bool {
	t.Helper()
	var list apiextensionsv1.CustomResourceDefinitionList
	if err := c.Client().List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, crd := range list.Items {
		names[crd.Name] = true
	}
	return names
}

func keys(names map[string]bool) []string {
	var all []string
	for name := range names {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}
