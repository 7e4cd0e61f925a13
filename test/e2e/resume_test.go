// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubestandup/kubestandup/test/cluster"
)

// TestResume: `kubectl standup resume` on real controllers. The step is about
// every tier of a cluster, so one scene comes after the other.
func TestResume(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, cluster.Options{
		Components: []cluster.Component{cluster.SourceController, cluster.KustomizeController, cluster.HelmController},
		Users:      []cluster.User{{Name: "onlooker"}},
	})
	newScene(t, c, chartsNamespace, releaseCharts())
	for _, scene := range []struct {
		name string
		run  func(*testing.T, *cluster.Cluster)
	}{
		{"incident 6: the order is that of the graph", resumeInOrder},
		{"incident 8: what stays suspended", resumeLeaves},
		{"what Flux would resume stays suspended", resumeKeeps},
		{"incident 7: it stops at the first that fails", resumeStops},
		{"interrupted, forbidden, and the API server away", resumeDisturbed},
	} {
		if !t.Run(scene.name, func(t *testing.T) { scene.run(t, c) }) {
			return // what it leaves would be in the way of the next
		}
	}
}

// resumeScene is a scene that is the only one with tiers.
type resumeScene struct {
	*scene
	named []string
}

func newResumeScene(t *testing.T, c *cluster.Cluster, ns string, files cluster.Files) *resumeScene {
	t.Helper()
	return &resumeScene{newScene(t, c, ns, files), expect(t, c)}
}

// clear deletes the tiers and waits until they are gone.
func (s *resumeScene) clear(t *testing.T) {
	if t.Failed() {
		return
	}
	ctx := t.Context()
	var tiers []client.Object
	var all kustomizev1.KustomizationList
	var releases helmv2.HelmReleaseList
	for _, list := range []client.ObjectList{&all, &releases} {
		if err := s.c.Client().List(ctx, list, client.InNamespace(s.ns)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range all.Items {
		tiers = append(tiers, &all.Items[i])
	}
	for i := range releases.Items {
		tiers = append(tiers, &releases.Items[i])
	}
	for _, tier := range tiers {
		if err := client.IgnoreNotFound(s.c.Client().Delete(ctx, tier)); err != nil {
			t.Fatal(err)
		}
	}
	for _, tier := range tiers {
		if err := s.c.UntilGone(ctx, tier); err != nil {
			t.Fatal(err)
		}
	}
}

func (s *resumeScene) args(more ...string) []string {
	return slices.Concat([]string{"standup", "resume"}, s.named, more)
}

func (s *resumeScene) resume(t *testing.T, code int, more ...string) outcome {
	t.Helper()
	return s.sh.want(t, code, s.args(more...)...)
}

// suspend is `flux suspend`: it waits until the tier is there, and for the
// last thing that its controller writes about it.
func (s *resumeScene) suspend(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		tier := tierOf(s.ns, name)
		if err := s.c.Until(t.Context(), tier, func() bool { return true }); err != nil {
			t.Fatal(err)
		}
		s.patch(t, tier, "flux", `{"spec":{"suspend":true}}`)
	}
}

func (s *resumeScene) patch(t *testing.T, o client.Object, manager, merge string) {
	t.Helper()
	if err := s.c.Client().Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(merge)), client.FieldOwner(manager)); err != nil {
		t.Fatal(err)
	}
}

// release is a HelmRelease of the scene, once it is there.
func (s *resumeScene) release(t *testing.T, name string) *helmv2.HelmRelease {
	t.Helper()
	hr := &helmv2.HelmRelease{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: name}}
	if err := s.c.Until(t.Context(), hr, func() bool { return true }); err != nil {
		t.Fatal(err)
	}
	return hr
}

func (s *resumeScene) untilReady(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		tier := tierOf(s.ns, name)
		if err := s.c.Until(t.Context(), tier, func() bool {
			return tier.Status.ObservedGeneration == tier.Generation && condition(tier).Status == metav1.ConditionTrue
		}); err != nil {
			t.Fatal(err)
		}
	}
}

// resumed are the tiers that were resumed since the mark, in that order, and
// how often each.
func (s *resumeScene) resumed(t *testing.T, mark cluster.Mark) string {
	t.Helper()
	var names []string
	for _, e := range sent(t, s.c, mark, "kubectl-standup").Mutating() {
		if e.Verb != "patch" || e.Resource != "kustomizations" && e.Resource != "helmreleases" || e.Code >= 300 {
			t.Errorf("arrived: %s", e)
		}
		names = append(names, e.Name)
	}
	return strings.Join(names, " ")
}

// inOrder fails the test when the texts do not follow each other.
func (o outcome) inOrder(t *testing.T, stream string, texts ...string) {
	t.Helper()
	rest := stream
	for _, text := range texts {
		_, after, found := strings.Cut(rest, text)
		if !found {
			t.Errorf("%s\nit does not say %q, or not in the order %q", o, text, texts)
			return
		}
		rest = after
	}
}

// resumeInOrder (incident 6): nobody has listed the tiers. A HelmRelease is one
// of them, and so is what a container brings.
func resumeInOrder(t *testing.T, c *cluster.Cluster) {
	s := &resumeScene{scene: &scene{ns: "order"}}
	files := folders("order", "a", "b", "c", "d")
	files["tree/tiers.yaml"] = strings.Join([]string{
		s.manifest("a", "wait: true"), s.manifest("b", "wait: true", needs("a")), s.manifest("c", needs("b")), s.manifest("d", needs("b")),
		helmRelease("order", "db"), helmRelease("order", "web", needs("db")),
	}, "---\n")
	s = newResumeScene(t, c, "order", files)
	defer s.clear(t)
	s.add(t, s.manifest("tree"))
	s.suspend(t, "a", "b", "c", "d")
	for _, name := range []string{"db", "web"} {
		s.patch(t, s.release(t, name), "flux", `{"spec":{"suspend":true}}`)
	}
	s.untilReady(t, "tree")
	s.patch(t, tierOf("order", "tree"), "flux", `{"spec":{"suspend":true,"wait":true}}`)

	mark := c.Mark()
	o := s.resume(t, 0, "--dry-run")
	o.inOrder(t, o.stdout, "level 0", "order/tree (suspended by flux since ", "level 1", "order/a", "HelmRelease/order/db", "level 2", "order/b", "HelmRelease/order/web", "level 3", "order/c", "order/d")
	mutatedNothing(t, c, mark)

	mark = c.Mark()
	o = s.resume(t, 0)
	o.holds(t, o.stderr, "Kustomization/order/a is to be resumed (suspended by flux since ")
	o.inOrder(t, o.stderr, "order/tree resumed", "order/a resumed", "✔ order/a: Ready at ", "order/b resumed", "✔ order/b: Ready at ", "order/c resumed", "✔ order/c: Ready at ")
	o.inOrder(t, o.stderr, "✔ order/b: Ready at ", "order/d resumed", "✔ order/d: Ready at ")
	o.inOrder(t, o.stderr, "order/tree resumed", "HelmRelease/order/db resumed", "✔ order/db: Ready at ", "HelmRelease/order/web resumed", "✔ order/web: Ready at ", "✔ order/tree: Ready at ")
	o.holds(t, o.stdout, "7 of 7 tiers Ready")
	// A HelmRelease may sleep once more, until its chart is there.
	got := strings.Fields(s.resumed(t, mark))
	first := slices.DeleteFunc(slices.Clone(got), func(name string) bool { return name == "db" || name == "web" })
	if len(first) != 5 || strings.Join(first[:3], " ") != "tree a b" || len(got) > 9 {
		t.Errorf("%s\npatched %q, want tree, a, b, then c and d, and the releases", o, got)
	}
	// Nothing of it stays on a tier.
	tier := tierOf("order", "a")
	if err := c.Until(t.Context(), tier, func() bool { return true }); err != nil {
		t.Fatal(err)
	}
	for _, m := range tier.ManagedFields {
		if strings.Contains(string(m.FieldsV1.GetRawBytes()), `"f:suspend"`) {
			t.Errorf("%s still owns spec.suspend", m.Manager)
		}
	}

	mark = c.Mark()
	o = s.resume(t, 0)
	o.holds(t, o.stdout, "no tier is suspended that is meant to run", "7 of 7 tiers Ready")
	mutatedNothing(t, c, mark)
}

// resumeLeaves (incident 8): each tier that stays is named with the reason,
// and everything else is done.
func resumeLeaves(t *testing.T, c *cluster.Cluster) {
	s := &resumeScene{scene: &scene{ns: "leave"}}
	from := "postBuild: {substituteFrom: [{kind: ConfigMap, name: settings}]}"
	files := folders("leave", "skipped", "held", "below", "git", "backup", "offsite", "pruner", "free")
	files["tree/tiers.yaml"] = strings.Join([]string{
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: leave}\ndata: {ENDPOINT: TBD-ask-the-storage-team}\n",
		s.manifest("skipped"), s.manifest("held"), s.manifest("below", needs("held")), s.manifest("git", "suspend: true"),
		s.manifest("backup", from), s.manifest("offsite", from), s.manifest("pruner"), s.manifest("free"),
		helmRelease("leave", "web"),
	}, "---\n")
	files["pruner/other.yaml"] = configMap("leave", "other")
	s = newResumeScene(t, c, "leave", files)
	defer s.clear(t)
	s.add(t, s.manifest("tree"))
	s.untilReady(t, "tree", "skipped", "held", "backup", "offsite", "pruner", "free")
	web := s.release(t, "web")
	if err := c.Until(t.Context(), web, func() bool { return meta.IsStatusConditionTrue(web.Status.Conditions, "Ready") }); err != nil {
		t.Fatal(err)
	}
	s.suspend(t, "skipped", "held", "backup", "pruner", "free")
	// Not by kubectl: Flux undoes what that has said with the next apply.
	s.patch(t, tierOf("leave", "held"), "somebody", `{"metadata":{"annotations":{"kubestandup.dev/hold":"until the migration is done"}}}`)
	s.patch(t, web, "somebody", `{"spec":{"suspend":true,"releaseName":"another"}}`)
	delete(files, "pruner/other.yaml")
	s.push(t, files)
	s.untilFailed(t, "below", "is not ready")
	config := `variables:
- {name: ENDPOINT, placeholder: "TBD-*", blocks: [ks/leave/backup], degrades: [ks/leave/offsite]}
resume: {skip: [skipped]}
`
	if err := os.WriteFile(filepath.Join(s.sh.dir, "standup.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}

	mark := c.Mark()
	o := s.resume(t, 6)
	o.holds(t, o.stdout,
		"Kustomization/leave/skipped is left as it is (suspended by flux since ", "resume.skip of standup.yaml names it",
		"annotation kubestandup.dev/hold says: until the migration is done",
		"Kustomization/leave/git is left as it is (suspended by kustomize-controller since ", "its manifest in git says suspend: true",
		"ENDPOINT is still a placeholder, and standup.yaml says that this blocks it",
		"Kustomization/leave/offsite: Ready does not mean that it works, since ENDPOINT is still a placeholder",
		"helm-controller would UNINSTALL its release: its release name is web, and the spec now says another",
		"its prune would DELETE what git no longer has in it: ConfigMap/leave/other",
		"Kustomization/leave/below cannot become Ready, since Kustomization/leave/held stays as it is",
		"Kustomization/leave/free; 3 of 10 tiers Ready",
	)
	o.holds(t, o.stderr, "error: Kustomization/leave/pruner, HelmRelease/leave/web: not resumed, since that would delete what is there")
	if got := s.resumed(t, mark); got != "free" {
		t.Errorf("%s\nresumed %q, want free alone", o, got)
	}
	for _, name := range []string{"other", "web"} {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "leave", Name: name}}
		if err := c.Client().Get(t.Context(), client.ObjectKeyFromObject(cm), cm); err != nil {
			t.Errorf("what would have been deleted: %v", err)
		}
	}
	mark = c.Mark()
	s.resume(t, 6)
	mutatedNothing(t, c, mark)
}

// resumeStops (incident 7): a partial, understood bring-up, and a second run
// that does the rest.
func resumeStops(t *testing.T, c *cluster.Cluster) {
	s := newResumeScene(t, c, "stops", folders("stops", "a", "below"))
	defer s.clear(t)
	s.add(t, s.manifest("a", "suspend: true"), s.manifest("bad", "suspend: true", needs("a")), s.manifest("below", "suspend: true", needs("bad")))
	if err := os.WriteFile(filepath.Join(s.sh.dir, "standup.yaml"), []byte("resume: {timeout: 15s}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	mark := c.Mark()
	o := s.resume(t, 4)
	o.holds(t, o.stderr, "error: Kustomization/stops/bad did not become Ready within 15s of its dependencies being met")
	o.holds(t, o.stdout, "kustomization path not found", "left: Kustomization/stops/below (suspended; root cause Kustomization/stops/bad: ",
		"Next: kubectl standup resume --context test --expect-server "+c.URL())
	o.inOrder(t, o.stderr, "stops/a resumed", "✔ stops/a: Ready at ", "stops/bad resumed")
	if got := s.resumed(t, mark); got != "a bad" {
		t.Errorf("%s\nresumed %q", o, got)
	}
	s.config(t, "")
	s.push(t, folders("stops", "a", "bad", "below"))
	mark = c.Mark()
	o = s.resume(t, 0)
	if got := strings.Fields(s.resumed(t, mark)); slices.Contains(got, "a") || !slices.Contains(got, "below") {
		t.Errorf("%s\npatched %q", o, got)
	}

	// A source that is suspended is no tier, and may be pinned: it is named.
	s.patch(t, s.source(), "flux", `{"spec":{"suspend":true}}`)
	s.add(t, "{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {name: cold, namespace: stops}, spec: {interval: 1h, suspend: true, url: \"https://127.0.0.1:1/x\"}}\n",
		strings.ReplaceAll(s.manifest("frozen", "suspend: true"), "name: source", "name: cold"))
	mark = c.Mark()
	o = s.resume(t, 3)
	o.holds(t, o.stdout, "GitRepository/stops/source: it is suspended at main@sha1:", "so no new revision arrives; 3 tiers are built from it",
		"GitRepository/stops/cold: it is suspended and has no artifact, so nothing can be built from it; one tier is built from it",
		"Kustomization/stops/frozen cannot become Ready, since GitRepository/stops/cold stays as it is",
		"if it is meant to run: flux resume source git cold -n stops")
	mutatedNothing(t, c, mark)
	s.patch(t, s.source(), "flux", `{"spec":{"suspend":false}}`)

	// A loop ends at once.
	s.add(t, s.manifest("left", "suspend: true", needs("right")), s.manifest("right", "suspend: true", needs("left")))
	mark = c.Mark()
	o = s.resume(t, 3)
	o.holds(t, o.stdout, "dependency cycle: stops/left → stops/right → stops/left")
	mutatedNothing(t, c, mark)
}
