// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package e2e

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubestandup/kubestandup/pkg/wedge"
	"github.com/kubestandup/kubestandup/test/cluster"
)

// TestWedgeFlux is what Flux can be wedged in without Helm: the real source-
// and kustomize-controller, each case in a namespace with a source of its own.
// There is no helm-controller, so that no HelmRelease is ever answered.
func TestWedgeFlux(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, cluster.Options{
		FluxDeployments: true,
		Args: map[cluster.Component][]string{
			// What waits for a dependency looks again after this.
			cluster.KustomizeController: {"--requeue-dependency=3s", "--concurrent=10"},
		},
	})
	mark := c.Mark()
	cases := []struct {
		ns, name string
		run      func(*testing.T, *fluxScene)
	}{
		{"crd01", "CRD01 a HelmRelease and a resource of its chart's kind", bringerHeldBack},
		{"crd05", "CRD05 the kind is there and Flux sleeps", asleepTier},
		{"crd06", "CRD06 a trigger and what it creates in one tier", triggerHeldBack},
		{"crd12", "CRD12 the kind is served in another version", otherVersion},
		{"crd14", "CRD14 a conversion webhook is not up", deadConversion},
		{"dep01", "DEP01 a cycle", cycleOfTwo},
		{"dep01self", "DEP01 a tier that depends on itself", cycleOfOne},
		{"dep04", "DEP04 the dependency is a HelmRelease", dependencyOfOtherKind},
		{"dep05", "DEP05 the dependency is in another namespace", dependencyElsewhere},
		{"dep08", "DEP08 only the first is in the message", twoDependencies},
		{"dep09", "DEP09 readyExpr", readyExpressions},
		{"dep13", "DEP13 and DEP14 not ready is not never", notYet},
		{"suspended", "a dependency is suspended", suspendedDependency},
		{"big01", "BIG01 annotations that are too long", annotationTooLong},
		{"big04", "BIG04 storedVersions keep a CRD from being upgraded", storedVersionsUpgrade},
		{"big05", "BIG05 git is older than the cluster", olderCRD},
	}
	together(t, "at once", len(cases), func(i int) (string, func(*testing.T)) {
		return cases[i].name, func(t *testing.T) {
			ns := cases[i].ns
			cases[i].run(t, &fluxScene{scene: newScene(t, c, ns, cluster.Files{"README.md": ns}), patient: newPatient(t, c, "-n", ns), c: c})
		}
	})
	t.Run("CRD16 a controller is missing", func(t *testing.T) { missingController(t, c) })
	neverDone(t, c, mark)
}

// fluxScene is the namespace of one case.
type fluxScene struct {
	*scene
	*patient

	c *cluster.Cluster
}

// commit pushes the files, and makes the tiers.
func (s *fluxScene) commit(t *testing.T, files cluster.Files, tiers ...string) {
	t.Helper()
	files["README.md"] = s.ns
	s.push(t, files)
	if len(tiers) > 0 {
		s.add(t, tiers...)
	}
}

// untilReady waits until a tier is Ready at a revision.
func (s *fluxScene) untilReady(t *testing.T, name, revision string) {
	t.Helper()
	tier := tierOf(s.ns, name)
	until(t, s.c, tier, func() bool {
		return condition(tier).Status == metav1.ConditionTrue && strings.HasSuffix(tier.Status.LastAppliedRevision, revision) &&
			tier.Status.ObservedGeneration == tier.Generation
	})
}

// hourly is a tier that Flux looks at once in an hour, also when it fails.
func (s *fluxScene) hourly(name string, spec ...string) string {
	return strings.Replace(s.manifest(name, spec...), "retryInterval: "+quickly, "retryInterval: 1h", 1)
}

// here keeps to what the plugin did in this scene.
func (s *fluxScene) here() func(cluster.Event) bool { return inNamespace(s.ns) }

// refrains wants one verdict that asks for nothing but what a person has to do:
// nothing is tried, with whatever is confirmed.
func (s *fluxScene) refrains(t *testing.T, cause wedge.Cause, state string) *wedge.Verdict {
	t.Helper()
	mark := s.c.Mark()
	v, _ := s.verdict(t, 0, cause, state, "--confirm-destructive")
	plans(t, v)
	s.did(t, mark, s.here())
	return v
}

// cycleOfTwo: reported once, with all that it keeps from being woken.
func cycleOfTwo(t *testing.T, s *fluxScene) {
	s.commit(t, folders(s.ns, "a", "b", "c"), s.manifest("c"), s.manifest("a", needs("b")), s.manifest("b", needs("a")))
	s.untilFailed(t, "a", "dependency 'dep01/b' is not ready")
	s.untilFailed(t, "b", "dependency 'dep01/a' is not ready")
	s.untilReady(t, "c", "")
	v := s.refrains(t, wedge.Cycle, "cycle")
	tells(t, v, "each of these waits for the next one: ", "no new revision of GitRepository/dep01/source wakes any other Kustomization", "dep01/c",
		"remove one of these in git", "dep01/b from spec.dependsOn of Kustomization/dep01/a; or dep01/a from spec.dependsOn of Kustomization/dep01/b")
	// It is true: c does not get what is new.
	revision := s.push(t, folders(s.ns, "a", "b", "c", "d"))
	if err := s.c.Nudge(t.Context(), tierOf(s.ns, "a")); err != nil {
		t.Fatal(err)
	}
	s.untilFailed(t, "a", "dependency 'dep01/b' is not ready")
	c := tierOf(s.ns, "c")
	if exists(t, s.c, c); c.Status.LastAppliedRevision == revision {
		t.Error("c was woken all the same")
	}
}

func cycleOfOne(t *testing.T, s *fluxScene) {
	s.commit(t, folders(s.ns, "a"), s.manifest("a", needs("a")))
	s.untilFailed(t, "a", "dependency 'dep01self/a' is not ready")
	v := s.refrains(t, wedge.Cycle, "cycle")
	tells(t, v, "Kustomization/dep01self/a depends on itself", "remove in git: dep01self/a from spec.dependsOn of Kustomization/dep01self/a")
}

const helmReleaseText = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: NAME, namespace: NS}\n" +
	"spec: {interval: 1h, chart: {spec: {chart: ./chart, sourceRef: {kind: GitRepository, name: source}}}SPEC}\n"

func (s *fluxScene) helmRelease(name, spec string) string {
	return strings.NewReplacer("NAME", name, "NS", s.ns, "SPEC", spec).Replace(helmReleaseText)
}

func dependencyOfOtherKind(t *testing.T, s *fluxScene) {
	s.commit(t, folders(s.ns, "books"), s.helmRelease("ceph-cluster", ""), s.manifest("books", needs("ceph-cluster")))
	s.untilFailed(t, "books", "dependency 'dep04/ceph-cluster' not found")
	v := s.refrains(t, wedge.DependencyMissing, "dependency-missing")
	tells(t, v, "depends on dep04/ceph-cluster, which does not exist", "dep04/ceph-cluster is a HelmRelease, which a Kustomization cannot depend on",
		"depend on a Kustomization that applies it and waits for it (wait: true)")
}

func dependencyElsewhere(t *testing.T, s *fluxScene) {
	other := newScene(t, s.c, "dep05infra", folders("dep05infra", "base"))
	other.add(t, other.manifest("base"))
	s.commit(t, folders(s.ns, "app", "right"), s.manifest("app", needs("base")),
		s.manifest("right", "dependsOn: [{name: base, namespace: dep05infra}]"))
	s.untilFailed(t, "app", "dependency 'dep05/base' not found")
	s.untilReady(t, "right", "")
	v := s.refrains(t, wedge.DependencyMissing, "dependency-missing")
	tells(t, v, "Kustomization/dep05/app depends on dep05/base, which does not exist",
		"base exists in namespace dep05infra: add `namespace: dep05infra` to the dependency of Kustomization/dep05/app in git")
}

func twoDependencies(t *testing.T, s *fluxScene) {
	s.commit(t, folders(s.ns, "app", "a", "c"), s.manifest("a"), s.manifest("c", "suspend: true"), s.manifest("app", needs("a", "b", "c", "d")))
	s.untilFailed(t, "app", "dependency 'dep08/b' not found")
	s.untilReady(t, "a", "")
	plan, _ := s.judged(t, 0, []string{"dependency-suspended c suspended", "dependency-missing app dependency-missing"})
	tells(t, &plan.Verdicts[1], "depends on dep08/b and dep08/d, which do not exist", "c has not been reconciled yet")
	// With b there the message changes to c: the rest is still wrong.
	s.commit(t, folders(s.ns, "app", "a", "b", "c"), s.manifest("b"))
	s.untilReady(t, "b", "")
	s.untilFailed(t, "app", "dependency 'dep08/c' is not ready")
	plan, _ = s.judged(t, 0, []string{"dependency-suspended c suspended", "dependency-missing app dependency-missing"})
	tells(t, &plan.Verdicts[1], "depends on dep08/d, which does not exist")
}

// readyExpressions: they stand in for Ready, so a tier that is not Ready blocks
// nobody by itself; one that does not parse is never tried again.
func readyExpressions(t *testing.T, s *fluxScene) {
	with := func(expression string) string {
		return `dependsOn: [{name: db, readyExpr: "` + expression + `"}]`
	}
	s.commit(t, folders(s.ns, "equal", "other", "broken"), s.manifest("db"),
		s.manifest("equal", with("dep.metadata.name == 'db'")), s.manifest("other", with("dep.metadata.name == 'pg'")),
		s.manifest("broken", with("dep.metadata.name ==")))
	s.untilReady(t, "equal", "")
	s.untilFailed(t, "other", "is not ready according to readyExpr eval")
	s.untilFailed(t, "db", "kustomization path not found")
	s.untilFailed(t, "broken", "")
	v := s.refrains(t, wedge.TierStalled, "InvalidCELExpression")
	if v.Object.Name != "broken" {
		t.Errorf("the verdict is on %s", v.Object)
	}
	tells(t, v, "a new spec starts it anew")
}

// notYet: what is progressing, or lags by a generation, is no wedge. There is
// no helm-controller: the test writes the status that it would.
func notYet(t *testing.T, s *fluxScene) {
	s.commit(t, folders(s.ns, "slow", "after"),
		s.helmRelease("lags", ""), s.helmRelease("waits", ", dependsOn: [{name: lags}]"),
		s.manifest("slow", "healthChecks: [{apiVersion: apps/v1, kind: Deployment, name: none, namespace: dep13}]"), s.manifest("after", needs("slow")))
	hr := func(name string) *unstructured.Unstructured {
		return thing("helm.toolkit.fluxcd.io/v2", "HelmRelease", s.ns, name)
	}
	merge(t, s.c, hr("lags"), "kubectl-edit", `{"spec":{"interval":"2h"}}`)
	merge(t, s.c, hr("lags"), "helm-controller", `{"status":{"observedGeneration":1,"conditions":[
		{"type":"Ready","status":"True","reason":"UpgradeSucceeded","message":"upgraded","observedGeneration":2,"lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`, "status")
	merge(t, s.c, hr("waits"), "helm-controller", `{"status":{"observedGeneration":1,"conditions":[
		{"type":"Ready","status":"False","reason":"DependencyNotReady","message":"dependency 'dep13/lags' is not ready","observedGeneration":1,"lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`, "status")
	slow := tierOf(s.ns, "slow")
	until(t, s.c, slow, func() bool { return condition(slow).Status == metav1.ConditionUnknown })
	s.untilFailed(t, "after", "dependency 'dep13/slow' is not ready")
	s.healthy(t)
}

// suspendedDependency: resumed where a person suspended it, and left alone
// where git says so, or where it is being deleted: its finalizer would orphan
// what it applied.
func suspendedDependency(t *testing.T, s *fluxScene) {
	s.commit(t, folders(s.ns, "dep", "app", "root"), s.manifest("dep"), s.manifest("app", needs("dep")))
	s.untilReady(t, "app", "")
	dep := tierOf(s.ns, "dep")
	merge(t, s.c, dep, "flux", `{"spec":{"suspend":true}}`)
	revision := s.push(t, folders(s.ns, "dep", "app", "more"))
	s.untilFailed(t, "app", "dependency 'suspended/dep' revision is not up to date")
	v, _ := s.verdict(t, 0, wedge.DependencySuspended, "suspended")
	plans(t, v, "resume! Kustomization/suspended/dep")
	tells(t, v, "1 tier waits for it", "true, by flux since ", "in place of ")

	// While it is being deleted it is never touched.
	mark := s.c.Mark()
	remove(t, s.c, dep)
	until(t, s.c, dep, func() bool { return dep.DeletionTimestamp != nil })
	// kustomize-controller lets go of a suspended one, and it is gone.
	untilGone(t, s.c, dep)
	s.verdict(t, 0, wedge.DependencyMissing, "dependency-missing", "--apply")
	s.did(t, mark, s.here())

	// A person's suspension is ended when that is asked for.
	s.add(t, s.manifest("dep"))
	s.untilReady(t, "app", revision)
	merge(t, s.c, dep, "flux", `{"spec":{"suspend":true}}`)
	revision = s.push(t, folders(s.ns, "dep", "app", "again"))
	s.untilFailed(t, "app", "dependency 'suspended/dep' revision is not up to date")
	mark = s.c.Mark()
	// What it was pruned of since would go, so --apply alone does not.
	s.verdict(t, 6, wedge.DependencySuspended, "suspended", "--apply")
	s.did(t, mark, s.here())
	v, _ = s.verdict(t, 0, wedge.DependencySuspended, "suspended", "--confirm-destructive")
	allDone(t, v)
	s.did(t, mark, s.here(), "patch kustomizations/dep")
	s.untilReady(t, "app", revision)
	s.healthy(t)

	// What git suspends stays so.
	files := folders(s.ns, "app")
	files["dep/cm.yaml"] = configMap(s.ns, "dep")
	files["root/dep.yaml"] = s.manifest("dep", "suspend: true")
	s.commit(t, files, s.manifest("root"))
	s.untilReady(t, "root", "")
	files["more/cm.yaml"] = configMap(s.ns, "more")
	s.push(t, files)
	s.untilFailed(t, "app", "dependency 'suspended/dep' revision is not up to date")
	v, _ = s.verdict(t, 0, wedge.DependencySuspended, "suspended", "--apply")
	plans(t, v)
	tells(t, v, "it is kept suspended on purpose: its manifest in git says suspend: true")
	if exists(t, s.c, dep); !dep.Spec.Suspend {
		t.Error("it was resumed all the same")
	}
}

// annotationTooLong: Flux sends what git has, which the API server refuses.
func annotationTooLong(t *testing.T, s *fluxScene) {
	files := cluster.Files{"big/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: big\n  namespace: big01\n  annotations:\n" +
		"    kubectl.kubernetes.io/last-applied-configuration: \"" + strings.Repeat("0123456789abcdef", 1<<14) + "\"\n"}
	s.commit(t, files, s.hourly("big"))
	s.untilFailed(t, "big", "Too long")
	v := s.refrains(t, wedge.TooLong, "apply-refused")
	tells(t, v, "the annotations of ConfigMap/big01/big are over the limit of 262144 bytes", "kubectl apply --server-side", "last-applied-configuration")
}

// missingController: Flux's kinds are served and nobody answers for one. How
// many objects wait depends on the other cases.
func missingController(t *testing.T, c *cluster.Cluster) {
	s := &fluxScene{scene: newScene(t, c, "crd16", cluster.Files{"README.md": ""}), patient: newPatient(t, c, "-n", cluster.FluxNamespace), c: c}
	s.add(t, s.helmRelease("silent", ""))
	helm := deployment(cluster.FluxNamespace, "helm-controller")
	merge(t, c, helm, "test", `{"spec":{"replicas":0}}`)
	until(t, c, helm, func() bool { return helm.Status.Replicas == 0 && helm.Status.ObservedGeneration == helm.Generation })
	mark := c.Mark()
	v := s.refrains(t, wedge.ControllerMissing, "scaled-to-zero")
	tells(t, v, "set spec.replicas of Deployment/flux-system/helm-controller to 1")

	merge(t, c, helm, "test", `{"spec":{"replicas":1,"template":{"spec":{"nodeSelector":{"no":"such"},"schedulerName":"nobody"}}}}`)
	remove(t, c, helm)
	hr := thing("helm.toolkit.fluxcd.io/v2", "HelmRelease", "crd16", "silent")
	merge(t, c, hr, "helm-controller", `{"metadata":{"finalizers":["finalizers.fluxcd.io"]}}`)
	remove(t, c, hr)
	v, _ = s.verdict(t, 0, wedge.ControllerMissing, "absent", "--confirm-destructive")
	plans(t, v)
	tells(t, v, "Deployment", "helm-controller", "no helm-controller was seen", "nobody looks at its objects", "install Flux again with helm-controller",
		"leave the finalizer of HelmRelease/crd16/silent where it is")
	s.did(t, mark, func(e cluster.Event) bool { return e.Namespace == cluster.FluxNamespace || e.Namespace == "crd16" })
	// Nor does anything else take the finalizer off.
	newPatient(t, c, "-n", "crd16").judged(t, 0, nil, "--confirm-destructive")
	if !exists(t, c, hr) {
		t.Error("the finalizer was taken off")
	}
	merge(t, c, hr, "test", `{"metadata":{"finalizers":null}}`)
}
