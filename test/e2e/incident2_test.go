// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubestandup/kubestandup/test/bringup"
	"github.com/kubestandup/kubestandup/test/cluster"
)

// tierList is what is read of `kubectl tiers -o json`.
type tierList struct {
	Server struct{ URL, UID string }
	Items  []struct {
		Object    struct{ Namespace, Name string }
		State     string
		RootCause *struct {
			Object struct{ Kind, Namespace, Name string }
		}
	}
}

// stepReport is what is read of `kubectl standup STEP -o json`.
type stepReport struct {
	Steps []struct {
		Result   string
		Findings []stepFinding
		Next     string
	}
}

type stepFinding struct {
	Rule, Severity, Message, Fix string
	Causes                       []string
}

func decode[T any](t *testing.T, o outcome) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(o.stdout), &v); err != nil {
		t.Fatalf("%s\n%v", o, err)
	}
	return v
}

// TestIncident2_SecondOrderCRDDeadlock: one Kustomization applies the CDI
// resource and a StorageProfile. The real kustomize-controller never gets past
// that; the plugins see it, break it, and leave nothing of theirs behind.
func TestIncident2_SecondOrderCRDDeadlock(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, cluster.Options{
		Components:      append(cluster.DefaultComponents(), cluster.HelmController),
		FluxDeployments: true,
		// Its containers are the real cdi-operator and cdi-apiserver. Of all
		// other Pods only the status is written.
		Kubelet: true,
	})
	sh, named := shellFor(t, c), expect(t, c)
	sh.throughKubectl = true
	if _, err := c.Push(t.Context(), "gitops", incidentTree(t, c), "the platform"); err != nil {
		t.Fatal(err)
	}
	if err := c.InstallRoot(t.Context(), cluster.Root{Repo: "gitops", Path: "./clusters/demo", Prune: true}); err != nil {
		t.Fatal(err)
	}

	t.Run("the wait ends at the wedge from cold", func(t *testing.T) {
		o := sh.want(t, 3, append([]string{"tiers", "--wait", "--nudge"}, named...)...)
		o.holds(t, o.stderr, "Kustomization/flux-system/platform-config is wedged and will not become Ready by itself: deadlock: CDI/cdi would create StorageProfile")
	})
	if !t.Run("Flux alone never converges", func(t *testing.T) { staysBlocked(t, c) }) {
		return
	}
	// What is seen of it is no matter of when one looks.
	wedged := tierOf("flux-system", "platform-config")
	atRest(t, c, wedged, "no matches for kind")
	t.Run("seen", func(t *testing.T) { incidentSeen(t, c, sh, named) })
	t.Run("a dry unwedge shows it", func(t *testing.T) { dryUnwedge(t, c, sh) })
	merge(t, c, wedged, "test", `{"spec":{"retryInterval":"2s"}}`)
	t.Run("broken", func(t *testing.T) { incidentBroken(t, c, sh, named) })
	t.Run("converges", func(t *testing.T) {
		o := sh.want(t, 0, append([]string{"tiers", "--wait", "--nudge"}, named...)...)
		t.Logf("converged %s after the deadlock was broken", o.took.Round(100*time.Millisecond))
		o.holds(t, o.stderr, "12 tiers Ready")
		sh.want(t, 0, append([]string{"standup", "preflight"}, named...)...)
	})
	t.Run("nothing of ours is left", func(t *testing.T) { nothingLeft(t, c) })
	t.Run("a second run does nothing", func(t *testing.T) {
		mark := c.Mark()
		o := sh.want(t, 0, append([]string{"standup", "crds"}, named...)...)
		o.holds(t, o.stdout, "no tier lacks a kind: nothing to do")
		// CDI may still be on its way to Deployed, which is said and left alone.
		o = sh.want(t, 0, append([]string{"unwedge", "--apply", "--only", "cold-start-deadlock,asleep"}, named...)...)
		o.holds(t, o.stderr, "Nothing is wedged.")
		mutatedNothing(t, c, mark)
	})
}

// incidentTree is the repository of the demo, with a retry every two seconds.
// CDI's own install, which the platform tier applies, comes out of CDI's module.
func incidentTree(t *testing.T, c *cluster.Cluster) cluster.Files {
	t.Helper()
	install, err := c.CDIInstall()
	if err != nil {
		t.Fatal(err)
	}
	files, err := bringup.Base(install)
	if err != nil {
		t.Fatal(err)
	}
	return quick(files)
}

// quick makes every tier retry at once.
func quick(files cluster.Files) cluster.Files {
	for path, text := range files {
		files[path] = strings.ReplaceAll(text, "retryInterval: 10s", "retryInterval: 2s")
	}
	return files
}

// staysBlocked waits for three failed attempts after the last change of the
// set of served kinds: blocked for ever.
func staysBlocked(t *testing.T, c *cluster.Cluster) {
	since := lastKind(t, c)
	var attempts []string
	seen := since
	tier := tierOf("flux-system", "platform-config")
	err := c.Until(t.Context(), tier, func() bool {
		ready := condition(tier)
		if ready.Status != metav1.ConditionFalse || !strings.Contains(ready.Message, "no matches for kind") || !ready.LastTransitionTime.After(seen) {
			return false
		}
		seen = ready.LastTransitionTime.Time
		attempts = append(attempts, ready.Message)
		return len(attempts) == 3
	})
	if err != nil {
		t.Fatalf("%v, after %q", err, attempts)
	}
	if last := lastKind(t, c); last != since {
		t.Errorf("a kind appeared meanwhile: %s, before %s", last, since)
	}
	cdi := cdiResource()
	if err := c.Client().Get(t.Context(), client.ObjectKeyFromObject(cdi), cdi); !apierrors.IsNotFound(err) {
		t.Errorf("CDI/cdi is there (%v): this is no deadlock", err)
	}
	t.Logf("three attempts after %s: %s", since.Format(time.TimeOnly), attempts[2])
}

// lastKind is when the newest kind came to be served.
func lastKind(t *testing.T, c *cluster.Cluster) time.Time {
	t.Helper()
	var crds apiextensionsv1.CustomResourceDefinitionList
	if err := c.Client().List(t.Context(), &crds); err != nil {
		t.Fatal(err)
	}
	var last time.Time
	for _, crd := range crds.Items {
		for _, cond := range crd.Status.Conditions {
			if cond.Type == apiextensionsv1.Established && cond.LastTransitionTime.After(last) {
				last = cond.LastTransitionTime.Time
			}
		}
	}
	return last
}

func tierOf(namespace, name string) *kustomizev1.Kustomization {
	return &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func cdiResource() *unstructured.Unstructured {
	cdi := &unstructured.Unstructured{}
	cdi.SetAPIVersion("cdi.kubevirt.io/v1beta1")
	cdi.SetKind("CDI")
	cdi.SetName("cdi")
	return cdi
}

// incidentSeen: one root cause for all that is red, and the remedy.
func incidentSeen(t *testing.T, c *cluster.Cluster, sh *shell, named []string) {
	mark := c.Mark()
	list := decode[tierList](t, sh.want(t, 0, "tiers", "-o", "json"))
	if list.Server.URL != c.URL() || list.Server.UID != uidOf(t, c) {
		t.Errorf("server %+v", list.Server)
	}
	blocked := 0
	for _, it := range list.Items {
		switch it.Object.Name {
		case "flux-system", "platform":
			if it.State != "ready" || it.RootCause != nil {
				t.Errorf("%+v, want it ready", it)
			}
		case "platform-config": // its own cause
			if it.RootCause != nil {
				t.Errorf("%+v has a root cause beside itself: %+v", it.Object, it.RootCause.Object)
			}
		default:
			blocked++
			if it.State != "blocked" || it.RootCause == nil || it.RootCause.Object.Name != "platform-config" {
				t.Errorf("%+v: want it blocked by platform-config", it)
			}
		}
	}
	if blocked != 9 {
		t.Errorf("%d tiers are below platform-config, want 9", blocked)
	}

	o := sh.want(t, 3, "tiers", "--wait")
	o.holds(t, o.stderr, "Kustomization/flux-system/platform-config is wedged and will not become Ready by itself: deadlock: CDI/cdi would create StorageProfile",
		"kubectl standup crds --context test --expect-server "+c.URL())
	t.Logf("the wait ended after %s", o.took.Round(100*time.Millisecond))

	o = sh.want(t, 0, "tiers", "why", "apps-wave-2")
	o.holds(t, o.stdout, "apps-wave-1 is not Ready", "apps-wave-0 is not Ready", "platform-config is not Ready",
		"Deadlock: CDI/cdi would create StorageProfile", "Deployment/cdi/cdi-operator, has 1 of 1 replicas available")

	found := decode[stepReport](t, sh.want(t, 3, append([]string{"standup", "preflight", "-o", "json"}, named...)...)).Steps[0]
	found.Findings = slices.DeleteFunc(found.Findings, func(f stepFinding) bool { return f.Severity == "info" })
	if len(found.Findings) != 1 || found.Findings[0].Rule != "crd-deadlock" ||
		!strings.Contains(found.Findings[0].Message, "it holds up 9 other tiers") || found.Findings[0].Fix != found.Next ||
		found.Next != "kubectl standup crds --context test --expect-server "+c.URL()+" --expect-uid "+uidOf(t, c) {
		t.Errorf("preflight found %+v", found)
	}
	mutatedNothing(t, c, mark)
}

// dryUnwedge: the plan is shown and rehearsed, and nothing is done, also where
// it is asked for without saying on which cluster.
func dryUnwedge(t *testing.T, c *cluster.Cluster, sh *shell) {
	mark := c.Mark()
	o := sh.want(t, 0, "unwedge")
	o.holds(t, o.stdout, "CDI/cdi would create StorageProfile", "CDI/cdi would be applied (server dry run)",
		"Kustomization/flux-system/platform-config would be nudged")
	o.holds(t, o.stderr, "Nothing was changed. To do what deletes nothing: kubectl unwedge --apply --context test --expect-server "+c.URL())
	rehearsed := sent(t, c, mark, "kubectl-unwedge").Where(cluster.Event.DryRun)
	if len(rehearsed) != 1 || rehearsed[0].Resource != "cdis" {
		t.Errorf("rehearsed:\n%s", rehearsed)
	}
	o = sh.want(t, 5, "unwedge", "--apply")
	o.holds(t, o.stderr, "no cluster was named", "--expect-server "+c.URL()+" --expect-uid "+uidOf(t, c))
	mutatedNothing(t, c, mark)
}

// incidentBroken: the trigger is applied, and nothing else, and the tier is
// nudged; when the command ends the kinds are served.
func incidentBroken(t *testing.T, c *cluster.Cluster, sh *shell, named []string) {
	mark := c.Mark()
	o := sh.want(t, 0, append([]string{"standup", "crds"}, named...)...)
	served(t, c, "storageprofiles")
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "storageprofiles.cdi.kubevirt.io"}}
	if err := c.Client().Get(t.Context(), client.ObjectKeyFromObject(crd), crd); err != nil ||
		!slices.ContainsFunc(crd.Status.Conditions, func(cond apiextensionsv1.CustomResourceDefinitionCondition) bool {
			return cond.Type == apiextensionsv1.Established && cond.Status == apiextensionsv1.ConditionTrue
		}) {
		t.Errorf("CRD %s: %v, %v", crd.Name, crd.Status.Conditions, err)
	}
	o.holds(t, o.stderr, "CDI/cdi applied", "StorageProfile served after", "Kustomization/flux-system/platform-config nudged")
	o.holds(t, o.stdout, "1 freed", "Next: kubectl standup resume --context test --expect-server "+c.URL())

	all := sent(t, c, mark, "kubectl-standup")
	if rehearsed := all.Where(cluster.Event.DryRun); len(rehearsed) != 0 {
		t.Errorf("rehearsed:\n%s", rehearsed)
	}
	got := all.Mutating()
	if len(got) != 2 || got[0].Verb != "patch" || got[0].Resource != "cdis" || got[0].Name != "cdi" || got[0].Subresource != "" ||
		got[1].Verb != "patch" || got[1].Resource != "kustomizations" || got[1].Name != "platform-config" || got[1].Subresource != "" {
		t.Errorf("arrived:\n%s\nwant the CDI resource and a nudge", got)
	}
}

// served fails the test when discovery does not show a resource of CDI's.
func served(t *testing.T, c *cluster.Cluster, plural string) {
	t.Helper()
	d, err := discovery.NewDiscoveryClientForConfig(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	list, err := d.ServerResourcesForGroupVersion("cdi.kubevirt.io/v1beta1")
	if err != nil || !slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == plural }) {
		t.Errorf("%s is not in discovery: %v", plural, err)
	}
}

// nothingLeft: Flux has taken the trigger over, as if it had always applied it.
func nothingLeft(t *testing.T, c *cluster.Cluster) {
	cdi := cdiResource()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var managers []string
	err := c.Until(ctx, cdi, func() bool {
		managers = nil
		for _, f := range cdi.GetManagedFields() {
			managers = append(managers, f.Manager+" "+string(f.Operation))
		}
		return slices.Contains(managers, "kustomize-controller Apply")
	})
	if errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("managers %q: Flux did not take it over", managers)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range managers {
		if strings.HasPrefix(m, "kubectl") || strings.HasPrefix(m, "standup") {
			t.Errorf("managers %q: want none of ours", managers)
		}
	}
	want := map[string]string{
		"kustomize.toolkit.fluxcd.io/name":      "platform-config",
		"kustomize.toolkit.fluxcd.io/namespace": "flux-system",
	}
	for key, value := range want {
		if got := cdi.GetLabels()[key]; got != value {
			t.Errorf("label %s is %q, want %q", key, got, value)
		}
	}
	t.Logf("CDI/cdi is managed by %q", managers)
}
