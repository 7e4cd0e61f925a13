// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubestandup/kubestandup/test/cluster"
)

// scene is a namespace with a repository of its own, so that what happens in it
// is nobody else's matter.
type scene struct {
	c  *cluster.Cluster
	ns string
	sh *shell
}

// newScene pushes the files and waits until their artifact is there.
func newScene(t *testing.T, c *cluster.Cluster, ns string, files cluster.Files) *scene {
	t.Helper()
	s := &scene{c, ns, shellFor(t, c)}
	revision, err := c.Push(t.Context(), ns, files, "first")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Apply(t.Context(), fmt.Sprintf(`
apiVersion: v1
kind: Namespace
metadata: {name: %[1]s}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: source, namespace: %[1]s}
spec: {interval: 1h, url: %[2]q, ref: {branch: main}}
`, ns, c.RepoURL(ns))); err != nil {
		t.Fatal(err)
	}
	s.untilFetched(t, revision)
	return s
}

// push commits the files and lets source-controller fetch them.
func (s *scene) push(t *testing.T, files cluster.Files) (revision string) {
	t.Helper()
	revision, err := s.c.Push(t.Context(), s.ns, files, "next")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.c.Nudge(t.Context(), s.source()); err != nil {
		t.Fatal(err)
	}
	s.untilFetched(t, revision)
	return revision
}

func (s *scene) source() *sourcev1.GitRepository {
	return &sourcev1.GitRepository{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "source"}}
}

func (s *scene) untilFetched(t *testing.T, revision string) {
	t.Helper()
	source := s.source()
	if err := s.c.Until(t.Context(), source, func() bool {
		return source.Status.Artifact != nil && source.Status.Artifact.Revision == revision
	}); err != nil {
		t.Fatal(err)
	}
}

// add creates tiers of the scene.
func (s *scene) add(t *testing.T, tiers ...string) {
	t.Helper()
	if err := s.c.Apply(t.Context(), strings.Join(tiers, "---\n")); err != nil {
		t.Fatal(err)
	}
}

// manifest is a tier whose path is its name. It is tried again after quickly.
func (s *scene) manifest(name string, spec ...string) string {
	return fmt.Sprintf(`apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata:
  name: %[1]s
  namespace: %[2]s
spec:
  interval: 1h
  retryInterval: %[4]s
  timeout: 1m
  path: ./%[1]s
  prune: true
  sourceRef: {kind: GitRepository, name: source}
  %[3]s
`, name, s.ns, strings.Join(spec, "\n  "), quickly)
}

// quickly is when a tier of a scene is tried again. Each attempt costs all
// others some time.
const quickly = "2s"

// needs is an edge.
func needs(names ...string) string {
	var refs []string
	for _, name := range names {
		refs = append(refs, "{name: "+name+"}")
	}
	return "dependsOn: [" + strings.Join(refs, ", ") + "]"
}

// untilFailed waits until the controller has failed with the text.
func (s *scene) untilFailed(t *testing.T, name, text string) {
	t.Helper()
	tier := tierOf(s.ns, name)
	if err := s.c.Until(t.Context(), tier, func() bool {
		return condition(tier).Status == metav1.ConditionFalse && strings.Contains(condition(tier).Message, text)
	}); err != nil {
		t.Fatal(err)
	}
}

// rest ends the retries of a tier that fails for good.
func (s *scene) rest(t *testing.T, name string) {
	t.Helper()
	atRest(t, s.c, tierOf(s.ns, name), "")
}

// atRest lets a tier be tried again, but not by itself for an hour, until that
// has failed with the text: nothing is at work on it then, and nothing will be.
func atRest(t *testing.T, c *cluster.Cluster, tier *kustomizev1.Kustomization, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	for {
		token := time.Now().Format(time.RFC3339Nano)
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}},"spec":{"retryInterval":"1h"}}`, meta.ReconcileRequestAnnotation, token)
		if err := c.Client().Patch(ctx, tier, client.RawPatch(types.MergePatchType, patch)); err != nil {
			t.Fatalf("until it fails with %q: %v", text, err)
		}
		if err := c.Until(ctx, tier, func() bool {
			ready := condition(tier)
			return ready.Status == metav1.ConditionFalse && ready.ObservedGeneration == tier.Generation && tier.Status.LastHandledReconcileAt == token
		}); err != nil {
			t.Fatalf("until it fails with %q: %v", text, err)
		}
		if strings.Contains(condition(tier).Message, text) {
			return
		}
	}
}

// waitArgs are those that wait for the tiers of this scene alone.
func (s *scene) waitArgs(more ...string) []string {
	return append([]string{"tiers", "-n", s.ns, "--wait"}, more...)
}

func configMap(ns, name string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: %s}\n", name, ns)
}

// folders is a repository with a ConfigMap in each of the folders.
func folders(ns string, names ...string) cluster.Files {
	files := cluster.Files{"README.md": "a repository"}
	for _, name := range names {
		files[name+"/cm.yaml"] = configMap(ns, name)
	}
	return files
}
