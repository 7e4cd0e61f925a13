// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package e2e

import (
	"context"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/test/cluster"
)

// manager is the field manager of the real controller.
const manager = "kustomize-controller"

// TestBuild: what pkg/build says that a tier applies is what the real
// kustomize-controller applied, object by object, field by field, in that
// order; and where the controller refuses, both say the same.
func TestBuild(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, cluster.Options{FluxDeployments: true})
	revision, err := c.Push(t.Context(), "build", buildTree(), "all tiers")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Apply(t.Context(), buildVariables); err != nil {
		t.Fatal(err)
	}
	mark := c.Mark()
	if err := c.InstallRoot(t.Context(), cluster.Root{Repo: "build", Path: "root"}); err != nil {
		t.Fatal(err)
	}
	if err := c.Sync(t.Context(), "flux-system", revision); err != nil {
		t.Fatal(err)
	}

	clients, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	source := liveSource(t, c)
	fetcher := build.NewFetcher(clients.CoreV1(), nil)
	t.Cleanup(func() {
		if err := fetcher.Close(); err != nil {
			t.Error(err)
		}
	})
	artifact, err := fetcher.Fetch(t.Context(), source)
	if err != nil {
		t.Fatal(err)
	}
	builder := build.Builder{Variables: build.ClusterVariables(clients.CoreV1())}

	for _, name := range []string{"flux-system", "objects", "overlay", "variables", "encrypted-strings"} {
		t.Run(name, func(t *testing.T) {
			tier := untilReconciled(t, c, name)
			if ready := condition(tier); ready.Status != metav1.ConditionTrue {
				t.Fatalf("the controller says: %s", ready.Message)
			}
			result, err := builder.Build(t.Context(), liveTier(t, c, name), artifact)
			if err != nil {
				t.Fatal(err)
			}
			if result.Rejected != nil {
				t.Errorf("rejected: %v; the controller applied it", result.Rejected)
			}
			compareInventory(t, tier, result)
			for _, o := range result.Objects {
				compareObject(t, c, o)
			}
			compareOrder(t, c, mark, result)
		})
	}

	// The controller's message about the path of a temporary directory of its
	// own is left out.
	for name, want := range map[string]string{
		"encrypted-data":    "Secret/default/sealed is SOPS encrypted, configuring decryption is required for this secret to be reconciled",
		"unset":             `post build failed for 'ConfigMap.v1.[noGrp]/a': envsubst error: variable substitution failed: variable not set (strict mode): "NOT_SET"`,
		"absent-variables":  `post build failed for 'ConfigMap.v1.[noGrp]/a': substitute from 'ConfigMap/absent' error: configmaps "absent" not found`,
		"absent-path":       "kustomization path not found: ",
		"unparsable":        "failed to decode Kubernetes YAML from ",
		"outside-component": "component path '/etc' must be local and relative",
	} {
		t.Run(name, func(t *testing.T) {
			said := condition(untilReconciled(t, c, name)).Message
			result, err := builder.Build(t.Context(), liveTier(t, c, name), artifact)
			if err == nil {
				err = result.Rejected
			}
			if err == nil || !strings.Contains(said, want) || !strings.Contains(err.Error(), want) {
				t.Errorf("the controller says: %s\nwe say: %v\nboth should hold: %s", said, err, want)
			}
		})
	}

	t.Run("working tree", func(t *testing.T) { compareWorkingTree(t, builder, c, artifact) })
	t.Run("service proxy", func(t *testing.T) { compareServiceProxy(t, c, clients, source) })
}

// compareInventory: the same objects, no more and no fewer. What the controller
// is told not to apply is in its inventory all the same.
func compareInventory(t *testing.T, tier *kustomizev1.Kustomization, result *build.Result) {
	t.Helper()
	var live, built []string
	for _, entry := range tier.Status.Inventory.Entries {
		live = append(live, entry.ID+"_"+entry.Version)
	}
	for _, o := range result.Objects {
		gvk := o.GroupVersionKind()
		built = append(built, strings.Join([]string{o.GetNamespace(), strings.ReplaceAll(o.GetName(), ":", "__"), gvk.Group, gvk.Kind, gvk.Version}, "_"))
	}
	slices.Sort(live)
	slices.Sort(built)
	if !slices.Equal(live, built) {
		t.Errorf("the controller's inventory:\n%s\nbuilt:\n%s", strings.Join(live, "\n"), strings.Join(built, "\n"))
	}
}

// compareObject applies what was built in the controller's own name, as a
// rehearsal. Were there one field more or less, or another value, the API
// server would answer with another object, or with other owned fields.
func compareObject(t *testing.T, c *cluster.Cluster, o build.Object) {
	t.Helper()
	live, err := get(t, c, o)
	if o.Ignored {
		if !apierrors.IsNotFound(err) {
			t.Errorf("%s: the controller applied it (%v)", o, err)
		}
		return
	}
	for err == nil {
		rehearsed := o.DeepCopy()
		if err = c.Client().Apply(t.Context(), client.ApplyConfigurationFromUnstructured(rehearsed),
			client.FieldOwner(manager), client.ForceOwnership, client.DryRunAll); err != nil {
			break
		}
		before := live
		if live, err = get(t, c, o); err != nil {
			break
		}
		if live.GetResourceVersion() != before.GetResourceVersion() {
			continue // its own controller wrote a status meanwhile
		}
		if !slices.ContainsFunc(live.GetManagedFields(), func(m metav1.ManagedFieldsEntry) bool {
			return m.Manager == manager && m.Operation == metav1.ManagedFieldsOperationApply
		}) {
			t.Errorf("%s: the controller did not apply it", o)
		}
		if !reflect.DeepEqual(timeless(live), timeless(rehearsed)) {
			t.Errorf("%s: the controller applied\n%v\nbuilt\n%v", o, live.Object, rehearsed.Object)
		}
		return
	}
	t.Errorf("%s: %v", o, err)
}

func get(t *testing.T, c *cluster.Cluster, o build.Object) (*unstructured.Unstructured, error) {
	t.Helper()
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(o.GroupVersionKind())
	return live, c.Client().Get(t.Context(), client.ObjectKeyFromObject(o.Unstructured), live)
}

// timeless is the object without the times of its managed fields.
func timeless(o *unstructured.Unstructured) map[string]any {
	fields := o.GetManagedFields()
	for i := range fields {
		fields[i].Time = nil
	}
	o.SetManagedFields(fields)
	return o.Object
}

// compareOrder: inside of one stage the controller applies one by one.
func compareOrder(t *testing.T, c *cluster.Cluster, mark cluster.Mark, result *build.Result) {
	t.Helper()
	events, err := c.Since(t.Context(), mark)
	if err != nil {
		t.Fatal(err)
	}
	position := map[string]int{}
	for i, e := range events.By(manager).Mutating() {
		// The controller patches its own objects too, under another name.
		if e.Verb == "patch" && !e.DryRun() && strings.Contains(e.URI, "fieldManager="+manager) {
			position[e.Group+" "+e.Namespace+"/"+e.Name] = i + 1
		}
	}
	last, before := 0, ""
	for _, o := range result.Objects {
		if o.Ignored {
			continue
		}
		// One object of each name and group is in these trees.
		key := o.GroupVersionKind().Group + " " + o.GetNamespace() + "/" + o.GetName()
		if o.GetKind() == "Namespace" { // the audit log puts it into itself
			key = " " + o.GetName() + "/" + o.GetName()
		}
		at := position[key]
		if at == 0 {
			t.Errorf("%s: no request of the controller applied it", o)
		}
		if at < last {
			t.Errorf("the controller applied %s before %s", o, before)
		}
		last, before = at, o.String()
	}
}

// compareWorkingTree: a checkout builds as its artifact does.
func compareWorkingTree(t *testing.T, builder build.Builder, c *cluster.Cluster, artifact *build.Tree) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, buildTree()); err != nil {
		t.Fatal(err)
	}
	tree, err := build.OpenDir(t.Context(), dir, "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tree.Close() }()
	all, err := builder.Follow(t.Context(), build.Only(flux.Ref{Kind: "GitRepository", Namespace: "flux-system", Name: "flux-system"}, tree), liveTier(t, c, "flux-system"))
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 11 {
		t.Errorf("%d tiers were followed, want the root and its ten children", len(all))
	}
	for _, followed := range all {
		want, wantErr := builder.Build(t.Context(), liveTier(t, c, followed.Tier.Name), artifact)
		if (followed.Err != nil) != (wantErr != nil) || followed.Err != nil && followed.Err.Error() != wantErr.Error() {
			t.Errorf("%s: %v from the working tree, %v from the artifact", followed.Tier, followed.Err, wantErr)
			continue
		}
		if wantErr == nil && !reflect.DeepEqual(contents(followed.Result), contents(want)) {
			t.Errorf("%s: %v from the working tree, %v from the artifact", followed.Tier, followed.Result.Objects, want.Objects)
		}
	}
}

func contents(r *build.Result) []map[string]any {
	var all []map[string]any
	for _, o := range r.Objects {
		all = append(all, o.Object)
	}
	return all
}

// compareServiceProxy fetches as from a workstation, where the name of the
// Service leads nowhere. There is no kubelet, so that the port-forward fails
// and the last way is taken.
func compareServiceProxy(t *testing.T, c *cluster.Cluster, clients *kubernetes.Clientset, source flux.Source) {
	u, err := url.Parse(source.Artifact.URL)
	if err != nil {
		t.Fatal(err)
	}
	u.Host = "source-controller.flux-system.svc.cluster.local."
	artifact := *source.Artifact
	artifact.URL = u.String()
	source.Artifact = &artifact
	fetcher := build.NewFetcher(clients.CoreV1(), guardServer(t, c.Kubeconfig(), nil))
	defer func() { _ = fetcher.Close() }()
	mark := c.Mark()
	tree, err := fetcher.Fetch(t.Context(), source)
	if err != nil {
		t.Fatal(err)
	}
	if result, err := (build.Builder{}).Build(t.Context(), liveTier(t, c, "objects"), tree); err != nil || len(result.Objects) == 0 {
		t.Errorf("built %v, %v", result, err)
	}
	events, err := c.Since(t.Context(), mark)
	if err != nil {
		t.Fatal(err)
	}
	for _, subresource := range []string{"portforward", "proxy"} {
		if !slices.ContainsFunc(events, func(e cluster.Event) bool { return e.Subresource == subresource }) {
			t.Errorf("%s was not tried:\n%s", subresource, events)
		}
	}
}

func liveSource(t *testing.T, c *cluster.Cluster) flux.Source {
	t.Helper()
	repository := &sourcev1.GitRepository{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "flux-system"}}
	if err := c.Client().Get(t.Context(), client.ObjectKeyFromObject(repository), repository); err != nil {
		t.Fatal(err)
	}
	return flux.Source{
		Ref:      flux.Ref{Kind: "GitRepository", Namespace: "flux-system", Name: "flux-system"},
		Artifact: &flux.Artifact{URL: repository.Status.Artifact.URL, Digest: repository.Status.Artifact.Digest, Revision: repository.Status.Artifact.Revision},
	}
}

func liveTier(t *testing.T, c *cluster.Cluster, name string) *unstructured.Unstructured {
	t.Helper()
	tier := &unstructured.Unstructured{}
	tier.SetGroupVersionKind(kustomizev1.GroupVersion.WithKind("Kustomization"))
	if err := c.Client().Get(t.Context(), client.ObjectKey{Namespace: "flux-system", Name: name}, tier); err != nil {
		t.Fatal(err)
	}
	return tier
}

// untilReconciled waits for the first result of a tier, whatever it is.
func untilReconciled(t *testing.T, c *cluster.Cluster, name string) *kustomizev1.Kustomization {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	tier := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: name}}
	// The controller writes the conditions first, and the rest of the status
	// in a second request.
	if err := c.Until(ctx, tier, func() bool {
		ready := condition(tier).Status
		return ready == metav1.ConditionFalse || ready == metav1.ConditionTrue && tier.Status.Inventory != nil
	}); err != nil {
		t.Fatalf("%s: %v: %s", name, err, condition(tier).Message)
	}
	return tier
}

func condition(tier *kustomizev1.Kustomization) metav1.Condition {
	for _, c := range tier.Status.Conditions {
		if c.Type == "Ready" {
			return c
		}
	}
	return metav1.Condition{}
}
