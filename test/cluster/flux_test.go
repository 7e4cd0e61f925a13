// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package cluster

import (
	"fmt"
	"strings"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func configMapYAML(value string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: made\n  namespace: default\ndata:\n  value: %q\n", value)
}

// TestFlux walks once through what most tests will do.
func TestFlux(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c := New(t, Options{Components: append(DefaultComponents(), HelmController), FluxDeployments: true})

	revision, err := c.Push(ctx, "fleet", Files{"root/made.yaml": configMapYAML("one")}, "first")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.InstallRoot(ctx, Root{Repo: "fleet", Path: "root"}); err != nil {
		t.Fatal(err)
	}
	repo := &sourcev1.GitRepository{ObjectMeta: metav1.ObjectMeta{Namespace: FluxNamespace, Name: "flux-system"}}
	if err := c.Until(ctx, repo, func() bool { return repo.Status.Artifact != nil }); err != nil {
		t.Fatal(err)
	}
	if repo.Status.Artifact.Revision != revision {
		t.Errorf("revision %q, pushed %q", repo.Status.Artifact.Revision, revision)
	}
	made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "made"}}
	if err := c.Until(ctx, made, func() bool { return made.Data["value"] == "one" }); err != nil {
		t.Fatal(err)
	}
	untilApplied(t, c, revision)

	t.Run("audit", func(t *testing.T) {
		events, err := c.Audit(ctx)
		if err != nil {
			t.Fatal(err)
		}
		applied := events.By("kustomize-controller/").Mutating().Where(func(e Event) bool { return e.Resource == "configmaps" })
		if len(applied) != 1 || applied[0].Verb != "patch" || applied[0].Code/100 != 2 {
			t.Errorf("the ConfigMap was applied once:\n%s", applied)
		}
		dry := events.By("kustomize-controller/").Where(func(e Event) bool { return e.Resource == "configmaps" && e.DryRun() })
		if len(dry) == 0 {
			t.Error("the server-side dry run is not in the log")
		}
	})

	t.Run("restart of the API server and etcd", func(t *testing.T) {
		if err := c.Restart(ctx, APIServer, Etcd); err != nil {
			t.Fatal(err)
		}
		next, err := c.Push(ctx, "fleet", Files{"root/made.yaml": configMapYAML("two")}, "second")
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Sync(ctx, "flux-system", next); err != nil {
			t.Fatal(err)
		}
		if err := c.Until(ctx, made, func() bool { return made.Data["value"] == "two" }); err != nil {
			t.Fatal(err)
		}
	})

	t.Run("controller stopped", func(t *testing.T) {
		if err := c.Stop(ctx, KustomizeController); err != nil {
			t.Fatal(err)
		}
		next, err := c.Push(ctx, "fleet", Files{"root/made.yaml": configMapYAML("three")}, "third")
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Sync(ctx, "flux-system", next); err != nil {
			t.Fatal(err)
		}
		if err := c.Client().Get(ctx, client.ObjectKeyFromObject(made), made); err != nil || made.Data["value"] != "two" {
			t.Errorf("applied with no controller: %v, %v", made.Data, err)
		}
		if err := c.Start(ctx, KustomizeController); err != nil {
			t.Fatal(err)
		}
		untilApplied(t, c, next)
	})

	t.Run("namespaces end", func(t *testing.T) { // which takes the controller manager
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "passing"}}
		if err := c.Client().Create(ctx, ns); err != nil {
			t.Fatal(err)
		}
		if err := c.Client().Delete(ctx, ns); err != nil {
			t.Fatal(err)
		}
		if err := c.UntilGone(ctx, ns); err != nil {
			t.Fatal(err)
		}
	})

	t.Run("helm release", func(t *testing.T) { testHelm(t, c) })
	t.Run("deployments of Flux", func(t *testing.T) { testFluxDeployments(t, c, repo) })
}

func untilApplied(t *testing.T, c *Cluster, revision string) {
	t.Helper()
	ks := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: FluxNamespace, Name: "flux-system"}}
	if err := c.Until(t.Context(), ks, func() bool { return ks.Status.LastAppliedRevision == revision }); err != nil {
		t.Fatal(err)
	}
}

func testHelm(t *testing.T, c *Cluster) {
	ctx := t.Context()
	_, err := c.Push(ctx, "charts", Files{
		"demo/Chart.yaml":          "apiVersion: v2\nname: demo\nversion: 0.1.0\n",
		"demo/templates/made.yaml": strings.Replace(configMapYAML("{{ .Values.value }}"), "made", "charted", 1),
	}, "first")
	if err != nil {
		t.Fatal(err)
	}
	err = c.Apply(ctx, fmt.Sprintf(`
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: charts, namespace: default}
spec: {interval: 1h, url: %q, ref: {branch: main}}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: demo, namespace: default}
spec:
  interval: 1h
  chart: {spec: {chart: ./demo, sourceRef: {kind: GitRepository, name: charts}}}
  values: {value: from the release}
`, c.RepoURL("charts")))
	if err != nil {
		t.Fatal(err)
	}
	made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "charted"}}
	if err := c.Until(ctx, made, func() bool { return made.Data["value"] == "from the release" }); err != nil {
		t.Fatal(err)
	}
}

// testFluxDeployments also reaches a source's artifact as from inside: through
// the API server's proxy to the Service.
func testFluxDeployments(t *testing.T, c *Cluster, repo *sourcev1.GitRepository) {
	ctx := t.Context()
	var deployments appsv1.DeploymentList
	if err := c.Client().List(ctx, &deployments, client.InNamespace(FluxNamespace), client.MatchingLabels{"app.kubernetes.io/part-of": "flux"}); err != nil {
		t.Fatal(err)
	}
	for _, d := range deployments.Items {
		if !available(&d) || !strings.Contains(d.Spec.Template.Spec.Containers[0].Image, ":v1.") {
			t.Errorf("%s: image %s, status %+v", d.Name, d.Spec.Template.Spec.Containers[0].Image, d.Status)
		}
	}
	if len(deployments.Items) != 3 {
		t.Errorf("%d Deployments, want three", len(deployments.Items))
	}

	if err := c.Client().Get(ctx, client.ObjectKeyFromObject(repo), repo); err != nil {
		t.Fatal(err)
	}
	kube, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	body, err := kube.CoreV1().Services(FluxNamespace).ProxyGet("http", "source-controller", "80", repo.Status.Artifact.Path, nil).DoRaw(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if len(body) != int(*repo.Status.Artifact.Size) {
		t.Errorf("%d bytes, want the artifact's %d", len(body), *repo.Status.Artifact.Size)
	}
}
