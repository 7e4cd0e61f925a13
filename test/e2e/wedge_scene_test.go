// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package e2e

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kubestandup/kubestandup/pkg/wedge"
	"github.com/kubestandup/kubestandup/test/cluster"
)

// patient is a part of a cluster that is judged and mended through the plugin.
type patient struct {
	c     *cluster.Cluster
	sh    *shell
	named []string
	// scope keeps the plugin to what is this part's: other cases are on the
	// cluster as well.
	scope   []string
	backups string
}

func newPatient(t *testing.T, c *cluster.Cluster, scope ...string) *patient {
	t.Helper()
	return &patient{c, shellFor(t, c), expect(t, c), scope, filepath.Join(t.TempDir(), "backups")}
}

// unwedge runs the plugin to its end.
func (p *patient) unwedge(t *testing.T, code int, args ...string) (wedge.Plan, outcome) {
	t.Helper()
	o := p.sh.want(t, code, slices.Concat([]string{"unwedge", "-o", "json", "--timeout", "3m", "--backup-dir", p.backups}, p.scope, p.named, args)...)
	return planOf(t, o), o
}

// verdict runs the plugin and wants that it finds this, and nothing else.
func (p *patient) verdict(t *testing.T, code int, cause wedge.Cause, state string, args ...string) (*wedge.Verdict, outcome) {
	t.Helper()
	plan, o := p.unwedge(t, code, args...)
	if len(plan.Verdicts) != 1 || plan.Verdicts[0].Cause != cause || plan.Verdicts[0].State != state {
		t.Fatalf("$ kubectl %s\n%sverdicts\n  %s\nwant one verdict, %s %s", o.command, o.stderr, strings.Join(found(plan), "\n  "), cause, state)
	}
	return &plan.Verdicts[0], o
}

// judged runs the plugin and compares all that it finds: "cause name state".
func (p *patient) judged(t *testing.T, code int, want []string, args ...string) (wedge.Plan, outcome) {
	t.Helper()
	plan, o := p.unwedge(t, code, args...)
	if got := found(plan); !slices.Equal(got, want) {
		t.Fatalf("$ kubectl %s\n%sverdicts\n  %s\nwant\n  %s", o.command, o.stderr, strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
	return plan, o
}

// found are the verdicts of a plan: "cause name state".
func found(plan wedge.Plan) []string {
	var out []string
	for i := range plan.Verdicts {
		v := &plan.Verdicts[i]
		out = append(out, fmt.Sprintf("%s %s %s", v.Cause, v.Object.Name, v.State))
	}
	return out
}

// healthy fails the test when there is still a verdict.
func (p *patient) healthy(t *testing.T, args ...string) {
	t.Helper()
	p.judged(t, 0, nil, args...)
}

// plans fails the test unless these are the actions of the verdict: a verb, !
// where it is destructive, and the object.
func plans(t *testing.T, v *wedge.Verdict, want ...string) {
	t.Helper()
	var got []string
	for _, a := range v.Actions {
		mark := ""
		if a.Destructive {
			mark = "!"
		}
		got = append(got, fmt.Sprintf("%s%s %s", a.Verb, mark, a.Object))
	}
	if !slices.Equal(got, want) {
		t.Errorf("the plan for %s is\n  %s\nwant\n  %s", v.Object, strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// tells fails the test when a text is nowhere in the verdict.
func tells(t *testing.T, v *wedge.Verdict, texts ...string) {
	t.Helper()
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		t.Fatal(err)
	}
	for _, text := range texts {
		if !strings.Contains(strings.ReplaceAll(b.String(), `\"`, `"`), text) {
			t.Errorf("%s\ndoes not say: %s", b.String(), text)
		}
	}
}

// allDone fails the test when an action was not done.
func allDone(t *testing.T, v *wedge.Verdict) {
	t.Helper()
	for _, a := range v.Actions {
		if a.Result != wedge.Done {
			t.Errorf("%s %s: %s %s", a.Verb, a.Object, a.Result, a.Message)
		}
		if a.Destructive && a.Verb != wedge.Restart {
			holdsSecretly(t, a.Backup)
		}
	}
}

// did compares the requests with which the plugin changed the cluster, or tried
// to, among those that are meant.
func (p *patient) did(t *testing.T, mark cluster.Mark, meant func(cluster.Event) bool, want ...string) {
	t.Helper()
	var got []string
	for _, e := range sent(t, p.c, mark, "kubectl-unwedge").Mutating() {
		if meant(e) {
			got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s/%s %s", e.Verb, e.Resource, e.Name, e.Subresource)))
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("unwedge sent\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

func inNamespace(ns string) func(cluster.Event) bool {
	return func(e cluster.Event) bool { return e.Namespace == ns || e.Resource == "namespaces" && e.Name == ns }
}

func ofGroup(group string) func(cluster.Event) bool {
	return func(e cluster.Event) bool { return e.Group == group || strings.HasSuffix(e.Name, "."+group) }
}

// neverDone is what no repair of any case may do: take a Namespace through
// finalize, delete one, or a CRD, or take a finalizer off one.
func neverDone(t *testing.T, c *cluster.Cluster, mark cluster.Mark) {
	t.Helper()
	for _, e := range sent(t, c, mark, "kubectl-unwedge").Mutating() {
		if e.Subresource == "finalize" || e.Resource == "namespaces" || e.Resource == "customresourcedefinitions" && e.Subresource != "status" {
			t.Errorf("sent %s", e)
		}
	}
}

// apply applies texts, and waits after a CRD until each version of it is served,
// which is a moment later than it is Established.
func apply(t *testing.T, c *cluster.Cluster, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if err := c.Apply(t.Context(), text); err != nil {
			t.Fatal(err)
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal([]byte(text), &crd); err != nil || crd.Kind != "CustomResourceDefinition" {
			continue // several documents, or another kind
		}
		for _, v := range crd.Spec.Versions {
			if v.Served {
				untilGone(t, c, thing(crd.Spec.Group+"/"+v.Name, crd.Spec.Names.Kind, "", "none"))
			}
		}
	}
}

// together runs tests side by side, more of them than there are processors:
// each mostly waits for others.
func together(t *testing.T, name string, n int, of func(i int) (string, func(*testing.T))) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		var group errgroup.Group
		group.SetLimit(6)
		for i := range n {
			group.Go(func() error {
				t.Run(of(i))
				return nil
			})
		}
		_ = group.Wait() // none returns one
	})
}

// thing is an object of any kind, by its name.
func thing(apiVersion, kind, ns, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	u.SetNamespace(ns)
	u.SetName(name)
	return u
}

// merge is what a person, or another program, changes.
func merge(t *testing.T, c *cluster.Cluster, obj client.Object, manager, patch string, subresource ...string) {
	t.Helper()
	raw := client.RawPatch(types.MergePatchType, []byte(patch))
	var err error
	if len(subresource) > 0 {
		err = c.Client().SubResource(subresource[0]).Patch(t.Context(), obj, raw, client.FieldOwner(manager))
	} else {
		err = c.Client().Patch(t.Context(), obj, raw, client.FieldOwner(manager))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// create makes an object as soon as its kind is served.
func create(t *testing.T, c *cluster.Cluster, obj client.Object, manager string) {
	t.Helper()
	untilGone(t, c, obj.DeepCopyObject().(client.Object))
	if err := c.Client().Create(t.Context(), obj, client.FieldOwner(manager)); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, c *cluster.Cluster, obj client.Object) {
	t.Helper()
	if err := c.Client().Delete(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
}

func untilGone(t *testing.T, c *cluster.Cluster, obj client.Object) {
	t.Helper()
	if err := c.UntilGone(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
}

// until waits for the object; its newest state is in obj then.
func until(t *testing.T, c *cluster.Cluster, obj client.Object, is func() bool) {
	t.Helper()
	if err := c.Until(t.Context(), obj, is); err != nil {
		t.Fatal(err)
	}
}

func exists(t *testing.T, c *cluster.Cluster, obj client.Object) bool {
	t.Helper()
	err := c.Client().Get(t.Context(), client.ObjectKeyFromObject(obj), obj)
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	return err == nil
}

// version is one version of a CRD whose objects may hold anything.
func version(name string, served, storage bool) string {
	return fmt.Sprintf("{name: %s, served: %t, storage: %t, subresources: {status: {}}, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}",
		name, served, storage)
}

// definition is a CRD; its plural is its kind in lower case with an s.
func definition(group, kind, scope, more string, versions ...string) string {
	singular := strings.ToLower(kind)
	return fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]ss.%[2]s}
spec:
  group: %[2]s
  scope: %[3]s
  names: {plural: %[1]ss, singular: %[1]s, kind: %[4]s, listKind: %[4]sList}
  versions: [%[5]s]
  %[6]s
`, singular, group, scope, kind, strings.Join(versions, ", "), more)
}

func crdObject(name string) *unstructured.Unstructured {
	return thing("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", name)
}

func namespaceText(name string) string {
	return "{apiVersion: v1, kind: Namespace, metadata: {name: " + name + "}}"
}

// deploymentText is a Deployment of one Pod, whose label app is its name.
func deploymentText(ns, name string, replicas int) string {
	return fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: %[2]s, namespace: %[1]s}
spec:
  replicas: %[3]d
  selector: {matchLabels: {app: %[2]s}}
  template: {metadata: {labels: {app: %[2]s}}, spec: {containers: [{name: manager, image: example.org/%[2]s}]}}
`, ns, name, replicas)
}

func serviceText(ns, name, app string) string {
	return fmt.Sprintf("{apiVersion: v1, kind: Service, metadata: {name: %s, namespace: %s}, spec: {selector: {app: %s}, ports: [{port: 443}]}}", name, ns, app)
}
