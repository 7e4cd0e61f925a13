// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/standup"
	"github.com/kubestandup/kubestandup/test/cluster"
)

// verifyScene is a cluster that is up, and its repository.
type verifyScene struct {
	*scene
	named []string
}

// TestVerify: what is proved of a cluster that is up, and what is not. There is
// no controller manager: the test writes the status of the Deployment.
func TestVerify(t *testing.T) {
	t.Parallel()
	const ns = "verify"
	c := cluster.New(t, cluster.Options{
		Components:      []cluster.Component{cluster.SourceController, cluster.KustomizeController, cluster.HelmController},
		FluxDeployments: true,
		Users:           []cluster.User{{Name: "reader"}},
		// What depends on a tier is looked at again each second, not each 30.
		Args: map[cluster.Component][]string{cluster.KustomizeController: {
			"--requeue-dependency=1s", "--concurrent=20", "--kube-api-qps=500", "--kube-api-burst=1000",
		}},
	})
	newScene(t, c, chartsNamespace, releaseCharts())
	w := &verifyScene{newScene(t, c, ns, verifyTree(ns, 3)), expect(t, c)}
	w.add(t, w.manifest("root"))
	w.untilReady(t, "root", "crd", "storage", "apps", "stopped")
	w.releaseReady(t)
	if err := c.MarkAvailable(t.Context(), ns, "web"); err != nil {
		t.Fatal(err)
	}
	w.patch(t, thing("example.org/v1", "Profile", "", "fast"), `{"status":{"claimPropertySets":[{"mode":"Block"}]}}`, "status")
	before := c.Mark()

	t.Run("nothing says whether it works", w.unproved)
	t.Run("a check of standup.yaml", w.checked)
	t.Run("a tier that somebody suspended", w.suspended)
	t.Run("an object that is gone", w.gone)
	t.Run("an object of a release that is gone", w.goneOfRelease)
	t.Run("a Deployment that is not available", w.notAvailable)
	t.Run("a kind that may not be listed", w.forbidden)
	t.Run("a CRD that is expected", w.expected)
	t.Run("a placeholder", w.placeholder)
	mutatedNothing(t, c, before)
	t.Run("requests", w.requests)
}

// verifyTree is a root tier and those that it applies. One of them is suspended
// in git; the last ones are there to be many.
func verifyTree(ns string, many int) cluster.Files {
	s := &scene{ns: ns}
	files := folders(ns, "stopped", "parked")
	files["root/tiers.yaml"] = strings.Join([]string{
		s.manifest("crd", "wait: true"), s.manifest("storage", "wait: true", needs("crd")), s.manifest("apps"),
		s.manifest("stopped", "postBuild: {substitute: {ENDPOINT: TBD-where}}"), s.manifest("parked", "suspend: true"), helmRelease(ns, "web"),
	}, "---\n")
	files["crd/crd.yaml"] = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: profiles.example.org}
spec:
  group: example.org
  scope: Cluster
  names: {kind: Profile, plural: profiles, singular: profile}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`
	files["storage/profile.yaml"] = "apiVersion: example.org/v1\nkind: Profile\nmetadata: {name: fast}\n"
	files["apps/apps.yaml"] = strings.Join([]string{
		configMap(ns, "settings"), strings.Replace(slowDeployment, "{name: slow}", "{name: web, namespace: "+ns+"}", 1),
		"apiVersion: v1\nkind: Secret\nmetadata: {name: key, namespace: " + ns + "}\nstringData: {key: hunter2}\n",
		"apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: \"example:verify:read\"}\n",
	}, "---\n")
	for i := range many {
		name := fmt.Sprintf("many-%02d", i)
		files["root/"+name+".yaml"], files[name+"/cm.yaml"] = s.manifest(name), configMap(ns, name)
	}
	return files
}

func (w *verifyScene) untilReady(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		tier := tierOf(w.ns, name)
		if err := w.c.Until(t.Context(), tier, func() bool { return condition(tier).Status == metav1.ConditionTrue }); err != nil {
			t.Fatal(err)
		}
	}
}

func (w *verifyScene) releaseReady(t *testing.T) {
	t.Helper()
	s := &releaseScene{releaseWorld: &releaseWorld{c: w.c}, ns: w.ns}
	s.untilReady(t, s.hr())
}

func (w *verifyScene) patch(t *testing.T, obj client.Object, merge string, subresource ...string) {
	t.Helper()
	var err error
	if patch := client.RawPatch(types.MergePatchType, []byte(merge)); len(subresource) > 0 {
		err = w.c.Client().SubResource(subresource[0]).Patch(t.Context(), obj, patch)
	} else {
		err = w.c.Client().Patch(t.Context(), obj, patch, client.FieldOwner("kubectl-edit"))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// verify runs the step with a standup.yaml.
func (w *verifyScene) verify(t *testing.T, code int, file string) (standup.Report, outcome) {
	t.Helper()
	path := filepath.Join(w.sh.dir, "standup.yaml")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(path)
	o := w.sh.want(t, code, slices.Concat([]string{"standup", "verify", "-o", "json"}, w.named)...)
	if strings.Contains(o.stdout+o.stderr, "hunter2") {
		t.Errorf("%s\nit shows a Secret", o)
	}
	return decode[standup.Report](t, o), o
}

// finds is the finding of a rule about an object, which may be any.
func finds(t *testing.T, r *standup.Report, rule, object string) finding.Finding {
	t.Helper()
	var seen []string
	for _, f := range r.Steps[0].Findings {
		about := ""
		if f.Object != nil {
			about = f.Object.String()
		}
		if f.Rule == rule && (object == "" || object == about) {
			return f
		}
		seen = append(seen, f.Rule+" "+about+": "+f.Message)
	}
	t.Fatalf("no finding %s %s among\n  %s", rule, object, strings.Join(seen, "\n  "))
	return finding.Finding{}
}

func says(t *testing.T, f *finding.Finding, texts ...string) {
	t.Helper()
	all := strings.Join(append([]string{f.Message, f.Fix, f.Suggestion}, f.Causes...), "\n")
	for _, text := range texts {
		if !strings.Contains(all, text) {
			t.Errorf("%s does not say %q:\n%s", f.Rule, text, all)
		}
	}
}

func ruled(r *standup.Report, severities ...finding.Severity) []string {
	var out []string
	for _, f := range r.Steps[0].Findings {
		if slices.Contains(severities, f.Severity) {
			out = append(out, f.Rule)
		}
	}
	return out
}

func (w *verifyScene) unproved(t *testing.T) {
	r, o := w.verify(t, 0, "")
	f := finds(t, &r, "unproved", "Profile/fast")
	says(t, &f, "nothing says whether it works", `- {apiVersion: example.org/v1, kind: Profile, current: "has(status.claimPropertySets)"}`)
	f = finds(t, &r, "tier-skipped", "Kustomization/verify/parked")
	says(t, &f, "its manifest in git says suspend: true")
	// 9 tiers, and 1 parked; the CRD, 4 of apps, 1 of stopped, 3 of many, and 4
	// of the release, which has its own inventory; 1 profile.
	if r.Proved != 8+1+1+4+1+3+4 || r.Unproved != 1 || r.Failed != 0 || r.Skipped != 1 {
		t.Errorf("%s\nproved %d, unproved %d, failed %d, skipped %d", o, r.Proved, r.Unproved, r.Failed, r.Skipped)
	}
	if r.Steps[0].Next != "" || len(ruled(&r, finding.Error, finding.Warning)) > 0 {
		t.Errorf("%s\nwant nothing left", o)
	}
}

const profileCheck = "verify:\n  checks:\n  - {apiVersion: example.org/v1, kind: Profile, current: %q}\n"

func (w *verifyScene) checked(t *testing.T) {
	r, o := w.verify(t, 0, fmt.Sprintf(profileCheck, "has(status.claimPropertySets)"))
	if r.Unproved != 0 || slices.Contains(ruled(&r, finding.Info), "unproved") {
		t.Errorf("%s\nwant it proved", o)
	}
	r, _ = w.verify(t, 3, fmt.Sprintf(profileCheck, "status.claimPropertySets.exists(p, p.mode == 'File')"))
	f := finds(t, &r, "check-false", "Profile/fast")
	says(t, &f, "verify.checks[0] of standup.yaml is not true", "which Kustomization/verify/storage has applied", "kubectl describe profile.example.org fast")
	if f.Severity != finding.Error || r.Failed != 1 {
		t.Errorf("got %+v, %d failed", f, r.Failed)
	}
}

func (w *verifyScene) suspended(t *testing.T) {
	w.patch(t, tierOf(w.ns, "stopped"), `{"spec":{"suspend":true}}`)
	r, _ := w.verify(t, 3, "")
	f := finds(t, &r, "tier-suspended", "Kustomization/verify/stopped")
	says(t, &f, "suspended by kubectl-edit since", "kubectl standup resume", "resume: {skip: [ks/verify/stopped]}")
	if r.Failed != 1 || !strings.Contains(r.Steps[0].Next, "kubectl standup resume ") {
		t.Errorf("%d failed, next %q", r.Failed, r.Steps[0].Next)
	}
	held := func(file, why string) {
		r, o := w.verify(t, 0, file)
		f := finds(t, &r, "tier-skipped", "Kustomization/verify/stopped")
		says(t, &f, why)
		if r.Skipped != 2 || r.Failed != 0 {
			t.Errorf("%s\nwant two skipped", o)
		}
	}
	held("resume: {skip: [ks/verify/stopped]}\n", "resume.skip of standup.yaml names it")
	w.patch(t, tierOf(w.ns, "stopped"), `{"metadata":{"annotations":{"kubestandup.dev/hold":"Jo works on it"}}}`)
	held("", "annotation kubestandup.dev/hold says: Jo works on it")
	w.patch(t, tierOf(w.ns, "stopped"), `{"metadata":{"annotations":{"kubestandup.dev/hold":null}},"spec":{"suspend":false}}`)
	w.settle(t)
}

// settle waits until all is Ready that is meant to be.
func (w *verifyScene) settle(t *testing.T) {
	t.Helper()
	for _, tier := range []*kustomizev1.Kustomization{tierOf(w.ns, "stopped"), tierOf(w.ns, "root")} {
		if err := w.c.Until(t.Context(), tier, func() bool {
			return tier.Status.ObservedGeneration == tier.Generation && condition(tier).Status == metav1.ConditionTrue
		}); err != nil {
			t.Fatal(err)
		}
	}
}

func (w *verifyScene) delete(t *testing.T, obj client.Object) {
	t.Helper()
	if err := w.c.Client().Delete(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
}

func (w *verifyScene) gone(t *testing.T) {
	w.delete(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "settings"}})
	r, _ := w.verify(t, 3, "")
	f := finds(t, &r, "object-missing", "ConfigMap/verify/settings")
	says(t, &f, "which Kustomization/verify/apps has applied, is not there", "flux reconcile kustomization apps -n verify")
	// It comes back with what was said.
	if err := w.c.Nudge(t.Context(), tierOf(w.ns, "apps")); err != nil {
		t.Fatal(err)
	}
	if err := w.c.Until(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "settings"}}, func() bool { return true }); err != nil {
		t.Fatal(err)
	}
	w.untilReady(t, "apps")
}

func (w *verifyScene) goneOfRelease(t *testing.T) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "web"}}
	w.delete(t, account)
	r, _ := w.verify(t, 3, "")
	f := finds(t, &r, "object-missing", "ServiceAccount/verify/web")
	says(t, &f, "which HelmRelease/verify/web has applied", "flux reconcile helmrelease web -n verify --force")
	account.ResourceVersion = ""
	if err := w.c.Client().Create(t.Context(), account); err != nil {
		t.Fatal(err)
	}
}

func (w *verifyScene) notAvailable(t *testing.T) {
	web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "web"}}
	w.patch(t, web, `{"status":{"readyReplicas":0,"availableReplicas":0}}`, "status")
	r, _ := w.verify(t, 3, "")
	f := finds(t, &r, "object-not-ready", "Deployment/verify/web")
	says(t, &f, "not ready yet: Available: 0/1", "kubectl describe deployment.apps web -n verify")
	if r.Failed != 1 || f.Severity != finding.Warning {
		t.Errorf("got %+v, %d failed", f, r.Failed)
	}
	if err := w.c.MarkAvailable(t.Context(), w.ns, "web"); err != nil {
		t.Fatal(err)
	}
}

// forbidden: somebody who may read everything but Deployments.
func (w *verifyScene) forbidden(t *testing.T) {
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "reader"},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"", "rbac.authorization.k8s.io", "apiextensions.k8s.io", "example.org", "kustomize.toolkit.fluxcd.io", "source.toolkit.fluxcd.io", "helm.toolkit.fluxcd.io"}, Resources: []string{"*"}, Verbs: []string{"get", "list"}},
		},
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "reader"}, RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "reader"},
		Subjects: []rbacv1.Subject{{APIGroup: "rbac.authorization.k8s.io", Kind: "User", Name: "reader"}},
	}
	for _, obj := range []client.Object{role, binding} {
		if err := w.c.Client().Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	kubeconfig, err := w.c.KubeconfigFor("reader")
	if err != nil {
		t.Fatal(err)
	}
	reader := *w
	reader.scene = &scene{w.c, w.ns, newShell(t, kubeconfig)}
	r, _ := reader.verify(t, 3, "resume: {skip: [parked]}\n")
	f := finds(t, &r, "kind-unseen", "")
	says(t, &f, "1 Deployment could not be looked at", "deployments.apps is forbidden")
	if r.Unproved != 2 || r.Failed != 0 {
		t.Errorf("%d unproved, %d failed", r.Unproved, r.Failed)
	}
}

func (w *verifyScene) expected(t *testing.T) {
	r, _ := w.verify(t, 3, "crds: {expect: [profiles.example.org, gadgets.example.org]}\n")
	f := finds(t, &r, "crd-missing", "CustomResourceDefinition/gadgets.example.org")
	says(t, &f, "does not exist", "kubectl standup crds")
	if r.Failed != 1 {
		t.Errorf("%d failed", r.Failed)
	}
}

// placeholder: a green tier must never be read as one that works.
func (w *verifyScene) placeholder(t *testing.T) {
	const variable = "variables: [{name: ENDPOINT, placeholder: TBD-*, %s: [ks/verify/stopped]}]\n"
	r, o := w.verify(t, 0, fmt.Sprintf(variable, "degrades"))
	f := finds(t, &r, "tier-degraded", "Kustomization/verify/stopped")
	says(t, &f, "Kustomization/verify/stopped is Ready and cannot do what it is for: ENDPOINT is still a placeholder")
	if r.Unproved != 2 || r.Failed != 0 { // beside the profile
		t.Errorf("%s\nwant it unproved", o)
	}
	r, o = w.verify(t, 0, fmt.Sprintf(variable, "blocks"))
	f = finds(t, &r, "tier-skipped", "Kustomization/verify/stopped")
	says(t, &f, "ENDPOINT is still a placeholder, and standup.yaml says that this blocks it")
	if r.Skipped != 2 {
		t.Errorf("%s\nwant it skipped", o)
	}
}

// requests: ten tiers and thirty take the same number.
func (w *verifyScene) requests(t *testing.T) {
	var counts []int
	for _, many := range []int{3, 23} {
		revision := w.push(t, verifyTree(w.ns, many))
		w.untilAt(t, revision, many)
		mark := w.c.Mark()
		r, o := w.verify(t, 0, "resume: {skip: [parked]}\n")
		all := sent(t, w.c, mark, "kubectl-standup")
		t.Logf("%d tiers: %d requests, %s; proved %d", many+7, len(all), o.took.Round(time.Millisecond), r.Proved)
		if mutating := all.Mutating(); len(mutating) > 0 {
			t.Errorf("sent\n%s", mutating)
		}
		if counts = append(counts, len(all)); many == 3 {
			t.Logf("\n%s", all)
		}
	}
	if counts[0] != counts[1] {
		t.Errorf("sent %d requests for ten tiers, and %d for thirty", counts[0], counts[1])
	}
}

func (w *verifyScene) untilAt(t *testing.T, revision string, many int) {
	t.Helper()
	names := []string{"root", "crd", "storage", "apps", "stopped"}
	for i := range many {
		names = append(names, fmt.Sprintf("many-%02d", i))
	}
	for _, name := range names {
		tier := tierOf(w.ns, name)
		if err := w.c.Until(t.Context(), tier, func() bool {
			return tier.Status.LastAppliedRevision == revision && condition(tier).Status == metav1.ConditionTrue
		}); err != nil {
			t.Fatal(err)
		}
	}
}
