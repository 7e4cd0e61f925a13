// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubestandup/kubestandup/test/cluster"
)

// resumeKeeps: Flux drops what kubectl has set as soon as it applies what
// contains the tier. To resume the container must not resume what stays: its
// prune would delete what the run has refused to delete.
func resumeKeeps(t *testing.T, c *cluster.Cluster) {
	s := &resumeScene{scene: &scene{ns: "keeps"}}
	files := folders("keeps", "skipped", "pruner")
	files["tree/tiers.yaml"] = strings.Join([]string{s.manifest("skipped"), s.manifest("pruner")}, "---\n")
	files["pruner/other.yaml"] = configMap("keeps", "other")
	s = newResumeScene(t, c, "keeps", files)
	defer s.clear(t)
	s.add(t, s.manifest("tree"))
	s.untilReady(t, "tree", "skipped", "pruner")
	s.suspend(t, "tree")
	for _, name := range []string{"skipped", "pruner"} {
		s.patch(t, tierOf("keeps", name), "kubectl-patch", `{"spec":{"suspend":true}}`)
	}
	delete(files, "pruner/other.yaml")
	s.push(t, files)
	s.config(t, "resume: {skip: [skipped, skippd]}\n")

	// Who mistypes a name would resume what was to stay.
	mark := c.Mark()
	o := s.resume(t, 6)
	o.holds(t, o.stderr, "error: standup.yaml says that skippd stays suspended, and no tier is called that: nothing was resumed")
	mutatedNothing(t, c, mark)
	s.config(t, "resume: {skip: [skipped]}\n")
	o = s.resume(t, 6)
	o.inOrder(t, o.stderr,
		"Kustomization/keeps/pruner is kept suspended (field manager standup): the next apply of Kustomization/keeps/tree would undo what kubectl has set",
		"Kustomization/keeps/skipped is kept suspended", "Kustomization/keeps/tree resumed", "✔ keeps/tree: Ready at ")
	o.holds(t, o.stdout, "its prune would DELETE what git no longer has in it: ConfigMap/keeps/other")
	for _, name := range []string{"skipped", "pruner"} {
		tier := tierOf("keeps", name)
		if err := c.Until(t.Context(), tier, func() bool { return true }); err != nil || !tier.Spec.Suspend {
			t.Errorf("%s is resumed (%v)", name, err)
		}
	}
	other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "keeps", Name: "other"}}
	if err := c.Client().Get(t.Context(), client.ObjectKeyFromObject(other), other); err != nil {
		t.Errorf("what would have been deleted: %v", err)
	}
	mark = c.Mark()
	s.resume(t, 6)
	mutatedNothing(t, c, mark)
}

// config writes the standup.yaml of the scene.
func (s *resumeScene) config(t *testing.T, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(s.sh.dir, "standup.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
